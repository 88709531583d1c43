"""segmented_reduce from a start for each segment: order, empties, layouts, tuples, bad input."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from support import DTYPES, LAYOUTS, Backend, affine, assert_same, compose, fold, sampled, summable

import gpualgo as ga

OFFSETS = np.array([0, 0, 1, 33, 33, 70, 71, 5000, 5000, 5031, 19_990, 19_990])
REDUCE = ga.segmented_reduce


def _wanted(x: Any, init: Any, offsets: Any = OFFSETS) -> Any:
    found = init.copy()
    for i, (begin, end) in enumerate(pairwise(offsets)):
        if end > begin:
            found[i] = compose(init[i], fold(compose, x[begin:end]))
    return found


@pytest.mark.parametrize("index", ["int64", "uint32", "int8"])
def test_starts_come_first(backend: Backend, index: str) -> None:
    offsets = np.minimum(OFFSETS, np.iinfo(index).max).astype(index)
    x, init = affine(20_003), affine(len(offsets) - 1, seed=3)
    given = [backend.to_device(array) for array in (x, offsets, init)]
    for _ in range(2):
        assert_same(backend.to_host(REDUCE(*given, compose)), _wanted(x, init, offsets.astype(int)))
    assert_same(backend.to_host(given[2]), init)


@pytest.mark.parametrize("op", [lambda a, b: a, lambda a, b: b], ids=["first", "last"])
def test_first_and_last(backend: Backend, op: Any) -> None:
    x, init = affine(20_003), affine(len(OFFSETS) - 1, seed=4)
    result = REDUCE(*[backend.to_device(array) for array in (x, OFFSETS, init)], op)
    last = np.where(np.diff(OFFSETS) > 0, x[OFFSETS[1:] - 1], init)
    assert_same(backend.to_host(result), init if op(0, 1) == 0 else last)


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name not in ("fortran", "swapped")])
def test_layouts(backend: Backend, layout: str) -> None:
    x, init = affine(20_003), affine(len(OFFSETS) - 1, seed=5)
    given = backend.arrange(layout, x), backend.to_device(OFFSETS), backend.arrange(layout, init)
    out = backend.arrange(layout, np.zeros_like(init))
    assert REDUCE(*given, compose, out=out) is out
    assert_same(backend.to_host(out), _wanted(x, init))


@pytest.mark.parametrize("dtype", sampled(DTYPES), ids=str)
def test_every_dtype(backend: Backend, dtype: np.dtype[Any]) -> None:
    x, init = summable(20, dtype), summable(4, dtype, seed=7)
    offsets = np.array([2, 5, 5, 6, 20])
    result = REDUCE(*[backend.to_device(array) for array in (x, offsets, init)])
    want = [
        np.add.reduce(np.append(first, x[a:b]), dtype=dtype)
        for first, a, b in zip(init, offsets, offsets[1:], strict=False)
    ]
    assert_same(backend.to_host(result), np.array(want, dtype))


def test_tuples_and_no_elements(backend: Backend) -> None:
    def op(p: Any, q: Any) -> Any:
        return p[0] * q[0], p[1] * q[0] + q[1]

    x, offsets = (np.arange(1, 11), np.arange(10)[::-1].copy()), np.array([0, 3, 3, 10])
    init = np.array([5, 6, 7]), np.array([8, 9, 10])
    want = []
    for i in range(3):
        total = init[0][i], init[1][i]
        for k in range(offsets[i], offsets[i + 1]):
            total = op(total, (x[0][k], x[1][k]))
        want.append(total)
    on = tuple(map(backend.to_device, x)), tuple(map(backend.to_device, init))
    got = REDUCE(on[0], backend.to_device(offsets), on[1], op)
    for part, wanted in zip(got, zip(*want, strict=True), strict=True):
        assert_same(backend.to_host(part), np.array(wanted))
    nothing = tuple(part[:0] for part in on[0])
    for part, start in zip(
        REDUCE(nothing, backend.to_device(offsets * 0), on[1], op), init, strict=True
    ):
        assert_same(backend.to_host(part), start)


@pytest.mark.usefixtures("backend")
def test_host_arrays() -> None:
    x, init = affine(20_003), affine(len(OFFSETS) - 1, seed=8)
    assert_same(REDUCE(x, OFFSETS, init, compose), _wanted(x, init))
    assert_same(REDUCE(x[:0], OFFSETS * 0, init, compose), init)
    assert REDUCE(x, OFFSETS[:1], init[:0], compose).shape == (0,)


def test_computed_elements_and_plans(backend: Backend) -> None:
    x, offsets = backend.to_device(np.arange(12)), backend.to_device(np.array([0, 4, 4, 12]))
    k = 3
    lazy = ga.lazy.transform(lambda a: a * k, x)
    for source, factor in ((x, 1), (lazy, 3)):
        init = backend.to_device(np.array([100, 200, 300]))
        plan = ga.prepare(REDUCE, source, offsets, init, lambda a, b: a + b)
        for extra in (0, 5):
            want = np.array([100 + 6 * factor, 200, 300 + 60 * factor]) + extra
            got = plan(source, offsets, init + extra)
            assert_same(backend.to_host(got), want)


def test_a_graph_reads_the_starts_anew(cuda: Backend) -> None:
    x = affine(20_003)
    given = [cuda.to_device(each) for each in (x, OFFSETS, affine(len(OFFSETS) - 1))]
    with ga.graph() as g:
        result = REDUCE(*given, compose)
    init = affine(len(OFFSETS) - 1, seed=16)
    given[2][...] = cuda.to_device(init)
    g.launch()
    assert_same(cuda.to_host(result), _wanted(x, init))


def test_offsets_that_fall_or_lie_outside(cuda: Backend) -> None:
    x, init = affine(70), affine(4, seed=9)
    offsets = np.array([-5, 40, 20, 90, 10])
    got = REDUCE(*[cuda.to_device(array) for array in (x, offsets, init)], compose)
    want = _wanted(x, init, np.array([0, 40, 20, 70, 10]))
    assert_same(cuda.to_host(got), want)


def test_what_does_not_fit_is_refused(backend: Backend) -> None:
    x, offsets = backend.to_device(np.ones(9, np.float32)), backend.to_device(np.array([0, 4, 9]))
    starts = backend.to_device(np.ones(2, np.float32))
    with pytest.raises(
        ValueError, match=r"^segmented_reduce: init must be one value, .*got shape \(3,\)"
    ):
        REDUCE(x, offsets, backend.to_device(np.ones(3, np.float32)))
    with pytest.raises(TypeError, match=r"^segmented_reduce: init has dtype float32, the acc"):
        REDUCE(x, offsets, starts, dtype=np.float64)
    with pytest.raises(ValueError, match=r"^segmented_reduce: out overlaps init"):
        REDUCE(x, offsets, starts, out=starts)
