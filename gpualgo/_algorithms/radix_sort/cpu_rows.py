"""Many rows, or one short one: each is sorted by one thread, in its caches."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from gpualgo._algorithms.radix_sort import cpu_parameters as rk
from gpualgo._algorithms.radix_sort.cpu_entries import entry, invoke
from gpualgo._cpu.launch import Launch
from gpualgo._cpu.layout import address, is_dense, merge, packer, table


def sort(arrays: Sequence[np.ndarray[Any, Any] | None], numbers: Sequence[int]) -> None:
    """Sort rows along the last axis: keys, values, and where each goes, None if nowhere.

    Without values, positions in the row are moved. All are of plain bytes, and any strides.
    """
    launch(arrays, numbers)([0 if a is None else address(a) for a in arrays])


def launch(arrays: Sequence[np.ndarray[Any, Any] | None], numbers: Sequence[int]) -> Launch:
    """Return the launch that sorts rows of these layouts, by the arrays' addresses, 0 if None."""
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
    places = rk.KEYS, rk.VALUES, rk.OUT_KEYS, rk.OUT_VALUES
    return Launch(invoke(), arguments, places, num_bytes, prod(outer), keys.size * sum(sizes))


def _entries(size: int, value_size: int) -> list[int]:
    """Return the addresses of the kernels that the one for rows calls."""
    return [
        entry("survey"),
        entry("count"),
        entry("place"),
        entry("scatter", size, value_size),
        entry("take", size, value_size),
    ]
