"""Scans on the CPU of elements that are records: order, ways, layouts, dtypes, in place."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

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
    scanned,
    start_of,
    structured,
    sums,
)
from support import LAYOUTS, Backend, a_few, sampled

import gpualgo as ga
from gpualgo._algorithms.scan import cpu
from gpualgo._base import records
from gpualgo._cpu.memory import address
from gpualgo._operators.operator import Operator

# Around what is cut into tiles: rows of more than 2^15 elements, columns of more than 2^12.
LONG = 1 << 15
SIZES = [1, 2, 3, 5, 1000, LONG - 1, LONG, LONG + 1, 2 * LONG + 3]

Scan = Callable[..., Arrays]
Point = namedtuple("Point", "x y")
WAYS = [(exclusive, reverse) for exclusive in (False, True) for reverse in (False, True)]


@pytest.fixture
def scan(backend: Backend, guarded: Any) -> Scan:
    """Scan leaves to outputs amid guard bytes, or to the outputs given."""
    if backend.name != "cpu":
        pytest.skip("calls the CPU's functions themselves")

    def call(
        op: Op, leaves: Arrays, source: Any, axis: int | None = 0, init: Any = None,
        exclusive: bool = False, reverse: bool = False, acc: Any = None,
        layout: str = "contiguous", outs: Any = None,
    ) -> Arrays:  # fmt: skip
        acc = source if acc is None else acc
        shape = leaves[0].shape if axis is not None else (leaves[0].size,)
        outs = outs or [guarded(shape, leaf, layout) for leaf in records.field_dtypes(acc)]
        operator = op if isinstance(op, Operator) else Operator(op)
        plan = cpu.plan_of(leaves, outs, operator, axis, exclusive, reverse, source, acc)
        plan.run(leaves, outs, 0 if init is None else address(init))
        return outs

    return call


@pytest.mark.parametrize(("exclusive", "reverse"), WAYS)
def test_the_reference(exclusive: bool, reverse: bool) -> None:
    x, init = make(100, PAIR), start_of((5, 7), PAIR)
    value, want = [init["0"], init["1"]], []
    for i in reversed(range(100)) if reverse else range(100):
        before, value = value, applied(compose, value, [leaf[i] for leaf in x], PAIR)
        want.append(before if exclusive else value)
    want = want[::-1] if reverse else want
    got = scanned(compose, x, PAIR, 0, init, exclusive, reverse)
    assert_each(got, [np.array(leaf) for leaf in zip(*want, strict=True)])


@pytest.mark.parametrize(("exclusive", "reverse"), WAYS)
@pytest.mark.parametrize("n", SIZES)
def test_order(scan: Scan, n: int, exclusive: bool, reverse: bool) -> None:
    x = make(n, PAIR)
    for init in [start_of((5, 7), PAIR)] if exclusive else [None, start_of((5, 7), PAIR)]:
        ways = {"init": init, "exclusive": exclusive, "reverse": reverse}
        assert_each(scan(compose, x, PAIR, **ways), scanned(compose, x, PAIR, **ways))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", sampled(RECORDS, RECORDS[3::3]), ids=records.label)
def test_every_record(scan: Scan, dtype: np.dtype[Any]) -> None:
    add = sums(len(records.field_dtypes(dtype)))
    for n in (1, 3, 5, 64, LONG + 17):
        x = make(n, dtype)
        first = [np.full(n, leaf[0]) for leaf in x]
        assert_each(scan(lambda a, b: a, x, dtype), first)
        assert_each(scan(lambda a, b: b, x, dtype), x)
        if n <= 64:  # what 16-bit floats hold exactly
            init = start_of([1] * len(x), dtype)
            assert_each(scan(add, x, dtype), scanned(add, x, dtype))
            ways = {"init": init, "exclusive": True, "reverse": True}
            assert_each(scan(add, x, dtype, **ways), scanned(add, x, dtype, **ways))
    x = make((40, 19), dtype)
    assert_each(scan(add, x, dtype), scanned(add, x, dtype))


@pytest.mark.parametrize("n", [3, LONG + 100])
@pytest.mark.parametrize("layout", [*LAYOUTS, "misaligned", "apart", "structured"])
@pytest.mark.parametrize("dtype", [PAIR, record("uint8", "uint64", "bool")], ids=records.label)
def test_layouts(scan: Scan, dtype: np.dtype[Any], layout: str, n: int) -> None:
    x = make(n, dtype)
    if layout == "structured":
        x = structured(x, dtype)
    else:
        x = [arranged(leaf, layout, k) for k, leaf in enumerate(x)]
    op = compose if dtype is PAIR else lambda a, b: (a[0] * b[0], a[1] + b[1], a[2] ^ b[2])
    assert_each(scan(op, x, dtype), scanned(op, x, dtype))


SHAPES: list[tuple[tuple[int, ...], int | None]] = [
    ((4009, 3), 1),  # many short rows
    ((33, 1003), 1),
    ((2, LONG + 7), 1),  # few long rows
    ((LONG + 7, 2), 0),  # which lie close to each other
    ((1025, 257), 0),
    ((4500, 20), 0),  # long columns
    ((4500, 300), 0),
    ((3, 9009), 0),  # many short columns
    ((4, 5, 1026), 1),
    ((33, 100, 2), 1),
    ((1, 30), 0),
    ((1, 1, 1), 1),
    ((6, 7, 65), 0),
    ((6, 7, 65), None),
    ((40, LONG // 30), None),
]


@pytest.mark.parametrize("layout", ["contiguous", "fortran", "reversed_rows", "apart", "fields"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
def test_axes(scan: Scan, shape: tuple[int, ...], axis: int | None, layout: str) -> None:
    x = make(shape, PAIR) if layout == "fields" else make(shape, PAIR, layout)
    if layout == "fields":
        x = structured(x, PAIR)
    assert_each(scan(compose, x, PAIR, axis), scanned(compose, x, PAIR, axis))
    ways = {"init": start_of((3, 9), PAIR), "exclusive": True, "reverse": True}
    assert_each(scan(compose, x, PAIR, axis, **ways), scanned(compose, x, PAIR, axis, **ways))


@pytest.mark.parametrize("layout", ["step", "reversed", "padded", "fortran", "offset"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_outputs_of_any_strides(scan: Scan, axis: int, layout: str) -> None:
    x = make((30, 67, 40), PAIR)
    assert_each(scan(compose, x, PAIR, axis, layout=layout), scanned(compose, x, PAIR, axis))


@pytest.mark.parametrize("shape", [(LONG + 100,), (300, 130), (4500, 33), (20_000, 2)])
@pytest.mark.parametrize(("exclusive", "reverse"), WAYS)
def test_in_place(scan: Scan, shape: tuple[int, ...], exclusive: bool, reverse: bool) -> None:
    init = start_of((3, 9), PAIR) if exclusive else None
    ways = {"init": init, "exclusive": exclusive, "reverse": reverse}
    for layout in a_few(("contiguous", "step", "fields")):
        for in_place in ((True, True), (True, False), (False, True)):
            x = make(shape, PAIR) if layout == "fields" else make(shape, PAIR, layout)
            x = structured(x, PAIR) if layout == "fields" else x
            for axis in range(len(shape)):
                want = scanned(compose, x, PAIR, axis, **ways)
                outs = [
                    a if same else np.empty_like(a) for a, same in zip(x, in_place, strict=True)
                ]
                assert_each(scan(compose, x, PAIR, axis, outs=outs, **ways), want)


@pytest.mark.parametrize("axis", [0, 1])
def test_broadcast_leaves(scan: Scan, axis: int) -> None:
    shape = 300, 130
    x = make(shape, PAIR)
    for wide in ((300, 1), (1, 130), (1, 1)):
        first = np.broadcast_to(make(wide, PAIR)[0], shape)
        for leaves in ([first, x[1]], [x[0], first], [first, first]):
            assert_each(scan(compose, leaves, PAIR, axis), scanned(compose, leaves, PAIR, axis))
    n = LONG + 9
    leaves = [np.broadcast_to(np.uint32(3), (n,)), make(n, PAIR)[1]]
    assert_each(scan(compose, leaves, PAIR), scanned(compose, leaves, PAIR))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "acc"),
    [
        (record("int8", "float32", "bool"), record("int64", "float64", "int32")),
        *(
            pytest.param(*records_of, marks=pytest.mark.exhaustive)  # as reduce's, always run
            for records_of in (
                (record("float16", "bfloat16"), record("complex64", "float32")),
                (record("uint16", "int32"), record("uint16", "float64")),
            )
        ),
    ],
    ids=["wider", "floats", "one"],
)
def test_casts(scan: Scan, source: np.dtype[Any], acc: np.dtype[Any]) -> None:
    add = sums(len(records.field_dtypes(acc)))
    for shape, axis in (((LONG + 9,), 0), ((131, 40), 0), ((131, 40), 1), ((20, 33), None)):
        layouts = ("contiguous", "step", "fortran", "misaligned")
        for layout in layouts[:1] if len(shape) == 1 else layouts:
            x = make(shape, source, layout)
            got = scan(add, x, source, axis, acc=acc)
            assert_each(got, scanned(add, x, acc, axis))


def test_tuples_with_names_and_within_tuples(scan: Scan) -> None:
    point = record("int32", "float64", paths=("x", "y"))
    x = make(5000, point)
    got = scan(lambda a, b: (a.x + b.x, max(a.y, b.y)), x, point)
    assert_each(got, [np.cumsum(x[0], dtype=np.int32), np.maximum.accumulate(x[1])])
    nested = record("int32", "int8", "uint64", paths=("0", "1.x", "1.y"))
    x = make(5000, nested)
    got = scan(lambda a, b: (a[0] + b[0], (a[1].x ^ b[1].x, a[1].y * b[1].y)), x, nested)
    want = [
        np.cumsum(x[0], dtype=np.int32),
        np.bitwise_xor.accumulate(x[1]),
        np.multiply.accumulate(x[2]),
    ]
    assert_each(got, want)


@pytest.mark.slow
def test_a_commutative_operator(scan: Scan) -> None:
    dtype = record("int64", "int32")
    op = Operator(lambda a, b: (a[0] + b[0], max(a[1], b[1])), commutative=True)
    x = make((37, 70), dtype, "apart")
    for axis in a_few((0, 1)):
        want = [np.cumsum(x[0], axis), np.maximum.accumulate(x[1], axis)]
        assert_each(scan(op, x, dtype, axis), want)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(300_007,), (5000, 130)])
def test_bits_depend_on_no_thread(
    scan: Scan, monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...]
) -> None:
    dtype = record("float32", "float64")
    rng = np.random.default_rng(0)
    x = [rng.random(shape).astype(leaf) for leaf in records.field_dtypes(dtype)]
    want = scan(sums(2), x, dtype)
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("GPUALGO_NUM_THREADS", threads)
        for layout in a_few(("contiguous", "misaligned")):
            leaves = [arranged(leaf, layout) for leaf in x]
            assert_each(scan(sums(2), leaves, dtype), want)


# --- by the public functions -------------------------------------------------------------------

FUNCTIONS = [
    (ga.inclusive_scan, False, False),
    (ga.inclusive_scan, False, True),
    (ga.exclusive_scan, True, False),
    (ga.exclusive_scan, True, True),
]


@pytest.mark.parametrize(("function", "exclusive", "reverse"), FUNCTIONS)
def test_public_functions(
    scan: Scan, function: Callable[..., Any], exclusive: bool, reverse: bool
) -> None:
    init = start_of((5, 7), PAIR)
    for shape, axis in (((LONG + 5,), 0), ((70, 300), 0), ((70, 300), 1), ((20, 33), None)):
        x = make(shape, PAIR, "apart")
        want = scanned(compose, x, PAIR, axis, init, exclusive, reverse)
        got = function(tuple(x), (5, 7), compose, axis=axis, reverse=reverse)
        assert type(got) is tuple
        assert_each(list(got), want)
        if axis is not None:
            outs = x[0], np.empty_like(x[1])  # one in place
            assert function(tuple(x), (5, 7), compose, axis=axis, reverse=reverse, out=outs) is outs
            assert_each(list(outs), want)


@pytest.mark.slow
def test_public_functions_on_tuples_of_other_kinds(scan: Scan) -> None:
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
