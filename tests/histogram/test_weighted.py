"""histogram with weights: sums of every dtype and value, in an order that repeats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import support
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sums_of_weights import assert_sums, some_weights, weighted
from support import (
    BFLOAT16,
    COMPLEX,
    DTYPES,
    FLOATS,
    INTEGERS,
    Backend,
    assert_same,
    random_array,
    sampled,
    scaled,
    special_values,
)

SIZES = (0, 1, 2, 31, 33, 1023, 1025, 2047, 2049, 4097, scaled(100_003, emulated=9001))


@pytest.mark.parametrize("dtype", sampled(DTYPES), ids=str)
def test_every_dtype(backend: Backend, dtype: Any) -> None:
    dtype = np.dtype(dtype)
    x = np.random.default_rng(1).random(1503)
    weights = some_weights(1503, dtype, 5 if dtype.itemsize == 2 else 12)
    got = weighted(backend, x, weights, 8, (0.1, 0.9))
    assert_sums(got, (x * 10).astype(int) - 1, weights)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", SIZES)
def test_every_size(backend: Backend, size: int, dtype: str) -> None:
    x = np.random.default_rng(size).random(size)
    weights = some_weights(size, np.dtype(dtype))
    got = weighted(backend, x, weights, 3, (0, 3 / 4))
    assert_sums(got, (x * 4).astype(int), weights)


@pytest.mark.parametrize("bins", [13, 40_000])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_the_least_and_the_greatest(backend: Backend, dtype: np.dtype[Any], bins: int) -> None:
    info: Any = np.finfo(dtype) if dtype != BFLOAT16 else __import__("ml_dtypes").finfo(dtype)
    least, tiny, top = info.smallest_subnormal, info.tiny, info.max
    groups: list[list[Any]] = [
        [least, least, -least], [tiny, -least], [tiny, tiny], [top, -top], [top, -top, tiny],
        [-0.0, -0.0], [], [tiny, tiny, -tiny, -least], [1.0, info.eps / 2], [top, top * 0],
        [1.0, info.eps * 1.5], [-1.0, -info.eps / 2, -least], [top, float(top) * info.eps / 4],
    ]  # fmt: skip
    x = np.concatenate([np.full(len(group), i) for i, group in enumerate(groups)])
    weights = np.array([w for group in groups for w in group]).astype(dtype)
    got = weighted(backend, x, weights, bins, (0, bins))
    assert_sums(got[: len(groups)], x, weights)


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX], ids=str)
def test_what_is_not_finite(backend: Backend, dtype: np.dtype[Any]) -> None:
    special = special_values(dtype)
    special = special[~(abs(special.astype(complex)) > 1e3) | ~np.isfinite(special)]  # no overflow
    pairs = [(a, b) for a in range(len(special)) for b in range(a, len(special))][:300]
    x = np.repeat(np.arange(len(pairs)), 2)
    weights = special[np.array(pairs).ravel()]
    got = weighted(backend, x, weights, len(pairs), (0, len(pairs)))
    assert_sums(got, x, weights)
    assert not np.isnan(weighted(backend, x, np.ones(x.size), 3, (0, 9))).any()  # none is left


@pytest.mark.parametrize("bins", [5, 3000, 40_000])
def test_the_same_bits_again(backend: Backend, bins: int) -> None:
    """Between other calls, into other memory, with other neighbours on the GPU."""
    size = scaled(300_000, emulated=9000)
    x, weights = np.random.default_rng(2).random(size), some_weights(size, np.dtype("float32"))
    want = weighted(backend, x, weights, bins, (0, 1)).tobytes()
    for n in (1, size // 2, 7):
        weighted(backend, x[:n], weights[:n], bins, (0, 1))
        assert weighted(backend, x, weights, bins, (0, 1)).tobytes() == want


def test_weights_of_samples_in_no_bin(backend: Backend) -> None:
    x = np.array([np.nan, -1.0, 9.0, 0.5])
    weights = np.array([np.nan, np.inf, 3.0, 0.25])
    assert_same(weighted(backend, x, weights, [0, 1, 2]), np.array([0.25, 0.0]))


@pytest.mark.parametrize("weights", [2, 0.1, True, 1 + 2j, np.float32(0.1), np.uint8(9), -0.0])
def test_one_number_for_all(backend: Backend, weights: Any) -> None:
    x = np.random.default_rng(2).random(1001)
    array = np.full(1001, weights)
    places = (x * 4).astype(int)
    assert_sums(weighted(backend, x, weights, 4, (0, 1)), places, array)
    assert_sums(weighted(backend, x, array[:1].copy(), 4, (0, 1)), places, array)


CASTS = [
    ("int32", "float64"), ("int64", "int8"), ("float32", "float64"), ("float64", "float32"),
    ("uint8", "int16"), ("bool", "uint8"), ("float32", "complex64"), ("uint64", "int64"),
    ("int16", "float16"), ("complex128", "complex64"), ("uint16", "uint16"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target"), CASTS)
def test_other_dtypes_of_sums(backend: Backend, source: str, target: str) -> None:
    """Weights are converted first, as by astype."""
    x = np.random.default_rng(2).random(501)
    weights = some_weights(501, np.dtype(source), 3)
    if target == "float16":
        weights = weights % 100
    with np.errstate(over="ignore"):
        converted = weights.astype(target)
    places = (x * 4).astype(int)
    sums = converted.astype(np.int64) if np.dtype(target).kind in "iu" else converted
    got = weighted(backend, x, weights, 4, (0, 1), dtype=target)
    assert got.dtype == target
    out = backend.to_device(np.ones(4, target))
    weighted(backend, x, weights, 4, (0, 1), out=out)
    assert_same(backend.to_host(out), got)
    if sums is converted:
        assert_sums(got, places, sums)
    else:
        want = np.array([converted[places == i].sum(dtype=target) for i in range(4)])
        assert_same(got, want)


@settings(max_examples=support.examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.tuples(st.integers(0, 3), st.floats(-(2.0**90), 2.0**90, width=32)), max_size=60)
)
def test_any_floats(backend: Backend, pairs: list[tuple[int, float]]) -> None:
    x = np.array([place for place, _ in pairs], np.int8)
    weights = np.array([weight for _, weight in pairs], np.float32)
    assert_sums(weighted(backend, x, weights, 4, (0, 4)), x, weights)


def test_integers_wrap(backend: Backend) -> None:
    top = np.iinfo(np.int64).max
    weights = np.array([top, 1, top, top, -1, np.iinfo(np.int64).min] * 50)
    x = np.zeros(300, np.int8)
    with np.errstate(over="ignore"):
        assert_same(weighted(backend, x, weights, 1, (0, 1)), np.array([weights.sum()]))
    unsigned = weights.view(np.uint64)
    want = np.array([unsigned.sum()])
    assert_same(weighted(backend, x, unsigned, 1, (0, 1)), want)


def test_every_integer(backend: Backend) -> None:
    x = np.arange(600) % 3
    for dtype in INTEGERS:
        weights = random_array(600, dtype)
        assert_sums(weighted(backend, x, weights, 3, (0, 3)), x, weights)
