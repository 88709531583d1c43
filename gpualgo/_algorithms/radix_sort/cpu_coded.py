"""Floats of two bytes, which NumPy sorts as integers in their order: it has vectors for these."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gpualgo._algorithms.radix_sort.cpu_again import CODES
from gpualgo._algorithms.radix_sort.cpu_entries import kernel
from gpualgo._algorithms.radix_sort.cpu_orders import infinity_of
from gpualgo._base import threads
from gpualgo._cpu.address import address
from gpualgo._cpu.direct import of_rows, unchecked
from gpualgo._cpu.kernels import Kernel

Array = np.ndarray[Any, Any]


class CodedRow:
    """The sort of one row."""

    def __init__(self, dtype: np.dtype[Any], descending: bool) -> None:
        self.kernels = _kernels(dtype, descending)  # they are called by their code alone
        self._encode, self._decode = map(of_rows, self.kernels)

    def __call__(self, keys: Array, out: Array) -> None:
        """Write keys to out, which may be the same row, sorted."""
        if address(keys) != address(out):
            self.fresh(keys, out)
            return
        made = np.empty_like(out)  # whatever a signal's handler raises, a row never holds codes
        self.fresh(keys, made)
        out[...] = made

    def fresh(self, keys: Array, out: Array) -> None:
        """Write keys to another row, sorted."""
        codes = out.view(CODES)
        self._encode(keys, codes)
        codes.sort()
        self._decode(keys, out)


@cache
def _kernels(dtype: np.dtype[Any], descending: bool) -> tuple[Kernel, Kernel]:
    options = infinity_of(dtype), int(descending)
    return kernel("encode", *options), kernel("decode", *options)


def sort_rows(keys: Array, out: Array, descending: bool) -> None:
    """Write rows of keys to out, which may be the same rows, sorted: each by one thread."""
    length, is_same = keys.shape[1], address(keys) == address(out)
    held = _kernels(keys.dtype, descending)
    encode, decode = map(unchecked, held)
    codes = out.view(CODES)

    def body(first: int, last: int) -> None:
        rows, targets = keys[first:last], codes[first:last]
        made = np.empty_like(targets) if is_same else targets
        encode(address(rows), address(made), rows.size, 0)
        made.sort()
        decode(address(rows), address(made), length, last - first)
        if is_same:
            targets[...] = made

    threads.run(body, len(keys), 8 * keys.nbytes)
