"""The dtype and the value of an expression with Python numbers, as NumPy 2 has them (NEP 50)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support import (
    BFLOAT16,
    COMPLEX,
    DTYPES,
    FLOATS,
    INTEGERS,
    Backend,
    a_few,
    assert_same,
    random_array,
    sampled,
)

import gpualgo as ga

Function = Callable[..., Any]


def _check(backend: Backend, fn: Function, *arrays: np.ndarray[Any, Any]) -> None:
    with np.errstate(all="ignore"):
        want = fn(*arrays)
    if all(a.dtype == BFLOAT16 for a in arrays) and want.dtype.kind == "f":
        want = want.astype(BFLOAT16)  # ml_dtypes makes float32 of bfloat16 and a Python float
    result = ga.transform(fn, *(backend.to_device(a) for a in arrays))
    assert_same(backend.to_host(result), want, zero_signs=False)


def _values(dtype: np.dtype[Any], seed: int = 0) -> np.ndarray[Any, Any]:
    if dtype.kind in "biu":
        return random_array(100, dtype, seed)
    # Small integers and halves: products and sums of a few are exact in every float dtype.
    return (np.random.default_rng(seed).integers(-6, 7, 100) / 2).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_literals_beside_every_dtype(backend: Backend, dtype: np.dtype[Any]) -> None:
    _check(backend, lambda a: 3 * a - 2, _values(dtype))
    _check(backend, lambda a: a * 2.0 + 1, _values(dtype))


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS], ids=str)
def test_division_and_powers(backend: Backend, dtype: np.dtype[Any]) -> None:
    _check(backend, lambda a: a / 2, _values(dtype))
    _check(backend, lambda a: a**2, _values(dtype))


@pytest.mark.parametrize("dtype", ["bool", "int16", "float16", "float32", "float64", "complex64"])
def test_complex_literals(backend: Backend, dtype: str) -> None:
    _check(backend, lambda a: a + 2j, _values(np.dtype(dtype)))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_expressions(backend: Backend, dtype: np.dtype[Any]) -> None:
    x = _values(dtype)
    _check(backend, lambda a: (a & 12) | (a >> 1) ^ 3, x)
    _check(backend, lambda a: a // 3 + a % 7, x)
    _check(backend, lambda a: -a, x)


@pytest.mark.parametrize("dtype", [np.dtype("int8"), np.dtype("uint32"), *FLOATS[:3]], ids=str)
def test_conditions_with_literals(backend: Backend, dtype: np.dtype[Any]) -> None:
    x = _values(dtype)
    device = backend.to_device(x)
    result = ga.transform(lambda a: a if a > 1 else 0, device)
    assert_same(backend.to_host(result), np.where(x > 1, x, dtype.type(0)))
    result = ga.transform(lambda a: max(a, 1), device)
    assert_same(backend.to_host(result), np.maximum(x, dtype.type(1)))
    _check(backend, lambda a: a > 1, x)


def test_a_float_literal_in_one_branch(backend: Backend) -> None:
    x = _values(np.dtype("int16"))
    result = ga.transform(lambda a: a if a > 1 else 0.5, backend.to_device(x))
    assert_same(backend.to_host(result), np.where(x > 1, x, 0.5))


def test_variables_hold_weak_values(backend: Backend) -> None:
    def polynomial(a: Any) -> Any:
        scale = 1.5
        result = scale * a
        for _ in range(3):
            result = result * a + 2
        return result

    _check(backend, polynomial, _values(np.dtype("float32")))
    _check(backend, polynomial, _values(np.dtype("int16")))


def _shift(a: Any, by: Any) -> Any:
    return a + by


def test_weak_through_a_call(backend: Backend) -> None:
    _check(backend, lambda a: _shift(a, 1) * 2.0, _values(np.dtype("float32")))
    _check(backend, lambda a: _shift(a, 1), _values(np.dtype("int8")))
    _check(backend, lambda a: _shift(a, 0.5), _values(np.dtype("float16")))


PAIRED = [np.dtype(t) for t in ("bool", "int8", "uint8", "int32", "uint64", "float16", "float32")]


PAIRS = list(itertools.combinations([*PAIRED, *COMPLEX], 2))


@pytest.mark.parametrize("pair", sampled(PAIRS, PAIRS[::3]), ids=str)
def test_promotion_of_two_dtypes(backend: Backend, pair: tuple[np.dtype[Any], ...]) -> None:
    left, right = pair
    _check(backend, lambda a, b: a + b, _values(left), _values(right, seed=1))


def test_promotion_of_bfloat16(backend: Backend) -> None:
    x = _values(BFLOAT16)
    for dtype in a_few(("bfloat16", "float32", "float64")):
        _check(backend, lambda a, b: a + b, x, _values(np.dtype(dtype), seed=1))


def test_integers_wrap_at_their_own_width(backend: Backend) -> None:
    _check(backend, lambda a: a + 1, np.array([127, -128], np.int8))
    _check(backend, lambda a: (a + 1) // 2, np.array([127, -128], np.int8))
    _check(backend, lambda a, b: a * b >> 1, *[np.array([200, 255], np.uint8)] * 2)
    _check(backend, lambda a: a * 3 // 3, np.array([2**63, 2**64 - 1], np.uint64))
    _check(backend, lambda a: (a + 1) / 2, np.array([127], np.int8))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats_round_at_every_step(backend: Backend, dtype: np.dtype[Any]) -> None:
    """1 + eps/2 is 1 in the dtype, and would be more in a wider one."""
    eps = float(ml_dtypes.finfo(dtype).eps)
    x, one = np.array([eps / 2, eps, 1.5 * eps], dtype), dtype.type(1)
    device = backend.to_device(x)
    for fn in (lambda a: (a + 1.0) - 1.0, lambda a: (1 + a) - 1):
        assert_same(backend.to_host(ga.transform(fn, device)), (x + one) - one)


def test_a_literal_that_does_not_fit_is_refused(backend: Backend) -> None:
    x = backend.to_device(np.array([1], np.int8))
    with pytest.raises((OverflowError, ValueError, TypeError, ga.CompileError), match="300"):
        ga.transform(lambda a: a + 300, x)
