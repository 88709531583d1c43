"""reduce from a start for each row: order, layouts, dtypes, tuples, empties, plans, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import (
    DTYPES,
    LAYOUTS,
    Backend,
    affine,
    assert_same,
    compose,
    fold,
    sampled,
    summable,
)

import gpualgo as ga

SHAPES: list[tuple[tuple[int, ...], int | tuple[int, ...]]] = [
    ((40_009, 3), 1),  # many short rows
    ((2, 30_007), 1),  # few long rows
    ((30_007, 2), 0),  # few long columns
    ((33, 1025), 0),
    ((4, 5, 102), 1),
    ((6, 7, 65), (2, 0)),
    ((6, 7, 65), ()),
    ((1, 1), 1),
]


def _rows(shape: tuple[int, ...], axis: int | tuple[int, ...]) -> tuple[int, ...]:
    axes = axis if isinstance(axis, tuple) else (axis,)
    return tuple(n for i, n in enumerate(shape) if i not in axes)


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
def test_starts_come_first(backend: Backend, shape: tuple[int, ...], axis: Any) -> None:
    x, init = affine(shape), affine(_rows(shape, axis), seed=3)
    given = backend.to_device(x), backend.to_device(init)
    want = compose(init, x if axis == () else fold(compose, x, axis))
    assert_same(backend.to_host(ga.reduce(*given, compose, axis=axis)), want)
    kept = ga.reduce(*given, compose, axis=axis, keepdims=True)
    axes = axis if isinstance(axis, tuple) else (axis,)
    wide = tuple(1 if i in axes else n for i, n in enumerate(shape))
    assert_same(backend.to_host(kept), want.reshape(wide))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("op", [lambda a, b: a, lambda a, b: b], ids=["first", "last"])
def test_first_and_last(backend: Backend, op: Any, axis: int) -> None:
    x, init = affine((37, 130)), affine(130 if axis == 0 else 37, seed=4)
    result = ga.reduce(backend.to_device(x), backend.to_device(init), op, axis=axis)
    assert_same(backend.to_host(result), init if op(0, 1) == 0 else x.take(-1, axis))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("axis", [0, 2])
def test_layouts(backend: Backend, layout: str, axis: int) -> None:
    x = affine((9, 65, 31))
    init = affine(_rows(x.shape, axis), seed=5)
    given = backend.to_device(x), backend.arrange(layout, init)
    want = compose(init, fold(compose, x, axis))
    assert_same(backend.to_host(ga.reduce(*given, compose, axis=axis)), want)
    out = backend.arrange(layout, np.zeros_like(init))
    assert ga.reduce(*given, compose, axis=axis, out=out) is out
    assert_same(backend.to_host(out), want)


def test_repeated_and_misaligned_starts(backend: Backend) -> None:
    x = affine((5, 70))
    one = affine(1, seed=6)
    init = np.broadcast_to(one, 5)
    given = backend.xp.broadcast_to(backend.to_device(one), (5,))
    want = compose(init, fold(compose, x, 1))
    assert_same(backend.to_host(ga.reduce(backend.to_device(x), given, compose, axis=1)), want)
    memory = np.zeros(41, np.uint8)
    memory[1:] = init.view(np.uint8) if init.flags.c_contiguous else init.copy().view(np.uint8)
    misaligned = memory[1:].view(np.uint64)
    misaligned.flags.writeable = False
    assert_same(ga.reduce(x, misaligned, compose, axis=1), want)


@pytest.mark.parametrize("dtype", sampled(DTYPES), ids=str)
def test_every_dtype(backend: Backend, dtype: np.dtype[Any]) -> None:
    x, init = summable((67, 30), dtype), summable(67, dtype, seed=7)
    result = ga.reduce(backend.to_device(x), backend.to_device(init), axis=1)
    want = np.add(init, np.add.reduce(x, axis=1, dtype=dtype), dtype=dtype)
    assert_same(backend.to_host(result), want)


def test_the_bits_are_those_of_one_start(backend: Backend) -> None:
    x = np.random.default_rng(8).standard_normal((17, 3001)).astype(np.float32)
    init = np.array([0.1, -0.0, np.nan, np.inf, *range(13)], np.float32)
    given, first = backend.to_device(x), backend.to_device(init)
    result = backend.to_host(ga.reduce(given, first, axis=1))
    for k in (0, 3, 16):
        alone = backend.to_host(ga.reduce(given, init[k], axis=1))
        assert_same(result[k], alone[k])
    assert_same(backend.to_host(ga.reduce(given, first, axis=1)), result)


def test_dtype_of_starts_accumulates(backend: Backend) -> None:
    x = np.full((3, 50), 100, np.int8)
    init = backend.to_device(np.array([1, 2, 3], np.int32))
    want = np.array([5001, 5002, 5003], np.int32)
    assert_same(backend.to_host(ga.reduce(backend.to_device(x), init, axis=1)), want)


def _then(p: Any, q: Any) -> Any:
    return p[0] * q[0], p[1] * q[0] + q[1]


@pytest.mark.parametrize("axis", [0, 1])
def test_tuples(backend: Backend, axis: int) -> None:
    rng = np.random.default_rng(9)
    x = rng.integers(0, 99, (11, 40)), rng.integers(0, 99, (11, 40)).astype(np.int32)
    size = 40 if axis == 0 else 11
    init = rng.integers(0, 99, size), rng.integers(0, 99, size).astype(np.int32)
    want = init[0].copy(), init[1].copy()
    for a, b in zip(np.moveaxis(x[0], axis, 0), np.moveaxis(x[1], axis, 0), strict=True):
        want = want[0] * a, (want[1] * a + b).astype(np.int32)

    def op(p: Any, q: Any) -> Any:
        return p[0] * q[0], np.int32(p[1] * q[0] + q[1])

    on = tuple(map(backend.to_device, x)), tuple(map(backend.to_device, init))
    for got, wanted in zip(ga.reduce(*on, op, axis=axis), want, strict=True):
        assert_same(backend.to_host(got), wanted)


def test_structured_starts() -> None:
    kind = [("a", "i8"), ("b", "f4")]
    x = np.array([[(1, 2.0), (3, 4.0)], [(5, 6.0), (7, 8.0)]], kind)
    init = np.array([(10, 0.5), (20, 9.5)], kind)
    found = ga.reduce(x, init, lambda p, q: (p.a + q.a, max(p.b, q.b)), axis=1)
    np.testing.assert_array_equal(found, np.array([(14, 4.0), (32, 9.5)], kind))


@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (0, 0)], ids=str)
def test_rows_without_elements(backend: Backend, shape: tuple[int, int]) -> None:
    x, init = affine(shape), affine(shape[0], seed=10)
    given = backend.to_device(x), backend.to_device(init)
    assert_same(backend.to_host(ga.reduce(*given, compose, axis=1)), init)
    pair = (given[0], given[0]), (given[1], given[1])
    for part in ga.reduce(*pair, lambda p, q: (p[0] + q[0], p[1] * q[1]), axis=1):
        assert_same(backend.to_host(part), init)


@pytest.mark.usefixtures("backend")
def test_host_arrays() -> None:
    x, init = affine((65, 130)), affine(130, seed=11)
    want = compose(init, fold(compose, x, 0))
    assert_same(ga.reduce(x, init, compose, axis=0), want)
    assert_same(ga.reduce(x[:0], init, compose, axis=0), init)


def test_numbers_that_op_captures(backend: Backend) -> None:
    x, init = backend.to_device(np.ones((3, 9), np.int64)), backend.to_device(np.arange(3) * 10)
    for k in (1, 2):
        got = backend.to_host(ga.reduce(x, init, lambda a, b: a + b + k, axis=1))  # noqa: B023
        assert_same(got, np.arange(3) * 10 + 9 + 9 * k)


def test_computed_elements(backend: Backend) -> None:
    x, init = summable((33, 70), np.dtype("float32")), summable(33, np.dtype("float32"), 12)
    k = 3
    given = ga.lazy.transform(lambda a: a * k, backend.to_device(x)), backend.to_device(init)
    want = init + (x * 3).sum(1)
    assert_same(backend.to_host(ga.reduce(*given, lambda a, b: a + b, axis=1)), want)
    plan = ga.prepare(ga.reduce, *given, lambda a, b: a + b, axis=1)
    assert_same(backend.to_host(plan(*given)), want)


def test_plans_take_the_starts(backend: Backend) -> None:
    x, init = affine((2, 30_007)), affine(2, seed=13)
    given = backend.to_device(x), backend.to_device(init)
    plan = ga.prepare(ga.reduce, *given, compose, axis=1)
    for _ in range(2):
        want = compose(init, fold(compose, x, 1))
        assert_same(backend.to_host(plan(*given)), want)
        if plan.temp_storage_bytes:
            storage = backend.xp.zeros(plan.temp_storage_bytes + 256, np.uint8)
            storage = storage[-storage.data.ptr % 256 :]
            assert_same(backend.to_host(plan(*given, temp_storage=storage)), want)
        init = affine(2, seed=14)
        given = given[0], backend.to_device(init)
    with pytest.raises(ValueError, match="prepare another"):
        plan(given[0], backend.to_device(affine(3)))
    pairs = tuple((each, each) for each in given)
    plan = ga.prepare(ga.reduce, *pairs, lambda p, q: (q[0], p[1]), axis=1)
    for got, wanted in zip(plan(*pairs), (x[:, -1], init), strict=True):
        assert_same(backend.to_host(got), wanted)


def test_a_graph_reads_the_starts_anew(cuda: Backend) -> None:
    x, init = affine((37, 211)), affine(37, seed=15)
    given = cuda.to_device(x), cuda.to_device(init)
    out = cuda.to_device(np.zeros(37, np.uint64))
    with ga.graph() as g:
        ga.reduce(*given, compose, axis=1, out=out)
    for seed in (16, 17):
        init = affine(37, seed=seed)
        given[1][...] = cuda.to_device(init)
        g.launch()
        assert_same(cuda.to_host(out), compose(init, fold(compose, x, 1)))


def test_what_does_not_fit_is_refused(backend: Backend) -> None:
    x = backend.to_device(np.ones((3, 4), np.float32))
    starts = backend.to_device(np.ones(3, np.float32))

    def wrong(error: type[Exception], match: str, init: Any, x: Any = x, **more: Any) -> None:
        with pytest.raises(error, match=rf"^reduce: {match}"):
            ga.reduce(x, init, **{"axis": 1, **more})

    wrong(
        ValueError,
        r"init must be one value, .* shape \(3,\), got shape \(4,\)",
        backend.to_device(np.ones(4, np.float32)),
    )
    wrong(ValueError, r"init must be one value, .* shape \(4,\), got shape \(3,\)", starts, axis=0)
    wrong(ValueError, r"init must be one value, got shape \(3,\)", starts, axis=None)
    wrong(
        ValueError,
        r"init must be one value, .*got shape \(3, 1\)",
        starts.reshape(3, 1),
        keepdims=True,
    )
    wrong(TypeError, "init has dtype float32, the accumulator float64", starts, dtype=np.float64)
    wrong(TypeError, "x of dtype float32 does not fit", starts.astype(np.int32))
    wrong(TypeError, "init must be a Python or NumPy scalar, got tuple", (starts, starts))
    wrong(TypeError, "init must be a Python or NumPy scalar, got list", [1.0, 2.0, 3.0])
    wrong(ValueError, "out overlaps init", starts, out=starts)
    pair = (x, x)
    wrong(TypeError, "init must be a tuple like the elements", starts, pair, op=_then)
    wrong(TypeError, r"init\[1\] is a float next to arrays", (starts, 1.0), pair, op=_then)
    if backend.xp is not np:
        wrong(TypeError, "the arrays mix", np.ones(3, np.float32))
        wrong(TypeError, "the arrays mix", starts, np.ones((3, 4), np.float32))
