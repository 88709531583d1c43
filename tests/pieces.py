"""Calls on arrays in pieces beside those on whole arrays: `pieces.txt` lists them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tables
from support import a_few

import gpualgo as ga

TABLE = Path(__file__).with_name("pieces.txt")
RNG = np.random.default_rng(7)
N = 400


def leaves(x: Any) -> list[Any]:
    """Return the arrays of a result."""
    return [leaf for item in x for leaf in leaves(item)] if isinstance(x, tuple) else [x]


def compose(a: Any, b: Any) -> Any:
    """Return the product of two permutations of three things: no two factors may be swapped."""
    turn = (a % 3 + b % 3 * (1 - 2 * (a // 3))) % 3
    return (a // 3 + b // 3) % 2 * 3 + turn


def affine(f: Any, g: Any) -> Any:
    """Return the function that is f and then g, each ``a·x + b`` modulo a prime."""
    return (f[0] * g[0] % 97, (f[1] * g[0] + g[1]) % 97)


def first(a: Any, b: Any) -> Any:
    """Return the first."""
    return a


def last(a: Any, b: Any) -> Any:
    """Return the last."""
    return b


def _records() -> np.ndarray[Any, Any]:
    found = np.zeros((12, 10), [("factor", "i8"), ("term", "i8")])
    found["factor"], found["term"] = RNG.integers(1, 97, (2, 12, 10))
    return found


NAMES: dict[str, Any] = {
    "np": np, "ga": ga, "operator": operator, "compose": compose, "affine": affine, "N": N,
    "first": first, "last": last,
    "named": lambda f, g: (f.factor * g.factor % 97, (f.term * g.factor + g.term) % 97),
    "H": RNG.integers(0, 6, (12, 10)), "CUBE": RNG.integers(0, 6, (3, 5, 4)),
    "A": RNG.integers(1, 97, (12, 10)), "B": RNG.integers(0, 97, (12, 10)),
    "SMALL": RNG.integers(0, 100, 50).astype(np.int8), "RECORDS": _records(),
    "NAMES": RNG.choice(np.array(["x", "yy", "z"]), N),
    "V": lambda n: np.arange(n) * 7919 % 31 % 6,
    "KEYS": {
        "random": RNG.random(N), "equal": np.ones(N), "rising": np.arange(N),
        "few": RNG.integers(0, 3, N).astype(np.float32), "falling": np.arange(N)[::-1].copy(),
        "nan": np.where(RNG.random(N) < 0.3, np.nan, RNG.integers(0, 9, N)),
        "zeros": np.where(RNG.random(N) < 0.5, -0.0, 0.0), "bool": RNG.random(N) < 0.5,
        "half": RNG.standard_normal(N).astype(np.float16),
        "wide": RNG.integers(-(1 << 63), 1 << 63, N, endpoint=False),
        # Sorted, then dealt to eight pieces in stretches.
        "dealt": np.arange(N).reshape(-1, 8).T.reshape(-1) // 40 * 40.0,
    },
}  # fmt: skip


def faults(
    kind: str, cut: Callable[..., Any], call: Callable[..., Any], check: Callable[[Any, Any], None],
    share: int = 1,
) -> list[str]:  # fmt: skip
    """Return which calls of the table differ, of arrays that `cut` cuts."""
    found = []
    rows = [text for words, text in tables.lines(TABLE, r"[\w$].*\)$") if kind in words]
    for text in a_few(rows[::share], 50):
        name, _, arguments = text.partition("(")

        def as_given(*args: Any, **options: Any) -> Any:
            return args, options

        try:
            args, options = eval(f"given({arguments}", {**NAMES, "given": as_given, "c": cut})
            got = call(getattr(ga, name), *args, **options)
            whole = {**NAMES, "given": as_given, "c": lambda x, axis=0: x}
            args, options = eval(f"given({arguments}", whole)
            check(got, getattr(ga, name)(*args, **options))
        except Exception as error:
            found.append(f"{text}\n    {error!r}"[:500])
    return found
