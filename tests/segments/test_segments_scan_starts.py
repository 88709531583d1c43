"""Segmented scans from a start for each segment: order, layouts, tuples, offsets that fall."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from support import DTYPES, LAYOUTS, Backend, affine, assert_same, compose, sampled, summable

import gpualgo as ga

Array = np.ndarray[Any, Any]
Scan = Callable[..., Any]
INCLUSIVE, EXCLUSIVE = ga.segmented_inclusive_scan, ga.segmented_exclusive_scan
OFFSETS = np.array([0, 0, 1, 33, 33, 70, 71, 5000, 5000, 5031, 19_990, 19_990])
TASK = 1 << 16  # elements and ends of segments that a CPU's task has

both = pytest.mark.parametrize("scan", [INCLUSIVE, EXCLUSIVE], ids=["inclusive", "exclusive"])


def _wanted(scan: Scan, x: Array, init: Array, offsets: Any = OFFSETS, op: Any = compose) -> Array:
    found = x.copy()
    for start, (begin, end) in zip(init, pairwise(offsets), strict=True):
        total = start
        for i in range(begin, end):
            before, total = total, op(total, x[i])
            found[i] = before if scan is EXCLUSIVE else total
    return found


@both
@pytest.mark.parametrize("index", ["int64", "uint32", "int8"])
def test_starts_come_first(backend: Backend, scan: Scan, index: str) -> None:
    offsets = np.minimum(OFFSETS, np.iinfo(index).max).astype(index)
    x, init = affine(20_003), affine(len(offsets) - 1, seed=3)
    given = [backend.to_device(array) for array in (x, offsets, init)]
    want = _wanted(scan, x, init, offsets.astype(int))
    for _ in range(2):
        assert_same(backend.to_host(scan(*given, compose)), want)
    assert_same(backend.to_host(given[0]), x)
    assert_same(backend.to_host(given[2]), init)


@both
@pytest.mark.parametrize("length", [1, 2, 31, 2048, 2049])
def test_segments_of_one_length(backend: Backend, scan: Scan, length: int) -> None:
    """Heads at the ends of threads, warps and tiles, and at the last element."""
    offsets = np.arange(3, 6148, length)
    x, init = affine(6150), affine(len(offsets) - 1, seed=length)
    result = scan(*[backend.to_device(array) for array in (x, offsets, init)], compose)
    assert_same(backend.to_host(result), _wanted(scan, x, init, offsets))


@both
@pytest.mark.parametrize("op", [lambda a, b: a, lambda a, b: b], ids=["first", "last"])
def test_first_and_last(backend: Backend, scan: Scan, op: Any) -> None:
    x, init = affine(20_003), affine(len(OFFSETS) - 1, seed=4)
    result = scan(*[backend.to_device(array) for array in (x, OFFSETS, init)], op)
    assert_same(backend.to_host(result), _wanted(scan, x, init, op=op))


@both
@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name not in ("fortran", "swapped")])
def test_layouts(backend: Backend, scan: Scan, layout: str) -> None:
    x, init = affine(20_003), affine(len(OFFSETS) - 1, seed=5)
    given = backend.arrange(layout, x), backend.to_device(OFFSETS), backend.arrange(layout, init)
    out = backend.arrange(layout, np.zeros_like(x))
    assert scan(*given, compose, out=out) is out
    assert_same(backend.to_host(out), _wanted(scan, x, init))
    assert scan(*given, compose, out=given[0]) is given[0]
    assert_same(backend.to_host(given[0]), _wanted(scan, x, init))


@both
@pytest.mark.parametrize("dtype", sampled(DTYPES), ids=str)
def test_every_dtype(backend: Backend, scan: Scan, dtype: np.dtype[Any]) -> None:
    x, init = summable(20, dtype), summable(4, dtype, seed=7)
    offsets = np.array([2, 5, 5, 6, 20])
    result = scan(*[backend.to_device(array) for array in (x, offsets, init)])
    want = _wanted(scan, x, init, offsets, lambda a, b: np.add(a, b, dtype=dtype))
    assert_same(backend.to_host(result), want)


@both
def test_tuples(backend: Backend, scan: Scan, guarded: Any) -> None:
    def op(p: Any, q: Any) -> Any:
        return p[0] * q[0], p[1] * q[0] + q[1]

    x, offsets = (np.arange(1, 11), np.arange(10)[::-1].copy()), np.array([0, 3, 3, 9])
    init = np.array([5, 6, 7]), np.array([8, 9, 10])
    want = [part.copy() for part in x]
    for s in range(3):
        total = init[0][s], init[1][s]
        for i in range(offsets[s], offsets[s + 1]):
            before, total = total, op(total, (x[0][i], x[1][i]))
            for part, number in zip(want, before if scan is EXCLUSIVE else total, strict=True):
                part[i] = number
    on = tuple(map(backend.to_device, x)), tuple(map(backend.to_device, init))
    out = tuple(guarded(part.shape, part.dtype) for part in want)
    assert scan(on[0], backend.to_device(offsets), on[1], op, out=out) is out
    for got, wanted in zip(out, want, strict=True):
        assert_same(backend.to_host(got), wanted)


@both
def test_no_elements_and_no_segments(backend: Backend, scan: Scan) -> None:
    x, init = affine(5), affine(3)
    on = [backend.to_device(array) for array in (x, init)]
    result = scan(on[0][:0], backend.to_device(np.zeros(4, np.int64)), on[1], compose)
    assert result.shape == (0,)
    result = scan(on[0], backend.to_device(np.array([2])), on[1][:0], compose)
    assert_same(backend.to_host(result), x)


@both
@pytest.mark.usefixtures("backend")
def test_host_arrays(scan: Scan) -> None:
    """Of several tasks, some of which begin within a segment, others at one."""
    x, offsets = affine(3 * TASK), np.array([5, TASK // 2, TASK, TASK, TASK + 9, 3 * TASK - 1])
    init = affine(len(offsets) - 1, seed=8)
    assert_same(scan(x, offsets, init, compose), _wanted(scan, x, init, offsets))
    many = np.arange(2 * TASK + 1)
    starts = affine(2 * TASK, seed=9)
    assert_same(scan(x, many, starts, compose), _wanted(scan, x, starts, many))


@both
def test_computed_elements_and_plans(backend: Backend, scan: Scan) -> None:
    x, offsets = np.arange(12), np.array([0, 4, 4, 12])
    on, ends, k = backend.to_device(x), backend.to_device(offsets), 3
    for source, factor in ((on, 1), (ga.lazy.transform(lambda a: a * k, on), 3)):
        init = backend.to_device(np.array([100, 200, 300]))
        plan = ga.prepare(scan, source, ends, init, lambda a, b: a + b)
        for extra in (0, 5):
            first = np.array([100, 200, 300]) + extra
            want = _wanted(scan, x * factor, first, offsets, lambda a, b: a + b)
            assert_same(backend.to_host(plan(source, ends, init + extra)), want)


@both
def test_a_graph_reads_the_starts_anew(cuda: Backend, scan: Scan) -> None:
    x = affine(20_003)
    given = [cuda.to_device(each) for each in (x, OFFSETS, affine(len(OFFSETS) - 1))]
    with ga.graph() as g:
        result = scan(*given, compose)
    init = affine(len(OFFSETS) - 1, seed=16)
    given[2][...] = cuda.to_device(init)
    g.launch()
    assert_same(cuda.to_host(result), _wanted(scan, x, init))


@both
def test_offsets_outside(cuda: Backend, scan: Scan) -> None:
    x, init = affine(70), affine(4, seed=9)
    offsets = np.array([-5, 40, 60, 90, 100])
    result = scan(*[cuda.to_device(array) for array in (x, offsets, init)], compose)
    want = _wanted(scan, x, init, np.array([0, 40, 60, 70, 70]))
    assert_same(cuda.to_host(result), want)


@both
def test_offsets_that_fall(cuda: Backend, scan: Scan) -> None:
    """Scans begin wherever an offset is, each from one of the starts, the same on every run."""
    x, init = affine(3000), affine(5, seed=9)
    offsets = np.array([0, 2500, 900, 100, 1700, 3000])
    given = [cuda.to_device(array) for array in (x, offsets, init)]
    result = cuda.to_host(scan(*given, compose))
    assert_same(cuda.to_host(scan(*given, compose)), result)
    ordered = np.sort(offsets)
    for begin, end in pairwise(ordered):
        wants = [_wanted(scan, x[begin:end], first, [0, end - begin]) for first in init[:, None]]
        assert any((result[begin:end] == want).all() for want in wants)


@both
def test_what_does_not_fit_is_refused(backend: Backend, scan: Scan) -> None:
    x, offsets = backend.to_device(np.ones(2, np.float32)), backend.to_device(np.array([0, 1, 2]))
    name, starts = scan.__name__, backend.to_device(np.ones(2, np.float32))
    with pytest.raises(ValueError, match=rf"^{name}: init must be one value, .*got shape \(3,\)"):
        scan(x, offsets, backend.to_device(np.ones(3, np.float32)))
    with pytest.raises(TypeError, match=rf"^{name}: init has dtype float32, the accumulator flo"):
        scan(x, offsets, starts, dtype=np.float64)
    with pytest.raises(ValueError, match=rf"^{name}: out overlaps init"):
        scan(x, offsets, starts, out=starts)
