"""Scans on the CPU's cores: the layout decides who goes along what, and what is cut for threads."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from gpualgo._algorithms.scan import cpu_parameters as parameters
from gpualgo._algorithms.transform.cpu import transform
from gpualgo._base import threads
from gpualgo._cpu.captured import bound
from gpualgo._cpu.code import Loaded
from gpualgo._cpu.kernels import Kernel, get_code, get_kernel, scratch
from gpualgo._cpu.layout import Dims, address, merge, packer, table
from gpualgo._cpu.operator import Applied
from gpualgo._operators.operator import Operator

_WIDE = 16  # so many columns side by side are worth going down abreast
_MANY = 16  # independent tasks that are enough for all cores, without cutting rows
_LONG, _LONG_COLUMN = 1 << 15, 1 << 12  # elements of a row that are worth cutting
# Elements of a tile. Long runs are prefetched best; where rows interleave, they share cache lines.
_TILE, _NEAR_TILE, _COLUMN_TILE = 1 << 14, 1 << 10, 256
_TILES = 256  # of a row, if that makes them shorter

_SMALL_BYTES = 1 << 16  # not worth looking at the clock
_LARGE_BYTES = 1 << 24  # worth all cores, whatever the operator
_WAKE_SECONDS = 2e-4  # work left that repays waking a thread
_PIECE_BYTES = 1 << 22  # what a thread does between two looks at signals

_PATIENCE = 1 << 14  # looks at an aggregate before it is computed instead

_COPY = Operator(lambda a: a)


@dataclass
class _Job:
    """What is to be scanned: rows of n elements in steps of x and out.

    An outer dimension is (length, stride of x, stride of out); the last one's rows come closest.
    """

    x: np.ndarray[Any, Any]
    out: np.ndarray[Any, Any]
    op: Operator
    init: np.ndarray[Any, Any] | None
    is_exclusive: bool
    n: int
    x_step: int
    out_step: int
    outer: Dims

    def head(self, tile: int, outer: Dims) -> tuple[int, ...]:
        """Return the start of a function's table of arguments."""
        init = 0 if self.init is None else address(self.init)
        places = address(self.x), address(self.out), init
        return (*places, self.n, tile, self.x_step, self.out_step, len(outer))


@dataclass
class _Links:
    """How rows are cut into links, for functions with these arguments."""

    chains: int
    links: int
    is_cut: bool
    near: bool  # chains share cache lines: link 0 of all of them comes first
    aggregate_bytes: int
    prefix_bytes: int
    scratch_bytes: int
    arguments: Sequence[Sequence[int]]


def scan(
    x: np.ndarray[Any, Any],
    out: np.ndarray[Any, Any],
    op: Operator,
    init: np.ndarray[Any, Any] | None,
    axis: int | None,
    is_exclusive: bool,
    is_reverse: bool,
) -> None:
    """Write the scan of x along axis to out, whose dtype accumulates.

    x has at least one element and any strides; out has its shape, or one dimension if axis is None,
    and is x's memory or has none of it. init is a 0-d array of out's dtype, and given if the scan
    is exclusive. Every argument has been checked. The association is a function of shapes, strides
    and dtypes only, so that the bits never depend on threads.
    """
    if axis is None and len(merge(list(zip(x.shape, x.strides, strict=True)))) > 1:
        copy = Applied(_COPY, (x.dtype,), out.dtype)
        transform(copy, [x], [out.reshape(x.shape)])  # a view: out has one dimension
        x = out
    if axis is None:
        x, axis = x.reshape(-1), 0
    if is_reverse:
        x, out = np.flip(x, axis), np.flip(out, axis)
    dims = list(zip(x.shape, x.strides, out.strides, strict=True))
    n, x_step, out_step = dims.pop(axis)
    outer = merge(sorted(dims, key=lambda dim: (-abs(dim[2]), -abs(dim[1]))))
    job = _Job(x, out, op, init, is_exclusive, n, x_step, out_step, outer)
    with bound(op):
        if _is_columns(job):
            _run(job, _cut_columns(job), "columns")
        else:
            is_dense = x_step == x.itemsize and out_step == out.itemsize
            _run(job, _cut_strips(job), "strips", is_dense)


def _is_columns(job: _Job) -> bool:
    """Return whether neighbouring rows lie closer than the elements of one."""
    if not job.outer or job.outer[-1][0] < _WIDE:
        return False
    _, x_stride, out_stride = job.outer[-1]
    if job.n == 1:
        return True
    near = job.x_step == 0 or abs(x_stride) < abs(job.x_step)
    return near and abs(out_stride) < abs(job.out_step)


def _cut_strips(job: _Job) -> _Links:
    n, outer, abreast = job.n, job.outer, parameters.ABREAST
    rows = prod(dim[0] for dim in outer)
    is_cut = n > _LONG and rows < abreast * _MANY
    near = is_cut and bool(outer) and abs(outer[-1][1]) < abs(job.x_step)
    if is_cut:
        # An odd number of lines: the strips of a link spread over the sets of a cache.
        tile = min(n // _TILES, _NEAR_TILE if near else _TILE) // 32 * 32 + 16
        strips, x_jump, out_jump = -(-n // tile), tile * job.x_step, tile * job.out_step
        span = abreast
    else:
        strips, x_jump, out_jump = outer[-1] if outer else (1, 0, 0)
        outer = outer[:-1]
        rows = prod(dim[0] for dim in outer)
        tile = n
        # Rows that lie together are read as four long runs, if enough tasks remain.
        span = max(1, min(_TILE // 2 // n, strips * rows // 256, strips // abreast)) * abreast
    size = job.out.itemsize
    arguments = (
        (*job.head(tile, outer), is_cut, strips, span, x_jump, out_jump),
        *zip(*outer, strict=True),
    )
    return _Links(
        rows, -(-strips // span), is_cut, near, abreast * size, (abreast + 1) * size, 0, arguments
    )  # fmt: skip


def _cut_columns(job: _Job) -> _Links:
    n, outer = job.n, job.outer[:-1]
    width, x_stride, out_stride = job.outer[-1]
    chains = prod(dim[0] for dim in outer) * -(-width // parameters.COLUMNS)
    is_cut = n > _LONG_COLUMN and chains < _MANY
    tile = _COLUMN_TILE if is_cut else n
    # A row with gaps is packed, and one in place, where it would be read while it is written.
    is_direct = x_stride == job.x.itemsize and address(job.x) != address(job.out)
    pack = 0 if is_direct else packer(job.x.itemsize)
    arguments = (
        (*job.head(tile, outer), width, x_stride, out_stride, pack),
        *zip(*outer, strict=True),
    )
    row_bytes = min(width, parameters.COLUMNS) * job.out.itemsize
    num_scratch = parameters.scratch_bytes(job.x.itemsize, job.out.itemsize)
    return _Links(
        chains, -(-n // tile), is_cut, False, row_bytes, 2 * row_bytes, num_scratch, arguments
    )


def _functions(job: _Job, is_cut: bool, layout: str, options: tuple[bool, ...]) -> list[Loaded]:
    """Return the code of emit, and of aggregate and fold where they are needed."""
    x, a, exclusive = job.x.dtype, job.out.dtype, job.is_exclusive

    def write(which: int, fn: Any) -> Any:
        from gpualgo._algorithms.scan import cpu_columns, cpu_strips
        from gpualgo._cpu.compile_operator import cast
        from gpualgo._cpu.elements import storage

        write: Any = cpu_columns.column_functions
        if layout == "strips":
            write = cpu_strips.strip_functions
        convert = None if x == a else cast(x, a)
        sizes = x.itemsize, a.itemsize
        return write(fn, convert, (storage(x), storage(a)), sizes, exclusive, *options)[which]

    def code_of(which: int, name: str) -> Loaded:
        key = ("scan", layout, name, x, a, exclusive, options)
        return get_code(key, partial(write, which), Applied(job.op, (a, a), a))

    emit = code_of(2, "emit")
    return [emit, code_of(0, "aggregate"), code_of(1, "fold")] if is_cut else [emit]


def emit_all() -> Kernel:
    """Return the kernel that emits the links of rows that are not cut."""

    def write() -> Any:
        from gpualgo._algorithms.scan import cpu_chain

        return cpu_chain.emit_all

    return get_kernel(("scan", "emit_all"), write)


def take_links() -> Kernel:
    """Return the kernel that takes links, in their order, until some are done or none is left."""

    def write() -> Any:
        from gpualgo._algorithms.scan import cpu_chain

        return cpu_chain.take_links

    return get_kernel(("scan", "take_links"), write)


def _run(job: _Job, cut: _Links, layout: str, *options: bool) -> None:
    functions = _functions(job, cut.is_cut, layout, options)  # held while they run
    emit, aggregate, fold = (*(f.address for f in functions), 0, 0)[:3]
    num_tasks, num_bytes = cut.chains * cut.links, job.x.nbytes + job.out.nbytes
    flags = np.zeros(num_tasks if cut.is_cut else 0, np.int64)
    aggregates = np.empty(num_tasks * cut.aggregate_bytes if cut.is_cut else 0, np.uint8)
    arguments = table(
        (aggregate, fold, emit, 0, num_tasks, cut.chains, cut.links, cut.near),
        (address(flags), address(aggregates), cut.aggregate_bytes, cut.prefix_bytes),
        (cut.scratch_bytes, _PATIENCE),
        *cut.arguments,
    )
    if cut.is_cut:
        num_memory = cut.scratch_bytes + cut.aggregate_bytes + cut.chains * (8 + cut.prefix_bytes)
        _run_chain(arguments, num_tasks, num_bytes, num_memory)
        return
    kernel = emit_all()

    def body(first: int, last: int) -> None:
        memory = scratch(cut.scratch_bytes)
        kernel(address(arguments), address(memory), first, last)

    threads.run(body, num_tasks, num_bytes)


def _run_chain(
    arguments: np.ndarray[Any, Any], num_tasks: int, num_bytes: int, num_memory: int
) -> None:
    """Let each thread take links, in their order, until none is left."""
    kernel = take_links()
    burst = max(1, num_tasks * _PIECE_BYTES // num_bytes)  # links between two looks at signals

    def work(most: int, burst: int) -> None:
        memory = scratch(num_memory)
        memory[...] = 0  # no link is folded yet
        try:
            while arguments[parameters.NEXT] < most:
                kernel(address(arguments), address(memory), 0, burst)
        except BaseException:
            arguments[parameters.NEXT] = num_tasks
            raise

    lanes = 1 if num_bytes <= _SMALL_BYTES else threads.num_threads()
    if lanes > 1 and num_bytes < _LARGE_BYTES:
        # Bytes do not tell what an operator costs: an eighth of the work, timed, does.
        probe = -(-num_tasks // 8)
        start = time.perf_counter()
        work(probe, probe)
        if (time.perf_counter() - start) * (num_tasks - probe) <= _WAKE_SECONDS * probe:
            lanes = 1
    threads.run(lambda first, last: work(num_tasks, burst), lanes, _LARGE_BYTES if lanes > 1 else 0)
