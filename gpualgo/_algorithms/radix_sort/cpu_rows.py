"""Sort of many rows, or one short row: one thread sorts a row within its caches."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from gpualgo._algorithms.radix_sort import cpu_parameters as rk
from gpualgo._algorithms.radix_sort.cpu_entries import entry, invoke
from gpualgo._cpu.address import address
from gpualgo._cpu.launch import Launch
from gpualgo._cpu.layout import is_dense, merge, packer, table


def sort(arrays: Sequence[np.ndarray[Any, Any] | None], numbers: Sequence[int]) -> None:
    """Sort rows of raw bytes with any strides along the last axis.

    `arrays`: keys, values, output keys, output values. Without values, positions in the row are
    moved; an output that is None is not written.
    """
    launch(arrays, numbers)([0 if a is None else address(a) for a in arrays])


def launch(arrays: Sequence[np.ndarray[Any, Any] | None], numbers: Sequence[int]) -> Launch:
    """Return the launch that sorts rows of these layouts; it takes addresses, 0 for None."""
    keys, _, _, out_values = arrays
    assert keys is not None
    *outer, length = keys.shape
    shape = keys.shape
    strides = [(0,) * len(shape) if a is None else a.strides for a in arrays]
    dims = list(zip(outer, *strides, strict=False))
    dims = merge(sorted(dims, key=lambda dim: -abs(dim[1])))
    packs = [
        0 if a is None or is_dense([(length, a.strides[-1])], 0, a.itemsize) else packer(a.itemsize)
        for a in arrays
    ]
    sizes = (keys.itemsize, 0 if out_values is None else out_values.itemsize)
    head = [0] * rk.CODES
    head[rk.LENGTH] = length
    head[rk.ENTRY] = entry("row")
    arguments = table(
        head, numbers, _entries(*sizes), [sizes[1]], packs, [s[-1] for s in strides], [len(dims)],
        *zip(*dims, strict=True),
    )  # fmt: skip
    num_bytes = rk.BUFFERS + 2 * length * sum(sizes) + 4 * 64
    slots = rk.KEYS, rk.VALUES, rk.OUT_KEYS, rk.OUT_VALUES
    return Launch(invoke(), arguments, slots, num_bytes, prod(outer), keys.size * sum(sizes))


def _entries(size: int, value_size: int) -> list[int]:
    """Return the addresses of the kernels that the row kernel calls."""
    return [
        entry("survey"),
        entry("count"),
        entry("place"),
        entry("scatter", size, value_size),
        entry("take", size, value_size),
    ]
