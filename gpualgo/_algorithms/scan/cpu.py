"""Scans on the CPU's cores: the layout decides who goes along what, and what is cut for threads."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from gpualgo._algorithms.scan import (
    cpu_chain as scan_chain,
)
from gpualgo._algorithms.scan import (
    cpu_columns as scan_columns,
)
from gpualgo._algorithms.scan import (
    cpu_strips as scan_strips,
)
from gpualgo._algorithms.transform.cpu import transform
from gpualgo._base import threads
from gpualgo._cpu.captured import bound
from gpualgo._cpu.kernels import get_compiled, get_kernel, scratch
from gpualgo._cpu.layout import Dims, address, merge, packer, table
from gpualgo._cpu.operator import compile_cast, compile_operator
from gpualgo._cpu.pointers import storage
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
        transform(_COPY, [x], out.reshape(x.shape))  # a view: out has one dimension
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
            _run(job, _cut_columns(job), scan_columns.column_functions)
        else:
            is_dense = x_step == x.itemsize and out_step == out.itemsize
            _run(job, _cut_strips(job), scan_strips.strip_functions, is_dense)


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
    n, outer, abreast = job.n, job.outer, scan_strips.ABREAST
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
    chains = prod(dim[0] for dim in outer) * -(-width // scan_columns.COLUMNS)
    is_cut = n > _LONG_COLUMN and chains < _MANY
    tile = _COLUMN_TILE if is_cut else n
    # A row with gaps is packed, and one in place, where it would be read while it is written.
    is_direct = x_stride == job.x.itemsize and address(job.x) != address(job.out)
    pack = 0 if is_direct else packer(job.x.itemsize)
    arguments = (
        (*job.head(tile, outer), width, x_stride, out_stride, pack),
        *zip(*outer, strict=True),
    )
    row_bytes = min(width, scan_columns.COLUMNS) * job.out.itemsize
    num_scratch = scan_columns.scratch_bytes(job.x.itemsize, job.out.itemsize)
    return _Links(
        chains, -(-n // tile), is_cut, False, row_bytes, 2 * row_bytes, num_scratch, arguments
    )


def _functions(job: _Job, is_cut: bool, write: Callable[..., Any], options: Any) -> list[int]:
    """Return the addresses of aggregate, fold and emit, compiled where they are needed."""
    x, a, exclusive = job.x.dtype, job.out.dtype, job.is_exclusive

    def compiled(name: str) -> list[Any]:
        fn = compile_operator(job.op, (a, a), a).fn
        cast = None if x == a else compile_cast(x, a).fn
        sizes = x.itemsize, a.itemsize
        *first, emit = write(fn, cast, (storage(x), storage(a)), sizes, exclusive, *options)
        return [scan_chain.compile_function(f) for f in ([emit] if name == "emit" else first)]

    def addresses(name: str) -> list[int]:
        key = (write.__name__, name, job.op.key, x, a, exclusive, options)
        return [f.address for f in get_compiled(key, lambda: compiled(name))]

    return (addresses("aggregate and fold") if is_cut else [0, 0]) + addresses("emit")


def _run(job: _Job, cut: _Links, write: Callable[..., Any], *options: bool) -> None:
    functions = _functions(job, cut.is_cut, write, options)
    num_tasks, num_bytes = cut.chains * cut.links, job.x.nbytes + job.out.nbytes
    flags = np.zeros(num_tasks if cut.is_cut else 0, np.int64)
    aggregates = np.empty(num_tasks * cut.aggregate_bytes if cut.is_cut else 0, np.uint8)
    arguments = table(
        (*functions, 0, num_tasks, cut.chains, cut.links, cut.near),
        (address(flags), address(aggregates), cut.aggregate_bytes, cut.prefix_bytes),
        (cut.scratch_bytes, _PATIENCE),
        *cut.arguments,
    )
    if cut.is_cut:
        num_memory = cut.scratch_bytes + cut.aggregate_bytes + cut.chains * (8 + cut.prefix_bytes)
        _run_chain(arguments, num_tasks, num_bytes, num_memory)
        return
    kernel = get_kernel("emit_all", lambda: scan_chain.emit_all)

    def body(first: int, last: int) -> None:
        memory = scratch(cut.scratch_bytes)
        kernel(address(arguments), address(memory), first, last)

    threads.run(body, num_tasks, num_bytes)


def _run_chain(
    arguments: np.ndarray[Any, Any], num_tasks: int, num_bytes: int, num_memory: int
) -> None:
    """Let each thread take links, in their order, until none is left."""
    kernel = get_kernel("take_links", lambda: scan_chain.take_links)
    burst = max(1, num_tasks * _PIECE_BYTES // num_bytes)  # links between two looks at signals

    def work(most: int, burst: int) -> None:
        memory = scratch(num_memory)
        memory[...] = 0  # no link is folded yet
        try:
            while arguments[scan_chain.NEXT] < most:
                kernel(address(arguments), address(memory), 0, burst)
        except BaseException:
            arguments[scan_chain.NEXT] = num_tasks
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
