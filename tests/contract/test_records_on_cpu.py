"""Reductions and scans of records on the CPU: order, layouts, axes, dtypes, sizes at tiles."""

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
from support import LAYOUTS, Backend, a_few, sampled

import gpualgo as ga
from gpualgo._algorithms.reduce import cpu as reductions
from gpualgo._algorithms.reduce import problem as parameters
from gpualgo._algorithms.scan import cpu as scans
from gpualgo._base import records
from gpualgo._cpu.memory import address, captures_bound
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

    def of(self, ufunc: np.ufunc, x: np.ndarray[Any, Any], axes: Axes) -> Any:
        """Return what NumPy's function makes of one of the numbers."""
        fold: Any = ufunc.accumulate if self.is_scan else ufunc.reduce
        return fold(x, axis=axes, dtype=x.dtype)


REDUCE = Way(is_scan=False)
SCANS = [Way(True, exclusive, reverse) for exclusive in (False, True) for reverse in (False, True)]
TWO = [REDUCE, SCANS[0]]
each_scan = pytest.mark.parametrize("way", SCANS, ids=str)
either = pytest.mark.parametrize("way", TWO, ids=str)


@pytest.fixture
def run(backend: Backend, guarded: Any) -> Run:
    """Fold or scan leaves, to outputs amid guard bytes or to the outputs given."""
    if backend.name != "cpu":
        pytest.skip("calls the CPU's functions themselves")

    def call(
        way: Way, op: Op, leaves: Arrays, source: Any, axes: Axes, *, init: Any = None,
        acc: Any = None, layout: str = "contiguous", outs: Any = None,
    ) -> Arrays:  # fmt: skip
        acc = source if acc is None else acc
        operator = op if isinstance(op, Operator) else Operator(op)
        start, shape = 0 if init is None else address(init), leaves[0].shape
        if way.is_scan:
            shape = shape if axes is not None else (leaves[0].size,)
        else:
            shape = tuple(n for i, n in enumerate(shape) if i not in axes)  # type: ignore[operator]
        outs = outs or [guarded(shape, leaf, layout) for leaf in records.field_dtypes(acc)]
        if way.is_scan:
            plan: Any = scans.plan_of(
                leaves, outs, operator, axes, way.exclusive, way.reverse, source, acc
            )
            plan.run(leaves, outs, start)
        else:
            plan = reductions.plan_of(
                leaves, outs, operator, axes, source, acc, has_init=init is not None
            )
            with captures_bound(operator):
                plan.run(leaves, outs, start)
        return outs  # type: ignore[no-any-return]

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


@either
@pytest.mark.parametrize("n", [3, LONG + 100])
@pytest.mark.parametrize("layout", [*LAYOUTS, "misaligned", "apart", "structured"])
@pytest.mark.parametrize("dtype", [PAIR, record("uint8", "uint64", "bool")], ids=records.label)
def test_layouts(run: Run, way: Way, dtype: np.dtype[Any], layout: str, n: int) -> None:
    x = make(n, dtype)
    if layout == "structured":
        x = structured(x, dtype)
    else:
        x = [arranged(leaf, layout, k) for k, leaf in enumerate(x)]
    op = compose if dtype is PAIR else lambda a, b: (a[0] * b[0], a[1] + b[1], a[2] ^ b[2])
    axes = way.along(0)
    assert_each(run(way, op, x, dtype, axes), wanted(way, op, x, dtype, axes))


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


@either
@pytest.mark.parametrize("layout", ["step", "reversed", "padded", "fortran", "offset"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_outputs_of_any_strides(run: Run, way: Way, axis: int, layout: str) -> None:
    x, axes = make((70, 67, 80), PAIR), way.along(axis)
    init = None if way.is_scan else start_of((1, 0), PAIR)
    got = run(way, compose, x, PAIR, axes, layout=layout, init=init)
    assert_each(got, wanted(way, compose, x, PAIR, axes))


@pytest.mark.parametrize("shape", [(LONG + 100,), (300, 130), (4500, 33), (20_000, 2)])
@each_scan
def test_in_place(run: Run, shape: tuple[int, ...], way: Way) -> None:
    init = start_of((3, 9), PAIR) if way.exclusive else None
    for layout in a_few(("contiguous", "step", "fields")):
        for in_place in ((True, True), (True, False), (False, True)):
            x = make(shape, PAIR) if layout == "fields" else make(shape, PAIR, layout)
            x = structured(x, PAIR) if layout == "fields" else x
            for axis in range(len(shape)):
                want = wanted(way, compose, x, PAIR, axis, init=init)
                outs = [
                    a if same else np.empty_like(a) for a, same in zip(x, in_place, strict=True)
                ]
                assert_each(run(way, compose, x, PAIR, axis, outs=outs, init=init), want)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), 0, 1], ids=str)
def test_broadcast_leaves(run: Run, axes: Axes) -> None:
    way = REDUCE if isinstance(axes, tuple) else SCANS[0]
    x, n = make((300, 130), PAIR), LONG + 9
    wides = [np.broadcast_to(make(wide, PAIR)[0], (300, 130))
             for wide in ((300, 1), (1, 130), (1, 1))]  # fmt: skip
    for first in wides:
        for leaves in ([first, x[1]], [x[0], first], [first, first]):
            got = run(way, compose, leaves, PAIR, axes)
            assert_each(got, wanted(way, compose, leaves, PAIR, axes))
    leaves = [np.broadcast_to(np.uint32(3), (n,)), make(n, PAIR)[1]]
    got = run(way, compose, leaves, PAIR, way.along(0))
    assert_each(got, wanted(way, compose, leaves, PAIR, way.along(0)))


CASTS = {
    "wider": (record("int8", "float32", "bool"), record("int64", "float64", "int32")),
    "floats": (record("float16", "bfloat16"), record("complex64", "float32")),
    "one": (record("uint16", "int64"), record("uint16", "float64")),
}
CAST_SHAPES: dict[bool, list[tuple[tuple[int, ...], Axes]]] = {
    False: [((131, 133), (0,)), ((131, 4200), (1,)), ((131, 133), (0, 1))],
    True: [((LONG + 9,), 0), ((131, 40), 0), ((131, 40), 1), ((20, 33), None)],
}


@pytest.mark.slow
@either
@pytest.mark.parametrize("name", CASTS)
def test_casts(run: Run, way: Way, name: str) -> None:
    source, acc = CASTS[name]
    add = sums(len(records.field_dtypes(acc)))
    for shape, axes in CAST_SHAPES[way.is_scan]:
        layouts = ["contiguous", "step", "fortran", "misaligned"]
        for layout in layouts[:1] if len(shape) == 1 else a_few(layouts, 2):
            x = make(shape, source, layout)
            if name == "one":
                x[1][...] %= 1000
            got = run(way, add, x, source, axes, acc=acc)
            assert_each(got, wanted(way, add, x, acc, axes))


@either
def test_tuples_with_names_and_within_tuples(run: Run, way: Way) -> None:
    axes = way.along(0)
    point = record("int32", "float64", paths=("x", "y"))
    x = make(5000, point)
    got = run(way, lambda a, b: (a.x + b.x, max(a.y, b.y)), x, point, axes)
    assert_each(got, [way.of(np.add, x[0], axes), way.of(np.maximum, x[1], axes)])
    nested = record("int32", "int8", "uint64", paths=("0", "1.x", "1.y"))
    x = make(5000, nested)
    op: Op = lambda a, b: (a[0] + b[0], (a[1].x ^ b[1].x, a[1].y * b[1].y))  # noqa: E731
    ufuncs = np.add, np.bitwise_xor, np.multiply
    want = [way.of(ufunc, leaf, axes) for ufunc, leaf in zip(ufuncs, x, strict=True)]
    assert_each(run(way, op, x, nested, axes), want)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 2), (0, 1, 2), 0, 1], ids=str)
def test_commutative_operators(run: Run, axes: Axes) -> None:
    way = REDUCE if isinstance(axes, tuple) else SCANS[0]
    dtype = record("int64", "int32")
    op: Any = Operator(lambda a, b: (a[0] + b[0], max(a[1], b[1])), commutative=True)
    for layout in a_few(("contiguous", "reversed", "reversed_rows", "swapped", "apart"), 2):
        x = make((37, 70, 66), dtype, layout)
        want = [way.of(np.add, x[0], axes), way.of(np.maximum, x[1], axes)]
        assert_each(run(way, op, x, dtype, axes), want)


def test_argmax_of_pairs(run: Run) -> None:
    dtype = record("float32", "int64")
    values = np.random.default_rng(0).random((40, 9001)).astype(np.float32)
    x = [values, np.broadcast_to(np.arange(9001), values.shape)]
    got = run(REDUCE, lambda a, b: a if a[0] >= b[0] else b, x, dtype, (1,))
    assert_each(got, [values.max(1), values.argmax(1)])


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
def test_reduce(guarded: Any) -> None:
    for shape, axis in (((9001,), None), ((70, 300), 0), ((70, 300), 1), ((6, 7, 65), (0, 2))):
        x = make(shape, PAIR, "apart")
        axes = range(len(shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
        want = records_of.fold(compose, x, PAIR, axes)
        got = ga.reduce(tuple(x), (1, 0), compose, axis=axis)
        assert type(got) is tuple
        assert_each(list(got), want)
        kept = [np.expand_dims(number, tuple(axes)) for number in want]
        for layout in a_few(("contiguous", "step", "fortran")):
            outs = tuple(guarded(number.shape, number.dtype, layout) for number in kept)
            assert ga.reduce(tuple(x), None, compose, axis=axis, keepdims=True, out=outs) is outs
            assert_each(list(outs), kept)


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


@each_scan
@pytest.mark.usefixtures("run")
def test_scans(way: Way) -> None:
    function: Any = ga.exclusive_scan if way.exclusive else ga.inclusive_scan
    init = start_of((5, 7), PAIR)
    for shape, axis in (((LONG + 5,), 0), ((70, 300), 0), ((70, 300), 1), ((20, 33), None)):
        x = make(shape, PAIR, "apart")
        want = wanted(way, compose, x, PAIR, axis, init=init)
        got = function(tuple(x), (5, 7), compose, axis=axis, reverse=way.reverse)
        assert type(got) is tuple
        assert_each(list(got), want)
        if axis is not None:
            outs = x[0], np.empty_like(x[1])  # one in place
            assert (
                function(tuple(x), (5, 7), compose, axis=axis, reverse=way.reverse, out=outs)
                is outs
            )
            assert_each(list(outs), want)


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
