"""Keys in any order, against NumPy and a loop in Python."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest
from by_key.reference import (
    few,
    in_runs,
    reduced_by_key,
    running_sums,
    same_bits,
    scanned_by_key,
    summed_by_key,
    values,
)
from support import Backend, run_python, scaled

import gpualgo as ga


def test_groups(backend: Backend) -> None:
    """Keys in any order: one result for each, ascending; the first in input order names it."""
    n = scaled(5003, emulated=1003)
    keys = few(n, np.dtype(np.float32))
    x = values(n)
    order = np.argsort(keys, kind="stable")
    want = summed_by_key(keys[order], x[order])
    arrays = backend.to_device(keys), backend.to_device(x)
    for mine, other in zip(ga.reduce_by_key(*arrays), want, strict=True):
        same_bits(backend, mine, other)
    back = np.argsort(order)
    sums = running_sums(keys[order], x[order])[back]
    same_bits(backend, ga.inclusive_scan_by_key(*arrays), sums)
    same_bits(backend, ga.exclusive_scan_by_key(*arrays), sums - x)
    out = backend.to_device(np.zeros(n, np.float32))
    assert ga.inclusive_scan_by_key(*arrays, out=out) is out
    same_bits(backend, out, sums)


def test_groups_of_shapes(backend: Backend) -> None:
    """Keys of several axes or none, and of any strides, as if they lay in one."""
    keys, x = in_runs(6 * 35, 1).reshape(6, 35), values(6 * 35).reshape(6, 35)
    want = ga.reduce_by_key(keys.ravel(), x.ravel())
    got = ga.reduce_by_key(backend.to_device(keys)[:, ::-1], backend.to_device(x)[:, ::-1])
    same_bits(backend, got.keys, want.keys)
    same_bits(backend, got.aggregates, want.aggregates)
    one = ga.inclusive_scan_by_key(backend.to_device(keys[0, 0]), backend.to_device(x[0, 0]))
    same_bits(backend, one, x[0, :1])
    empty = ga.reduce_by_key(backend.to_device(keys[:0]), backend.to_device(x[:0]))
    assert empty.keys.shape == empty.aggregates.shape == (0,)


def test_groups_of_tuples(backend: Backend) -> None:
    n = 503
    keys = in_runs(n, 2), in_runs(n, 1, 1).astype(np.int8)
    parts = np.arange(n, dtype=np.int64), values(n)
    order = np.lexsort(keys[::-1])
    pairs = list(zip(*(key[order].tolist() for key in keys), strict=True))
    both = list(zip(*(x[order].tolist() for x in parts), strict=True))
    fold = lambda a, b: (a[0], a[1] + b[1])  # noqa: E731
    firsts, wanted = reduced_by_key(pairs, both, fold)
    arrays = tuple(map(backend.to_device, keys)), tuple(map(backend.to_device, parts))
    got = ga.reduce_by_key(*arrays, None, fold)
    for mine, want, kind in zip(got.keys, zip(*firsts, strict=True), keys, strict=True):
        same_bits(backend, mine, np.array(want, kind.dtype))
    for mine, want, kind in zip(got.aggregates, zip(*wanted, strict=True), parts, strict=True):
        same_bits(backend, mine, np.array(want, kind.dtype))
    scans = ga.inclusive_scan_by_key(*arrays, None, fold)
    wanted = scanned_by_key(pairs, both, fold)
    for mine, want, kind in zip(scans, zip(*wanted, strict=True), parts, strict=True):
        same_bits(backend, backend.to_host(mine)[order], np.array(want, kind.dtype))


def _sums(a: Any, b: Any) -> Any:
    return (a.s + b.s, max(a.m, b.m))


def test_packed_structures() -> None:
    """Fields that lie at any address, as NumPy packs them unless it is asked to align them."""
    keys = np.array([(2, 0.5), (1, 0.5), (2, 0.5)], [("a", "i1"), ("b", "f8")])
    x = np.array([(1, 7), (2, 8), (4, 9)], [("s", "f4"), ("m", "i1")])
    got = ga.reduce_by_key(keys, x, None, _sums)
    np.testing.assert_array_equal(got.keys, keys[[1, 0]])
    np.testing.assert_array_equal(got.aggregates, np.array([(2, 8), (5, 9)], x.dtype))
    out = np.zeros_like(x)
    assert ga.inclusive_scan_by_key(keys, x, None, _sums, out=out) is out
    np.testing.assert_array_equal(out, np.array([(1, 7), (2, 8), (5, 9)], x.dtype))
    got = ga.reduce_by_index(np.array([3, 1, 3]), x, 4, (0, 0), _sums)
    np.testing.assert_array_equal(got, np.array([(0, 0), (2, 8), (0, 0), (5, 9)], x.dtype))


def test_misaligned() -> None:
    memory = np.zeros(25, np.uint8)[1:]
    memory[:] = np.array([2, 1, 2]).view(np.uint8)
    keys = memory.view(np.int64)
    assert ga.inclusive_scan_by_key(keys, keys).tolist() == [2, 1, 4]
    got = ga.reduce_by_key(keys, (keys, keys), None, lambda a, b: (a[0] + b[0], b[1]))
    assert [a.tolist() for a in (got.keys, *got.aggregates)] == [[1, 2], [1, 4], [1, 2]]


def test_misaligned_before_lazy_arrays_are_loaded() -> None:
    code = """
        import numpy as np, gpualgo as ga
        keys = np.zeros(25, np.uint8)[1:].view(np.int64)
        keys[:] = 2, 1, 2
        assert ga.inclusive_scan_by_key(keys, keys).tolist() == [2, 1, 4]
    """
    done = run_python(textwrap.dedent(code))
    assert done.returncode == 0, done.stderr


def test_misaligned_on_a_device(cuda: Backend) -> None:
    """What no kernel takes is told by its name."""
    x, memory = cuda.to_device(np.arange(3)), cuda.to_device(np.zeros(25, np.uint8))
    odd, f = memory[1:].view(np.int64), ga.inclusive_scan_by_key
    with pytest.raises(ValueError, match=r"^inclusive_scan_by_key: keys starts at address"):
        f(odd, x)
    with pytest.raises(ValueError, match=r"^inclusive_scan_by_key: x\[1\] starts at address"):
        f(x, (x, odd), None, lambda a, b: b)


@pytest.mark.usefixtures("cuda")
def test_what_cannot_be_recorded() -> None:
    """It is told by this call's name, whichever other does the work."""
    x = np.arange(3)
    with pytest.raises(RuntimeError, match=r"^inclusive_scan_by_key: an array is page"), ga.graph():
        ga.inclusive_scan_by_key(x, x)
    out, count = (np.zeros(3, np.int64), np.zeros(3, np.int64)), np.zeros((), np.int64)
    with pytest.raises(RuntimeError, match=r"^reduce_by_key: an array is pageable"), ga.graph():
        ga.reduce_by_key(x, x, out=out, out_count=count)
