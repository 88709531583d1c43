"""NumPy arrays where a GPU is: by "auto", by each backend, NumPy's call, CuPy with both copies."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._bench.support import OURS, Row, Work, gpu

CUB = ()  # these rows compile nothing of it
POWERS = (10, 16, 20, 24, 27)
BINS = 256

Call = Callable[[Any, Any], Any]  # of a library, or of gpualgo, and an array


def _sum(a: Any, b: Any) -> Any:
    return a + b


def _twice(a: Any) -> Any:
    return a * 2 + 1


OUR_CALLS: dict[str, Callable[[Any], Any]] = {
    "sum by a lambda": lambda x: ga.reduce(x, 0.0, _sum),
    "scan": lambda x: ga.inclusive_scan(x),
    "transform": lambda x: ga.transform(_twice, x),
    "sort": lambda x: ga.radix_sort(x),
    "argsort": lambda x: ga.argsort(x),
    "histogram": lambda x: ga.histogram(x, BINS, (-0.5, 0.5)),
}
THEIR_CALLS: dict[str, Call] = {
    "sum by a lambda": lambda xp, x: xp.sum(x),
    "scan": lambda xp, x: xp.cumsum(x),
    "transform": lambda xp, x: x * 2 + 1,
    "sort": lambda xp, x: xp.sort(x),
    "argsort": lambda xp, x: xp.argsort(x, kind="stable"),
    "histogram": lambda xp, x: xp.histogram(x, BINS, (-0.5, 0.5))[0],
}
EXACT = ("sort", "argsort", "histogram", "transform")


def _on(device: str, call: Callable[[Any], Any], x: Any) -> Any:
    with ga.default_device(device):
        return call(x)


def _work(name: str, n: int) -> Work:
    x = np.random.default_rng(0).random(n, np.float32) - np.float32(0.5)
    ours, theirs = OUR_CALLS[name], THEIR_CALLS[name]
    contenders: dict[str, Any] = {OURS: functools.partial(_on, "auto", ours, x)}
    contenders["gpualgo, cpu"] = functools.partial(_on, "cpu", ours, x)
    contenders["NumPy"] = functools.partial(theirs, np, x)
    contenders["gpualgo, cuda"] = functools.partial(_on, "cuda", ours, x)
    contenders["CuPy, both copies"] = lambda: gpu().asnumpy(theirs(gpu(), gpu().asarray(x)))
    expected = np.asarray(theirs(np, x))
    return Work(contenders, expected, 0.0 if name in EXACT else 1e-2, any_dtype=True)


def rows() -> list[Row]:
    """Return the rows, which need a GPU."""
    found = []
    for name in OUR_CALLS:
        for power in POWERS:
            n = 1 << power
            build = functools.partial(_work, name)
            moved = 4 * n * (2 if name not in ("sum by a lambda", "histogram") else 1)
            found.append(
                Row(f"NumPy array, {name}, f32", n, "wall", build, moved, power in (20, 24))
            )
    return found
