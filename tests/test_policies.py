"""What the host decides before a launch: how work is cut, and how indices become addresses."""

from __future__ import annotations

import itertools
import math
import operator
import struct
import types
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support import DTYPES

from gpualgo._algorithms.reduce import tuning as rows
from gpualgo._algorithms.transform import tuning as elements
from gpualgo._base import records, strides
from gpualgo._cuda import headers, templates
from gpualgo._cuda.parameters import Parameters
from gpualgo._driver import driver, staging
from gpualgo._operators.operator import Operator

COMMUTATIVE, ORDERED = Operator(operator.add), Operator(lambda a, b: a + b)

dtypes = st.sampled_from(DTYPES)
operators = st.sampled_from([COMMUTATIVE, ORDERED])
alignments = st.sampled_from([1, 2, 4, 8, 16])


def _sizes(bits: int) -> st.SearchStrategy[int]:
    """Draw numbers of every magnitude, the powers of two and their neighbours among them."""
    near = st.tuples(st.integers(0, bits), st.integers(-1, 1)).map(lambda p: (1 << p[0]) + p[1])
    anywhere = st.integers(0, bits).flatmap(lambda b: st.integers(1, 1 << b))
    return (near | anywhere).filter(lambda n: 1 <= n <= 1 << bits)


@given(_sizes(62), _sizes(63), st.integers(-1, 1))
def test_divisor_is_exact(value: int, wanted: int, step: int) -> None:
    """A dividend anywhere, and those around a multiple of the divisor, where it could slip."""
    same, magic, shift = headers.divisor(value)
    struct.pack("<qQq", same, magic, shift)  # magic < 2**64
    assert same == value
    multiple = wanted // value * value + step
    for dividend in (wanted - 1, multiple, (1 << 63) - 1):
        if 0 <= dividend < 1 << 63:
            quotient = (dividend * magic >> 64) >> shift if magic else dividend
            assert quotient == dividend // value


Dims = list[tuple[int, tuple[int, ...]]]


@st.composite
def _dims(draw: st.DrawFn) -> Dims:
    """Draw extents and strides, many of them such that neighbours can be joined."""
    dims: Dims = []
    step = [1, 8]
    for extent in draw(st.lists(st.integers(0, 4), max_size=5)):
        joins = draw(st.booleans())
        strides = step if joins else [draw(st.integers(-20, 20)) for _ in step]
        dims.append((extent, tuple(strides)))
        step = [stride * extent for stride in strides]
    return dims[::-1]


def _addresses(dims: Dims, operand: int) -> list[int]:
    """Return the addresses in C order."""
    steps = [[i * strides[operand] for i in range(extent)] for extent, strides in dims]
    return [sum(position) for position in itertools.product(*steps)]


@given(_dims())
def test_merge_keeps_addresses(dims: Dims) -> None:
    merged = strides.merge(dims)
    for operand in range(2):
        assert _addresses(merged, operand) == _addresses(dims, operand)
    assert strides.merge(merged) == merged
    assert all(extent != 1 for extent, _ in merged)


def test_too_many_dimensions_are_refused() -> None:
    fit: Dims = [(2, (3**i,)) for i in range(strides.MAX_DIMS)]
    kernel = Parameters(
        "Kernel", layout=headers.struct_of("parts/layout.cuh", headers.cpp("Layout", 1))
    )
    assert len(kernel.pack(layout=fit).tail) == len(kernel.pack(layout=[]).tail) == kernel.size
    with pytest.raises(ValueError, match=f"{strides.MAX_DIMS + 1} separate dimensions"):
        kernel.pack(layout=[*fit, (2, (1,))])


@given(
    st.lists(st.integers(0, 6), max_size=4).map(tuple),
    st.sampled_from([1, 2, 8, 16]),
    st.integers(1, 400),
)
def test_pieces_cover_every_element_once(shape: tuple[int, ...], itemsize: int, limit: int) -> None:
    numbers = np.arange(math.prod(shape)).reshape(shape)
    pieces = [numbers[index] for index in staging.pieces(shape, itemsize, limit)]
    assert all(piece.size == 1 or piece.size * itemsize <= limit for piece in pieces)
    joined = np.concatenate([piece.ravel() for piece in pieces]) if pieces else numbers.ravel()
    assert joined.tolist() == list(range(numbers.size))


@given(operators, _sizes(24), _sizes(38), dtypes)
def test_cut_rows_covers_everything(
    op: Operator, num_rows: int, num_items: int, dtype: np.dtype[Any]
) -> None:
    cut = rows.tile_rows(op, num_rows, num_items, dtype)
    if cut.width:
        assert cut.width in (1, 2, 4, 8, 16, 32)
        assert (cut.chunk_items, cut.blocks_per_row) == (num_items, 1)
        groups = cut.policy.block_threads // cut.width * cut.policy.max_tiles
        assert (cut.num_blocks - 1) * groups < num_rows <= cut.num_blocks * groups
        return
    assert cut.num_blocks == num_rows * cut.blocks_per_row
    assert (cut.blocks_per_row - 1) * cut.chunk_items < num_items
    assert num_items <= cut.blocks_per_row * cut.chunk_items
    tile = templates.WARP * cut.policy.loads * rows.row_items(dtype)
    tiles, rest = divmod(cut.chunk_items, tile * cut.policy.warps)
    assert rest == 0
    assert tiles <= cut.policy.max_tiles


@pytest.mark.parametrize(
    ("dtype", "long", "short"), [(np.int8, 1 << 17, 1 << 16), (np.float32, 1 << 14, 1 << 13),
                                 (np.float64, 1 << 13, 1 << 12)],
)  # fmt: skip
def test_only_long_rows_have_blocks_where_rows_are_many(dtype: Any, long: int, short: int) -> None:
    many = 1 << 15
    assert not rows.tile_rows(ORDERED, many, long, np.dtype(dtype)).width
    assert rows.tile_rows(ORDERED, many, short, np.dtype(dtype)).width == templates.WARP
    assert not rows.tile_rows(ORDERED, 100, short, np.dtype(dtype)).width


@given(
    operators, _sizes(38), st.lists(dtypes, min_size=1, max_size=8),
    st.lists(dtypes, min_size=2, max_size=8),
)  # fmt: skip
def test_slots_of_computed_records_fit(
    op: Operator, num_items: int, numbers: list[np.dtype[Any]], fields: list[np.dtype[Any]]
) -> None:
    result = records.record(map(str, range(len(fields))), fields)
    policy = rows.tile_rows(op, 1, num_items, records.Computed(tuple(numbers), result)).policy
    tiles = policy.warps * (2 if op.commutative else policy.max_tiles)
    assert (tiles + policy.warps) * result.itemsize <= 48 << 10  # BlocksShared, of any GPU


@given(_sizes(16), _sizes(31), _sizes(24), dtypes, dtypes, alignments)
def test_cut_columns_covers_everything(
    batches: int, num_rows: int, num_columns: int, source: np.dtype[Any], acc: np.dtype[Any],
    alignment: int,
) -> None:  # fmt: skip
    items = rows.column_items(source, acc, num_columns, alignment // source.itemsize)
    assert items == 1 or alignment % (items * source.itemsize) == 0
    assert num_columns % items == 0
    widest = rows.column_items(source, acc, num_columns)
    cut = rows.tile_columns(batches, num_rows, num_columns, widest, items, source.itemsize, 4)
    best = rows.tile_columns(batches, num_rows, num_columns, widest, widest, source.itemsize, 4)
    # Were these to depend on alignment, so would the association.
    assert (cut.width, cut.rows_per_block) == (best.width, best.rows_per_block)
    assert cut.items == items
    assert rows.COLUMNS.block_threads % cut.width == 0
    count = 1 if cut.spans_batches else batches
    assert cut.num_columns * count == num_columns * batches
    assert cut.per_batch == (num_columns if cut.spans_batches else cut.num_tiles // count)
    tiles, rest = divmod(cut.num_tiles, count)
    assert rest == 0
    assert (tiles - 1) * cut.columns < cut.num_columns <= tiles * cut.columns
    assert (cut.num_blocks - 1) * cut.rows_per_block < num_rows
    assert num_rows <= cut.num_blocks * cut.rows_per_block


def test_few_rows_and_columns_share_a_block() -> None:
    float32 = np.dtype(np.float32)

    def spans(batches: int, num_rows: int, num_columns: int) -> bool:
        widest = rows.column_items(float32, float32, num_columns)
        cut = rows.tile_columns(batches, num_rows, num_columns, widest, widest, 4, 4)
        return cut.spans_batches

    assert spans(1 << 20, 8, 8)
    assert spans(1 << 20, 4, 128)
    assert not spans(1, 8, 8)  # there is but one batch
    assert not spans(1 << 12, 128, 128)
    assert not spans(1000, 100_000, 4)


def test_cuts_do_not_ask_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The association, and so the bits, must not depend on which GPU is there."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("the cut asked the driver")

    for name, value in list(vars(driver).items()):
        if isinstance(value, types.FunctionType | type):
            monkeypatch.setattr(driver, name, refuse)
    for dtype in DTYPES:
        for num_rows, num_items in ((1, 1 << 30), (1 << 20, 100), (300, 1 << 20)):
            rows.tile_rows(ORDERED, num_rows, num_items, dtype)
            widest = rows.column_items(dtype, dtype, num_items)
            rows.tile_columns(
                1, num_rows, num_items, widest, widest, dtype.itemsize, dtype.itemsize
            )


@given(st.lists(dtypes, min_size=2, max_size=9), alignments)
def test_packs_respect_alignment(operands: list[np.dtype[Any]], alignment: int) -> None:
    assume(all(alignment % dtype.itemsize == 0 for dtype in operands))
    items = elements.pack_items(tuple(operands), alignment)
    assert items & (items - 1) == 0
    for dtype in operands:
        access = min(elements.VECTOR_BYTES, items * dtype.itemsize)
        assert alignment % access == 0
        assert items == 1 or items * dtype.itemsize <= elements.MAX_PACK_BYTES
    loads = elements.loads_in_flight(operands[1:], items)
    assert loads >= 1
    assert loads & (loads - 1) == 0
    held = loads * items * sum(dtype.itemsize for dtype in operands[1:])
    assert loads == 1 or held <= elements.BYTES_IN_FLIGHT
