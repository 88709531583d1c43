"""reduce on the CPU of elements that are records: order, layouts, dtypes, sizes about a tile's."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from leaves import (
    PAIR,
    RECORDS,
    Arrays,
    Op,
    arranged,
    assert_each,
    cast,
    compose,
    fold,
    make,
    record,
    start_of,
    structured,
    sums,
)
from support import LAYOUTS, Backend, a_few, sampled

import gpualgo as ga
from gpualgo._algorithms.reduce import cpu
from gpualgo._algorithms.reduce import problem as parameters
from gpualgo._base import records
from gpualgo._cpu.memory import address, captures_bound
from gpualgo._operators.operator import Operator

TILE = parameters.tile_of(PAIR)
SIZES = [1, 2, 3, 5, 64, TILE - 1, TILE, TILE + 1, 2 * TILE + 3, 5 * TILE * TILE // 1024]

Reduce = Callable[..., Arrays]
Point = namedtuple("Point", "x y")


@pytest.fixture
def reduce(backend: Backend, guarded: Any) -> Reduce:
    """Reduce leaves to outputs amid guard bytes."""
    if backend.name != "cpu":
        pytest.skip("calls the CPU's functions themselves")

    def call(
        op: Op, leaves: Arrays, source: Any, axes: Sequence[int] | None = None, acc: Any = None,
        init: Any = None, layout: str = "contiguous",
    ) -> Arrays:  # fmt: skip
        axes = range(leaves[0].ndim) if axes is None else axes
        acc = source if acc is None else acc
        shape = tuple(n for i, n in enumerate(leaves[0].shape) if i not in axes)
        outs = [guarded(shape, leaf, layout) for leaf in records.field_dtypes(acc)]
        op = op if isinstance(op, Operator) else Operator(op)
        has_init = init is not None
        plan = cpu.plan_of(leaves, outs, op, tuple(axes), source, acc, has_init=has_init)
        with captures_bound(op):
            plan.run(leaves, outs, address(init) if has_init else 0)
        return outs

    return call


@pytest.mark.parametrize("n", SIZES)
def test_order(reduce: Reduce, n: int) -> None:
    x = make(n, PAIR)
    want = fold(compose, x, PAIR, [0])
    assert_each(reduce(compose, x, PAIR), want)
    init = start_of((5, 7), PAIR)
    first = [np.asarray(init[name]) for name in PAIR.names or ()]
    a, b = (tuple(int(v) for v in part) for part in (first, want))
    expected = [np.uint32(a[0] * b[0] % 2**32), np.uint32((a[1] * b[0] + b[1]) % 2**32)]
    assert_each(reduce(compose, x, PAIR, init=init), expected)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", sampled(RECORDS, RECORDS[2::2]), ids=records.label)
def test_every_record_at_the_edges_of_a_tile(reduce: Reduce, dtype: np.dtype[Any]) -> None:
    tile, add = parameters.tile_of(dtype), sums(len(records.field_dtypes(dtype)))
    for n in (1, 2, 3, 5, tile - 1, tile, tile + 1, 2 * tile + 3):
        x = make(n, dtype)
        assert_each(reduce(lambda a, b: a, x, dtype), [leaf[0] for leaf in x])
        assert_each(reduce(lambda a, b: b, x, dtype), [leaf[-1] for leaf in x])
        integers = all(leaf.dtype.kind in "iu" for leaf in x)
        if integers or n <= 64:  # what 16-bit floats hold exactly
            assert_each(reduce(add, x, dtype), fold(add, x, dtype, [0]))


@pytest.mark.parametrize("n", [3, 5000])
@pytest.mark.parametrize("layout", [*LAYOUTS, "misaligned", "apart", "structured"])
@pytest.mark.parametrize("dtype", [PAIR, record("uint8", "uint64", "bool")], ids=records.label)
def test_layouts(reduce: Reduce, dtype: np.dtype[Any], layout: str, n: int) -> None:
    x = make(n, dtype)
    if layout == "structured":
        x = structured(x, dtype)
    else:
        x = [arranged(leaf, layout, k) for k, leaf in enumerate(x)]
    op = compose if dtype is PAIR else lambda a, b: (a[0] * b[0], a[1] + b[1], a[2] ^ b[2])
    assert_each(reduce(op, x, dtype), fold(op, x, dtype, [0]))


SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
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
]


@pytest.mark.parametrize("layout", ["contiguous", "fortran", "reversed_rows", "apart", "fields"])
@pytest.mark.parametrize(("shape", "axes"), SHAPES, ids=str)
def test_axes(reduce: Reduce, shape: tuple[int, ...], axes: tuple[int, ...], layout: str) -> None:
    x = make(shape, PAIR) if layout == "fields" else make(shape, PAIR, layout)
    if layout == "fields":
        x = structured(x, PAIR)
    assert_each(reduce(compose, x, PAIR, axes), fold(compose, x, PAIR, axes))


@pytest.mark.parametrize("layout", ["step", "reversed", "padded", "fortran", "offset"])
@pytest.mark.parametrize("axes", [(0,), (1,), (2,)])
def test_outputs_of_any_strides(reduce: Reduce, axes: tuple[int, ...], layout: str) -> None:
    x = make((70, 67, 80), PAIR)
    got = reduce(compose, x, PAIR, axes, layout=layout, init=start_of((1, 0), PAIR))
    assert_each(got, fold(compose, x, PAIR, axes))


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_broadcast_leaves(reduce: Reduce, axes: tuple[int, ...]) -> None:
    shape = 300, 130
    x = make(shape, PAIR)
    for wide in ((300, 1), (1, 130), (1, 1)):
        first = np.broadcast_to(make(wide, PAIR)[0], shape)
        for leaves in ([first, x[1]], [x[0], first], [first, first]):
            assert_each(reduce(compose, leaves, PAIR, axes), fold(compose, leaves, PAIR, axes))


@pytest.mark.slow
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize(
    ("source", "acc"),
    [
        (record("int8", "float32", "bool"), record("int64", "float64", "int32")),
        (record("float16", "bfloat16"), record("complex64", "float32")),
        (record("uint16", "int64"), record("uint16", "float64")),
    ],
    ids=["wider", "floats", "one"],
)
def test_casts(
    reduce: Reduce, source: np.dtype[Any], acc: np.dtype[Any], axes: tuple[int, ...]
) -> None:
    add = sums(len(records.field_dtypes(acc)))
    for layout in a_few(("contiguous", "step", "fortran", "misaligned"), 2):
        x = make((131, 4200 if axes == (1,) else 133), source, layout)
        if source.names == ("0", "1") and x[1].dtype == np.int64:
            x[1][...] %= 1000
        want = [leaf.sum(axes, dtype=leaf.dtype) for leaf in cast(x, acc)]
        assert_each(reduce(add, x, source, axes, acc), want)


def test_tuples_with_names_and_within_tuples(reduce: Reduce) -> None:
    point = record("int32", "float64", paths=("x", "y"))
    x = make(5000, point)
    got = reduce(lambda a, b: (a.x + b.x, max(a.y, b.y)), x, point)
    assert_each(got, [x[0].sum(dtype=np.int32), x[1].max()])
    nested = record("int32", "int8", "uint64", paths=("0", "1.x", "1.y"))
    x = make(5000, nested)
    got = reduce(lambda a, b: (a[0] + b[0], (a[1].x ^ b[1].x, a[1].y * b[1].y)), x, nested)
    want = [
        x[0].sum(dtype=np.int32),
        np.bitwise_xor.reduce(x[1]),
        np.multiply.reduce(x[2]),
    ]
    assert_each(got, want)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 2), (0, 1, 2)])
def test_commutative_operators(reduce: Reduce, axes: tuple[int, ...]) -> None:
    dtype = record("int64", "int32")
    op = Operator(lambda a, b: (a[0] + b[0], max(a[1], b[1])), commutative=True)
    for layout in a_few(("contiguous", "reversed", "reversed_rows", "swapped", "apart"), 2):
        x = make((37, 70, 66), dtype, layout)
        want = [x[0].sum(axes, dtype=np.int64), x[1].max(axes)]
        assert_each(reduce(op, x, dtype, axes), want)


def test_argmax_of_pairs(reduce: Reduce) -> None:
    dtype = record("float32", "int64")
    values = np.random.default_rng(0).random((40, 9001)).astype(np.float32)
    x = [values, np.broadcast_to(np.arange(9001), values.shape)]

    def larger(a: Any, b: Any) -> Any:
        return a if a[0] >= b[0] else b

    got = reduce(larger, x, dtype, [1])
    assert_each(got, [values.max(1), values.argmax(1)])


def test_bits_depend_on_no_thread_and_no_layout(
    reduce: Reduce, monkeypatch: pytest.MonkeyPatch
) -> None:
    dtype = record("float32", "float64")
    rng = np.random.default_rng(0)
    x = [rng.random(300_007).astype(leaf) for leaf in records.field_dtypes(dtype)]
    want = reduce(sums(2), x, dtype)
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("GPUALGO_NUM_THREADS", threads)
        for layout in a_few(("contiguous", "misaligned", "step", "reversed", "apart"), 2):
            leaves = [arranged(leaf, layout, k) for k, leaf in enumerate(x)]
            assert_each(reduce(sums(2), leaves, dtype), want)


# --- by the public function --------------------------------------------------------------------


def test_public_function(reduce: Reduce, guarded: Any) -> None:
    for shape, axis in (((9001,), None), ((70, 300), 0), ((70, 300), 1), ((6, 7, 65), (0, 2))):
        x = make(shape, PAIR, "apart")
        axes = range(len(shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
        want = fold(compose, x, PAIR, axes)
        got = ga.reduce(tuple(x), (1, 0), compose, axis=axis)
        assert type(got) is tuple
        assert_each(list(got), want)
        kept = [np.expand_dims(number, tuple(axes)) for number in want]
        for layout in a_few(("contiguous", "step", "fortran")):
            outs = tuple(guarded(number.shape, number.dtype, layout) for number in kept)
            assert ga.reduce(tuple(x), None, compose, axis=axis, keepdims=True, out=outs) is outs
            assert_each(list(outs), kept)


def test_public_function_on_tuples_of_other_kinds(reduce: Reduce) -> None:
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
