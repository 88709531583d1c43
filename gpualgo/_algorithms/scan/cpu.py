"""Scans on CPU cores: the layout decides between rows and columns, and how threads share them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache, partial
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from gpualgo._algorithms.scan import cpu_parameters as parameters
from gpualgo._algorithms.transform.cpu import routine as elementwise
from gpualgo._algorithms.transform.cpu import transform
from gpualgo._base import records, threads
from gpualgo._cpu.address import address
from gpualgo._cpu.captured import captures_bound
from gpualgo._cpu.code import Loaded
from gpualgo._cpu.kernels import Kernel, get_code, get_kernel, scratch
from gpualgo._cpu.launch import Launch
from gpualgo._cpu.layout import Dims, ScratchLayout, field_arguments, merge, packer, table
from gpualgo._cpu.operator import Applied, compile_operator
from gpualgo._cpu.parameters import START
from gpualgo._operators.operator import Operator
from gpualgo._pipeline.routines import Routine

if TYPE_CHECKING:
    from gpualgo._pipeline.problem import Prepared


# --- Tiling of a CPU scan: rows into links, or columns, depending on the layout.

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
    return tuple(number.itemsize for number in records.field_dtypes(dtype))


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
    room = ScratchLayout()
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


def _column(layout: Layout, k: int, room: ScratchLayout) -> list[int]:
    """Return the entries of field k in the functions' table."""
    x, out = records.field_dtypes(layout.source)[k], records.field_dtypes(layout.acc)[k]
    count = len(layout.x_steps)
    *outer, (across, out_across) = ((dim[1 + k], dim[1 + count + k]) for dim in layout.outer)
    # A row is packed if it has gaps, or if the scan is in place and would overwrite it.
    is_direct = across == x.itemsize and not layout.in_place[k]
    return [
        *field_arguments(0, x, out, is_direct, parameters.COLUMNS, room),
        0, layout.x_steps[k], layout.out_steps[k], across, out_across,
        0 if out_across == out.itemsize else packer(out.itemsize),
        *(stride for stride, _ in outer), *(stride for _, stride in outer),
    ]  # fmt: skip


Array: TypeAlias = np.ndarray[Any, Any]

_SMALL_BYTES = 1 << 16  # too small to time
_LARGE_BYTES = 1 << 24  # large enough for several cores, whatever the operator
_PIECE_BYTES = 1 << 22  # work of a thread between two signal checks

_MOST_POLLS = 1 << 14  # polls of an aggregate before it is recomputed

_COPY = Operator(lambda a: a)


def scan(
    leaves: Sequence[Array], outs: Sequence[Array], op: Operator, init: Array | None,
    axis: int | None, is_exclusive: bool, is_reverse: bool, source: Dtype, acc: Dtype,
) -> None:  # fmt: skip
    """Write the scan of leaves along axis to outs; elements have dtype source, acc accumulates.

    `leaves` and `outs` are the arrays of the fields of source and acc. Leaves have one shape, at
    least one element and any strides. Outs have that shape, or one dimension if axis is None; each
    is the leaf of the same index or overlaps no leaf. init is a 0-d array of acc, required if the
    scan is exclusive. All arguments have been checked. The association depends on shapes, strides
    and dtypes only, so the bits do not depend on the number of threads.
    """
    original, leaves, outs = leaves, list(leaves), list(outs)
    if axis is None:
        leaves, axis = [_flat(x, out) for x, out in zip(leaves, outs, strict=True)], 0
        source = records.with_leaves(source, [x.dtype for x in leaves])
    strides, outs_strides = _strides_of(leaves), _strides_of(outs)
    x_ptrs, out_ptrs = [address(x) for x in leaves], [address(out) for out in outs]
    if is_reverse:
        last = leaves[0].shape[axis] - 1
        x_ptrs = [ptr + last * s[axis] for ptr, s in zip(x_ptrs, strides, strict=True)]
        out_ptrs = [ptr + last * s[axis] for ptr, s in zip(out_ptrs, outs_strides, strict=True)]
        strides, outs_strides = _reversed(strides, axis), _reversed(outs_strides, axis)
    in_place = tuple([x == out for x, out in zip(x_ptrs, out_ptrs, strict=True)])
    links = cut(leaves[0].shape, strides, outs_strides, axis, in_place, source, acc)
    arguments = links.arguments.copy()
    arguments[links.starts], arguments[links.outs] = x_ptrs, out_ptrs
    if init is not None:
        arguments[parameters.CHAIN_TAIL + parameters.INIT] = address(init)
    num_bytes = sum([array.nbytes for array in (*leaves, *outs)])
    with captures_bound(op):
        functions = _functions(links, op, is_exclusive, source, acc)
        for x, leaf, out in zip(original, leaves, outs, strict=True):
            if leaf is out and x is not out:  # only after op has compiled, which may fail
                copy = Applied(_COPY, (x.dtype,), out.dtype)
                transform(copy, [x], [out.reshape(x.shape)])  # a view: out has one dimension
        _run(links, arguments, num_bytes, functions)


def prepared(
    leaves: Sequence[Array], outs: Sequence[Array], op: Operator, axis: int | None,
    is_exclusive: bool, is_reverse: bool, source: Dtype, acc: Dtype,
) -> Prepared | None:  # fmt: skip
    """Return a call of `scan` for arrays of these layouts; None if it copies or cuts rows."""
    if axis is None:
        if any(_flat(x, out) is out for x, out in zip(leaves, outs, strict=True)):
            return None
        leaves, axis = [x.reshape(-1) for x in leaves], 0
    strides, outs_strides = _strides_of(leaves), _strides_of(outs)
    shifts = [0] * (len(leaves) + len(outs))
    if is_reverse:
        last, scan_axis = leaves[0].shape[axis] - 1, axis
        shifts = [last * step[scan_axis] for step in (*strides, *outs_strides)]
        strides, outs_strides = _reversed(strides, axis), _reversed(outs_strides, axis)
    alias = (False,) * len(leaves)
    links = cut(leaves[0].shape, strides, outs_strides, axis, alias, source, acc)
    if links.is_cut:
        return None
    functions = _functions(links, op, is_exclusive, source, acc)
    arguments, indices = links.arguments.copy(), range(len(links.arguments))
    arguments[parameters.EMIT] = functions[0].address
    arguments[[parameters.TASKS, parameters.CHAINS]] = links.chains * links.links, links.chains
    arguments[[parameters.LINKS, parameters.LINK_MAJOR]] = links.links, links.near
    arguments[parameters.SCRATCH_BYTES] = links.scratch_bytes
    launch = Launch(
        emit_all(), arguments,
        (parameters.CHAIN_TAIL + parameters.INIT, *indices[links.starts], *indices[links.outs]),
        links.scratch_bytes, links.chains * links.links,
        sum([array.nbytes for array in (*leaves, *outs)]),
    )  # fmt: skip

    def run(arrays: Sequence[Array], results: Sequence[Array], init: int) -> None:
        assert functions  # keeps the code alive; the launch has only its address
        arrays = (*arrays, *results)
        launch((init, *[address(a) + shift for a, shift in zip(arrays, shifts, strict=True)]))

    return run


def routine(
    leaves: Sequence[Array], outs: Sequence[Array], axis: int | None, source: Dtype, acc: Dtype
) -> Routine:
    """Return what `scan` would run, for `explain`."""
    if axis is None:
        leaves, axis = [_flat(x, out) for x, out in zip(leaves, outs, strict=True)], 0
        source = records.with_leaves(source, [x.dtype for x in leaves])
    alias = (False,) * len(leaves)
    links = cut(leaves[0].shape, _strides_of(leaves), _strides_of(outs), axis, alias, source, acc)
    tasks = links.chains * links.links
    work = sum([array.nbytes for array in (*leaves, *outs)])
    return Routine("scan", True, -(-leaves[0].size // tasks), tasks, work)


def compute_routine(arrays: Sequence[Array], outs: Sequence[Array]) -> Routine:
    """Return what `compute` would run, for `explain`."""
    return elementwise(outs[0].size, sum([array.nbytes for array in (*arrays, *outs)]))


def compute(
    arrays: Sequence[Array], outs: Sequence[Array], op: Operator, source: records.Computed,
    acc: Dtype,
) -> None:  # fmt: skip
    """Write the elements that op's source computes from arrays to outs, the scan's input."""
    numbers = tuple(map(records.operand_dtype, source.numbers))
    compile_operator(op, (acc, acc), acc)  # may fail, so compile before anything is written
    transform(Applied(op.source, numbers, acc), arrays, outs)


def _strides_of(arrays: Sequence[Array]) -> Strides:
    return tuple([array.strides for array in arrays])


def _reversed(strides: Strides, axis: int) -> Strides:
    return tuple([(*stride[:axis], -stride[axis], *stride[axis + 1 :]) for stride in strides])


def _flat(x: Array, out: Array) -> Array:
    """Return x in one dimension if that needs no copy, else out, to which the caller copies it."""
    is_run = len(merge(list(zip(x.shape, x.strides, strict=True)))) <= 1
    return x.reshape(-1) if is_run else out


def _functions(
    links: Links, op: Operator, is_exclusive: bool, source: Dtype, acc: Dtype
) -> list[Loaded]:
    """Return the code of emit, and of aggregate and fold if rows are cut."""
    kind, options = links.kind, links.options
    # column functions convert through the packing table
    read = source if kind == "strips" else None

    def write(index: int, fn: Any) -> Any:
        from gpualgo._algorithms.scan import cpu_columns, cpu_kernels

        if read is None:
            return cpu_columns.column_functions(fn, acc, is_exclusive)[index]
        return cpu_kernels.strip_functions(fn, read, acc, is_exclusive, *options)[index]

    def code_of(index: int, name: str) -> Loaded:
        key = ("scan", kind, name, read, acc, is_exclusive, options)
        return get_code(key, partial(write, index), Applied(op, (acc, acc), acc))

    emit = code_of(2, "emit")
    return [emit, code_of(0, "aggregate"), code_of(1, "fold")] if links.is_cut else [emit]


def emit_all() -> Kernel:
    """Return the kernel that emits the links of rows that are not cut."""

    def write() -> Any:
        from gpualgo._algorithms.scan import cpu_kernels

        return cpu_kernels.emit_all

    return get_kernel(("scan", "emit_all"), write)


def take_links() -> Kernel:
    """Return the kernel that takes links in order until `burst` are done or none remain."""

    def write() -> Any:
        from gpualgo._algorithms.scan import cpu_kernels

        return cpu_kernels.take_links

    return get_kernel(("scan", "take_links"), write)


def _run(links: Links, arguments: Array, num_bytes: int, functions: list[Loaded]) -> None:
    """Run the functions on all links; `functions` keeps their code alive."""
    emit, aggregate, fold = (*(f.address for f in functions), 0, 0)[:3]
    num_tasks = links.chains * links.links
    flags = np.zeros(num_tasks if links.is_cut else 0, np.int64)
    aggregates = np.empty(num_tasks * links.aggregate_bytes if links.is_cut else 0, np.uint8)
    arguments[: parameters.CHAIN_TAIL] = (
        aggregate, fold, emit, 0, num_tasks, links.chains, links.links, links.near,
        address(flags), address(aggregates), links.aggregate_bytes, links.prefix_bytes,
        links.scratch_bytes, _MOST_POLLS,
    )  # fmt: skip
    if links.is_cut:
        num_memory = links.scratch_bytes + links.aggregate_bytes
        num_memory += links.chains * (8 + links.prefix_bytes)
        _run_chain(arguments, num_tasks, num_bytes, num_memory)
        return
    kernel, table = emit_all(), address(arguments)

    def body(first: int, last: int) -> None:
        memory = scratch(links.scratch_bytes)
        kernel(table, address(memory), first, last)

    threads.run(body, num_tasks, num_bytes)


def _run_chain(
    arguments: np.ndarray[Any, Any], num_tasks: int, num_bytes: int, num_memory: int
) -> None:
    """Let each thread take links in order until none remain."""
    kernel = take_links()
    burst = max(1, num_tasks * _PIECE_BYTES // num_bytes)  # links between two signal checks

    def work(limit: int, burst: int) -> None:
        memory = scratch(num_memory)
        memory[...] = 0  # marks all links as not yet folded
        try:
            while arguments[parameters.NEXT] < limit:
                kernel(address(arguments), address(memory), 0, burst)
        except BaseException:
            arguments[parameters.NEXT] = num_tasks
            raise

    seconds = 0.0 if num_bytes <= _SMALL_BYTES else num_bytes * threads.BYTE_SECONDS
    if seconds and num_bytes < _LARGE_BYTES and threads.num_threads() > 1:
        # An operator's cost is unknown: time an eighth of the work.
        probe = -(-num_tasks // 8)
        start = time.perf_counter()
        work(probe, probe)
        seconds = (time.perf_counter() - start) * (num_tasks - probe) / probe
        seconds = 0.0 if seconds <= threads.WAKE_SECONDS else seconds
    cores = threads.best_threads(seconds)
    threads.run(lambda first, last: work(num_tasks, burst), cores, _LARGE_BYTES if cores > 1 else 0)
