"""The kernel of a CPU transformation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from gpualgo._algorithms.transform import problem as at
from gpualgo._cpu.fields import access_by_index
from gpualgo._cpu.packing import (
    call,
    load,
    load_each,
    offset,
    pointer_to,
    pointers_to,
    storage,
    store,
)

_words = pointer_to(types.intp)


def transform_kernel(
    fn: Any, result: np.dtype[Any], inputs: tuple[np.dtype[Any], ...], slots: tuple[int, ...]
) -> Callable[..., None]:
    """Return the kernel: arrays that are not dense are packed in chunks, then one dense loop.

    `slots`: that of each input's pointer, or of an output that the input is transformed into in
    place. LLVM vectorises such a loop only if both pointers are the same value.
    """
    outputs, sizes, as_targets, _, _, put = access_by_index(result)
    as_sources = pointers_to(tuple(map(storage, inputs)), slots)
    operands = outputs + len(inputs)
    buffer_bytes = at.CHUNK * max(*sizes, *[number.itemsize for number in inputs])

    def kernel(arguments: int, scratch: int, first: int, last: int) -> None:
        p, places = _words(arguments), _words(scratch)
        ndim, row = load(p, at.NDIM), load(p, at.ROW)
        lengths = arguments + 8 * (at.HEAD + at.RECORD * operands)
        start, stop = first * at.CHUNK, min(last * at.CHUNK, load(p, at.COUNT))
        while start < stop:
            count = min(load(p, at.STEP), stop - start, row - start % row)
            for k in range(operands):
                record = _words(arguments + 8 * (at.HEAD + at.RECORD * k))
                address, mode = load(record, at.START), load(record, at.MODE)
                strides = lengths + 8 * ndim * (k + 1)
                if mode == at.DENSE:
                    address += start * load(record, at.SIZE)
                elif mode == at.ROWS:
                    address += offset(start, ndim, lengths, strides)
                else:
                    buffer = scratch + 64 * operands + k * buffer_bytes
                    if k >= outputs:
                        call(mode, (buffer, address, start, count, ndim, lengths, strides, 1))
                    address = buffer
                store(places, k, address)
            targets, sources = as_targets(scratch), as_sources(scratch)
            for i in range(count):
                put(targets, i, fn(*load_each(sources, i)))
            for k in range(outputs):
                record = _words(arguments + 8 * (at.HEAD + at.RECORD * k))
                mode, address = load(record, at.MODE), load(record, at.START)
                if mode > at.ROWS:
                    strides = lengths + 8 * ndim * (k + 1)
                    call(mode, (load(places, k), address, start, count, ndim, lengths, strides, 0))
            start += count

    return kernel
