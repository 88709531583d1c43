"""Scans on the CPU's cores: the layout decides who goes along what, and what is cut for threads."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gpualgo._algorithms.scan import cpu_parameters as parameters
from gpualgo._algorithms.scan.cpu_links import Dtype, Links, Strides, cut
from gpualgo._algorithms.transform.cpu import routine as elementwise
from gpualgo._algorithms.transform.cpu import transform
from gpualgo._base import records, threads
from gpualgo._cpu.captured import bound
from gpualgo._cpu.code import Loaded
from gpualgo._cpu.kernels import Kernel, get_code, get_kernel, scratch
from gpualgo._cpu.launch import Launch
from gpualgo._cpu.layout import address, merge
from gpualgo._cpu.operator import Applied, compile_operator
from gpualgo._operators.operator import Operator
from gpualgo._pipeline.routines import Routine

if TYPE_CHECKING:
    from gpualgo._pipeline.problem import Prepared

Array: TypeAlias = np.ndarray[Any, Any]

_SMALL_BYTES = 1 << 16  # not worth looking at the clock
_LARGE_BYTES = 1 << 24  # worth several cores, whatever the operator
_PIECE_BYTES = 1 << 22  # what a thread does between two looks at signals

_PATIENCE = 1 << 14  # looks at an aggregate before it is computed instead

_COPY = Operator(lambda a: a)


def scan(
    leaves: Sequence[Array], outs: Sequence[Array], op: Operator, init: Array | None,
    axis: int | None, is_exclusive: bool, is_reverse: bool, source: Dtype, acc: Dtype,
) -> None:  # fmt: skip
    """Write the scan along axis of elements of dtype source to outs, where acc accumulates.

    Leaves and outs are arrays of the numbers of source and of acc. Leaves have one shape, at least
    one element and any strides; outs have that shape, or one dimension if axis is None, and each is
    the leaf of its place or has none of any leaf's memory. init is a 0-d array of acc, and given if
    the scan is exclusive. Every argument has been checked. The association is a function of shapes,
    strides and dtypes only, so that the bits never depend on threads.
    """
    given, leaves, outs = leaves, list(leaves), list(outs)
    if axis is None:
        leaves, axis = [_flat(x, out) for x, out in zip(leaves, outs, strict=True)], 0
        source = records.with_leaves(source, [x.dtype for x in leaves])
    strides, outs_strides = _strides_of(leaves), _strides_of(outs)
    starts, places = [address(x) for x in leaves], [address(out) for out in outs]
    if is_reverse:
        last = leaves[0].shape[axis] - 1
        starts = [at + last * by[axis] for at, by in zip(starts, strides, strict=True)]
        places = [at + last * by[axis] for at, by in zip(places, outs_strides, strict=True)]
        strides, outs_strides = _reversed(strides, axis), _reversed(outs_strides, axis)
    in_place = tuple([x == out for x, out in zip(starts, places, strict=True)])
    links = cut(leaves[0].shape, strides, outs_strides, axis, in_place, source, acc)
    arguments = links.arguments.copy()
    arguments[links.starts], arguments[links.outs] = starts, places
    if init is not None:
        arguments[parameters.CHAIN_TAIL + parameters.INIT] = address(init)
    num_bytes = sum([array.nbytes for array in (*leaves, *outs)])
    with bound(op):
        functions = _functions(links, op, is_exclusive, source, acc)
        for x, leaf, out in zip(given, leaves, outs, strict=True):
            if leaf is out and x is not out:  # not before op has been compiled, which may fail
                copy = Applied(_COPY, (x.dtype,), out.dtype)
                transform(copy, [x], [out.reshape(x.shape)])  # a view: out has one dimension
        _run(links, arguments, num_bytes, functions)


def prepared(
    leaves: Sequence[Array], outs: Sequence[Array], op: Operator, axis: int | None,
    is_exclusive: bool, is_reverse: bool, source: Dtype, acc: Dtype,
) -> Prepared | None:  # fmt: skip
    """Return what `scan` does for arrays of these layouts, into others; None: it copies or cuts."""
    if axis is None:
        if any(_flat(x, out) is out for x, out in zip(leaves, outs, strict=True)):
            return None
        leaves, axis = [x.reshape(-1) for x in leaves], 0
    strides, outs_strides = _strides_of(leaves), _strides_of(outs)
    shifts = [0] * (len(leaves) + len(outs))
    if is_reverse:
        last, along = leaves[0].shape[axis] - 1, axis
        shifts = [last * by[along] for by in (*strides, *outs_strides)]
        strides, outs_strides = _reversed(strides, axis), _reversed(outs_strides, axis)
    apart = (False,) * len(leaves)
    links = cut(leaves[0].shape, strides, outs_strides, axis, apart, source, acc)
    if links.is_cut:
        return None
    functions = _functions(links, op, is_exclusive, source, acc)
    arguments, every = links.arguments.copy(), range(len(links.arguments))
    arguments[parameters.EMIT] = functions[0].address
    arguments[[parameters.TASKS, parameters.CHAINS]] = links.chains * links.links, links.chains
    arguments[[parameters.LINKS, parameters.LINK_MAJOR]] = links.links, links.near
    arguments[parameters.SCRATCH_BYTES] = links.scratch_bytes
    launch = Launch(
        emit_all(), arguments,
        (parameters.CHAIN_TAIL + parameters.INIT, *every[links.starts], *every[links.outs]),
        links.scratch_bytes, links.chains * links.links,
        sum([array.nbytes for array in (*leaves, *outs)]),
    )  # fmt: skip

    def run(arrays: Sequence[Array], results: Sequence[Array], init: int) -> None:
        assert functions  # held, as the launch knows the address alone
        arrays = (*arrays, *results)
        launch((init, *[address(a) + by for a, by in zip(arrays, shifts, strict=True)]))

    return run


def routine(
    leaves: Sequence[Array], outs: Sequence[Array], axis: int | None, source: Dtype, acc: Dtype
) -> Routine:
    """Return what `scan` would run."""
    if axis is None:
        leaves, axis = [_flat(x, out) for x, out in zip(leaves, outs, strict=True)], 0
        source = records.with_leaves(source, [x.dtype for x in leaves])
    apart = (False,) * len(leaves)
    links = cut(leaves[0].shape, _strides_of(leaves), _strides_of(outs), axis, apart, source, acc)
    tasks = links.chains * links.links
    work = sum([array.nbytes for array in (*leaves, *outs)])
    return Routine("scan", True, -(-leaves[0].size // tasks), tasks, work)


def computing(arrays: Sequence[Array], outs: Sequence[Array]) -> Routine:
    """Return what `compute` would run."""
    return elementwise(outs[0].size, sum([array.nbytes for array in (*arrays, *outs)]))


def compute(
    arrays: Sequence[Array], outs: Sequence[Array], op: Operator, source: records.Computed,
    acc: Dtype,
) -> None:  # fmt: skip
    """Write the elements that op's source makes of arrays to outs, which the scan then works on."""
    numbers = tuple(map(records.number_of, source.numbers))
    compile_operator(op, (acc, acc), acc)  # which may fail: before anything is written
    transform(Applied(op.source, numbers, acc), arrays, outs)


def _strides_of(arrays: Sequence[Array]) -> Strides:
    return tuple([array.strides for array in arrays])


def _reversed(strides: Strides, axis: int) -> Strides:
    return tuple([(*by[:axis], -by[axis], *by[axis + 1 :]) for by in strides])


def _flat(x: Array, out: Array) -> Array:
    """Return x in one dimension: itself, or out, to which it is to be copied, if it is no run."""
    is_run = len(merge(list(zip(x.shape, x.strides, strict=True)))) <= 1
    return x.reshape(-1) if is_run else out


def _functions(
    links: Links, op: Operator, is_exclusive: bool, source: Dtype, acc: Dtype
) -> list[Loaded]:
    """Return the code of emit, and of aggregate and fold where they are needed."""
    kind, options = links.kind, links.options
    read = source if kind == "strips" else None  # columns are converted by others

    def write(which: int, fn: Any) -> Any:
        from gpualgo._algorithms.scan import cpu_columns, cpu_strips

        if read is None:
            return cpu_columns.column_functions(fn, acc, is_exclusive)[which]
        return cpu_strips.strip_functions(fn, read, acc, is_exclusive, *options)[which]

    def code_of(which: int, name: str) -> Loaded:
        key = ("scan", kind, name, read, acc, is_exclusive, options)
        return get_code(key, partial(write, which), Applied(op, (acc, acc), acc))

    emit = code_of(2, "emit")
    return [emit, code_of(0, "aggregate"), code_of(1, "fold")] if links.is_cut else [emit]


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


def _run(links: Links, arguments: Array, num_bytes: int, functions: list[Loaded]) -> None:
    """Run functions, which are held meanwhile, on all links."""
    emit, aggregate, fold = (*(f.address for f in functions), 0, 0)[:3]
    num_tasks = links.chains * links.links
    flags = np.zeros(num_tasks if links.is_cut else 0, np.int64)
    aggregates = np.empty(num_tasks * links.aggregate_bytes if links.is_cut else 0, np.uint8)
    arguments[: parameters.CHAIN_TAIL] = (
        aggregate, fold, emit, 0, num_tasks, links.chains, links.links, links.near,
        address(flags), address(aggregates), links.aggregate_bytes, links.prefix_bytes,
        links.scratch_bytes, _PATIENCE,
    )  # fmt: skip
    if links.is_cut:
        num_memory = links.scratch_bytes + links.aggregate_bytes
        num_memory += links.chains * (8 + links.prefix_bytes)
        _run_chain(arguments, num_tasks, num_bytes, num_memory)
        return
    kernel, at = emit_all(), address(arguments)

    def body(first: int, last: int) -> None:
        memory = scratch(links.scratch_bytes)
        kernel(at, address(memory), first, last)

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

    left = 0.0 if num_bytes <= _SMALL_BYTES else num_bytes * threads.BYTE_SECONDS
    if left and num_bytes < _LARGE_BYTES and threads.num_threads() > 1:
        # Bytes do not tell what an operator costs: an eighth of the work, timed, does.
        probe = -(-num_tasks // 8)
        start = time.perf_counter()
        work(probe, probe)
        left = (time.perf_counter() - start) * (num_tasks - probe) / probe
        left = 0.0 if left <= threads.WAKE_SECONDS else left
    lanes = threads.worth(left)
    threads.run(lambda first, last: work(num_tasks, burst), lanes, _LARGE_BYTES if lanes > 1 else 0)
