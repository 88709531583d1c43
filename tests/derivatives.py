"""Operators whose gradients PyTorch and JAX derive, beside central differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from gpualgo._operators.numpy_rules import table

POINTS = (0.3, 0.7, -0.4, 1.6, -2.3)
# Their results are complex, or they are none of a number.
_LEFT_OUT = ("plain", "contains", "pair", "cmath", "part", "construct", "bool")


def every_function() -> Iterator[tuple[str, Any, Any]]:
    """Yield each function of operators: its name, ``g(b)``, and an operator that adds it."""
    for entry in table.ENTRIES:
        f = table.function_of(entry)
        if f is None or entry.style in _LEFT_OUT:
            continue
        for count in range(max(1, entry.arity[0]), min(entry.arity[1], 3) + 1):
            others: Any = {1: (), 2: (0.6,), 3: (-1, 1)}[count]
            if entry.does == "round" and count == 2:
                others = (1,)
            if entry.does == "where":
                yield entry.name, *_chosen(f)
            else:
                yield entry.name, *_called(f, others)


def _called(f: Any, others: tuple[Any, ...]) -> tuple[Any, Any]:
    if not others:
        return lambda b: f(b), lambda a, b: a + f(b) * 1.0
    if len(others) == 1:
        other = others[0]
        return lambda b: f(b, other), lambda a, b: a + f(b, other) * 1.0
    low, high = others
    return lambda b: f(b, low, high), lambda a, b: a + f(b, low, high)


def _chosen(f: Any) -> tuple[Any, Any]:
    return lambda b: f(b > 0.5, b * b, 3.0), lambda a, b: a + f(b > 0.5, b * b, 3.0)


def difference(g: Any, b: float) -> float | None:
    """Return the derivative of g at b; None where it has none, or no real one."""
    step = 1e-5
    try:
        with np.errstate(all="ignore"):
            values = [g(b + step), g(b - step)]
            found = (float(values[0]) - float(values[1])) / (2 * step)
    except (TypeError, ValueError, ArithmeticError):
        return None
    return found if math.isfinite(found) else None


def refused_of_all(gradient: Callable[..., Any]) -> dict[str, str]:
    """Compare ``gradient(op, a, b)`` with differences; return what it refuses, with the errors."""
    refused = {}
    for name, g, op in every_function():
        for b in POINTS:
            wanted = difference(g, b)
            if wanted is None:
                continue
            try:
                found = gradient(op, 0.25, b)
            except TypeError as error:
                refused[name] = str(error)
                continue
            assert found == pytest.approx(wanted, rel=1e-5, abs=1e-5), (name, b)
    return refused


def weighted(b: Any) -> Any:
    total = 0.0
    for i in range(3):
        total = total + b * i
    for i in range(1, 3):
        total += b * i
    return total


def shared(a: Any, b: Any) -> Any:
    """Return a + b + b * b, by names that hold the same number for a while."""
    term = b * 1.0
    total = term
    term *= b
    total += term
    return a + total


def halved(a: Any, b: Any) -> Any:
    a += b
    before = a
    a *= 0.5
    a -= b
    return before + a * 0


def until_one(a: Any, b: Any) -> Any:
    """Return the sum of values behind the last flag that is 1, from pairs of flag and value."""
    return b[0], np.where(np.equal(b[0], 1.0), b[1], a[1] + b[1])


def by_number(a: Any, b: Any) -> Any:
    """Combine values of pairs of value and number by the order of their numbers."""
    return np.where(a[1] >= b[1], a[0] * b[0], a[0] + b[0]), b[1]


two, many = 2, 10**20
# Operators with their derivatives by b at 2.
OPERATORS: list[tuple[Any, float]] = [
    (lambda a, b: a + weighted(b), 6.0),
    (shared, 5.0),
    (halved, 1.0),
    (lambda a, b: a + b * math.pow(2, -1), 0.5),
    (lambda a, b: a + b * (math.exp(100) * 1e-43), math.exp(100) * 1e-43),
    (lambda a, b: a + b * math.sqrt(2), math.sqrt(2)),
    (lambda a, b: a + b * math.sqrt(two), math.sqrt(2)),
    (lambda a, b: a + b * np.sqrt(2), math.sqrt(2)),
    (lambda a, b: a + b * math.log(10), math.log(10)),
    (lambda a, b: a + b * (1 / max(3, 2)), 1 / 3),
    (lambda a, b: a + math.pow(2, b), 4 * math.log(2)),
    (lambda a, b: a + np.power(3, b), 9 * math.log(3)),
    (lambda a, b: a + max(b, 0.5, a), 1.0),
    (lambda a, b: a + b * ((b > 0) * 1e300) * 1e-300, 1.0),
    (lambda a, b: a + b * ((b > 0) * 0.1), 0.1),
    (lambda a, b: a + b * np.where(two > 1, 3.0, 1.0), 3.0),
    (lambda a, b: a + b * (np.uint8(100) + np.uint8(50)), 150.0),
    (lambda a, b: a + b * (np.float32(1) / np.float32(3)), float(np.float32(1) / np.float32(3))),
    (lambda a, b: a + b * np.where(b > 0, 1, 2) / 3, 1 / 3),
    (lambda a, b: a + b * math.tau, math.tau),
    (lambda a, b: a + b * (b // 0.1), 19.0),
    (lambda a, b: a + b * (7 // b), 3.0),
]
