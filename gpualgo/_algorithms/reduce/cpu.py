"""Reduction on the CPU's cores: choice of kernel from the layout, and passes until one is left."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from gpualgo._algorithms.reduce import cpu_parameters as rk
from gpualgo._base import threads
from gpualgo._base.extents import dense_strides
from gpualgo._cpu.captured import bound
from gpualgo._cpu.kernels import Kernel, get_kernel, scratch
from gpualgo._cpu.layout import Dims, address, is_dense, merge, packer, table
from gpualgo._cpu.operator import Applied
from gpualgo._operators.operator import Operator

_SHORT = 64  # with fewer elements than this to fold, many outputs are folded abreast
_WIDE = 16  # so many outputs side by side in memory are worth folding abreast
_WORTH = 8  # a first pass that leaves less than one partial in so many elements pays


@dataclass
class _Source:
    """What one pass reads: elements at an address, dimensions (length, stride of x, of out)."""

    start: int
    itemsize: int
    cast: bool
    kept: Dims
    reduced: Dims
    column: bool  # the last kept dimension is folded abreast
    owner: np.ndarray[Any, Any]  # keeps the memory


@dataclass
class _Target:
    """Where one pass writes: strides of the kept dimensions and of an output's partials."""

    start: int
    itemsize: int
    strides: list[int]
    part_stride: int
    init: int  # the address of the value to start from, or 0


def reduce(
    x: np.ndarray[Any, Any],
    out: np.ndarray[Any, Any],
    op: Operator,
    init: np.ndarray[Any, Any] | None,
    axes: tuple[int, ...],
) -> None:
    """Write init op x[0] op x[1] op ... over `axes` to out, whose dtype accumulates.

    x has at least one element and any strides; out has the kept axes' shape and any strides; init
    is a 0-d array of out's dtype. Every argument has been checked. Reads x once; the association
    is a function of shapes, strides and dtypes only, so that the bits never depend on threads.
    """
    inner = () if op.commutative else _inner_axes(x, axes)
    if inner:
        # The innermost axes first, abreast over the axis that is contiguous; the order stays.
        rows = np.empty([n for axis, n in enumerate(x.shape) if axis not in inner], out.dtype)
        reduce(x, rows, op, None, inner)
        axes = tuple(axis - sum(i < axis for i in inner) for axis in axes if axis not in inner)
        x = rows
    with bound(op):
        _fold(x, out, op, init, axes)


def _fold(
    x: np.ndarray[Any, Any], out: np.ndarray[Any, Any], op: Operator,
    init: np.ndarray[Any, Any] | None, axes: tuple[int, ...],
) -> None:  # fmt: skip
    source = _source(x, out, op, axes)
    kernel = _kernel(op, x.dtype, out.dtype, source.column)
    while (parts := _num_parts(source)) > 1:
        partials = np.empty(prod(dim[0] for dim in source.kept) * parts, out.dtype)
        strides, part_stride = _partial_strides(source, parts, out.itemsize)
        _run(kernel, source, _Target(address(partials), out.itemsize, strides, part_stride, 0))
        source = _Source(
            start=address(partials), itemsize=out.itemsize, cast=False,
            kept=[(dim[0], at, dim[2]) for dim, at in zip(source.kept, strides, strict=True)],
            reduced=[(parts, part_stride)], column=source.column, owner=partials,
        )  # fmt: skip
    strides = [dim[2] for dim in source.kept]
    first = 0 if init is None else address(init)
    _run(kernel, source, _Target(address(out), out.itemsize, strides, 0, first))


def _source(
    x: np.ndarray[Any, Any], out: np.ndarray[Any, Any], op: Operator, axes: tuple[int, ...]
) -> _Source:
    start = address(x)
    kept_axes = [axis for axis in range(x.ndim) if axis not in axes]
    kept = [
        (x.shape[axis], x.strides[axis], stride)
        for axis, stride in zip(kept_axes, out.strides, strict=True)
    ]
    reduced = [(x.shape[axis], x.strides[axis]) for axis in axes]
    if op.commutative:
        # Any order is right: take the one in which memory lies.
        start += sum((length - 1) * stride for length, stride in reduced if stride < 0)
        reduced = sorted(((n, abs(stride)) for n, stride in reduced), key=_by_stride)
    dims, inner = merge(sorted(kept, key=_by_stride)), merge(reduced)
    column = _column(dims, inner, x.itemsize)
    if column is not None:
        dims.append(dims.pop(column))
    return _Source(start, x.itemsize, x.dtype != out.dtype, dims, inner, column is not None, x)


def _inner_axes(x: np.ndarray[Any, Any], axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the reduced axes inside of the contiguous one, along which reading would be slow."""
    length = 1
    for place in range(len(axes) - 1, -1, -1):
        n, stride = x.shape[axes[place]], x.strides[axes[place]]
        if stride == x.itemsize and n >= _WIDE:
            return axes[place + 1 :] if length >= _WORTH else ()
        length *= n
    return ()


def _by_stride(dim: tuple[int, ...]) -> int:
    return -abs(dim[1])


def _column(kept: Dims, reduced: Dims, itemsize: int) -> int | None:
    """Return the kept dimension to fold abreast, or None to fold along the reduced ones."""
    length = prod(dim[0] for dim in reduced)
    if not kept or (length >= _SHORT and reduced[-1][1] == itemsize):
        return None
    for i, dim in enumerate(kept):
        if dim[1] == itemsize and dim[0] >= _WIDE:
            return i
    longest = max(range(len(kept)), key=lambda i: kept[i][0])
    return longest if length < _SHORT <= kept[longest][0] else None


def _num_parts(source: _Source) -> int:
    step = rk.ROWS if source.column else rk.TILE
    return -(-prod(dim[0] for dim in source.reduced) // step)


def _partial_strides(source: _Source, parts: int, itemsize: int) -> tuple[list[int], int]:
    """Return where partials go: next to each other for tiles, whole rows for columns."""
    lengths = [dim[0] for dim in source.kept]
    if source.column:
        first, *strides = dense_strides([parts, *lengths], itemsize)
        return strides, first
    *strides, last = dense_strides([*lengths, parts], itemsize)
    return strides, last


def _kernel(op: Operator, x: np.dtype[Any], a: np.dtype[Any], column: bool) -> Kernel:
    def write(fn: Any) -> Any:
        from gpualgo._algorithms.reduce import cpu_kernels
        from gpualgo._cpu.compile_operator import cast
        from gpualgo._cpu.elements import storage

        write = cpu_kernels.column_kernel if column else cpu_kernels.tile_kernel
        return write(fn, None if x == a else cast(x, a), storage(x), storage(a), a.itemsize)

    return get_kernel(("reduce", x, a, column), write, Applied(op, (a, a), a))


def _run(kernel: Kernel, source: _Source, target: _Target) -> None:
    kept, reduced, strides = source.kept, source.reduced, target.strides
    length, parts = prod(dim[0] for dim in reduced), _num_parts(source)
    width, x_stride, out_stride, strips = 1, 0, 0, 1
    direct = is_dense(reduced, 0, source.itemsize)
    if source.column:
        (width, x_stride, _), out_stride = kept[-1], strides[-1]
        kept, strides = kept[:-1], strides[:-1]
        direct, strips = x_stride == source.itemsize, -(-width // rk.COLUMNS)
    count = prod(dim[0] for dim in kept)
    pack = 0 if direct else packer(source.itemsize)
    # Where outputs lie between the elements of one output, neighbours are folded in turn.
    tile_major = bool(kept and reduced) and abs(kept[-1][1]) < abs(reduced[-1][1])
    arguments = table(
        (source.start, target.start, target.init, pack, length, width, count),
        (parts, target.part_stride, tile_major, direct, source.cast, len(kept), len(reduced)),
        (source.itemsize, x_stride, out_stride),
        *(*zip(*(dim[:2] for dim in kept), strict=True), strides) if kept else (),
        *zip(*reduced, strict=True),
    )
    at = address(arguments)
    num_bytes = rk.scratch_bytes(source.column, source.itemsize, target.itemsize)

    def body(first: int, last: int) -> None:
        memory = scratch(num_bytes)
        kernel(at, address(memory), first, last)

    threads.run(body, parts * strips * count, length * count * width * source.itemsize)
