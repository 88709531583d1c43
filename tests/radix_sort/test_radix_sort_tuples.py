"""radix_sort and argsort of elements of several numbers: order, dtypes, sizes, values, axes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from lexical import check, lexical_order, some
from support import BFLOAT16, REAL, Backend, a_few, is_emulated, scaled
from test_radix_sort import assert_bits

import gpualgo as ga

# Warps, blocks and tiles, each with its neighbours.
SIZES = (0, 1, 2, 3, 31, 32, 33, 127, 128, 129, 257, 1023, 1024, 1025, 4096, 4097)
LONG = scaled((16_385, 40_001, 150_001), emulated=(9_001,))
PAIRS = [
    ("int32", "float32"),
    ("float32", "int32"),
    ("uint8", "uint16"),
    ("bool", "float16"),
    (BFLOAT16, "int8"),
    ("float64", "float64"),
    ("int64", "uint8"),
    ("int16", "float64"),
]
SAMPLE = PAIRS[:1] + PAIRS[4:6] if is_emulated else PAIRS
ALL = [
    pytest.param(*pair, marks=pytest.mark.exhaustive) for pair in itertools.product(REAL, repeat=2)
]
WAYS: list[Any] = [False, True, (False, True), (True, False)]


@pytest.mark.parametrize(("first", "second"), [*SAMPLE, *ALL], ids=str)
def test_dtypes_in_pairs(backend: Backend, first: Any, second: Any) -> None:
    for n, descending in itertools.product((33, scaled(3001, emulated=601)), WAYS):
        keys = some(n, first, n), some(n, second, n + 1)
        check(backend, keys, (np.arange(n, dtype=np.int32),), descending=descending)


@pytest.mark.parametrize("n", SIZES)
def test_sizes(backend: Backend, n: int) -> None:
    """One word, and two groups."""
    values = np.arange(n, dtype=np.uint32), np.arange(n, dtype=np.int64)
    check(backend, (some(n, "int16"), some(n, "float32")), values, descending=(True, False))
    check(backend, (some(n, "float64"), some(n, "int8"), some(n, "uint8", 5)), values)


@pytest.mark.parametrize("n", LONG)
@pytest.mark.parametrize(("first", "second"), SAMPLE[:6], ids=str)
def test_long(backend: Backend, first: Any, second: Any, n: int) -> None:
    keys = some(n, first), some(n, second, 1)
    check(backend, keys, (np.arange(n, dtype=np.int16),), descending=(False, True))


def test_more_than_the_caches_hold(backend: Backend) -> None:
    """On the CPU lines of words are gathered, and all cores share the row."""
    n = scaled(1_000_003, emulated=9_003)
    values = np.arange(n), np.arange(n, dtype=np.float32)
    check(backend, (some(n, "float32"), some(n, "uint8")), values)
    if not is_emulated:
        check(backend, (some(n, "int32"), some(n, "float64")), values, descending=(True, False))


@pytest.mark.parametrize(
    "dtypes",
    [
        ("uint8",) * 8,
        ("int8", "uint16", "float32"),
        ("uint8", "uint64", "uint8"),
        ("float32",) * 5,
        ("float64", "bool", "int16", BFLOAT16, "uint64"),
        ("float16", "float16", "float16"),
        ("uint16",),
        ("float64",),
    ],
    ids=str,
)
def test_more_numbers(backend: Backend, dtypes: tuple[Any, ...]) -> None:
    """Up to eight, in one word or several groups; the first are equal in most elements."""
    n = scaled(2003, emulated=303)
    keys = tuple(some(n, dtype, seed) for seed, dtype in enumerate(dtypes))
    keys = tuple(key[np.arange(n) % (i + 2)] for i, key in enumerate(keys))
    ways = tuple(i % 3 == 1 for i in range(len(keys)))
    for descending in a_few((False, ways)):
        check(backend, keys, (np.arange(n, dtype=np.uint8),), descending=descending)


@pytest.mark.parametrize("descending", WAYS, ids=str)
def test_zeros_and_nans_are_equal_and_keep_their_bits(backend: Backend, descending: Any) -> None:
    for dtype in a_few(("float16", "float32", "float64")):
        special = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.0], dtype)
        first = np.repeat(special, 14)
        second = np.tile(np.array([1, 0], np.int32), 49)
        check(backend, (first, second), (np.arange(98),), descending=descending)
        check(backend, (second, first), (np.arange(98),), descending=descending)


# --- values -------------------------------------------------------------------------------------

VALUES: dict[str, tuple[Any, ...]] = {
    "a word of 4": ("uint8", "int16"),
    "a word of 8": ("float32", "int32"),
    "a word of 16": ("int16", "float64", "uint8", "float32"),
    "one number": ("complex64",),
    "one that is fetched": ("complex128",),
    "fetched": ("complex128", "float64", "uint8"),
    "many": ("int64",) * 8,
}


@pytest.mark.parametrize("kind", VALUES)
def test_values(backend: Backend, kind: str) -> None:
    for n in (33, scaled(5003, emulated=1103)):
        values = tuple(some(n, "int64", i).astype(d) for i, d in enumerate(VALUES[kind]))
        check(backend, (some(n, "int16"), some(n, "uint8")), values)
        check(backend, (some(n, "int64"), some(n, "uint8")), values, descending=True)


@pytest.mark.parametrize("kind", ["a word of 8", "fetched"])
def test_values_of_plain_keys(backend: Backend, kind: str) -> None:
    n = scaled(5003, emulated=1103)
    keys = some(n, "int32")
    values = tuple(some(n, "int64", i).astype(d) for i, d in enumerate(VALUES[kind]))
    for options in ({}, {"begin_bit": 3, "end_bit": 20}):
        decides = (keys.view(np.uint32) >> 3 & 0x1FFFF) if options else keys
        order = np.argsort(decides, kind="stable")
        given = tuple(map(backend.to_device, values))
        got, moved = ga.radix_sort(backend.to_device(keys), given, **options)
        assert_bits(backend.to_host(got), keys[order])
        for mine, other in zip(moved, values, strict=True):
            assert_bits(backend.to_host(mine), other[order])


def test_values_of_any_items() -> None:
    keys = some(301, "int16"), some(301, "float16")
    order = lexical_order(keys)
    texts = np.array([f"{i:03}" for i in range(301)])
    dates = np.arange(301).astype("M8[s]")
    records = np.zeros(301, [("a", "i4"), ("b", "S5")])
    records["a"] = np.arange(301)
    _, (got_texts, got_dates) = ga.radix_sort(keys, (texts, dates))
    assert_bits(got_texts, texts[order])
    assert_bits(got_dates, dates[order])
    _, (small, big) = ga.radix_sort(keys, (dates.astype("M8[s]"), np.arange(301, dtype=">i2")))
    assert_bits(small, dates[order])
    assert_bits(big, np.arange(301, dtype=">i2")[order])
    _, moved = ga.radix_sort(keys, records)  # as whole items
    assert_bits(moved, records[order])


# --- layouts and axes ---------------------------------------------------------------------------

AXES = [((40, 33), 1), ((40, 33), 0), ((40, 33), None), ((5, 300, 7), 1), ((3, 2100), 1)]


@pytest.mark.parametrize(("shape", "axis"), AXES, ids=str)
def test_axes(backend: Backend, shape: tuple[int, ...], axis: int | None) -> None:
    values = some(shape, "int16", 4), some(shape, "float32", 5)
    check(backend, (some(shape, "uint8"), some(shape, "float32")), values, axis=axis)
    check(backend, (some(shape, "float64"), some(shape, "int32")), values[:1], axis=axis)


def test_arrays_are_broadcast(backend: Backend) -> None:
    rows, columns = some((1, 70), "int16"), some((9, 1), "float32")
    for axis in a_few((0, 1, None)):
        values = some((70,), "int8", 2), some((9, 1), "int64", 3)
        check(backend, (rows, columns), values, axis=axis)
        check(backend, (columns, rows, some(70, "float64")), values, axis=axis)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "uint64"])
def test_dtypes_of_indices(backend: Backend, dtype: str) -> None:
    for keys in ((some(999, "int16"), some(999, "int8")), (some(999, "f8"), some(999, "f8", 1))):
        got = ga.argsort(tuple(map(backend.to_device, keys)), dtype=dtype)
        assert_bits(backend.to_host(got), lexical_order(keys).astype(dtype))
        out = backend.to_device(np.zeros((999, 2), dtype))[:, 0]
        assert ga.argsort(tuple(map(backend.to_device, keys)), out=out) is out
        assert_bits(backend.to_host(out), lexical_order(keys).astype(dtype))
