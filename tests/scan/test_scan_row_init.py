"""Scans from a start for each line: order, layouts, in place, dtypes, tuples, plans, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import DTYPES, LAYOUTS, Backend, affine, assert_same, compose, sampled, summable

import gpualgo as ga

SHAPES: list[tuple[tuple[int, ...], int]] = [
    ((2003, 7), 1),
    ((2, 20_011), 1),
    ((3001, 2), 0),
    ((9, 33, 70), 1),
    ((5, 1), 1),
    ((300, 40), 0),
]
Way = tuple[Any, bool]
WAYS: list[Way] = [
    (ga.inclusive_scan, False),
    (ga.exclusive_scan, False),
    (ga.inclusive_scan, True),
    (ga.exclusive_scan, True),
]
every_way = pytest.mark.parametrize(
    "way", WAYS, ids=lambda way: f"{way[0].__name__}{'_reversed' * way[1]}"
)


def _scanned(way: Way, op: Any, x: Any, init: Any, axis: int) -> Any:
    """Return what a loop along the axis gives."""
    function, is_reverse = way
    lines = np.moveaxis(x, axis, 0)[:: -1 if is_reverse else 1]
    found, total = [], init
    for element in lines:
        before, total = total, op(total, element)
        found.append(before if function is ga.exclusive_scan else total)
    made = np.stack(found)[:: -1 if is_reverse else 1] if found else np.empty_like(lines)
    return np.moveaxis(made, 0, axis)


def _starts(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


@every_way
@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
def test_starts_come_first(backend: Backend, way: Way, shape: tuple[int, ...], axis: int) -> None:
    x, init = affine(shape), affine(_starts(shape, axis), seed=3)
    given = backend.to_device(x), backend.to_device(init)
    result = way[0](*given, compose, axis=axis, reverse=way[1])
    want = _scanned(way, compose, x, init, axis)
    assert_same(backend.to_host(result), want)
    assert way[0](*given, compose, axis=axis, reverse=way[1], out=given[0]) is given[0]
    assert_same(backend.to_host(given[0]), want)
    assert_same(backend.to_host(given[1]), init)


@every_way
@pytest.mark.parametrize("op", [lambda a, b: a, lambda a, b: b], ids=["first", "last"])
def test_first_and_last(backend: Backend, way: Way, op: Any) -> None:
    x, init = affine((37, 130)), affine(37, seed=4)
    given = backend.to_device(x), backend.to_device(init)
    result = way[0](*given, op, axis=1, reverse=way[1])
    assert_same(backend.to_host(result), _scanned(way, op, x, init, 1))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("axis", [0, 2])
def test_layouts(backend: Backend, layout: str, axis: int) -> None:
    x = affine((9, 17, 31))
    init = affine(_starts(x.shape, axis), seed=5)
    given = backend.arrange(layout, x), backend.arrange(layout, init)
    out = backend.arrange(layout, np.zeros_like(x))
    for way in WAYS[:2]:
        want = _scanned(way, compose, x, init, axis)
        assert_same(backend.to_host(way[0](*given, compose, axis=axis)), want)
        assert way[0](*given, compose, axis=axis, out=out) is out
        assert_same(backend.to_host(out), want)


@pytest.mark.parametrize("dtype", sampled(DTYPES), ids=str)
def test_every_dtype(backend: Backend, dtype: np.dtype[Any]) -> None:
    x, init = summable((33, 9), dtype), summable(33, dtype, seed=7)
    given = backend.to_device(x), backend.to_device(init)

    def add(a: Any, b: Any) -> Any:
        return np.add(a, b, dtype=dtype)

    for way in WAYS[:2]:
        result = backend.to_host(way[0](*given, axis=1))
        assert_same(result, _scanned(way, add, x, init, 1))


def test_bits_repeat_and_nan_stays_in_its_line(backend: Backend) -> None:
    x = np.random.default_rng(8).standard_normal((17, 3001)).astype(np.float32)
    init = np.array([0.1, -0.0, np.nan, np.inf, *range(13)], np.float32)
    given = backend.to_device(x), backend.to_device(init)
    for way in WAYS:
        first, again = (way[0](*given, axis=1, reverse=way[1]) for _ in range(2))
        found = backend.to_host(first)
        assert_same(backend.to_host(again), found)
        assert np.isnan(found[2]).all()
        assert not np.isnan(found[[0, 1, 4, 16]]).any()


@every_way
@pytest.mark.parametrize("axis", [0, 1])
def test_tuples(backend: Backend, way: Way, axis: int) -> None:
    rng = np.random.default_rng(9)
    x = rng.integers(0, 99, (11, 40)), rng.integers(0, 99, (11, 40))
    size = 40 if axis == 0 else 11
    init = rng.integers(0, 99, size), rng.integers(0, 99, size)

    def op(p: Any, q: Any) -> Any:
        return p[0] * q[0], p[1] * q[0] + q[1]

    want = _pairs(way, op, x, init, axis)
    on = tuple(map(backend.to_device, x)), tuple(map(backend.to_device, init))
    for got, wanted in zip(way[0](*on, op, axis=axis, reverse=way[1]), want, strict=True):
        assert_same(backend.to_host(got), wanted)


def _pairs(way: Way, op: Any, x: Any, init: Any, axis: int) -> Any:
    step = -1 if way[1] else 1
    total, found = init, []
    for pair in zip(*(np.moveaxis(part, axis, 0)[::step] for part in x), strict=True):
        before, total = total, op(total, pair)
        found.append(before if way[0] is ga.exclusive_scan else total)
    parts = (np.stack(part)[::step] for part in zip(*found, strict=True))
    return [np.moveaxis(part, 0, axis) for part in parts]


@every_way
def test_tuples_of_one_line(backend: Backend, way: Way) -> None:
    """Arrays of one element each are starts here, on a GPU as on the host."""
    x = np.arange(1, 8).reshape(1, 7), np.arange(7).reshape(1, 7)
    init = np.array([3]), np.array([5])

    def op(p: Any, q: Any) -> Any:
        return p[0] * q[0], p[1] * q[0] + q[1]

    on = tuple(map(backend.to_device, x)), tuple(map(backend.to_device, init))
    result = way[0](*on, op, axis=1, reverse=way[1])
    for got, wanted in zip(result, _pairs(way, op, x, init, 1), strict=True):
        assert_same(backend.to_host(got), wanted)
    if backend.xp is not np:
        match = rf"^{way[0].__name__}: init\[0\] is an array of one element; pass a Python or"
        with pytest.raises(TypeError, match=match):
            way[0](*on, op, reverse=way[1])


@pytest.mark.parametrize("shape", [(3, 0), (0, 3)], ids=str)
def test_lines_without_elements(backend: Backend, shape: tuple[int, int]) -> None:
    given = backend.to_device(affine(shape)), backend.to_device(affine(shape[0]))
    for function in (ga.inclusive_scan, ga.exclusive_scan):
        assert function(*given, compose, axis=1).shape == shape


@pytest.mark.usefixtures("backend")
def test_host_arrays() -> None:
    x, init = affine((65, 130)), affine(130, seed=11)
    for way in WAYS:
        want = _scanned(way, compose, x, init, 0)
        assert_same(way[0](x, init, compose, axis=0, reverse=way[1]), want)


def test_computed_elements(backend: Backend) -> None:
    x, init = summable((33, 70), np.dtype("int64")), summable(33, np.dtype("int64"), 12)
    k = 3
    given = ga.lazy.transform(lambda a: a * k, backend.to_device(x)), backend.to_device(init)
    for way in WAYS[:2]:
        want = _scanned(way, np.add, x * 3, init, 1)
        assert_same(backend.to_host(way[0](*given, lambda a, b: a + b, axis=1)), want)
        plan = ga.prepare(way[0], *given, lambda a, b: a + b, axis=1)
        assert_same(backend.to_host(plan(*given)), want)


def test_plans_take_the_starts(backend: Backend) -> None:
    x = affine((2, 20_011))
    for way in WAYS[:2]:
        given = backend.to_device(x), backend.to_device(affine(2, seed=13))
        plan = ga.prepare(way[0], *given, compose, axis=1)
        for seed in (13, 14):
            init = affine(2, seed=seed)
            given = given[0], backend.to_device(init)
            assert_same(backend.to_host(plan(*given)), _scanned(way, compose, x, init, 1))


def test_a_graph_reads_the_starts_anew(cuda: Backend) -> None:
    x = affine((37, 211))
    given = cuda.to_device(x), cuda.to_device(affine(37))
    with ga.graph() as g:
        result = ga.exclusive_scan(*given, compose, axis=1)
    for seed in (16, 17):
        init = affine(37, seed=seed)
        given[1][...] = cuda.to_device(init)
        g.launch()
        assert_same(cuda.to_host(result), _scanned(WAYS[1], compose, x, init, 1))


def test_what_does_not_fit_is_refused(backend: Backend) -> None:
    x = backend.to_device(np.ones((3, 4), np.float32))
    starts = backend.to_device(np.ones(3, np.float32))
    for function in (ga.inclusive_scan, ga.exclusive_scan):
        name = function.__name__

        def wrong(error: type[Exception], match: str, init: Any, **more: Any) -> None:
            with pytest.raises(error, match=rf"^{name}: {match}"):  # noqa: B023
                function(x, init, **{"axis": 1, **more})  # noqa: B023

        wrong(
            ValueError, r"init must be one value, .* shape \(4,\), got shape \(3,\)", starts, axis=0
        )
        wrong(ValueError, r"init must be one value, got shape \(3,\)", starts, axis=None)
        wrong(TypeError, "init has dtype float32, the acc", starts, dtype=np.float64)
        wrong(TypeError, "x of dtype float32 does not fit", starts.astype(np.int32))
        wrong(ValueError, "out overlaps init", x[:, 1], out=x)
