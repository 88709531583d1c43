"""Scans of host arrays that go to a GPU by blocks: the bits of arrays that lie there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support import Backend, a_few, assert_same, forget_problems, scaled

import gpualgo as ga

Host = np.ndarray[Any, Any]
WHOLE = 1 << 40


class Limits:
    """How long blocks are, and lines that come whole; counts the scans that are cut."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from gpualgo._algorithms.scan import blocks

        self._patch, self._blocks = monkeypatch, blocks
        self.ran: list[str] = []
        for name in ("_whole_lines", "scan_parts"):
            usual = getattr(blocks, name)
            monkeypatch.setattr(
                blocks, name, lambda *a, n=name, u=usual: (self.ran.append(n), u(*a))
            )

    def set(self, block_bytes: int, lines_bytes: int = WHOLE) -> None:
        self._patch.setattr(self._blocks, "BLOCK_BYTES", block_bytes)
        forget_problems()
        self._patch.setattr(self._blocks, "LINES_BYTES", lines_bytes)


@pytest.fixture
def limits(cuda: Backend, monkeypatch: pytest.MonkeyPatch) -> Iterator[Limits]:
    """Let long lines have small tiles, and blocks be small, too."""
    from gpualgo._algorithms.scan import tuning
    from gpualgo._driver import staging

    tile = tuning.Policy(64, 1, 2)
    monkeypatch.setattr(tuning, "WAVES", {})
    monkeypatch.setattr(tuning, "LARGE", tile)
    monkeypatch.setattr(tuning, "LARGE_WIDE", tile)
    monkeypatch.setattr(staging, "DIRECT_BYTES", 256)
    monkeypatch.setattr(staging, "GAPS_BYTES", 256)
    forget_problems()
    monkeypatch.setattr(staging.pieces, "__defaults__", (200,))
    for kind in _problems():
        monkeypatch.setattr(
            kind, "problems", type(kind.problems)(64)
        )  # whose plans have such tiles
    found = Limits(monkeypatch)
    with ga.default_device("cuda"):
        yield found


def _problems() -> tuple[Any, ...]:
    from gpualgo._algorithms.scan.problem import ExclusiveScan, Scan

    return Scan, ExclusiveScan


def _sums(a: Any, b: Any) -> Any:
    return a + b


def _check(limits: Limits, x: Any, way: str, lines_bytes: int = WHOLE, **options: Any) -> None:
    """Compare scans by blocks with those of arrays that come whole."""
    for function, init in ((ga.inclusive_scan, None), (ga.exclusive_scan, 0.5)):
        for reverse in a_few((False, True)):
            limits.set(WHOLE)
            want = function(x, init, _sums, reverse=reverse, **options)
            limits.set(4000, lines_bytes)
            limits.ran.clear()
            got = function(x, init, _sums, reverse=reverse, **options)
            assert limits.ran == [way]
            assert got.strides == want.strides
            assert_same(got, want)


def _floats(*shape: int) -> Host:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def test_a_line_that_is_cut(limits: Limits) -> None:
    x = _floats(1600)
    _check(limits, x, "scan_parts")
    _check(limits, x[::-1], "scan_parts")
    _check(limits, _floats(40, 80).T[:, ::2], "scan_parts")
    _check(limits, x, "scan_parts", dtype=np.float64)


@pytest.mark.parametrize("shape", [(3, 1300), (2, 1300, 1)])
def test_few_long_lines(limits: Limits, shape: tuple[int, ...]) -> None:
    _check(limits, _floats(*shape), "scan_parts", axis=1)


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((60, 50), 1), ((9, 7, 40), 2), ((300, 5), 0), ((4, 200, 9), 1), ((50, 70), 0),
     ((2, 40, 90), 1), ((8, 300), 0), ((7, 3, 65), 1)],
)  # fmt: skip
def test_whole_lines(limits: Limits, shape: tuple[int, ...], axis: int) -> None:
    x = _floats(*shape)
    _check(limits, x, "_whole_lines", axis=axis)
    if axis == x.ndim - 1:
        _check(limits, x.T, "_whole_lines", axis=0)


@pytest.mark.parametrize(("shape", "axis"), [((61, 50), 1), ((1001, 4), 1), ((2, 1, 51, 40), 3)])
def test_a_block_of_one_line(limits: Limits, shape: tuple[int, ...], axis: int) -> None:
    """As the last one may be, of lines that come many at a time."""
    x = _floats(*shape)
    _check(limits, x, "_whole_lines", axis=axis)
    limits.set(1)
    assert_same(ga.inclusive_scan(x, None, max, axis=axis), np.maximum.accumulate(x, axis))


def test_lines_side_by_side_that_are_cut(limits: Limits, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are scanned as if each were alone, whatever the limits are."""
    from gpualgo._algorithms.scan import blocks as blocks_cut

    monkeypatch.setattr(blocks_cut, "MOST_LINES", 3)
    for x in (_floats(600, 5), _floats(2, 500, 4)):
        axis = x.ndim - 2
        limits.set(WHOLE)
        lines = [
            ga.inclusive_scan(line) for line in np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])
        ]
        want = np.moveaxis(x, axis, -1).copy()
        want.reshape(-1, x.shape[axis])[...] = lines
        limits.set(4000, 4000)
        assert_same(ga.inclusive_scan(x, axis=axis), np.moveaxis(want, -1, axis))
    assert limits.ran == ["scan_parts"] * 2


def test_order(limits: Limits) -> None:
    """Operators that neither commute nor have an identity, and init."""
    limits.set(4000, 4000)
    for shape, axis in (((1500,), None), ((700, 3), 0), ((3, 900), 1), ((60, 40), 0)):
        x = np.random.default_rng(1).integers(-99, 99, shape)
        first = x.reshape(-1)[:1] if axis is None else x.take([0], axis)
        start = np.broadcast_to(first, x.shape)
        assert_same(ga.inclusive_scan(x, None, lambda a, b: a, axis=axis), start)
        assert_same(ga.inclusive_scan(x, None, lambda a, b: b, axis=axis), x)
        assert_same(ga.inclusive_scan(x, 7, lambda a, b: a, axis=axis), np.full(shape, 7))
        got = ga.exclusive_scan(x, 7, lambda a, b: b, axis=axis)
        along = axis or 0
        assert_same(got.take([0], along), np.full(first.shape, 7))
        before = np.arange(x.shape[along] - 1)
        assert_same(got.take(before + 1, along), x.take(before, along))
        total = np.cumsum(x[..., ::-1] if axis == x.ndim - 1 else x, axis)
        if axis == x.ndim - 1:
            assert_same(ga.inclusive_scan(x, axis=axis, reverse=True), total[..., ::-1])


def test_tuples(limits: Limits) -> None:
    x, y = np.arange(1500), np.arange(1500)[::-1] % 7
    limits.set(4000)
    a, b = ga.inclusive_scan((x, y), None, lambda p, q: (p[0] + q[0], q[1]))
    assert_same(a, np.cumsum(x))
    assert_same(b, y)
    a, b = ga.exclusive_scan((x, y), (3, 4), lambda p, q: (p[0] + q[0], q[1]))
    assert_same(a, 3 + np.cumsum(x) - x)
    assert_same(b, np.append([4], y[:-1]))
    a, b = ga.inclusive_scan((x.reshape(30, 50), y.reshape(30, 50)), None,
                             lambda p, q: (p[0] + q[0], q[1]), axis=0)  # fmt: skip
    assert_same(a, np.cumsum(x.reshape(30, 50), 0))
    assert limits.ran == ["scan_parts", "scan_parts", "_whole_lines"]


def test_fields_of_one_array(limits: Limits) -> None:
    both = np.zeros((30, 50), [("a", np.float32), ("b", np.float32)])
    both["a"], both["b"] = _floats(30, 50), _floats(50, 30).T

    def add(p: Any, q: Any) -> Any:
        return p[0] + q[0], p[1] + q[1]

    for x, axis in ((both.reshape(-1), None), (both, 0), (both, 1), (both.T, 0)):
        limits.set(WHOLE)
        want = ga.inclusive_scan(x, None, add, axis=axis)
        limits.set(4000)
        got = ga.inclusive_scan(x, None, add, axis=axis)
        for name in ("a", "b"):
            assert_same(got[name], want[name])
    assert limits.ran == ["scan_parts", *["_whole_lines"] * 3]


def test_the_first_part_of_tuples_without_init(limits: Limits) -> None:
    """What its carry is found by has no first result: none may be written that nobody wrote."""
    both = np.zeros((243, 3), [("a", "i8"), ("b", "u1"), ("c", "f4")])
    both["a"], both["b"] = np.arange(729).reshape(243, 3), 5

    def last(p: Any, q: Any) -> Any:
        return p[0] + q[0], q[1], q[2]

    for _ in range(6):
        limits.set(4000, 4000)
        got = ga.inclusive_scan((both["a"], both["b"], both["c"]), None, last, axis=0)
        assert_same(got[0], np.cumsum(both["a"], 0))
    assert limits.ran == ["scan_parts"] * 6


def test_what_operators_capture(limits: Limits) -> None:
    limits.set(4000)
    x, table, sign = np.arange(1500), np.array([0, 1]), 1
    for options in ({}, {"axis": 0}):
        y = x.reshape(-1, 30) if options else x
        got = ga.inclusive_scan(y, None, lambda a, b: (a + b) * table[1] * sign, **options)
        assert_same(got, np.cumsum(y, 0))
    assert limits.ran == ["scan_parts", "_whole_lines"]


def test_outputs_streams_and_page_locked_arrays(cuda: Backend, limits: Limits) -> None:
    limits.set(4000)
    x = np.random.default_rng(1).integers(-99, 99, (40, 50))
    stream = cuda.xp.cuda.Stream(non_blocking=True) if hasattr(cuda.xp, "cuda") else None
    locked = ga.empty_pinned(x.shape, x.dtype)
    locked[...] = x
    for each in (x, locked, x.T.copy().T, np.broadcast_to(x[0], x.shape)):
        for axis in a_few((None, 0, 1)):
            want = np.cumsum(each, axis)
            shape = want.shape
            out = np.zeros((*shape, 2), x.dtype)[..., 1]
            assert ga.inclusive_scan(each, axis=axis, out=out, stream=stream) is out
            assert_same(out, want)
            assert_same(ga.inclusive_scan(each, axis=axis, stream=stream), want)
            same = each.copy()
            where = same.reshape(-1) if axis is None else same
            ga.inclusive_scan(same, axis=axis, out=where)
            assert_same(where, want)
    with pytest.raises(ValueError, match="overlap"):
        ga.inclusive_scan(x[:-1], axis=1, out=x[1:])


def test_small_arrays_go_as_a_whole(limits: Limits) -> None:
    limits.set(4000)
    for n in range(3):
        assert_same(ga.inclusive_scan(np.arange(n)), np.cumsum(np.arange(n)))
    assert not limits.ran


def test_without_memory_nothing_is_written(limits: Limits, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpualgo._driver import device as gpu
    from gpualgo._driver import staging

    def none_left(size: int, stream: int) -> int:
        raise MemoryError("no memory")

    limits.set(4000)
    x = np.arange(scaled(1500, emulated=1500))
    same = x.copy()
    with monkeypatch.context() as patch:
        patch.setattr(gpu.get(0), "allocate", none_left)
        with pytest.raises(MemoryError, match="no memory"):
            ga.inclusive_scan(same, out=same)
    assert_same(same, x)

    copy_all = staging.copy_all

    def fail(*given: Any, is_upload: bool) -> None:
        if not is_upload:
            raise OSError("the bus is gone")
        copy_all(*given, is_upload)

    monkeypatch.setattr(staging, "copy_all", fail)
    with pytest.raises(RuntimeError, match="partly overwritten"):
        ga.inclusive_scan(same, out=same)
    with pytest.raises(OSError, match="the bus is gone"):
        ga.inclusive_scan(same)
