"""Tiling of a CPU scan: rows into links, or columns, depending on the layout."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpualgo._algorithms.scan import cpu_parameters as parameters
from gpualgo._base import records
from gpualgo._cpu.layout import Dims, Room, leaf, merge, packer, table
from gpualgo._cpu.parameters import START

Dtype: TypeAlias = np.dtype[Any]
Strides: TypeAlias = tuple[tuple[int, ...], ...]

_WIDE = 16  # neighbouring columns that make a scan down columns worthwhile
_MANY = 16  # independent tasks that occupy all cores without cutting rows
_LONG, _LONG_COLUMN = 1 << 15, 1 << 12  # lengths from which rows and columns are cut
# Elements of a tile. Long tiles prefetch best; interleaved rows share cache lines.
_TILE, _NEAR_TILE, _COLUMN_TILE = 1 << 14, 1 << 10, 256
_TILES = 256  # minimum number of tiles of a row that is cut


class Layout(NamedTuple):
    """Rows of n elements; x_steps and out_steps are the byte strides of their fields.

    An outer dimension is (length, stride of each leaf, of each out); the last one has the smallest
    strides.
    """

    source: Dtype
    acc: Dtype
    n: int
    x_steps: tuple[int, ...]
    out_steps: tuple[int, ...]
    outer: Dims
    in_place: tuple[bool, ...]

    @property
    def is_dense(self) -> bool:
        """Whether rows are contiguous in all leaves and outs."""
        return self.x_steps == _sizes(self.source) and self.out_steps == _sizes(self.acc)


class Links(NamedTuple):
    """Tiling of rows into links, and the argument table without addresses."""

    kind: str  # "strips" or "columns"
    options: tuple[bool, ...]  # passed to the code generator
    chains: int
    links: int
    is_cut: bool
    near: bool  # chains share cache lines, so link 0 of all chains comes first
    aggregate_bytes: int
    prefix_bytes: int
    scratch_bytes: int
    arguments: np.ndarray[Any, Any]
    starts: slice  # indices of addresses in `arguments`
    outs: slice


@lru_cache(256)
def cut(
    shape: tuple[int, ...], strides: Strides, out_strides: Strides, axis: int,
    in_place: tuple[bool, ...], source: Dtype, acc: Dtype,
) -> Links:  # fmt: skip
    """Return the tiling of a scan along an axis."""
    dims, count = list(zip(shape, *strides, *out_strides, strict=True)), len(strides)
    n, *steps = dims.pop(axis)
    dims.sort(key=lambda dim: (-_gap(dim[1 + count :]), -_gap(dim[1 : 1 + count])))
    x_steps, out_steps = tuple(steps[:count]), tuple(steps[count:])
    layout = Layout(source, acc, n, x_steps, out_steps, merge(dims), in_place)
    return _cut_columns(layout) if _is_columns(layout) else _cut_strips(layout)


def _sizes(dtype: Dtype) -> tuple[int, ...]:
    return tuple(number.itemsize for number in records.leaves(dtype))


def _gap(steps: Sequence[int]) -> int:
    """Return the sum of the distances between neighbours over all fields of an element."""
    return sum(map(abs, steps))


def _is_columns(layout: Layout) -> bool:
    """Return whether neighbouring rows are closer than the elements of a row."""
    if not layout.outer or layout.outer[-1][0] < _WIDE:
        return False
    if layout.n == 1:
        return True
    count, strides = len(layout.x_steps), layout.outer[-1][1:]
    near = not any(layout.x_steps) or _gap(strides[:count]) < _gap(layout.x_steps)
    return near and _gap(strides[count:]) < _gap(layout.out_steps)


def _cut_strips(layout: Layout) -> Links:
    """Cut rows that are long and few into tiles; ABREAST tiles make a link."""
    n, outer, count = layout.n, layout.outer, len(layout.x_steps)
    rows, size, abreast = prod(dim[0] for dim in outer), layout.acc.itemsize, parameters.ABREAST
    is_cut = n > _LONG and rows < abreast * _MANY
    near = is_cut and bool(outer) and _gap(outer[-1][1 : 1 + count]) < _gap(layout.x_steps)
    long = _TILE if size <= 16 else _TILE * 16 // size
    steps = *layout.x_steps, *layout.out_steps
    if is_cut:
        # An odd number of cache lines spreads the strips of a link over the sets of a cache.
        tile = min(n // _TILES, _NEAR_TILE if near else long) // 32 * 32 + 16
        strips, jumps = -(-n // tile), [tile * step for step in steps]
        span = abreast
    else:
        strips, *jumps = outer[-1] if outer else (1, *(0,) * len(steps))
        outer = outer[:-1]
        rows = prod(dim[0] for dim in outer)
        tile = n
        # Read adjacent rows as four long runs, if enough tasks remain.
        span = max(1, min(long // 2 // n, strips * rows // 256, strips // abreast)) * abreast
    head = (0,) * parameters.CHAIN_TAIL, (0, n, tile, len(outer), is_cut, strips, span)
    addresses = [0] * len(steps)
    first = sum(map(len, head))
    return Links(
        "strips", (layout.is_dense,), rows, -(-strips // span), is_cut, near, abreast * size,
        (abreast + 1) * size, 2 * parameters.SLOTS,
        table(*head, addresses, steps, jumps, *zip(*outer, strict=True)),
        slice(first, first + count), slice(first + count, first + 2 * count),
    )  # fmt: skip


def _cut_columns(layout: Layout) -> Links:
    """Cut columns that are long and few into links of `tile` rows."""
    n, width, outer = layout.n, layout.outer[-1][0], layout.outer[:-1]
    chains = prod(dim[0] for dim in outer) * -(-width // parameters.COLUMNS)
    is_cut = n > _LONG_COLUMN and chains < _MANY
    tile = _COLUMN_TILE if is_cut else n
    room = Room()
    room.take(parameters.columns_scratch(layout.acc))
    lengths = [dim[0] for dim in outer]
    head = (0,) * parameters.CHAIN_TAIL, (0, n, tile, len(outer), width), lengths
    numbers = [_column(layout, k, room) for k in range(len(layout.x_steps))]
    first, step = sum(map(len, head)), len(numbers[0])
    row_bytes = min(width, parameters.COLUMNS) * sum(_sizes(layout.acc))
    return Links(
        "columns", (), chains, -(-n // tile), is_cut, False, row_bytes, 2 * row_bytes, room.size,
        table(*head, *numbers),
        slice(first + START, None, step), slice(first + parameters.OUT_AT, None, step),
    )  # fmt: skip


def _column(layout: Layout, k: int, room: Room) -> list[int]:
    """Return the entries of field k in the functions' table."""
    x, out = records.leaves(layout.source)[k], records.leaves(layout.acc)[k]
    count = len(layout.x_steps)
    *outer, (across, out_across) = ((dim[1 + k], dim[1 + count + k]) for dim in layout.outer)
    # A row is packed if it has gaps, or if the scan is in place and would overwrite it.
    is_direct = across == x.itemsize and not layout.in_place[k]
    return [
        *leaf(0, x, out, is_direct, parameters.COLUMNS, room),
        0, layout.x_steps[k], layout.out_steps[k], across, out_across,
        0 if out_across == out.itemsize else packer(out.itemsize),
        *(stride for stride, _ in outer), *(stride for _, stride in outer),
    ]  # fmt: skip
