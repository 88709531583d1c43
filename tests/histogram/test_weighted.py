"""histogram with weights: sums are exact and rounded once, on every backend and in any order."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sass import sampled
from support import (
    BFLOAT16,
    COMPLEX,
    DTYPES,
    FLOATS,
    INTEGERS,
    LAYOUTS,
    Backend,
    assert_same,
    random_array,
    run_python,
    scaled,
    special_values,
)

import gpualgo as ga

SIZES = (0, 1, 2, 31, 33, 1023, 1025, 2047, 2049, 4097, scaled(100_003, emulated=9001))


def weighted(backend: Backend, x: Any, weights: Any, *args: Any, **kwargs: Any) -> Any:
    given = tuple(map(backend.to_device, x)) if isinstance(x, tuple) else backend.to_device(x)
    if isinstance(weights, np.ndarray):
        weights = backend.to_device(weights)
    return backend.to_host(ga.histogram(given, *args, weights=weights, **kwargs))


def result_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    wide = {"b": "int64", "i": "int64", "u": "uint64"}
    return np.dtype(wide.get(dtype.kind, dtype)) if dtype != BFLOAT16 else BFLOAT16


def nearest(exact: Fraction, dtype: np.dtype[Any]) -> float:
    """Return the float of a dtype that is nearest to a fraction, ties to even."""
    mantissa, least, beyond = {
        "float16": (11, -24, 16), "bfloat16": (8, -133, 128), "float32": (24, -149, 128),
        "float64": (53, -1074, 1024),
    }[str(dtype)]  # fmt: skip
    if not exact:
        return 0.0
    power = exact.numerator.bit_length() - exact.denominator.bit_length() - mantissa - 1
    unit = Fraction(2) ** power
    while abs(exact) / unit >= 1 << mantissa:
        unit *= 2
    unit = max(unit, Fraction(2) ** least)
    found = round(exact / unit) * unit  # half to even
    if abs(found) >= 2**beyond:
        return math.inf if exact > 0 else -math.inf
    return float(found)


def summed(weights: np.ndarray[Any, Any]) -> Any:
    """Return the sum of weights in their own dtype: as IEEE says, and rounded once."""
    dtype = result_dtype(weights.dtype)
    if dtype.kind == "c":
        return complex(summed(weights.real), summed(weights.imag))
    if dtype.kind in "iu":
        with np.errstate(over="ignore"):
            return weights.astype(dtype).sum(dtype=dtype)
    numbers = weights.astype(np.float64)
    if not np.isfinite(numbers).all():
        with np.errstate(invalid="ignore"):
            return numbers[~np.isfinite(numbers)].sum()
    return nearest(sum(map(Fraction, numbers.tolist()), Fraction(0)), dtype)


def by_loop(places: Any, weights: Any, num_bins: int) -> np.ndarray[Any, Any]:
    """Return the sums of bins, given the bin of each sample, -1 for none."""
    sums = [summed(weights[places == i]) for i in range(num_bins)]
    return np.array(sums).astype(result_dtype(weights.dtype))


def some_weights(n: int, dtype: np.dtype[Any], spread: int = 12) -> np.ndarray[Any, Any]:
    """Return weights of many magnitudes."""
    x = random_array(n, dtype, 5)
    if dtype.kind in "biu":
        return x
    powers = np.random.default_rng(6).integers(-spread, spread, n)
    real = np.dtype("float32") if dtype.itemsize == 2 else dtype
    return (x.astype(real) * np.exp2(powers)).astype(dtype)


@pytest.mark.parametrize("dtype", sampled(DTYPES), ids=str)
def test_every_dtype(backend: Backend, dtype: Any) -> None:
    dtype = np.dtype(dtype)
    x = np.random.default_rng(1).random(1503)
    weights = some_weights(1503, dtype, 5 if dtype.itemsize == 2 else 12)
    want = by_loop((x * 10).astype(int) - 1, weights, 8)
    assert_same(weighted(backend, x, weights, 8, (0.1, 0.9)), want)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", SIZES)
def test_every_size(backend: Backend, size: int, dtype: str) -> None:
    x = np.random.default_rng(size).random(size)
    weights = some_weights(size, np.dtype(dtype))
    got = weighted(backend, x, weights, 3, (0, 3 / 4))
    want = [math.fsum(weights[(x * 4).astype(int) == i].astype(float)) for i in range(3)]
    assert_same(got, np.array(want).astype(dtype))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_all_that_a_dtype_reaches(backend: Backend, dtype: np.dtype[Any]) -> None:
    """From the least to the greatest number, so that most bits of most sums cancel."""
    rng = np.random.default_rng(7)
    bits = rng.integers(0, 1 << 8 * dtype.itemsize, 4000, np.uint64)
    weights = bits.astype(f"u{dtype.itemsize}").view(dtype)
    with np.errstate(invalid="ignore"):
        weights[~np.isfinite(weights.astype(float))] = 1
    weights = np.concatenate([weights, -weights[::2]])
    x = rng.integers(0, 40, weights.size).astype(np.uint8)
    x[4000:] = x[:4000:2]
    got = weighted(backend, x, weights, 40, (0, 40))
    assert_same(got, by_loop(x, weights, 40))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_the_least_and_the_greatest(backend: Backend, dtype: np.dtype[Any]) -> None:
    info: Any = np.finfo(dtype) if dtype != BFLOAT16 else __import__("ml_dtypes").finfo(dtype)
    least, tiny, top = info.smallest_subnormal, info.tiny, info.max
    groups: list[list[Any]] = [
        [least, least, -least], [tiny, -least], [tiny, tiny], [top, top], [-top, -top],
        [top, top, -top], [top, least, -top], [top, top, -top, -top], [-0.0, -0.0], [],
        [tiny, tiny, -tiny, -least], [1.0, info.eps / 2], [1.0, info.eps / 2, least],
        [1.0, info.eps * 1.5], [-1.0, -info.eps / 2, -least], [top, float(top) * info.eps / 4],
    ]  # fmt: skip
    x = np.concatenate([np.full(len(group), i) for i, group in enumerate(groups)])
    weights = np.array([w for group in groups for w in group]).astype(dtype)
    want = by_loop(x, weights, len(groups))
    assert_same(weighted(backend, x, weights, len(groups), (0, len(groups))), want)


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX], ids=str)
def test_what_is_not_finite(backend: Backend, dtype: np.dtype[Any]) -> None:
    special = special_values(dtype)
    pairs = [(a, b) for a in range(len(special)) for b in range(a, len(special))][:300]
    x = np.repeat(np.arange(len(pairs)), 2)
    weights = special[np.array(pairs).ravel()]
    with np.errstate(all="ignore"):
        want = by_loop(x, weights, len(pairs))
    got = weighted(backend, x, weights, len(pairs), (0, len(pairs)))
    if dtype.kind == "c":
        got, want = (a.view(want.real.dtype) for a in (got, want))
    assert_same(got, want)
    assert not np.isnan(weighted(backend, x, np.ones(x.size), 3, (0, 9))).any()  # none is left


def test_weights_of_samples_in_no_bin(backend: Backend) -> None:
    x = np.array([np.nan, -1.0, 9.0, 0.5])
    weights = np.array([np.nan, np.inf, 3.0, 0.25])
    assert_same(weighted(backend, x, weights, [0, 1, 2]), np.array([0.25, 0.0]))


@pytest.mark.parametrize("weights", [2, 0.1, True, 1 + 2j, np.float32(0.1), np.uint8(9), -0.0])
def test_one_number_for_all(backend: Backend, weights: Any) -> None:
    x = np.random.default_rng(2).random(1001)
    array = np.full(1001, weights)
    want = by_loop((x * 4).astype(int), array, 4)
    assert_same(weighted(backend, x, weights, 4, (0, 1)), want)
    assert_same(weighted(backend, x, array[:1].copy(), 4, (0, 1)), want)


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
    if np.dtype(target).kind in "iu":
        want = np.array([converted[places == i].sum(dtype=target) for i in range(4)])
    else:
        want = by_loop(places, converted, 4)
    assert_same(weighted(backend, x, weights, 4, (0, 1), dtype=target), want)
    out = backend.to_device(np.ones(4, target))
    weighted(backend, x, weights, 4, (0, 1), out=out)
    assert_same(backend.to_host(out), want)


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2), ()], ids=str)
def test_axes_and_broadcasting(backend: Backend, axis: Any) -> None:
    x = random_array((6, 5, 7), np.dtype("float32"))
    y = random_array((6, 5, 7), np.dtype("int8"), 1)
    weights = random_array((5, 1), np.dtype("float64"), 2)
    bins, ends = (3, 2), ((-9, 9), (-128, 127))
    got = weighted(backend, (x, y), weights, bins, ends, axis=axis)
    rows = range(3) if axis is None else (axis,) if isinstance(axis, int) else axis
    kept = [a for a in range(3) if a not in rows]
    full = np.broadcast_to(weights, x.shape)
    a, b, w = (array.transpose(*kept, *rows) for array in (x, y, full))
    for index in np.ndindex(*(x.shape[i] for i in kept)):
        one = [np.asarray(array[index]).ravel() for array in (a, b, w)]
        with np.errstate(invalid="ignore"):
            place = [
                np.where(abs(one[0]) <= 9, np.searchsorted([-9, -3, 3], one[0], "right") - 1, -9),
                np.searchsorted([-128, -0.5], one[1], "right") - 1,
            ]
        flat = np.where(place[0] < 0, -1, place[0] * 2 + place[1])
        assert_same(got[index], by_loop(flat, one[2], 6).reshape(3, 2))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_layouts(backend: Backend, guarded: Any, layout: str, axis: int | None) -> None:
    x, weights = random_array((33, 40), np.dtype("f4")), random_array((33, 40), np.dtype("f8"), 1)
    want = weighted(backend, x, weights, 5, (-9, 9), axis=axis)
    out = guarded(want.shape, "float64", layout)
    for first, second in ((layout, layout), (layout, "contiguous"), ("contiguous", layout)):
        given = backend.arrange(first, x), backend.arrange(second, weights)
        ga.histogram(given[0], 5, (-9, 9), weights=given[1], axis=axis, out=out)
        assert_same(backend.to_host(out), want)


TABLES = {"replicas": 3, "one": 3000, "global": 40_000}


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "complex128"])
@pytest.mark.parametrize("bins", TABLES.values(), ids=TABLES)
def test_every_table(backend: Backend, bins: int, dtype: str) -> None:
    """Whatever the table, the sums are those of few bins of it."""
    rng = np.random.default_rng(3)
    size = scaled(300_000, emulated=20_000)
    x = (rng.random(size) ** 4 * bins).astype(np.int32)  # a few bins have many
    weights = some_weights(size, np.dtype(dtype), 40)
    got = weighted(backend, x, weights, bins, (0, bins))
    for i in (0, 1, 2, bins // 2, bins - 1):
        assert_same(got[i : i + 1], by_loop(np.where(x == i, 0, -1), weights, 1))


def test_many_rows(backend: Backend) -> None:
    """More sums than are kept at once take several turns."""
    x = random_array((900, 7), np.dtype("i1"))
    weights = random_array((900, 7), np.dtype("f8"), 1)
    want = weighted(backend, x, weights, 4, (-128, 128), axis=1)
    for row in (0, 450, 899):
        places = (x[row].astype(int) + 128) // 64
        assert_same(want[row], by_loop(places, weights[row], 4))
    with pytest.MonkeyPatch.context() as patch:
        from gpualgo._algorithms.histogram import joint_policy

        patch.setattr(joint_policy, "SUMS_BYTES", 1 << 18)
        ga.histogram(backend.to_device(x), 4, (-128, 128), axis=1)
        again = weighted(backend, x, weights, 4, (-128, 129), axis=1)
    places = (x[899].astype(float) + 128) // (257 / 4)
    assert_same(again[899], by_loop(places.astype(int), weights[899], 4))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.integers(0, 3), st.floats(width=32)), max_size=60))
def test_any_floats(backend: Backend, pairs: list[tuple[int, float]]) -> None:
    x = np.array([place for place, _ in pairs], np.int8)
    weights = np.array([weight for _, weight in pairs], np.float32)
    with np.errstate(all="ignore"):
        want = by_loop(x, weights, 4)
    assert_same(weighted(backend, x, weights, 4, (0, 4)), want)


def test_order_does_not_matter(backend: Backend) -> None:
    rng = np.random.default_rng(9)
    x, weights = rng.random(5000), some_weights(5000, np.dtype("float64"), 300)
    want = weighted(backend, x, weights, 9, (0, 1))
    for _ in range(3):
        order = rng.permutation(5000)
        assert_same(weighted(backend, x[order], weights[order], 9, (0, 1)), want)


def test_threads_do_not_matter() -> None:
    code = """
import numpy as np, gpualgo as ga
rng = np.random.default_rng(0)
n = 3_000_000
x, w = rng.random(n, np.float32), rng.standard_normal(n) * np.exp2(rng.integers(-200, 200, n))
few = ga.histogram(x, 100, (0, 1), weights=w)
rows = ga.histogram(x.reshape(3, -1), 50_000, (0, 1), weights=w.reshape(3, -1), axis=1)
print(hash(few.tobytes() + rows.tobytes()), float(few.sum()))
"""
    results = {
        run_python(code, GPUALGO_NUM_THREADS=str(n), PYTHONHASHSEED="0").stdout for n in (1, 2, 5)
    }
    assert len(results) == 1
    assert results != {""}


def test_carries_between_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Digits are carried on before their words are full: here as if those were narrow."""
    from gpualgo._algorithms.histogram import cpu_joint

    monkeypatch.setattr(cpu_joint, "_MANY", 1 << 15)
    rng = np.random.default_rng(4)
    weights = -np.abs(some_weights(200_000, np.dtype("float64"), 500))
    x = rng.random(200_000)
    got = ga.histogram(x, 3, (0, 1), weights=weights)
    places = (x * 3).astype(int)
    assert got.tolist() == [math.fsum(weights[places == i]) for i in range(3)]
    rows = ga.histogram(x.reshape(4, -1), 3, (0, 1), weights=weights.reshape(4, -1), axis=1)
    for row in range(4):
        part = np.s_[50_000 * row : 50_000 * (row + 1)]
        want = [math.fsum(weights[part][places[part] == i]) for i in range(3)]
        assert rows[row].tolist() == want


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
        assert_same(weighted(backend, x, weights, 3, (0, 3)), by_loop(x, weights, 3))


def test_namedtuples_and_structured_arrays() -> None:
    fields = np.zeros(99, [("a", "f4"), ("b", "i2"), ("w", "f4")])
    rng = np.random.default_rng(0)
    fields["a"], fields["b"], fields["w"] = rng.random(99), rng.integers(0, 4, 99), rng.random(99)
    want = ga.histogram((fields["a"], fields["b"]), (3, 4), ((0, 1), (0, 4)), weights=fields["w"])
    got = ga.histogram(fields[["a", "b"]], (3, 4), ((0, 1), (0, 4)), weights=fields["w"])
    assert_same(got, want)
