"""Operators compute what NumPy 2 computes: where numba by itself would give another number."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import support
from numpy import where
from support import BFLOAT16, Backend, assert_same, since_numpy

import gpualgo as ga

Function = Callable[..., Any]
BIG, PAIR, MIXED = 10**20, (1, 2), (1, 2.5)
HALF, BRAIN = np.float16(1.5), ml_dtypes.bfloat16(1.5)
TABLE = np.arange(4, dtype=np.float32)


def _apply(backend: Backend, fn: Function, *arrays: Any, **more: Any) -> np.ndarray[Any, Any]:
    return backend.to_host(ga.transform(fn, *(backend.to_device(a) for a in arrays), **more))


FLOATS = np.array([1.5, -2, 0], np.float32)
BYTES = np.array([1, -1, 127, -128], np.int8)
WORDS = np.array([0, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)


@pytest.mark.parametrize(
    ("fn", "x", "want"),
    [
        (lambda a: a * 10**20, FLOATS, FLOATS * np.float32(1e20)),
        (lambda a: a * BIG, FLOATS, FLOATS * np.float32(1e20)),
        (lambda a, k=10**20: a * k, FLOATS, FLOATS * np.float32(1e20)),
        (lambda a: float(2**70) * a, FLOATS, FLOATS * np.float32(2**70)),
        (lambda a: np.where(a > 0, a, BIG), FLOATS, np.float32([1.5, 1e20, 1e20])),
        (lambda a: a if a > 0 else 2**70, FLOATS, np.float32([1.5, 2**70, 2**70])),
        (lambda a: a < 2**64, BYTES, BYTES < 2**64),
        (lambda a: -(2**70) < a, BYTES, BYTES > -(2**70)),  # noqa: SIM300
        (lambda a: a == 300, BYTES, BYTES == 300),
        (lambda a: a >= 2**63, WORDS, WORDS >= 2**63),
        (lambda a: a > -1, WORDS, WORDS > -1),
        (lambda a: a / 2**63, WORDS, WORDS / 2**63),
        (lambda a: a + (2**63 - 1), WORDS, WORDS + np.uint64(2**63 - 1)),
        (lambda a: a - 2**70 // 2**69, WORDS, WORDS - np.uint64(2)),
    ],
)
def test_python_integers_of_any_size(backend: Backend, fn: Function, x: Any, want: Any) -> None:
    assert_same(_apply(backend, fn, x), want)


def test_signed_and_unsigned_compare_exactly(backend: Backend) -> None:
    a = np.array([-1, 2**53 + 1, 2**63 - 1, 0], np.int64)
    b = np.array([2**64 - 1, 2**53, 2**63, 0], np.uint64)
    functions: list[Function] = [
        lambda a, b: a < b, lambda a, b: a == b, lambda a, b: b >= a, lambda a, b: a != b,
        np.less_equal,
    ]  # fmt: skip
    for fn in functions:
        assert_same(_apply(backend, fn, a, b), np.asarray(fn(a, b)))


def test_a_float16_is_rounded_once(backend: Backend) -> None:
    x = np.array([1 + 2**-11 + 2**-40, 2**-25 + 2**-60, 65520 - 2**-30, -np.inf, 2**-14])
    assert_same(_apply(backend, lambda a: a, x, dtype="float16"), x.astype(np.float16))
    assert_same(_apply(backend, lambda a: np.float16(a), x), x.astype(np.float16))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_values_that_are_only_moved_keep_their_bits(backend: Backend, name: str) -> None:
    """Also those of a NaN, whose sign and payload a conversion to float32 and back would change."""
    bits = np.uint32 if name == "float32" else np.uint16
    shift = 8 * (bits().itemsize - 2)
    x = (np.arange(1 << 16, dtype=bits) << bits(shift)).view(
        BFLOAT16 if name == "bfloat16" else name
    )
    table, ones = backend.to_device(x), backend.to_device(np.ones(len(x), np.bool_))
    order = backend.to_device(np.arange(len(x)))

    def check(got: Any) -> None:
        assert np.array_equal(backend.to_host(got).view(bits), x.view(bits))

    check(ga.transform(lambda a: a, table))
    check(ga.transform(lambda a, b: (a, b), table, ones)[0])
    check(ga.transform(lambda i: table[i], order))
    check(ga.transform(lambda a, b: a if b else -a, table, ones))
    check(ga.transform(lambda a, b: np.where(b, a, -a), table, ones))
    check(ga.transform(lambda a: np.real(a), table))
    check(ga.transform(lambda a: a, ga.lazy.take(table, order)))
    check(ga.inclusive_scan(table, op=lambda a, b: b))
    check(ga.inclusive_scan((ones, table), op=lambda a, b: b)[1])
    check(ga.reduce(table.reshape(1, -1), op=lambda a, b: b, axis=0))
    check(ga.unique((order, table), consecutive=True, return_index=True)[0][1])
    check(ga.reduce_by_key(order, table, op=lambda a, b: a)[1])


def _bounds(a: Any) -> Any:
    n, total = 3, a
    for i in range(n):
        total = total + i * n
    return total


def _indexes(a: Any) -> Any:
    k = 1
    return a + k + PAIR[k] * 0


def _packs(a: Any) -> Any:
    step, scale = 1, 2
    pair = (step, scale)
    return a * scale + pair[0] + step


def _measures(a: Any) -> Any:
    return a + len(PAIR) * TABLE.shape[0] + TABLE.ndim


def _goes_through(a: Any) -> Any:
    total = a
    for k in (1, 2, 3):
        total = total + k
    for k in PAIR:
        total = total * k
    for i, k in enumerate(PAIR):
        total = total + i * k
    return total


@pytest.mark.parametrize("fn", [_bounds, _indexes, _packs, _measures, _goes_through])
@pytest.mark.parametrize("dtype", ["int8", "float16"])
def test_numbers_stay_weak(
    backend: Backend, fn: Function, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.array([1, 2, 3], dtype)
    monkeypatch.setitem(globals(), "TABLE", backend.to_device(TABLE))
    assert_same(_apply(backend, fn, x), fn(x))


def _goes_through_mixed(a: Any) -> Any:
    total = a
    for k in (1, 2.5):
        total = total + k * a
    for k in MIXED:
        total = total + k
    return total


def _goes_through_pairs(a: Any) -> Any:
    total = a
    for p, q in ((1, 2), (3, 4)):
        total = total + p * q
    for p, q in zip(PAIR, (3, 4)):  # noqa: B905
        total = total - p * q
    return total


def test_loops_over_tuples_of_ints_and_floats(backend: Backend) -> None:
    assert_same(_apply(backend, _goes_through_mixed, FLOATS), _goes_through_mixed(FLOATS))
    assert_same(_apply(backend, _goes_through_pairs, BYTES), _goes_through_pairs(BYTES))
    assert_same(_apply(backend, lambda a: a * MIXED[0], BYTES), BYTES)
    assert_same(_apply(backend, lambda a: a in (1, 2.5), BYTES), BYTES == 1)
    assert_same(_apply(backend, lambda a: a not in {1, 127}, BYTES), np.array([0, 1, 0, 1], bool))


def test_functions_of_constants_are_weak(backend: Backend) -> None:
    assert_same(_apply(backend, lambda a: math.sqrt(2) * a, FLOATS), np.float32(2**0.5) * FLOATS)
    assert_same(_apply(backend, lambda a: np.sqrt(2) * a, FLOATS), np.sqrt(2) * FLOATS)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_division_by_zero(backend: Backend, dtype: str) -> None:
    a = np.array([1 + 2j, 0, 1j, np.nan], dtype)
    with np.errstate(all="ignore"):
        want = a / np.zeros_like(a)
    out = backend.to_device(np.zeros_like(a))
    ga.transform(lambda a, b: a / b, *map(backend.to_device, (a, np.zeros_like(a))), out=out)
    assert_same(backend.to_host(out), want)


def test_captured_16_bit_floats(backend: Backend) -> None:
    assert_same(_apply(backend, lambda a: a * HALF, BYTES), BYTES * HALF)
    brain = FLOATS.astype(BFLOAT16)
    assert_same(_apply(backend, lambda a: a + BRAIN, brain), brain + BRAIN)
    pair = (HALF, 2)
    assert_same(_apply(backend, lambda a: a * pair[0] * pair[1], BYTES), BYTES * HALF * 2)


def test_functions_by_another_name(backend: Backend) -> None:
    assert_same(_apply(backend, lambda a: where(a > 0, a, 0), FLOATS), np.maximum(FLOATS, 0))
    sine = math.sin
    assert_same(_apply(backend, lambda a: sine(a), FLOATS * 0), FLOATS * 0)
    assert_same(_apply(backend, lambda a: _called(abs, a), FLOATS), abs(FLOATS))


def _to_the_power(a: Any, n: Any) -> Any:
    return a if n == 1 else a * _to_the_power(a, n - 1)


def test_a_function_that_calls_itself(backend: Backend) -> None:
    if backend.name == "cpu" or support.is_emulated:  # whose operators are the CPU's
        assert_same(_apply(backend, lambda a: _to_the_power(a, 3), BYTES), BYTES * BYTES * BYTES)
        return
    with pytest.raises(ga.CompileError, match=r"op calls itself.*write a loop"):
        _apply(backend, lambda a: _to_the_power(a, 3), BYTES)


def _called(fn: Function, a: Any) -> Any:
    return fn(a)


@pytest.mark.parametrize("fn", [np.invert, np.signbit, np.bitwise_count, np.square, np.fabs])
def test_functions_of_numpy_as_operators(backend: Backend, fn: Function) -> None:
    assert_same(_apply(backend, fn, BYTES), fn(BYTES))


def test_integers_to_negative_powers(backend: Backend) -> None:
    a, b = np.array([1, -1, -1, 2, 0], np.int8), np.array([-1, -1, -2, -1, -1], np.int8)
    assert_same(_apply(backend, lambda a, b: a**b, a, b), np.array([1, -1, 1, 0, 0], np.int8))
    large = np.array([3, -3], np.int64), np.array([65537, 2**40 + 1], np.int64)
    assert_same(_apply(backend, lambda a, b: a**b, *large), np.power(*large))


def test_two_parts_make_a_complex_number(backend: Backend) -> None:
    want = (FLOATS + 2j).astype(np.complex128)
    assert_same(_apply(backend, lambda a: complex(a, 2), FLOATS), want)
    single = want.astype(np.complex64)
    assert_same(_apply(backend, lambda a: np.complex64(a, 2), FLOATS), single)


class _Step(enum.IntEnum):
    UP = 3
    DOWN = -4


@since_numpy("2.1")
def test_members_of_an_integer_enumeration(backend: Backend) -> None:
    """They are int64 beside an array's numbers, and Python's with each other, as in NumPy."""
    x = np.array([1, 3, -4], np.int8)
    for op in (
        lambda a: a + _Step.UP, lambda a: a * _Step.DOWN, lambda a: a == _Step.UP,
        lambda a: -_Step.DOWN + a, lambda a: np.where(a == _Step.DOWN, _Step.UP, a),
        lambda a: max(_Step.UP, _Step.DOWN) + a, lambda a: (_Step.UP - _Step.DOWN) * a,
        lambda a: a * 0.5 + _Step.UP, lambda a: a + (_Step.UP == _Step.DOWN),
    ):  # fmt: skip
        assert_same(_apply(backend, op, x), op(x))


def test_members_are_not_returned(backend: Backend) -> None:
    with pytest.raises(TypeError, match="not a number"):
        _apply(backend, lambda a: _Step.UP, BYTES)
