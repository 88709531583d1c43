"""Reduction on CPU cores: chooses kernels by layout and runs passes until one partial remains.

Each field of a record is an array of its own, in inputs, outputs and partials. A number is a record
of one field.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from gpualgo._algorithms.reduce import problem as rk
from gpualgo._algorithms.reduce.problem import Reduction
from gpualgo._base import records, threads
from gpualgo._base.records import Element
from gpualgo._base.strides import dense_strides, squeezed
from gpualgo._cpu.kernels import Applied, compute_code, get_kernel, named
from gpualgo._cpu.launch import Launch, plan_in_sequence
from gpualgo._cpu.layout import (
    Dims,
    ScratchLayout,
    field_arguments,
    merge,
    packer,
    table,
)
from gpualgo._cpu.memory import address
from gpualgo._cpu.plan import START, Plan, Routine, compiled, of_numpy
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import planners

if TYPE_CHECKING:
    from gpualgo._cpu.image import Loaded

# --- Reductions by NumPy's vectorised loops, with the bits of the kernels.
#
# The results of extremes, bitwise and logical operators, and counts of bools do not depend on the
# order, except for the sign of a zero and the choice of a NaN. Kernels return the first in memory,
# so if NumPy's result is a zero or NaN, its first occurrence is searched. See docs/adr/0028.

Array: TypeAlias = np.ndarray[Any, Any]
Shape3: TypeAlias = tuple[int, int, int]

_LEAST_BYTES = 1 << 15  # below this a kernel finishes before NumPy has started
_LEAST_ROW_BYTES, _LEAST_ROWS = 512, 32  # of neighbours in memory; of rows that are reduced
_LEAST_COUNTED = 1 << 10  # bools in each of several rows
_PIECE_BYTES, _LEAST_PIECE_BYTES = 1 << 21, 1 << 14  # work of one task, and its results


class Fold(NamedTuple):
    """A reduction over the middle axis of an array whose axes are put into another order."""

    function: np.ufunc | Callable[..., Any]  # its reduce, or `count_nonzero`
    order: list[int]
    shape: Shape3


def fold_of(
    op: Operator, x: Array, axes: tuple[int, ...], source: Element, acc: Any
) -> Fold | None:
    """Return the fold of an array over some axes; None if a kernel is needed."""
    name = op.name or ("fmin" if op.fn is np.fmin else "fmax" if op.fn is np.fmax else None)
    if name is None or x.nbytes < _LEAST_BYTES:
        return None
    if records.is_record(source) or records.is_position(source) or records.is_record(acc):
        return None
    order = list(range(x.ndim))
    if op.commutative:
        order.sort(key=lambda i: -x.strides[i])
    in_memory_order = x.transpose(order).flags
    shape = _middle([(x.shape[i], i in axes) for i in order])
    if shape is None or not (in_memory_order.c_contiguous and in_memory_order.aligned):
        return None
    outer, length, inner = shape
    kind = x.dtype.kind
    if inner > 1 and (kind != "f" or inner * x.itemsize < _LEAST_ROW_BYTES or length < _LEAST_ROWS):
        return None  # kernels fold columns of integers and bools as fast
    if outer > inner == 1 and length * x.itemsize < _LEAST_ROW_BYTES:
        return None
    if kind == "b" and name == "add" and acc.kind in "iu":
        is_counted = inner == 1 and (outer == 1 or length >= _LEAST_COUNTED)
        return Fold(np.count_nonzero, order, shape) if is_counted else None
    is_known = x.dtype == acc and name in _UFUNCS.get(kind, ())
    if not is_known or (kind == "f" and acc.itemsize == 2):
        return None
    return Fold(getattr(np, name), order, shape)


def _middle(dims: Sequence[tuple[int, bool]]) -> Shape3 | None:
    """Return the extents before, of and after the marked axes; None if these are not neighbours."""
    extents, side = [1, 1, 1], 0
    for extent, is_marked in dims:
        if extent > 1:
            side = max(side, 1) if is_marked else 2 * (side > 0)
            if is_marked and extents[2] > 1:
                return None
            extents[side] *= extent
    return extents[0], extents[1], extents[2]


def of_pieces(
    x: Array, count: int, function: Callable[[Array], Any], deciding: Any = None, axis: int = 0
) -> list[Any]:
    """Return function(piece) of so many pieces, by all threads, without NumPy's warnings.

    After a result that equals `deciding`, which decides the whole, the other pieces are skipped.
    """
    if count == 1:
        with np.errstate(invalid="ignore"):
            return [function(x)]
    parts: list[Any] = [not deciding] * count
    before, extent = (slice(None),) * axis, x.shape[axis]

    def body(first: int, last: int) -> None:
        with np.errstate(invalid="ignore"):  # the error state is per thread
            for piece in range(first, last):
                if deciding is not None and deciding in parts:
                    return
                start, stop = (extent * i // count for i in (piece, piece + 1))
                parts[piece] = function(x[(*before, slice(start, stop))])

    if deciding is not None:  # often the first piece decides
        body(0, 1)
    threads.run(body, count, x.nbytes)
    return parts


def fold_plan(fold: Fold, x: Array, axes: tuple[int, ...]) -> Plan:
    function, order, shape = fold
    outer, length, inner = shape
    kept = [i for i in order if i not in axes]
    extents, back = [x.shape[i] for i in kept], [kept.index(i) for i in sorted(kept)]
    is_shared = x.nbytes >= threads.LARGE_BYTES and threads.num_threads() > 1
    pieces = max(1, x.nbytes // _PIECE_BYTES) if is_shared else 1
    is_whole, axis = outer * inner == 1, 0
    if outer >= pieces or (inner == 1 and not is_whole):
        pieces = min(pieces, outer)
    elif not is_whole:  # so that results stay in a cache
        axis = 2
        pieces = max(1, inner * x.itemsize // max(_PIECE_BYTES // length, _LEAST_PIECE_BYTES))
    deciding = _DECIDING.get(function.__name__) if x.dtype.kind == "b" and is_whole else None

    def of_piece(x: Array) -> Any:
        if not isinstance(function, np.ufunc):
            return function(x)
        result = function.reduce(x)
        if x.dtype.kind != "f" or result < 0 or result > 0:
            return result
        return x[((x == 0) if result == 0 else (x != x)).argmax()]

    def of_rows(x: Array) -> Array:
        if not isinstance(function, np.ufunc):  # with an axis it is slow
            return np.array([[function(row)] for row in x])
        result: Array = function.reduce(x, axis=1)
        if x.dtype.kind == "f":
            is_odd = ~((result < 0) | (result > 0))
            if is_odd.any():
                rows = np.moveaxis(x, 1, 2)[is_odd]
                result[is_odd] = _first_equal(rows, result[is_odd])
        return result

    def run(arrays: Sequence[Array], outs: Sequence[Array], _: int) -> None:
        if is_whole:
            parts = of_pieces(arrays[0].ravel(order="K"), pieces, of_piece, deciding, 0)
            if pieces > 1:
                joined = np.array(parts)
                parts = [of_piece(joined) if isinstance(function, np.ufunc) else joined.sum()]
            outs[0][...] = np.array(parts[0])  # an array wraps, a number is refused
            return
        parts = of_pieces(arrays[0].transpose(order).reshape(shape), pieces, of_rows, axis=axis)
        result = parts[0] if pieces == 1 else np.concatenate(parts, axis=axis // 2)
        outs[0][...] = result.reshape(extents).transpose(back).reshape(outs[0].shape)

    return Plan(run, [of_numpy(function.__name__, x.size, pieces, x.nbytes)])


def _first_equal(rows: Array, values: Array) -> Array:
    """Return each row's first element that equals a value, which is a zero or NaN."""
    is_equal = np.where(values[:, None] == 0, rows == 0, rows != rows)
    return np.take_along_axis(rows, is_equal.argmax(axis=1)[:, None], axis=1)[:, 0]


_EXTREMES = ("minimum", "maximum", "fmin", "fmax")
_ROUNDED = ("add", "multiply")  # known operators of floats that are not extremes
_BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")
_UFUNCS = {
    "i": _EXTREMES + _BITWISE, "u": _EXTREMES + _BITWISE, "f": _EXTREMES,
    "b": ("logical_or", "bitwise_or", "maximum", "logical_and", "bitwise_and", "minimum"),
}  # fmt: skip
_DECIDING = {
    **dict.fromkeys(_UFUNCS["b"][:3], True), **dict.fromkeys(_UFUNCS["b"][3:], False),
}  # fmt: skip


# --- Layout of a CPU reduction: along the reduced elements, or across neighbouring columns.

_SHORT = 64  # up to this many reduced elements, many outputs are folded together as columns
_WIDE = 16  # minimum number of neighbouring outputs that are folded as columns
_LEAST_INNER = 8  # elements per partial from which a separate first pass pays


class Layout(NamedTuple):
    """Elements that one pass reads: their dtype and dimensions.

    A dimension is (length, stride of each field of x, then of out if the dimension is kept).
    """

    dtype: Element
    kept: tuple[tuple[int, ...], ...]
    reduced: tuple[tuple[int, ...], ...]
    column: bool  # the last kept dimension is folded as columns

    @property
    def length(self) -> int:
        """Number of elements folded into one output."""
        return prod(dim[0] for dim in self.reduced)


@lru_cache(256)
def layout_of(
    shape: tuple[int, ...], strides: Strides, out_strides: Strides, axes: tuple[int, ...],
    is_commutative: bool, dtype: Element,
) -> tuple[list[int], Layout]:  # fmt: skip
    """Return the offset to add to each field's address, and the layout from there."""
    count, shifts = len(strides), [0] * len(strides)
    dims = list(zip(shape, *strides, strict=True))
    kept_axes = [axis for axis in range(len(shape)) if axis not in axes]
    kept = [(*dims[axis], *steps) for axis, *steps in zip(kept_axes, *out_strides, strict=True)]
    reduced = [dims[axis] for axis in axes]
    if is_commutative:
        # Any order is correct: use the memory order.
        for i, (length, *steps) in enumerate(reduced):
            if sum(steps) < 0:
                shifts = [s + (length - 1) * step for s, step in zip(shifts, steps, strict=True)]
                reduced[i] = (length, *(-step for step in steps))
        reduced = sorted(reduced, key=lambda dim: -step_of(dim, count))
    outer, inner = merge(sorted(kept, key=lambda dim: -step_of(dim, count))), merge(reduced)
    column = _column_dim(outer, inner, count, _nearest(shape, strides))
    if column is not None:
        outer.append(outer.pop(column))
    return shifts, Layout(dtype, tuple(outer), tuple(inner), column is not None)


@lru_cache(256)
def inner_axes(shape: tuple[int, ...], strides: Strides, axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the reduced axes inside the nearest one, if reducing them first is faster."""
    length, nearest = 1, _nearest(shape, strides)
    for i in range(len(axes) - 1, -1, -1):
        n = shape[axes[i]]
        if n >= _WIDE and sum(abs(steps[axes[i]]) for steps in strides) == nearest:
            return axes[i + 1 :] if length >= _LEAST_INNER else ()
        length *= n
    return ()


def step_of(dim: Sequence[int], count: int) -> int:
    """Return the distance of neighbours in a dimension, summed over an element's fields."""
    return sum(map(abs, dim[1 : 1 + count]))


def _nearest(shape: tuple[int, ...], strides: Strides) -> int:
    """Return the distance of neighbours along the axis where they are closest, 0 if they are equal.

    Arrays of one memory order have the same nearest axis, whatever the gaps between elements.
    """
    nearest = 0
    for n, *steps in zip(shape, *strides, strict=True):
        step = sum(map(abs, steps))
        if n > 1 and step and (step < nearest or not nearest):
            nearest = step
    return nearest


def _column_dim(kept: Dims, reduced: Dims, count: int, nearest: int) -> int | None:
    """Return the kept dimension to fold as columns, or None to fold along the reduced ones."""
    length = prod(dim[0] for dim in reduced)
    if not kept or (length >= _SHORT and step_of(reduced[-1], count) == nearest):
        return None
    for i, dim in enumerate(kept):
        if nearest and step_of(dim, count) == nearest and dim[0] >= _WIDE:
            return i
    longest = max(range(len(kept)), key=lambda i: kept[i][0])
    return longest if length < _SHORT <= kept[longest][0] else None


Dtype: TypeAlias = np.dtype[Any]
Strides: TypeAlias = tuple[tuple[int, ...], ...]


class Pass(NamedTuple):
    """One pass without addresses, and the indices where they go in its argument table."""

    words: Array
    starts: slice
    outs: slice
    num_bytes: int  # scratch bytes
    num_tasks: int
    work: int  # bytes
    reads: int  # fields of an element
    writes: int


@planners.for_cpu.register(Reduction)
def _(problem: Reduction, arrays: Sequence[Array], results: Sequence[Array], op: Operator) -> Plan:
    axes, ndim, source, acc = problem.axes, len(problem.shape), problem.source, problem.acc
    outs = squeezed(results, axes, ndim)
    if problem.row_init is None:
        return plan_of(arrays, outs, op, axes, source, acc, has_init=problem.has_init)
    num_own = len(arrays) - problem.row_init.num_arrays
    if 0 in arrays[0].shape:

        def copy(arrays: Sequence[Array], results: Sequence[Array], _: int) -> None:
            for out, start in zip(squeezed(results, axes, ndim), arrays[num_own:], strict=True):
                out[...] = start

        return Plan(copy, ())
    from gpualgo._algorithms.transform import cpu as elementwise

    first = plan_of(arrays[:num_own], outs, op, axes, source, acc)
    second = elementwise.combine(op, acc, [*arrays[num_own:], *outs], outs)

    def run(arrays: Sequence[Array], results: Sequence[Array], _: int) -> None:
        first.run(arrays[:num_own], results, 0)
        second.run([*arrays[num_own:], *results], results, 0)

    return Plan(run, [*first.routines, *second.routines])


def plan_of(
    leaves: Sequence[Array], outs: Sequence[Array], op: Operator, axes: tuple[int, ...],
    source: Element, acc: Dtype, *, has_init: bool = False,
) -> Plan:  # fmt: skip
    """Return the plan that writes init op x[0] op x[1] op ... over `axes` to outs.

    x are elements of dtype source. `leaves` are the arrays of the fields of source, or of the
    inputs from which op's source computes elements. `outs` are the arrays of the fields of acc,
    which accumulates. Leaves have one shape, at least one element and any strides; outs have the
    kept axes' shape and any strides. All arguments have been checked. x is read once. The
    association depends on shapes, strides and dtypes only, so the bits do not depend on the number
    of threads.
    """
    fold = None if has_init else fold_of(op, leaves[0], axes, source, acc)
    if fold is not None:
        return fold_plan(fold, leaves[0], axes)
    shape, strides = leaves[0].shape, tuple([array.strides for array in leaves])
    inner = () if op.commutative else inner_axes(shape, strides, axes)
    if inner:
        return _inner_first(leaves, outs, op, inner, axes, source, acc, has_init=has_init)
    out_strides = tuple([out.strides for out in outs])
    shifts, layout = layout_of(shape, strides, out_strides, axes, op.commutative, source)
    if layout.column:
        tile = rk.ROWS * min(layout.kept[-1][0], rk.columns_of(acc))
    else:
        tile = min(layout.length, rk.tile_of(acc))
    size = leaves[0].size
    routine = compiled("reduce", size, tile, size * sum(leaf.itemsize for leaf in leaves))
    return _plan_of(shifts, layout, len(outs), op, acc, routine)


def _inner_first(
    leaves: Sequence[Array], outs: Sequence[Array], op: Operator, inner: tuple[int, ...],
    axes: tuple[int, ...], source: Element, acc: Dtype, *, has_init: bool,
) -> Plan:  # fmt: skip
    """Reduce the innermost axes first, in columns along the contiguous axis; in the same order."""
    kept_shape = [n for axis, n in enumerate(leaves[0].shape) if axis not in inner]
    numbers = records.field_dtypes(acc)
    partials = [np.empty(kept_shape, number) for number in numbers]
    first = plan_of(leaves, partials, op, inner, source, acc)
    outer = tuple(axis - sum(i < axis for i in inner) for axis in axes if axis not in inner)
    second = plan_of(partials, outs, op, outer, acc, acc, has_init=has_init)

    def run(arrays: Sequence[Array], outs: Sequence[Array], init: int) -> None:
        partials = [np.empty(kept_shape, number) for number in numbers]
        first.run(arrays, partials, 0)
        second.run(partials, outs, init)

    return Plan(run, (*first.routines, *second.routines))


def num_parts(layout: Layout, acc: Dtype) -> int:
    return -(-layout.length // (rk.ROWS if layout.column else rk.tile_of(acc)))


def partials_layout(layout: Layout, parts: int, acc: Dtype) -> Layout:
    """Return the layout of partials: contiguous for tiles, whole rows for columns."""
    lengths, numbers = [dim[0] for dim in layout.kept], records.field_dtypes(acc)
    inputs = len(records.field_dtypes(layout.dtype))
    steps = []
    for number in numbers:
        if layout.column:
            first, *outer = dense_strides([parts, *lengths], number.itemsize)
        else:
            *outer, first = dense_strides([*lengths, parts], number.itemsize)
        steps.append((first, *outer))
    (*firsts,), *strides = zip(*steps, strict=True)
    kept = [(dim[0], *s, *dim[1 + inputs :]) for dim, s in zip(layout.kept, strides, strict=True)]
    return Layout(acc, tuple(kept), ((parts, *firsts),), layout.column)


def _capacity(layout: Layout, acc: Dtype) -> int:
    return rk.columns_of(acc) if layout.column else rk.CHUNK


@lru_cache(256)
def pass_of(layout: Layout, into: Layout | None, acc: Dtype) -> Pass:
    """Return the pass that reads `layout` and writes partials of `into` (None: results)."""
    kept, reduced, column = layout.kept, layout.reduced, layout.column
    inputs, count = len(records.field_dtypes(layout.dtype)), len(records.field_dtypes(acc))
    # Output strides: those of the partials, which the next pass reads, or those of out.
    targets = [dim[1 + inputs :] for dim in kept]
    part_strides: tuple[int, ...] = (0,) * count
    if into is not None:
        targets = [dim[1 : 1 + count] for dim in into.kept]
        part_strides = into.reduced[0][1:]
    parts, width, strips = num_parts(layout, acc), 1, 1
    room = ScratchLayout()
    room.take(rk.scratch_bytes(acc, column))
    fixed = room.size
    targets = [(*s, *(0,) * (inputs - count)) for s in targets]
    part_strides = (*part_strides, *(0,) * (inputs - count))
    numbers = [
        _number(layout, acc, k, [s[k] for s in targets], part_strides[k], room)
        for k in range(max(inputs, count))
    ]
    computed = 0
    if isinstance(layout.dtype, records.Computed):
        itemsizes = [leaf.itemsize for leaf in records.field_dtypes(acc)]
        computed = room.take(_capacity(layout, acc) * sum(itemsizes))
    row_bytes = room.size - fixed
    num_bytes = room.size
    if column:
        width, kept = kept[-1][0], kept[:-1]
        strips = -(-width // rk.columns_of(acc))
        num_bytes += (rk.BATCH - 1) * row_bytes
    outputs = prod(dim[0] for dim in kept)
    # If neighbouring outputs are closer than the elements of one, consecutive tasks fold
    # neighbours.
    tile_major = bool(kept and reduced) and step_of(kept[-1], inputs) < step_of(reduced[-1], inputs)
    counts = 0, layout.length, width, outputs, parts, tile_major, len(kept), len(reduced)
    lengths = [dim[0] for dim in kept], [dim[0] for dim in reduced]
    head = (*counts, row_bytes, inputs, 0, computed), *lengths
    first = sum(map(len, head))
    size = sum(leaf.itemsize for leaf in records.field_dtypes(layout.dtype))
    starts, outs = (slice(first + entry, None, len(numbers[0])) for entry in (START, rk.OUT))
    work = layout.length * outputs * width * size
    num_tasks, words = parts * strips * outputs, table(*head, *numbers)
    return Pass(words, starts, outs, num_bytes, num_tasks, work, inputs, count)


def _number(
    layout: Layout, acc: Dtype, k: int, strides: list[int], part_stride: int, room: ScratchLayout
) -> list[int]:
    """Return the entries of field k in the kernel's table, without addresses."""
    read, written = records.field_dtypes(layout.dtype), records.field_dtypes(acc)
    a = written[min(k, len(written) - 1)]  # any field, if this one is only read
    x = read[k] if k < len(read) else a
    target = x if isinstance(layout.dtype, records.Computed) else a
    kept, reduced, run, pack = layout.kept, layout.reduced, (0, 0), 0
    size = layout.length * prod(dim[0] for dim in kept)
    if k >= len(read):  # a field that is only written
        kept = tuple((dim[0], *(0,) * (k + 1)) for dim in kept)
        reduced = tuple((dim[0], *(0,) * (k + 1)) for dim in reduced)
    if layout.column:
        dims, capacity = kept[-1:], rk.columns_of(acc)
        run, kept, strides = (kept[-1][1 + k], strides[-1]), kept[:-1], strides[:-1]
        pack = 0 if run[1] == a.itemsize else packer(a.itemsize, run[1], size)
    else:
        dims, capacity = reduced, rk.tile_of(acc)
    return [
        *field_arguments(x, target, dims, k, size, capacity, room),
        0,
        part_stride,
        *run,
        pack,
        *(dim[1 + k] for dim in kept),
        *strides,
        *(dim[1 + k] for dim in reduced),
    ]


# --- The launches of a reduction.

_Passes: TypeAlias = list[tuple[Launch, int]]


def _plan_of(
    shifts: list[int], layout: Layout, num_outs: int, op: Operator, acc: Dtype, routine: Routine
) -> Plan:
    passes, are_shifted = _launches(layout, op, acc), any(shifts)
    if shifts == [0] and num_outs == len(passes) == 1:
        return passes[0][0].plan(routine)
    partial_numbers = records.field_dtypes(acc)

    def run(arrays: Sequence[Array], outs: Sequence[Array], init: int) -> None:
        inputs: Sequence[Any] = arrays
        if are_shifted:
            inputs = [address(x) + shift for x, shift in zip(arrays, shifts, strict=True)]
        partials = []  # keeps buffers alive until they are read
        for launch, count in passes[:-1]:
            buffers = [np.empty(count, number) for number in partial_numbers]
            partials.append(buffers)
            launch((0, *inputs, *buffers))
            inputs = buffers
        passes[-1][0]((init, *inputs, *outs))

    if len(passes) > 1 and not are_shifted:
        launches, counts = zip(*passes, strict=True)
        itemsizes = [number.itemsize for number in partial_numbers]
        sizes = [[count * itemsize for itemsize in itemsizes] for count in counts[:-1]]
        # Built-in operators are known to be cheap.
        most_work = threads.SMALL_BYTES << 2 * op.is_known
        at_once = plan_in_sequence(launches, sizes, most_work, routine)
        if at_once is not None:
            return at_once
    return Plan(run, [routine])


def _launches(layout: Layout, op: Operator, acc: Dtype) -> _Passes:
    """Return the passes with their numbers of partials (0 for the last)."""
    passes: _Passes = []
    code = None  # computes the elements
    if isinstance(layout.dtype, records.Computed):
        code = compute_code(op.source, layout.dtype, acc, _capacity(layout, acc))
    while (parts := num_parts(layout, acc)) > 1:
        after = partials_layout(layout, parts, acc)
        passes.append(
            (_launch(layout, after, op, acc, code), prod(dim[0] for dim in layout.kept) * parts)
        )
        layout, code = after, None
    passes.append((_launch(layout, None, op, acc, code), 0))
    return passes


def _needs_order(op: Operator, acc: Dtype, is_computed: bool) -> bool:
    """Return whether neighbours are combined: another order is slower, or changes more than
    rounding, as the sign of a zero.
    """
    if not op.commutative or any(field.itemsize > 4 for field in records.field_dtypes(acc)):
        return True
    if acc.kind in "biu":
        return is_computed and acc.itemsize == 1  # LLVM combines neighbours in less time
    return op.shown in (np.fmin, np.fmax) if op.name is None else op.name not in _ROUNDED


def _launch(
    layout: Layout, into: Layout | None, op: Operator, acc: Dtype, code: Loaded | None
) -> Launch:
    """Return the launch of a pass; its arguments are init, input and output addresses.

    `code` computes the elements, if they are computed.
    """
    name = "column_kernel" if layout.column else "tile_kernel"
    options = () if layout.column else (_needs_order(op, acc, code is not None),)
    source = named("reduce", name, acc, code is not None, *options)
    kernel = get_kernel(*source, Applied(op, (acc, acc), acc))
    pass_ = pass_of(layout, into, acc)
    words, indices = pass_.words, range(len(pass_.words))
    if code is not None:
        words = words.copy()
        words[rk.COMPUTE] = code.address
    slots = (rk.INIT, *indices[pass_.starts][: pass_.reads], *indices[pass_.outs][: pass_.writes])
    return Launch(kernel, words, slots, pass_.num_bytes, pass_.num_tasks, pass_.work, code)
