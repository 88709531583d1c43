"""Sort of 16-bit floats as int16 codes in the same order, which NumPy sorts with SIMD."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gpualgo._algorithms.radix_sort.cpu_entries import kernel
from gpualgo._algorithms.radix_sort.cpu_fast_path import CODES
from gpualgo._algorithms.radix_sort.cpu_orders import infinity_of
from gpualgo._base import threads
from gpualgo._cpu.address import address
from gpualgo._cpu.direct import row_function, status_function
from gpualgo._cpu.kernels import Kernel

Array = np.ndarray[Any, Any]


class Int16RowSort:
    """The sort of one row."""

    def __init__(self, dtype: np.dtype[Any], descending: bool) -> None:
        self.kernels = _kernels(dtype, descending)  # kept alive: they are called by address
        self._encode, self._decode = map(row_function, self.kernels)

    def __call__(self, keys: Array, out: Array) -> None:
        """Write keys, sorted, to out, which may be the same row."""
        if address(keys) != address(out):
            self.fresh(keys, out)
            return
        result = np.empty_like(out)  # a raising signal handler must not leave codes
        self.fresh(keys, result)
        out[...] = result

    def fresh(self, keys: Array, out: Array) -> None:
        """Write keys, sorted, to another row."""
        codes = out.view(CODES)
        self._encode(keys, codes)
        codes.sort()
        self._decode(keys, out)


@cache
def _kernels(dtype: np.dtype[Any], descending: bool) -> tuple[Kernel, Kernel]:
    options = infinity_of(dtype), int(descending)
    return kernel("encode", *options), kernel("decode", *options)


def sort_rows(keys: Array, out: Array, descending: bool) -> None:
    """Write rows of keys, sorted, to out, which may be the same rows; one thread sorts a row."""
    length, is_same = keys.shape[1], address(keys) == address(out)
    kernels = _kernels(keys.dtype, descending)
    encode, decode = map(status_function, kernels)
    codes = out.view(CODES)

    def body(first: int, last: int) -> None:
        rows, targets = keys[first:last], codes[first:last]
        sorted_codes = np.empty_like(targets) if is_same else targets
        encode(address(rows), address(sorted_codes), rows.size, 0)
        sorted_codes.sort()
        decode(address(rows), address(sorted_codes), length, last - first)
        if is_same:
            targets[...] = sorted_codes

    threads.run(body, len(keys), 8 * keys.nbytes)
