"""Kernel that computes elements from inputs and writes them to scratch memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from gpualgo._cpu.compile_operator import cast
from gpualgo._cpu.elements import storage
from gpualgo._cpu.leaves import before, leaves_of
from gpualgo._cpu.pointers import load_each, pointer_to, pointers_to, store

_words = pointer_to(types.intp)


def compute_kernel(
    fn: Any, numbers: tuple[np.dtype[Any], ...], result: np.dtype[Any], acc: np.dtype[Any],
    capacity: int,
) -> Callable[..., None]:  # fmt: skip
    """Return the source of f(slots, memory, count), which writes elements of acc to memory."""
    sources = pointers_to(tuple(map(storage, numbers)), tuple(range(len(numbers))))
    count, _, _, apart, _, put = leaves_of(acc)
    offsets = tuple(capacity * size for size in before(acc))
    convert = cast(result, acc)

    def compute(slots: int, memory: int, length: int) -> None:
        inputs, outputs = sources(slots), apart(memory, capacity)
        for i in range(length):
            put(outputs, i, convert(fn(*load_each(inputs, i))))
        for k in range(count):
            store(_words(slots), k, memory + offsets[k])

    return compute
