"""Extreme elements on the CPU's cores: NumPy's own search, cut for threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from gpualgo._base import threads

Array: TypeAlias = np.ndarray[Any, Any]

_CHUNK = 1 << 16  # elements that a thread takes at once: they stay in L2


def find(name: str, x: Array, outs: Sequence[Array], axes: tuple[int, ...]) -> None:
    """Write to outs what is extreme of x along axes, which hold at least one element.

    x has any strides, outs the shape without the axes and any strides. As NumPy: the first of equal
    ones, the first NaN.
    """
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    if outs[0].size == 0:
        return
    if kept:
        _each(name, x, outs, axes, kept)
        return
    chunks = -(-x.size // _CHUNK)
    flat = x.reshape(-1) if name.startswith("arg") else x.ravel(order="K")  # a copy, if need be
    if name.startswith("arg"):
        search = _SEARCHES[name]
        found = np.empty(chunks, np.int64)

        def look(first: int, last: int) -> None:
            for chunk in range(first, last):
                begin = chunk * _CHUNK
                found[chunk] = begin + search(flat[begin : begin + _CHUNK])

        threads.run(look, chunks, x.nbytes)
        outs[0][...] = found[search(flat[found])]
        return
    ends = [np.empty(chunks, x.dtype) for _ in outs]

    def fold(first: int, last: int) -> None:
        for chunk in range(first, last):
            piece = flat[chunk * _CHUNK : (chunk + 1) * _CHUNK]
            for end, reduce in zip(ends, _ENDS, strict=True):
                end[chunk] = reduce(piece)

    with np.errstate(invalid="ignore"):
        threads.run(fold, chunks, x.nbytes)
        for out, end, reduce in zip(outs, ends, _ENDS, strict=True):
            out[...] = reduce(end)


def _each(
    name: str, x: Array, outs: Sequence[Array], axes: tuple[int, ...], kept: list[int]
) -> None:
    """Search along axes for each of several results; threads share the longest kept axis."""
    longest = max(range(len(kept)), key=lambda i: x.shape[kept[i]])
    axis, length = kept[longest], x.shape[kept[longest]]
    tasks = min(length, max(1, prod(x.shape) // _CHUNK))

    def body(first: int, last: int) -> None:
        part = slice(first * length // tasks, last * length // tasks)
        piece = x[(slice(None),) * axis + (part,)]
        where = (slice(None),) * longest + (part,)
        if name.startswith("arg"):
            outs[0][where] = _SEARCHES[name](piece, axis=axes[0] if len(axes) == 1 else None)
            return
        for out, reduce in zip(outs, _ENDS, strict=True):
            out[where] = reduce(piece, axis=axes)

    with np.errstate(invalid="ignore"):
        threads.run(body, tasks, x.nbytes)


_SEARCHES: dict[str, Callable[..., Any]] = {"arg_minimum": np.argmin, "arg_maximum": np.argmax}
_ENDS: tuple[Callable[..., Any], ...] = (np.min, np.max)
