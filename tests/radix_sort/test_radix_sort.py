"""Sorts of one row: order, stability, values, places, bits. Axes: test_radix_sort_axis.py."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from support import (
    BFLOAT16,
    FLOATS,
    INTEGERS,
    REAL,
    Backend,
    a_few,
    need_memory,
    random_array,
    scaled,
)

import gpualgo as ga

# Warps, blocks and tiles, each with its neighbours.
SIZES = (
    *(0, 1, 2, 31, 32, 33, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097),
    *(7679, 7680, 7681, 15_359, 15_360, 15_361, 16_383, 16_384, 16_385, 32_769, 100_003),
)
LONG = scaled(150_001, emulated=20_011)  # more than any block sorts alone, and worth all cores
HUGE = scaled(1_000_003, emulated=25_013)  # with values more than caches hold


def stable_order(keys: np.ndarray[Any, Any], descending: bool = False, axis: int = -1) -> Any:
    """Return NumPy's stable order; descending floats by those of the opposite sign: NaN is last."""
    if keys.dtype == BFLOAT16:
        keys = keys.astype(np.float32)
    if descending:  # of integers ~x falls as x rises
        keys = -keys if keys.dtype.kind == "f" else ~keys
    return np.argsort(keys, axis=axis, kind="stable")


def assert_bits(got: Any, want: np.ndarray[Any, Any]) -> None:
    """Assert the same dtype, shape and bytes."""
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    assert np.ascontiguousarray(got).tobytes() == np.ascontiguousarray(want).tobytes()


def check_pairs(
    backend: Backend, keys: np.ndarray[Any, Any], values: np.ndarray[Any, Any], **options: Any
) -> None:
    """Sort keys alone, their places, and keys with values: as in NumPy's order, bit for bit."""
    order = stable_order(keys, options.get("descending", False))
    device = backend.to_device(keys)
    assert_bits(backend.to_host(ga.argsort(device, **options)), order.astype(np.int64))
    assert_bits(backend.to_host(ga.radix_sort(device, **options)), keys[order])
    sorted_keys, moved = ga.radix_sort(device, backend.to_device(values), **options)
    assert_bits(backend.to_host(sorted_keys), keys[order])
    assert_bits(backend.to_host(moved), values[order])
    assert_bits(backend.to_host(device), keys)


def special_floats(dtype: np.dtype[Any], n: int) -> np.ndarray[Any, Any]:
    """Return n floats, of which every bit counts: NaNs of both signs, zeros, infinities, tiny."""
    bits = {2: np.uint16, 4: np.uint32, 8: np.uint64}[dtype.itemsize]
    infinity = int(np.array(np.inf).astype(dtype).view(bits))
    sign = 1 << 8 * dtype.itemsize - 1
    kinds = [0, 1, 2, infinity - 1, infinity, infinity + 1, infinity | infinity >> 1, sign - 1]
    pool = np.array([kind | s for kind in kinds for s in (0, sign)], bits)
    rng = np.random.default_rng(n)
    picked = rng.choice(pool, n)
    numbers = random_array(n, dtype).view(bits)
    return np.where(rng.random(n) < 0.7, picked, numbers).view(dtype)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_every_key_dtype(backend: Backend, dtype: np.dtype[Any], descending: bool) -> None:
    for n in a_few((100, 5003, LONG), 2):
        keys = random_array(n, dtype, seed=n)
        check_pairs(backend, keys, np.arange(n, dtype=np.uint32), descending=descending)


@pytest.mark.parametrize("n", [*SIZES, HUGE])
def test_every_size(backend: Backend, n: int) -> None:
    check_pairs(backend, random_array(n, FLOATS[2]), np.arange(n))
    check_pairs(backend, random_array(n, np.dtype("uint64")), np.arange(n, dtype=np.uint32))
    few = random_array(n, np.dtype("int16")) % 5
    check_pairs(backend, few.astype("int16"), np.arange(n, dtype=np.uint32), descending=True)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats_bit_for_bit(backend: Backend, dtype: np.dtype[Any], descending: bool) -> None:
    """Zeros of both signs are equal, NaNs last and equal: they keep their bits and their order."""
    for n in a_few((64, 3000, LONG), 2):
        keys = special_floats(dtype, n)
        check_pairs(backend, keys, np.arange(n, dtype=np.int32), descending=descending)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("n", [50, 3000, LONG, HUGE])
def test_values_of_every_size(backend: Backend, dtype: str, n: int) -> None:
    values = random_array(n, np.dtype(dtype), seed=1)
    for kind in a_few((FLOATS[2], np.dtype("uint8"))):
        check_pairs(backend, random_array(n, kind), values)


RECORDS = np.dtype([("id", "i4"), ("name", "S3"), ("x", "f8")])


@pytest.mark.parametrize(
    "dtype",
    [
        "S3",
        "V5",
        "V8",
        "S8",
        "U2",
        "V12",
        "U4",
        "V100",
        "M8[ns]",
        "m8[s]",
        "longdouble",
        ">i4",
        RECORDS,
    ],
)
def test_values_of_any_dtype(backend: Backend, dtype: Any) -> None:
    for n in (0, 70, 5000, LONG):
        keys = random_array(n, np.dtype("int32")) % 1000
        raw = np.random.default_rng(5).integers(0, 256, n * np.dtype(dtype).itemsize, np.uint8)
        values = raw.view(dtype)
        order = stable_order(keys)
        sorted_keys, moved = ga.radix_sort(keys, values)
        assert_bits(sorted_keys, keys[order])
        assert_bits(moved, values[order])
        out = (keys, values)
        assert ga.radix_sort(keys, values, out=out) is out
        assert_bits(values, moved)


PATTERNS = {
    "all equal": lambda n: np.full(n, 7),
    "two keys": lambda n: np.arange(n) * 2654435761 % 11 % 2,
    "few keys": lambda n: np.arange(n) * 2654435761 % 1009 % 7,
    "sorted": np.arange,
    "reversed": lambda n: np.arange(n)[::-1],
    "sorted but for the last": lambda n: np.append(np.arange(n - 1), 0),
    "one stands out": lambda n: (np.arange(n) == n // 2) * (1 << 30),
    "runs": lambda n: np.arange(n) // 300 % 13,
    "negative": lambda n: -(np.arange(n) % 97),
}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("dtype", ["int32", "float64", "int8"])
def test_stability(backend: Backend, pattern: str, dtype: str) -> None:
    for n in (100, 6000, LONG):
        keys = PATTERNS[pattern](n).astype(dtype)
        for descending in a_few((False, True)):
            check_pairs(backend, keys, np.arange(n, dtype="i4"), descending=descending)


@pytest.mark.parametrize("digits", list(itertools.product([0, 1], repeat=4)), ids=str)
def test_any_set_of_passes(backend: Backend, digits: tuple[int, ...]) -> None:
    """Digits that are the same in all keys are skipped: an odd or even number of passes remains."""
    mask = sum(0xFF << 8 * i for i, is_used in enumerate(digits) if is_used)
    for n in a_few((5000, LONG)):
        keys = random_array(n, np.dtype("uint32")) & np.uint32(mask) | np.uint32(0x40404040 & ~mask)
        values = np.arange(n, dtype=np.uint64)
        check_pairs(backend, keys, values)
        order = stable_order(keys)
        x, y = backend.to_device(keys.copy()), backend.to_device(values.copy())
        ga.radix_sort(x, y, out=(x, y))
        assert_bits(backend.to_host(x), keys[order])
        assert_bits(backend.to_host(y), values[order])
        alone = backend.to_device(keys.copy())
        assert ga.radix_sort(alone, out=alone) is alone
        assert_bits(backend.to_host(alone), keys[order])


BITS = [(0, 8), (3, 4), (5, 21), (7, 8), (8, 16), (0, 1), (16, 32), (31, 32), (0, 32), (24, 27)]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_some_bits(backend: Backend, dtype: np.dtype[Any]) -> None:
    width = 8 * dtype.itemsize
    unsigned = np.dtype(f"u{dtype.itemsize}")
    flip = unsigned.type(1 << width - 1 if dtype.kind == "i" else 0)
    ranges = [(b, e) for b, e in BITS if e <= width] + [(width - 1, width), (width - 5, width)]
    for n, (begin, end) in a_few(list(itertools.product((90, 3000, LONG), ranges)), 8):
        keys = random_array(n, dtype, seed=end)
        code = (keys.view(unsigned) ^ flip) >> begin & unsigned.type((1 << end - begin) - 1)
        order = stable_order(code, descending=bool(begin & 1))
        options = {"begin_bit": begin, "end_bit": end, "descending": bool(begin & 1)}
        result = ga.radix_sort(backend.to_device(keys), **options)
        assert_bits(backend.to_host(result), keys[order])
    assert_bits(backend.to_host(ga.radix_sort(backend.to_device(keys), begin_bit=np.int64(0),
                                              end_bit=width)), np.sort(keys))  # fmt: skip


@pytest.mark.parametrize("n", [300, LONG])
def test_one_of_two_in_place(backend: Backend, n: int) -> None:
    keys, values = random_array(n, np.dtype("int64")), np.arange(n, dtype=np.uint8)
    order = stable_order(keys)
    for which in (0, 1):
        x, y = backend.to_device(keys.copy()), backend.to_device(values.copy())
        out = (x, backend.xp.empty_like(y)) if which == 0 else (backend.xp.empty_like(x), y)
        ga.radix_sort(x, y, out=out)
        assert_bits(backend.to_host(out[0]), keys[order])
        assert_bits(backend.to_host(out[1]), values[order])


@pytest.mark.parametrize("dtype", ["uint8", "uint32"])
def test_beyond_32_bits(cuda: Backend, dtype: str) -> None:
    n, step = 2**31 + 12_345, 1 << 28
    need_memory(cuda, 5 * n * np.dtype(dtype).itemsize)
    xp = cuda.xp
    keys = xp.empty(n, dtype)
    counts, sums = xp.zeros(256, np.int64), []
    for start in range(0, n, step):
        mixed = xp.arange(start, min(start + step, n), dtype=np.uint64)
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(32)
        keys[start : start + step] = mixed.astype(dtype)
    top = 8 * (keys.itemsize - 1)
    result = ga.radix_sort(keys)
    for array, sign in ((keys, 1), (result, -1)):
        for start in range(0, n, step):
            part = array[start : start + step]
            counts += sign * xp.bincount((part >> top).astype(np.uint8), minlength=256)
            sums.append(sign * int(part.sum(dtype=np.uint64)))
    for start in range(0, n, step):
        part = result[start : start + step + 1]
        assert bool((part[1:] >= part[:-1]).all())
    assert not counts.any()
    assert sum(sums) == 0
