"""searchsorted of many queries in a long array, through samples of it on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Backend

import gpualgo as ga

Host = np.ndarray[Any, Any]
SIDES = ("left", "right")
LENGTHS = [1 << 15, (1 << 15) - 1, (1 << 15) + 1, (1 << 15) + 7, 70_001]


def numbers(length: int, dtype: Any, seed: int) -> Host:
    found = np.random.default_rng(seed).integers(0, 1 << 20, length)
    return (found % 128 if np.dtype(dtype).itemsize < 2 else found % 30_000).astype(dtype)


def check(backend: Backend, a: Any, v: Any, want: Host, **options: Any) -> None:
    np.testing.assert_array_equal(backend.to_host(ga.searchsorted(a, v, **options)), want)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("length", LENGTHS)
def test_lengths(backend: Backend, length: int, side: str) -> None:
    a, v = np.sort(numbers(length, "float32", 1)), numbers(2500, "float32", 2) - 5
    a[-3:], v[:3], v[3:6] = np.nan, np.nan, [np.inf, -np.inf, a[0]]
    want = np.searchsorted(a, v, side=side)  # type: ignore[call-overload]
    check(backend, backend.to_device(a), backend.to_device(v), want, side=side)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16", "int64", "float64"])
def test_dtypes(backend: Backend, dtype: str) -> None:
    a, v = np.sort(numbers(40_003, dtype, 1)), numbers(1500, dtype, 2)
    want = np.searchsorted(a, v)
    check(backend, backend.to_device(a), backend.to_device(v), want)


def test_two_dtypes(backend: Backend) -> None:
    a, v = np.sort(numbers(40_003, "int32", 1)), numbers(1500, "float64", 2) + 0.5
    check(backend, backend.to_device(a), backend.to_device(v), np.searchsorted(a, v))


@pytest.mark.parametrize("offset", [1, 2])
def test_misaligned(backend: Backend, offset: int) -> None:
    a, v = np.sort(numbers(40_003, "int32", 1)), numbers(1500, "int32", 2)
    want = np.searchsorted(a[offset:], v)
    check(backend, backend.to_device(a)[offset:], backend.to_device(v), want)


def test_every_third_and_falling(backend: Backend) -> None:
    a, v = np.sort(numbers(120_007, "int32", 1)), numbers(1500, "int32", 2)
    want = np.searchsorted(a[::3], v, side="right")
    check(backend, backend.to_device(a)[::3], backend.to_device(v), want, side="right")
    falling = len(a) - np.searchsorted(a, v, side="right")
    check(backend, backend.to_device(a)[::-1], backend.to_device(v), falling, descending=True)


def test_by_a_function(backend: Backend) -> None:
    a = np.sort(numbers(40_003, "int32", 1))
    v = numbers(1500, "int32", 2)
    got = ga.searchsorted(
        backend.to_device(a), backend.to_device(v), less=lambda x, y: x // 7 < y // 7
    )
    np.testing.assert_array_equal(backend.to_host(got), np.searchsorted(a // 7, v // 7))


def test_what_is_not_sorted_is_not_left(backend: Backend) -> None:
    a, v = numbers(40_003, "int32", 1), numbers(1500, "int32", 2)
    got = backend.to_host(ga.searchsorted(backend.to_device(a), backend.to_device(v)))
    assert ((got >= 0) & (got <= len(a))).all()
