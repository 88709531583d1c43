"""Elementwise transform on the CPU's cores: one kernel for each operator, whatever the layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import types

from gpualgo._base import threads
from gpualgo._cpu.captured import bound
from gpualgo._cpu.kernels import Kernel, get_kernel, scratch
from gpualgo._cpu.layout import Dims, address, is_dense, merge, offset, packer, table
from gpualgo._cpu.operator import compile_operator
from gpualgo._cpu.pointers import call, load, load_each, pointer_to, pointers_to, storage, store
from gpualgo._operators.operator import Operator

_CHUNK = 2048  # elements of each array that go through a buffer in L1 at once

_LONG_ROW = 256  # elements of an innermost row from which it is read where it lies

# How an array is read: dense, by dense rows, or else packed by the function at this address.
_DENSE, _ROWS = 0, 1

# The table of arguments: how many elements, how many at once and in a row, dimensions; then for out
# and each array a record of address, size of an element and mode; then lengths; then strides.
_COUNT, _STEP, _ROW, _NDIM, _HEAD = range(5)
_START, _SIZE, _MODE, _RECORD = range(4)

_words = pointer_to(types.intp)


def transform(
    op: Operator, arrays: Sequence[np.ndarray[Any, Any]], out: np.ndarray[Any, Any]
) -> None:
    """Write out[i] = op(arrays[0][i], arrays[1][i], ...) for every index i.

    The arrays have out's shape, any strides (zero where they were broadcast), and either out's own
    memory and strides or none of its memory. Reads and writes each element once.
    """
    if out.size == 0:
        return
    with bound(op):
        _transform(op, arrays, out)


def _transform(
    op: Operator, arrays: Sequence[np.ndarray[Any, Any]], out: np.ndarray[Any, Any]
) -> None:
    operands = [out, *arrays]
    starts, dims = _canonical(operands)
    modes = [_mode(dims, i, array.itemsize) for i, array in enumerate(operands)]
    in_place = tuple(
        modes[0] <= _ROWS and mode == modes[0] and start == starts[0]
        for start, mode in zip(starts[1:], modes[1:], strict=True)
    )
    kernel = _kernel(op, tuple(array.dtype for array in operands), in_place)
    step = _CHUNK if max(modes) > _ROWS else out.size
    row = dims[-1][0] if _ROWS in modes else out.size
    records = [
        (start, array.itemsize, mode)
        for start, array, mode in zip(starts, operands, modes, strict=True)
    ]
    lengths = [dim[0] for dim in dims]
    strides = [[dim[1 + i] for dim in dims] for i in range(len(operands))]
    arguments = table((out.size, step, row, len(dims)), *records, lengths, *strides)
    at = address(arguments)
    num_bytes = len(operands) * (64 + _CHUNK * max(array.itemsize for array in operands))

    def body(first: int, last: int) -> None:
        memory = scratch(num_bytes)
        kernel(at, address(memory), first, last)

    threads.run(body, -(-out.size // _CHUNK), out.size * sum(array.itemsize for array in operands))


def _canonical(operands: Sequence[np.ndarray[Any, Any]]) -> tuple[list[int], Dims]:
    """Return addresses and dimensions in the order in which out lies in memory."""
    starts = [address(array) for array in operands]
    dims: list[tuple[int, ...]] = []
    for length, *strides in zip(
        operands[0].shape, *(array.strides for array in operands), strict=True
    ):
        if strides[0] < 0:
            starts = [at + (length - 1) * by for at, by in zip(starts, strides, strict=True)]
            strides = [-by for by in strides]
        dims.append((length, *strides))
    return starts, merge(sorted(dims, key=lambda dim: [-abs(by) for by in dim[1:]]))


def _mode(dims: Dims, which: int, itemsize: int) -> int:
    if is_dense(dims, which, itemsize):
        return _DENSE
    if dims[-1][1 + which] == itemsize and dims[-1][0] >= _LONG_ROW:
        return _ROWS
    return packer(itemsize)


def _kernel(op: Operator, dtypes: tuple[np.dtype[Any], ...], in_place: tuple[bool, ...]) -> Kernel:
    def build() -> Callable[..., None]:
        fn = compile_operator(op, dtypes[1:], dtypes[0]).fn
        # LLVM vectorises a loop in place where it sees that the two pointers are one.
        slots = tuple(0 if same else k for k, same in enumerate(in_place, 1))
        sources = pointers_to(tuple(storage(dtype) for dtype in dtypes[1:]), slots)
        sizes = [dtype.itemsize for dtype in dtypes]
        return _source(fn, pointer_to(storage(dtypes[0])), sources, sizes)

    return get_kernel(("transform", op.key, dtypes, in_place), build)


def _source(fn: Any, as_target: Any, as_sources: Any, sizes: list[int]) -> Callable[..., None]:
    """Write the kernel: arrays that are not dense are packed by chunks, then one dense loop."""
    operands = len(sizes)
    buffer_bytes = _CHUNK * max(sizes)

    def kernel(arguments: int, scratch: int, first: int, last: int) -> None:
        p, slots = _words(arguments), _words(scratch)
        ndim, row = load(p, _NDIM), load(p, _ROW)
        lengths = arguments + 8 * (_HEAD + _RECORD * operands)
        start, stop = first * _CHUNK, min(last * _CHUNK, load(p, _COUNT))
        while start < stop:
            count = min(load(p, _STEP), stop - start, row - start % row)
            for k in range(operands):
                record = _words(arguments + 8 * (_HEAD + _RECORD * k))
                at, mode = load(record, _START), load(record, _MODE)
                strides = lengths + 8 * ndim * (k + 1)
                if mode == _DENSE:
                    at += start * load(record, _SIZE)
                elif mode == _ROWS:
                    at += offset(start, ndim, lengths, strides)
                else:
                    buffer = scratch + 64 * operands + k * buffer_bytes
                    if k > 0:
                        call(mode, (buffer, at, start, count, ndim, lengths, strides, 1))
                    at = buffer
                store(slots, k, at)
            target, sources = as_target(load(slots, 0)), as_sources(scratch)
            for i in range(count):
                store(target, i, fn(*load_each(sources, i)))
            mode, at = load(p, _HEAD + _MODE), load(p, _HEAD + _START)
            if mode > _ROWS:
                call(mode, (load(slots, 0), at, start, count, ndim, lengths, lengths + 8 * ndim, 0))
            start += count

    return kernel
