"""Reductions and scans of records on the CPU: order, axes and dtypes at the edges of its tiles."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple

import leaves as records_of
import numpy as np
import pytest
from leaves import (
    PAIR,
    RECORDS,
    Arrays,
    Op,
    applied,
    arranged,
    assert_each,
    compose,
    make,
    record,
    start_of,
    structured,
    sums,
)
from support import Backend, a_few, sampled

import gpualgo as ga
from gpualgo._algorithms.reduce import cpu as reductions
from gpualgo._algorithms.reduce import problem as parameters
from gpualgo._algorithms.scan import cpu as scans
from gpualgo._base import records
from gpualgo._cpu.memory import address, run_captured
from gpualgo._operators.operator import Operator

# Around what is cut into tiles: of scans rows of more than 2^15 elements, columns of 2^12.
LONG, TILE = 1 << 15, parameters.tile_of(PAIR)
Axes = int | tuple[int, ...] | None
Run = Callable[..., Arrays]
Point = namedtuple("Point", "x y")


class Way(NamedTuple):
    """A reduction, or one of the scans."""

    is_scan: bool
    exclusive: bool = False
    reverse: bool = False

    def __str__(self) -> str:
        kind = ("exclusive" if self.exclusive else "inclusive") if self.is_scan else "reduce"
        return kind + "_reversed" * self.reverse

    def along(self, axis: int) -> Axes:
        return axis if self.is_scan else (axis,)


REDUCE = Way(is_scan=False)
SCANS = [Way(True, exclusive, reverse) for exclusive in (False, True) for reverse in (False, True)]
TWO = [REDUCE, SCANS[0]]
each_scan = pytest.mark.parametrize("way", SCANS, ids=str)
either = pytest.mark.parametrize("way", TWO, ids=str)


@pytest.fixture
def run(backend: Backend, guarded: Any) -> Run:
    """Fold or scan leaves, to outputs amid guard bytes."""
    if backend.name != "cpu":
        pytest.skip("calls the CPU's functions themselves")

    def call(
        way: Way, op: Op, leaves: Arrays, source: Any, axes: Axes, *, init: Any = None
    ) -> Arrays:
        operator = op if isinstance(op, Operator) else Operator(op)
        start, shape = 0 if init is None else address(init), leaves[0].shape
        if way.is_scan:
            shape = shape if axes is not None else (leaves[0].size,)
        else:
            shape = tuple(n for i, n in enumerate(shape) if i not in axes)  # type: ignore[operator]
        outs = [guarded(shape, leaf) for leaf in records.field_dtypes(source)]
        if way.is_scan:
            plan: Any = scans.plan_of(
                leaves, outs, operator, axes, way.exclusive, way.reverse, source, source
            )
            plan.run(leaves, outs, start)
        else:
            plan = reductions.plan_of(
                leaves, outs, operator, axes, source, source, has_init=init is not None
            )
            run_captured(operator, plan.run, leaves, outs, start)
        return outs

    return call


def wanted(way: Way, op: Op, leaves: Arrays, dtype: Any, axes: Any, *, init: Any = None) -> Arrays:
    if way.is_scan:
        return records_of.scanned(op, leaves, dtype, axes, init, way.exclusive, way.reverse)
    found = records_of.fold(op, leaves, dtype, axes)
    if init is None:
        return found
    return applied(op, [np.asarray(init[name]) for name in dtype.names], found, dtype)


@each_scan
def test_the_reference(way: Way) -> None:
    x, init = make(100, PAIR), start_of((5, 7), PAIR)
    value, want = [init["0"], init["1"]], []
    for i in reversed(range(100)) if way.reverse else range(100):
        before, value = value, applied(compose, value, [leaf[i] for leaf in x], PAIR)
        want.append(before if way.exclusive else value)
    want = want[::-1] if way.reverse else want
    got = wanted(way, compose, x, PAIR, 0, init=init)
    assert_each(got, [np.array(leaf) for leaf in zip(*want, strict=True)])


SIZES = [1, 2, 3, 5, 64, TILE - 1, TILE, TILE + 1, 2 * TILE + 3, 5 * TILE * TILE // 1024]
SIZES_OF_SCANS = [1, 2, 3, 5, 1000, LONG - 1, LONG, LONG + 1, 2 * LONG + 3]


@pytest.mark.parametrize(
    ("way", "n"),
    [*[(REDUCE, n) for n in SIZES], *[(way, n) for way in SCANS for n in SIZES_OF_SCANS]],
    ids=str,
)
def test_order(run: Run, way: Way, n: int) -> None:
    x, start = make(n, PAIR), start_of((5, 7), PAIR)
    for init in [start] if way.exclusive else [None, start]:
        got = run(way, compose, x, PAIR, way.along(0), init=init)
        assert_each(got, wanted(way, compose, x, PAIR, way.along(0), init=init))


@pytest.mark.slow
@either
@pytest.mark.parametrize("dtype", sampled(RECORDS, RECORDS[2::2]), ids=records.label)
def test_every_record_at_the_edges_of_a_tile(run: Run, way: Way, dtype: np.dtype[Any]) -> None:
    tile, add = parameters.tile_of(dtype), sums(len(records.field_dtypes(dtype)))
    edges = [LONG + 17] if way.is_scan else [tile - 1, tile, tile + 1, 2 * tile + 3]
    axes = way.along(0)
    for n in (1, 2, 3, 5, 64, *edges):
        x = make(n, dtype)
        first = [np.full(n, leaf[0]) if way.is_scan else leaf[0] for leaf in x]
        assert_each(run(way, lambda a, b: a, x, dtype, axes), first)
        last = x if way.is_scan else [leaf[-1] for leaf in x]
        assert_each(run(way, lambda a, b: b, x, dtype, axes), last)
        if all(leaf.dtype.kind in "iu" for leaf in x) or n <= 64:  # what 16-bit floats hold exactly
            assert_each(run(way, add, x, dtype, axes), wanted(way, add, x, dtype, axes))
            if way.is_scan:
                init = start_of([1] * len(x), dtype)
                got = run(SCANS[-1], add, x, dtype, 0, init=init)
                assert_each(got, wanted(SCANS[-1], add, x, dtype, 0, init=init))
    x = make((40, 19), dtype)
    assert_each(run(way, add, x, dtype, axes), wanted(way, add, x, dtype, axes))


SHAPES: list[tuple[tuple[int, ...], Axes]] = [
    ((4009, 3), (1,)),  # many short rows
    ((33, 5003), (1,)),
    ((2, 30_007), (1,)),
    ((30_007, 2), (0,)),
    ((1025, 257), (0,)),
    ((5, 4099), (0,)),
    ((3, 40_009), (0,)),  # many short columns
    ((4, 5, 1026), (1,)),
    ((33, 1000, 2), (1,)),
    ((1, 1, 1), (1,)),
    ((6, 7, 65), (0, 2)),
    ((6, 7, 65), (0, 1)),
    ((6, 7, 65), (1, 2)),
    ((6, 7, 65), (0, 1, 2)),
    ((3, 4, 5, 6, 2), (0, 2, 4)),
    # Of scans.
    ((4009, 3), 1),
    ((33, 1003), 1),
    ((2, LONG + 7), 1),  # few long rows
    ((LONG + 7, 2), 0),  # which lie close to each other
    ((1025, 257), 0),
    ((4500, 20), 0),  # long columns
    ((4500, 300), 0),
    ((3, 9009), 0),
    ((4, 5, 1026), 1),
    ((33, 100, 2), 1),
    ((1, 30), 0),
    ((1, 1, 1), 1),
    ((6, 7, 65), 0),
    ((6, 7, 65), None),
    ((40, LONG // 30), None),
]


@pytest.mark.parametrize("layout", ["contiguous", "fortran", "reversed_rows", "apart", "fields"])
@pytest.mark.parametrize(("shape", "axes"), SHAPES, ids=str)
def test_axes(run: Run, shape: tuple[int, ...], axes: Axes, layout: str) -> None:
    x = structured(make(shape, PAIR), PAIR) if layout == "fields" else make(shape, PAIR, layout)
    for way in [REDUCE] if isinstance(axes, tuple) else [SCANS[0], SCANS[-1]]:
        init = start_of((3, 9), PAIR) if way.exclusive else None
        got = run(way, compose, x, PAIR, axes, init=init)
        assert_each(got, wanted(way, compose, x, PAIR, axes, init=init))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "shape"), [(REDUCE, (300_007,)), (SCANS[0], (300_007,)), (SCANS[0], (5000, 130))],
    ids=str,
)  # fmt: skip
def test_bits_depend_on_no_thread_and_no_layout(
    run: Run, monkeypatch: pytest.MonkeyPatch, way: Way, shape: tuple[int, ...]
) -> None:
    dtype, axes = record("float32", "float64"), way.along(0)
    rng = np.random.default_rng(0)
    x = [rng.random(shape).astype(leaf) for leaf in records.field_dtypes(dtype)]
    want = run(way, sums(2), x, dtype, axes)
    layouts = ["contiguous", "misaligned", "step", "reversed", "apart"]
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("GPUALGO_NUM_THREADS", threads)
        for layout in a_few(layouts[: 2 if way.is_scan else 5], 2):
            leaves = [arranged(leaf, layout, k) for k, leaf in enumerate(x)]
            assert_each(run(way, sums(2), leaves, dtype, axes), want)


# --- by the public functions --------------------------------------------------------------------


@pytest.mark.usefixtures("run")
def test_reduce_of_tuples_of_other_kinds() -> None:
    x, y = make(1000, record("int8", "float32"))
    named = ga.reduce(
        Point(x, 1.0),
        None,
        lambda a, b: Point(a.x + b.x, a.y + b.y),
        dtype=Point("int64", "float64"),
    )
    assert type(named) is Point
    assert named == (x.sum(dtype=np.int64), 1000.0)
    fields = np.empty(1000, [("k", "i1"), ("v", "f4")])
    fields["k"], fields["v"] = x, y
    got = ga.reduce(fields, None, lambda a, b: (a.k ^ b.k, max(a.v, b.v)))
    assert (got["k"], got["v"]) == (np.bitwise_xor.reduce(x), y.max())
    assert ga.reduce((x[:0], y[:0]), (3, 4.0), sums(2)) == (3, 4.0)


@pytest.mark.slow
@pytest.mark.usefixtures("run")
def test_scans_of_tuples_of_other_kinds() -> None:
    x, y = make(1000, record("int8", "float32"))
    named = ga.inclusive_scan(
        Point(x, 1.0),
        None,
        lambda a, b: Point(a.x + b.x, a.y + b.y),
        dtype=Point("int64", "float64"),
    )
    assert type(named) is Point
    assert_each(list(named), [np.cumsum(x, dtype=np.int64), np.arange(1, 1001, dtype=np.float64)])
    fields = np.empty(1000, [("k", "i1"), ("v", "f4")])
    fields["k"], fields["v"] = x, y
    got = ga.inclusive_scan(fields, None, lambda a, b: (a.k ^ b.k, max(a.v, b.v)))
    assert got.dtype == fields.dtype
    assert_each([got["k"], got["v"]], [np.bitwise_xor.accumulate(x), np.maximum.accumulate(y)])
    nested = ga.exclusive_scan((x, (y, y)), (0, (0, -100)), lambda a, b: (
        a[0] + b[0], (a[1][0] + b[1][0], max(a[1][1], b[1][1])),
    ), dtype=(np.int64, (np.float32, np.float32)))  # fmt: skip
    assert_each([nested[0]], [np.cumsum(np.r_[0, x[:-1]])])
    assert_each([nested[1][1]], [np.maximum.accumulate(np.r_[np.float32(-100), y[:-1]])])
