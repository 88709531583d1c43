"""Elementwise transform on the CPU's cores: one kernel for each operator, whatever the layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpualgo._algorithms.transform.cpu_parameters import CHUNK, DENSE, ROWS
from gpualgo._base import threads
from gpualgo._cpu.captured import bound
from gpualgo._cpu.kernels import Kernel, get_kernel, scratch
from gpualgo._cpu.layout import Dims, address, is_dense, merge, packer, table
from gpualgo._cpu.operator import Applied
from gpualgo._operators.operator import Operator

_LONG_ROW = 256  # elements of an innermost row from which it is read where it lies


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
        modes[0] <= ROWS and mode == modes[0] and start == starts[0]
        for start, mode in zip(starts[1:], modes[1:], strict=True)
    )
    kernel = _kernel(op, tuple(array.dtype for array in operands), in_place)
    step = CHUNK if max(modes) > ROWS else out.size
    row = dims[-1][0] if ROWS in modes else out.size
    records = [
        (start, array.itemsize, mode)
        for start, array, mode in zip(starts, operands, modes, strict=True)
    ]
    lengths = [dim[0] for dim in dims]
    strides = [[dim[1 + i] for dim in dims] for i in range(len(operands))]
    arguments = table((out.size, step, row, len(dims)), *records, lengths, *strides)
    at = address(arguments)
    num_bytes = len(operands) * (64 + CHUNK * max(array.itemsize for array in operands))

    def body(first: int, last: int) -> None:
        memory = scratch(num_bytes)
        kernel(at, address(memory), first, last)

    threads.run(body, -(-out.size // CHUNK), out.size * sum(array.itemsize for array in operands))


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
        return DENSE
    if dims[-1][1 + which] == itemsize and dims[-1][0] >= _LONG_ROW:
        return ROWS
    return packer(itemsize)


def _kernel(op: Operator, dtypes: tuple[np.dtype[Any], ...], in_place: tuple[bool, ...]) -> Kernel:
    def write(fn: Any) -> Callable[..., None]:
        from gpualgo._algorithms.transform.cpu_kernels import transform_kernel
        from gpualgo._cpu.elements import storage
        from gpualgo._cpu.pointers import pointer_to, pointers_to

        # LLVM vectorises a loop in place where it sees that the two pointers are one.
        slots = tuple(0 if same else k for k, same in enumerate(in_place, 1))
        sources = pointers_to(tuple(storage(dtype) for dtype in dtypes[1:]), slots)
        sizes = [dtype.itemsize for dtype in dtypes]
        return transform_kernel(fn, pointer_to(storage(dtypes[0])), sources, sizes)

    applied = Applied(op, dtypes[1:], dtypes[0])
    return get_kernel(("transform", dtypes, in_place), write, applied)
