"""CPU kernel that sorts short segments by insertion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import from_dtype, types

from gpualgo._algorithms.segmented_sort import problem as at
from gpualgo._cpu.packing import load, pointer_to, store

_words = pointer_to(types.intp)


def insert_kernel(dtype: np.dtype[Any]) -> Callable[..., None]:
    """Return the kernel that sorts segments of up to SHORT keys in place."""
    as_key = pointer_to(from_dtype(dtype))

    def kernel(table: int, scratch: int, first_task: int, last_task: int) -> None:
        p = _words(table)
        keys, ends, bounds = (
            as_key(load(p, at.KEYS)),
            _words(load(p, at.ENDS)),
            _words(load(p, at.BOUNDS)),
        )
        for segment in range(load(bounds, first_task), load(bounds, last_task)):
            begin, end = load(ends, segment), load(ends, segment + 1)
            if end - begin > at.SHORT:
                continue
            for i in range(begin + 1, end):
                key, index = load(keys, i), i
                while index > begin and key < load(keys, index - 1):
                    store(keys, index, load(keys, index - 1))
                    index -= 1
                store(keys, index, key)

    return kernel
