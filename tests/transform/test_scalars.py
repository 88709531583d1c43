"""Numbers beside arrays: as if the operator captured them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import BFLOAT16, COMPLEX, FLOATS, INTEGERS, Backend

import gpualgo as ga

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "lambda": lambda a, b: a - b,
    "operator": operator.sub,
    "ufunc": np.subtract,
    "recognised": operator.mul,
    "extreme": max,
}


def _rare(name: str) -> Any:
    return pytest.param(name, marks=pytest.mark.exhaustive)


SCALARS = [2, -3, 0.5, 1.5 + 2j, True, np.int8(3), np.float32(2.5), np.uint64(9), np.float64(-0.0)]


@pytest.mark.parametrize("dtype", ["int16", "float32", *map(_rare, ("float16", "complex64"))])
@pytest.mark.parametrize("name", ["lambda", "extreme", *map(_rare, BINARY)])
@pytest.mark.parametrize("scalar", SCALARS, ids=lambda s: f"{type(s).__name__} {s}")
def test_on_either_side(backend: Backend, name: str, scalar: Any, dtype: str) -> None:
    op = BINARY[name]
    if name == "extreme" and "complex" in f"{dtype} {type(scalar)}":
        pytest.skip("complex numbers have no order in Python")
    x = np.array([0, 1, 2, 5, 100]).astype(dtype)
    for arguments in ((x, scalar), (scalar, x)):
        given = [backend.to_device(a) if a is x else a for a in arguments]
        with np.errstate(all="ignore"):
            expected = np.array([op(*p) for p in zip(*map(_each, arguments))])  # noqa: B905
        found = backend.to_host(ga.transform(op, *given))
        if name != "extreme":  # of which Python gives the one or the other, with its own type
            assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def _each(argument: Any) -> Any:
    return argument if isinstance(argument, np.ndarray) else [argument] * 5


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, *COMPLEX], ids=str)
def test_python_numbers_are_weak(backend: Backend, dtype: Any) -> None:
    x = np.array([1, 2, 3]).astype(dtype)
    found = backend.to_host(ga.transform(lambda a, k, b: a * k + b, backend.to_device(x), 2, 1))
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, x * x.dtype.type(2) + x.dtype.type(1))


def test_many_values_in_a_plan_and_in_place(backend: Backend) -> None:
    x = backend.to_device(np.arange(7.0))
    for k in range(5):
        ga.transform(lambda a, s, t: a + s * t, x, float(k), 2, out=x)
    np.testing.assert_array_equal(backend.to_host(x), np.arange(7.0) + 20)
    plan = ga.prepare(ga.transform, lambda a, s: a * s, x, 3.0)
    np.testing.assert_array_equal(backend.to_host(plan(x)), (np.arange(7.0) + 20) * 3)


def test_operators_do_not_share_what_is_learnt_of_others(backend: Backend) -> None:
    """One needs its number's value, the other does not."""
    x = np.arange(1.0, 5.0)
    given = backend.to_device(x)
    for k in (1, 2, 3):
        rounded = ga.transform(lambda a, d: np.round(a / 3, d), given, k)
        np.testing.assert_array_equal(backend.to_host(rounded), np.round(x / 3, k))
        scaled = ga.transform(lambda a, d: a * d, given, k)
        np.testing.assert_array_equal(backend.to_host(scaled), x * k)


def test_bfloat16(backend: Backend) -> None:
    x = np.array([1, 2, 3], BFLOAT16)
    for k in (x[1], x[2]):
        found = ga.transform(lambda a, b: a * b, backend.to_device(x), k)
        np.testing.assert_array_equal(backend.to_host(found), x * k)
