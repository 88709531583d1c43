"""Keys alone, sorted by NumPy's sort with threads' runs merged: the bits of the stable sort."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support import a_few
from test_radix_sort import assert_bits, stable_order

import gpualgo as ga
from gpualgo._algorithms.radix_sort import cpu_numpy
from gpualgo._algorithms.radix_sort.problem import Sort
from gpualgo._base import dtypes, threads

DTYPES = ("int32", "uint32", "float32", "int64", "uint64", "float64")
HALVES = ("float16", "bfloat16")
SIZES = (
    0,
    1,
    2,
    3,
    257,
    5000,
    cpu_numpy.CHECK_SORTED_KEYS - 1,
    cpu_numpy.CHECK_SORTED_KEYS,
    cpu_numpy.CHECK_SORTED_KEYS + 1,
    100_077,
)
LONG = 100_003  # shared by threads here


@pytest.fixture(autouse=True)
def by_numpy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Sort by NumPy wherever it can be, whatever this processor is."""
    monkeypatch.setattr(cpu_numpy, "is_vectorised", lambda: True)
    monkeypatch.setattr(cpu_numpy, "_has_narrow_vectors", lambda: True)
    monkeypatch.setattr(cpu_numpy, "SHARED_BYTES", 1 << 18)
    monkeypatch.setattr(cpu_numpy, "_RUN_BYTES", 1 << 16)
    _forget()
    with ga.default_device("cpu"):
        yield
    _forget()


def _forget() -> None:
    Sort.problems.clear()


def _use(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(threads, "num_threads", lambda: count)
    monkeypatch.setattr(threads, "_num_cores", lambda: count)
    monkeypatch.setattr(threads, "_pool", None)


def _keys(dtype: str, shape: Any, seed: int = 0) -> np.ndarray[Any, Any]:
    """Return keys of which many are equal: of floats zeros of both signs, NaNs of all kinds."""
    random, kind = np.random.default_rng(seed), dtypes.from_name(dtype)
    if dtypes.kind(kind) != "f":
        info = np.iinfo(kind)
        keys = random.integers(info.min, info.max, shape, dtype=kind, endpoint=True)
        return np.where(random.random(shape) < 0.5, keys, keys & kind.type(3))
    keys = random.standard_normal(shape).astype(kind)
    chosen = random.integers(0, 8, shape)
    for place, value in enumerate((0.0, -0.0, np.nan, -np.nan, np.inf)):
        keys = np.where(chosen == place, kind.type(value), keys)
    bits, payload = keys.view(f"u{kind.itemsize}"), random.integers(0, 9, shape)
    bits += np.where(np.isnan(keys), payload, 0).astype(bits.dtype)
    return keys


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("dtype", [*DTYPES, "int16", "uint16", *HALVES])
def test_bits_of_the_stable_sort(dtype: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _use(monkeypatch, count)
    for n, descending in itertools.product(SIZES, (False, True)):
        keys = _keys(dtype, n, seed=n)
        want, before = keys[stable_order(keys, descending)], keys.copy()
        for _ in range(2):  # the second time it is prepared
            assert_bits(ga.radix_sort(keys, descending=descending), want)
        assert_bits(keys, before)
        assert ga.radix_sort(keys, descending=descending, out=keys) is keys
        assert_bits(keys, want)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bfloat16"])
@pytest.mark.parametrize("shape", [(7, 33), (300, 100), (4000, 3), (2, LONG), (5, 0), (1, 9)])
def test_rows(dtype: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    _use(monkeypatch, 3)
    for axis, descending in itertools.product((0, 1), (False, True)):
        keys = _keys(dtype, shape)
        want = np.take_along_axis(keys, stable_order(keys, descending, axis), axis)
        assert_bits(ga.radix_sort(keys, descending=descending, axis=axis), want)
        ga.radix_sort(keys, descending=descending, axis=axis, out=keys)
        assert_bits(keys, want)


@pytest.mark.parametrize("dtype", [*DTYPES, "float16"])
@pytest.mark.parametrize("n", [5000, LONG])
def test_keys_that_are_in_order(dtype: str, n: int) -> None:
    keys = np.sort(_keys(dtype, n))
    rows = keys, keys[::-1].copy(), keys[stable_order(keys, True)]  # NaNs last, first, last
    for given, descending in itertools.product(rows, (False, True)):
        want = given[stable_order(given, descending)]
        assert_bits(ga.radix_sort(given, descending=descending), want)


@pytest.mark.parametrize("dtype", ["float32", "float64", *HALVES])
@pytest.mark.parametrize("value", [0.0, -0.0, np.nan, 1.0, np.inf])
def test_keys_of_one_kind(dtype: str, value: float) -> None:
    keys = np.full(1000, value, dtypes.from_name(dtype))
    keys[3] = -keys[3]
    for descending in a_few((False, True)):
        want = keys[stable_order(keys, descending)]
        assert_bits(ga.radix_sort(keys, descending=descending), want)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", HALVES)
def test_every_float_of_two_bytes(dtype: str, descending: bool) -> None:
    """Each pattern of bits once."""
    bits = np.random.default_rng(0).permutation(1 << 16).astype(np.uint16)
    keys = bits.view(dtypes.from_name(dtype)).reshape(4, -1)
    want = np.take_along_axis(keys, stable_order(keys, descending), -1)
    for _ in range(2):
        assert_bits(ga.radix_sort(keys, descending=descending), want)
    for row, expected in zip(keys, want, strict=True):
        assert_bits(ga.radix_sort(row, descending=descending), expected)
    ga.radix_sort(keys, descending=descending, out=keys)
    assert_bits(keys, want)


def test_one_nan_among_many_keeps_its_bits() -> None:
    for place in (0, 70_000, 99_999):
        keys = np.random.default_rng(0).random(100_000)
        keys.view(np.uint64)[place] = 0xFFF8_0000_DEAD_BEEF
        assert ga.radix_sort(keys).view(np.uint64)[-1] == 0xFFF8_0000_DEAD_BEEF


@pytest.mark.parametrize("layout", ["gaps", "reversed", "misaligned", "read-only", "flattened"])
@pytest.mark.parametrize("dtype", ["float64", "uint32", *HALVES])
def test_layouts(layout: str, dtype: str) -> None:
    keys = _keys(dtype, 6000)
    given = {
        "gaps": lambda: np.repeat(keys, 2)[::2],
        "reversed": lambda: keys[::-1].copy()[::-1],
        "misaligned": lambda: _misaligned(keys),
        "read-only": lambda: keys,
        "flattened": lambda: keys.reshape(60, 100),
    }[layout]()
    given.flags.writeable = layout != "read-only"
    axis = None if layout == "flattened" else -1
    for _ in range(3):
        assert_bits(ga.radix_sort(given, axis=axis), keys[stable_order(keys)])


def _misaligned(keys: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    memory = np.zeros(keys.nbytes + 1, np.uint8)
    place = memory[1:].view(keys.dtype)
    place[...] = keys
    return place


def test_what_numpy_does_not_sort(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bits, values, orders and narrow keys go by digits."""
    monkeypatch.setattr(cpu_numpy, "sort_of", None)
    keys = np.random.default_rng(0).integers(0, 1 << 20, 3000)
    some = ga.radix_sort(keys, begin_bit=8)
    assert_bits(some, keys[stable_order(keys >> 8)])
    assert_bits(ga.radix_sort(keys, np.arange(3000))[1], stable_order(keys))
    assert_bits(ga.argsort(keys), stable_order(keys))
    assert_bits(ga.radix_sort(keys.astype(np.int8)), np.sort(keys.astype(np.int8)))


def test_a_fixed_table_says_in_how_many_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert cpu_numpy.num_runs(cpu_numpy.SHARED_BYTES - 1, 16) == 1
    found = [cpu_numpy.num_runs(1 << 23, count) for count in (1, 2, 3, 4, 16, 64)]
    assert found == [1, 2, 2, 4, 4, 4]


@pytest.mark.parametrize(
    ("features", "is_zen4", "expected"),
    [
        ({"AVX2": True, "AVX512_SKX": True}, False, True),
        ({"AVX2": True, "AVX512_SKX": True}, True, False),
        ({"AVX2": True, "AVX512_SKX": False}, True, True),
        ({"X86_V3": True, "X86_V4": False, "AVX512_SKX": True}, True, True),
        ({"X86_V3": False}, False, False),
        ({"NEON": True}, False, False),
    ],
)
def test_which_processors_sort_by_numpy(
    features: dict[str, bool], is_zen4: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    holder = type("Module", (), {"__cpu_features__": features})
    monkeypatch.setattr(cpu_numpy, "import_module", lambda _: holder)
    monkeypatch.setattr(cpu_numpy, "_is_zen4", lambda: is_zen4)
    monkeypatch.setattr(cpu_numpy, "_has_vectors", cpu_numpy._has_vectors.__wrapped__)
    found = cpu_numpy.is_vectorised.__wrapped__()
    assert found is expected
    monkeypatch.setattr(cpu_numpy, "is_vectorised", lambda: found)
    has_any = expected or is_zen4  # vectors of any speed are best for few keys
    assert cpu_numpy.is_by_numpy(np.dtype("f4"), 512) is has_any
    assert cpu_numpy.is_by_numpy(np.dtype("f4"), 513) is expected


@pytest.mark.parametrize("has_them", [False, True])
def test_which_processors_sort_narrow_keys(has_them: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    holder = type("Module", (), {"__cpu_features__": {"AVX512_ICL": has_them}})
    monkeypatch.setattr(cpu_numpy, "import_module", lambda _: holder)
    monkeypatch.setattr(cpu_numpy, "_has_narrow_vectors", cpu_numpy._has_narrow_vectors.__wrapped__)
    monkeypatch.setattr(cpu_numpy, "is_vectorised", lambda: True)
    half, dtype = np.dtype(np.float16), np.dtype(np.uint16)
    assert not cpu_numpy.is_by_numpy(half, 9)
    for count, most in ((1, 1 << 20), (2, 1 << 19), (64, 1 << 19)):
        _use(monkeypatch, count)
        assert cpu_numpy.is_by_numpy(dtype, most) is has_them
        assert not cpu_numpy.is_by_numpy(dtype, most + 1)
    monkeypatch.setattr(cpu_numpy, "is_vectorised", lambda: False)
    assert cpu_numpy.is_by_numpy(dtype, 512) is has_them
    assert not cpu_numpy.is_by_numpy(dtype, 513)
    assert not cpu_numpy.is_by_numpy(np.dtype(np.int8), 9)


@pytest.mark.parametrize("runs", [2, 4, 8])
@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_runs_are_merged(runs: int, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _use(monkeypatch, 3)
    for n in (runs, 1000, 40_001):
        keys = _keys(dtype, n)
        run = -(-n // runs)
        parts = [np.sort(keys[run * i : run * (i + 1)]) for i in range(runs)]
        merged = np.empty_like(keys)
        cpu_numpy.merge(np.concatenate(parts), merged, run)
        parts = [np.sort(np.concatenate(parts[i : i + 2])) for i in range(0, runs, 2)]
        np.testing.assert_array_equal(merged, np.concatenate(parts))
