"""Arrays that are broadcast, turned, short or narrow, beside CuPy, PyTorch and a copy."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import gpualgo as ga
from gpualgo._bench.support import OURS, Row, Work, as_tensor, gpu, torch

CUB = ()


def _x(shape: tuple[int, int]) -> Any:
    """Return small integers, whose sums are exact."""
    numbers = gpu().random.default_rng(0).integers(-2, 3, shape)
    return numbers.astype("float32")


def _difference(p: Any, q: Any) -> Any:
    return p - q


def _beside(ours: Callable[[], Any], theirs: Callable[[Any], Any], x: Any) -> Work:
    """Return work of CuPy and of torch on the same memory; `theirs` takes either's array."""
    contenders: dict[str, Any] = {OURS: ours, "CuPy": lambda: theirs(x)}
    if torch():
        tensor = as_tensor(x)
        contenders["torch"] = lambda: theirs(tensor)
    return Work(contenders, theirs(x))


def _row(n: int, shape: tuple[int, int]) -> Work:
    x = _x(shape)
    return _beside(lambda: ga.transform(_difference, x, x[:1]), lambda a: a - a[:1], x)


def _column(n: int, shape: tuple[int, int]) -> Work:
    x = _x(shape)
    return _beside(lambda: ga.transform(_difference, x, x[:, :1]), lambda a: a - a[:, :1], x)


def _turned(n: int, shape: tuple[int, int]) -> Work:
    """Into C order; the copy of as many is what it can reach."""
    x = _x(shape)
    out, copied = gpu().empty(shape[::-1], "float32"), gpu().empty_like(x)
    contenders: dict[str, Any] = {
        OURS: lambda: ga.transform(lambda a: a, x.T, out=out),
        "CuPy": lambda: gpu().ascontiguousarray(x.T),
        "copy": lambda: (gpu().copyto(copied, x), copied)[1].T,
    }
    if torch():
        tensor = as_tensor(x)
        contenders["torch"] = lambda: tensor.T.contiguous()
    return Work(contenders, x.T)


def _sum(n: int, shape: tuple[int, int], axis: int) -> Work:
    x = _x(shape)
    return _beside(lambda: ga.reduce(x, axis=axis), lambda a: a.sum(axis), x)


def _every_second(n: int, shape: tuple[int, int]) -> Work:
    x = _x(shape)
    return _beside(lambda: ga.reduce(x[:, ::2]), lambda a: a[:, ::2].sum(), x)


def _cumsum(n: int, shape: tuple[int, int]) -> Work:
    x = _x(shape)
    out, copied = gpu().empty_like(x), gpu().empty_like(x)
    want = gpu().cumsum(x, 0)
    contenders: dict[str, Any] = {
        OURS: lambda: ga.inclusive_scan(x, axis=0, out=out),
        "copy": lambda: (gpu().copyto(copied, want), copied)[1],
    }
    return Work(contenders, want)


def rows() -> list[Row]:
    """Return all rows, those that need a GPU among them."""
    found = []

    def add(
        name: str, build: Callable[..., Work], shape: tuple[int, int], bytes_moved: int,
        beside: str = "", **more: Any,
    ) -> None:  # fmt: skip
        made = functools.partial(build, shape=shape, **more)
        n = shape[0] * shape[1]
        found.append(
            Row(
                f"{name}, {shape}", n, "device", made, bytes_moved * n, beside=beside,
                dtype="f32", of_its_size=True,
            )
        )  # fmt: skip

    for shape in ((1 << 18, 1 << 10), (1 << 22, 64)):
        add("transform, x - row", _row, shape, 8)
        add("transform, x - column", _column, shape, 8)
        add("transform, x.T into C order", _turned, shape, 8, "copy")
    add("sum over axis 0", _sum, (1 << 26, 3), 4, axis=0)
    add("sum over axis 0", _sum, (1 << 10, 1 << 18), 4, axis=0)
    add("sum over axis 1", _sum, (1 << 24, 16), 4, axis=1)
    add("sum of x[:, ::2]", _every_second, (1 << 18, 1 << 10), 4)
    add("sum of x[:, ::2]", _every_second, (1 << 26, 3), 4)
    for shape in ((1 << 21, 128), (1 << 22, 64), (1 << 23, 32), (1 << 24, 16)):
        add("cumsum over axis 0", _cumsum, shape, 8, "copy")
    return found
