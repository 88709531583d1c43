"""reduce_by_index from a start for each result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Backend, affine, assert_same, compose

import gpualgo as ga
from gpualgo._algorithms.by_index import problem


def _wanted(indices: Any, x: Any, init: Any) -> Any:
    found = init.copy()
    for k, element in zip(indices, x, strict=True):
        found[k] = compose(found[k], element)
    return found


@pytest.mark.parametrize("n", [0, 1, 3001])
def test_starts_come_first(backend: Backend, n: int) -> None:
    indices = np.random.default_rng(n).integers(0, 35, n)
    x, init = affine(n), affine(40, seed=3)
    given = backend.to_device(indices), backend.to_device(x), 40, backend.to_device(init)
    want = _wanted(indices, x, init)
    assert_same(backend.to_host(ga.reduce_by_index(*given, compose)), want)
    out = backend.to_device(np.zeros_like(init))
    assert ga.reduce_by_index(*given, compose, out=out) is out
    assert_same(backend.to_host(out), want)


@pytest.mark.parametrize("most_direct", [0, 1, 16])
def test_cpu_has_tables_or_none(monkeypatch: pytest.MonkeyPatch, most_direct: int) -> None:
    """On the CPU elements are folded in tables of shares, or into what results start from."""
    monkeypatch.setattr(problem, "SHARE", 64)
    monkeypatch.setattr(problem, "DIRECT_SHARES", most_direct)
    indices = np.random.default_rng(5).integers(0, 35, 3001)
    x, init = affine(3001), affine(40, seed=3)
    with ga.default_device("cpu"):
        assert_same(ga.reduce_by_index(indices, x, 40, init, compose), _wanted(indices, x, init))
        wide = np.zeros((40, 2), np.uint64)[:, 0]
        ga.reduce_by_index(indices, x, 40, init[0], compose, out=wide)
        assert_same(wide.copy(), _wanted(indices, x, np.repeat(init[:1], 40)))


@pytest.mark.parametrize("size", [40, 5000])
def test_outputs(backend: Backend, guarded: Any, size: int) -> None:
    """By tables, and where elements are sorted first."""
    indices = np.random.default_rng(size).integers(0, size, 700)
    x, init = affine(700), affine(size, seed=4)
    given = backend.to_device(indices), backend.to_device(x), size, backend.to_device(init)
    out = guarded((size,), x.dtype)
    assert ga.reduce_by_index(*given, compose, out=out) is out
    assert_same(backend.to_host(out), _wanted(indices, x, init))
    with pytest.raises(ValueError, match=r"^reduce_by_index: out overlaps init"):
        ga.reduce_by_index(*given, compose, out=given[3])
    assert_same(backend.to_host(given[3]), init)
    pairs = given[0], (given[1], given[1]), size, (given[3], backend.to_device(init))

    def op(p: Any, q: Any) -> Any:
        return compose(p[0], q[0]), q[1]

    with pytest.raises(ValueError, match=r"^reduce_by_index: out\[1\] overlaps init\[0\]"):
        ga.reduce_by_index(*pairs, op, out=(out, given[3]))


@pytest.mark.parametrize("size", [40, 5000])
def test_outputs_that_op_captures(backend: Backend, size: int) -> None:
    """Are refused, with one start and with many, wherever results are made."""
    out = backend.to_device(np.zeros(size, np.int64))

    def op(a: Any, b: Any) -> Any:
        return a + b + out[0]

    given = backend.to_device(np.array([0, 1, 1])), backend.to_device(np.ones(3, np.int64)), size
    for init in (1, backend.to_device(np.ones(size, np.int64))):
        with pytest.raises(ValueError, match=r"^reduce_by_index: out .* that op captures"):
            ga.reduce_by_index(*given, init, op, out=out)
    assert not backend.to_host(out).any()


def test_tuples(backend: Backend) -> None:
    def op(p: Any, q: Any) -> Any:
        return p[0] * q[0], p[1] * q[0] + q[1]

    indices = np.array([2, 0, 2, 2, 0])
    x, init = (np.arange(1, 6), np.arange(5)), (np.array([3, 4, 5]), np.array([6, 7, 8]))
    want = list(zip(*init, strict=True))
    for k, pair in zip(indices, zip(*x, strict=True), strict=True):
        want[k] = op(want[k], pair)
    on = tuple(map(backend.to_device, x)), tuple(map(backend.to_device, init))
    got = ga.reduce_by_index(backend.to_device(indices), on[0], 3, on[1], op)
    for part, wanted in zip(got, zip(*want, strict=True), strict=True):
        assert_same(backend.to_host(part), np.array(wanted))


def test_no_elements(backend: Backend) -> None:
    """Their indices are computed from arrays whose axes do not merge."""
    starts, rows, columns = map(
        backend.to_device, (np.arange(4), np.zeros((0, 1), np.int64), np.arange(3))
    )
    indices = ga.lazy.asarray(rows) + columns
    result = ga.reduce_by_index(indices, indices, 4, starts)
    assert backend.to_host(result).tolist() == [0, 1, 2, 3]


def test_what_does_not_fit_is_refused(backend: Backend) -> None:
    indices, x = backend.to_device(np.array([0, 1])), backend.to_device(np.ones(2, np.float32))
    starts = backend.to_device(np.ones(3, np.float32))
    with pytest.raises(
        ValueError, match=r"^reduce_by_index: init must be one value, .*got shape \(3,\)"
    ):
        ga.reduce_by_index(indices, x, 4, starts)
    with pytest.raises(TypeError, match=r"^reduce_by_index: init has dtype float32, the acc"):
        ga.reduce_by_index(indices, x, 3, starts, dtype=np.float64)
    with pytest.raises(ValueError, match=r"^reduce_by_index: out overlaps init"):
        ga.reduce_by_index(indices, x, 3, starts, out=starts)
    with pytest.raises(ValueError, match=r"^reduce_by_index: indices hold 1"):
        ga.reduce_by_index(np.array([0, 1]), np.ones(2), 0, np.ones(0))
