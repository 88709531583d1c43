"""The kernel of a CPU transformation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types

from gpualgo._algorithms.transform.problem import (
    CHUNK,
    COUNT,
    DENSE,
    GROUP_MEMBER,
    HEAD,
    MODE,
    NDIM,
    RECORD,
    ROW,
    ROWS,
    SIZE,
    START,
    STEP,
)
from gpualgo._cpu.fields import Leaves
from gpualgo._cpu.packing import call, load, load_each, offset, pointer_to, store

_words = pointer_to(types.intp)


def transform_kernel(
    fn: Any, written: Leaves, as_sources: Any, sizes: list[int]
) -> Callable[..., None]:
    """Return the kernel: arrays that are not dense are packed in chunks, then one dense loop."""
    operands, outputs = len(sizes), written.number
    as_targets, put = written.pointers, written.store
    buffer_bytes = CHUNK * max(sizes)

    def kernel(arguments: int, scratch: int, first: int, last: int) -> None:
        p, slots = _words(arguments), _words(scratch)
        ndim, row = load(p, NDIM), load(p, ROW)
        lengths = arguments + 8 * (HEAD + RECORD * operands)
        start, stop = first * CHUNK, min(last * CHUNK, load(p, COUNT))
        while start < stop:
            count = min(load(p, STEP), stop - start, row - start % row)
            for k in range(operands):
                record = _words(arguments + 8 * (HEAD + RECORD * k))
                address, mode = load(record, START), load(record, MODE)
                strides = lengths + 8 * ndim * (k + 1)
                if mode == DENSE:
                    address += start * load(record, SIZE)
                elif mode == ROWS:
                    address += offset(start, ndim, lengths, strides)
                else:
                    buffer = scratch + 64 * operands + k * buffer_bytes
                    if k >= outputs and mode != GROUP_MEMBER:
                        call(mode, (buffer, address, start, count, ndim, lengths, strides, 1))
                    address = buffer
                store(slots, k, address)
            targets, sources = as_targets(scratch), as_sources(scratch)
            for i in range(count):
                put(targets, i, fn(*load_each(sources, i)))
            for k in range(outputs):
                record = _words(arguments + 8 * (HEAD + RECORD * k))
                mode, address = load(record, MODE), load(record, START)
                if mode > GROUP_MEMBER:
                    strides = lengths + 8 * ndim * (k + 1)
                    call(mode, (load(slots, k), address, start, count, ndim, lengths, strides, 0))
            start += count

    return kernel
