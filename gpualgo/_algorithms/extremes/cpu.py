"""Extreme elements on the CPU's cores: NumPy's own search, cut for threads, or a reduction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from gpualgo._algorithms.reduce import cpu as reduction
from gpualgo._base import records, threads
from gpualgo._operators.operator import known
from gpualgo._pipeline.routines import Routine, of_numpy

Array: TypeAlias = np.ndarray[Any, Any]

_CHUNK = 1 << 17  # elements that are looked at once: they stay in L2
_LARGE_BYTES = 1 << 26  # worth waking threads: NumPy's search is as fast as one core reads
_LONG_BYTES = 1 << 16  # of a row
_SHARES = 2  # of that, for each thread


def find(name: str, x: Array, outs: Sequence[Array], axes: tuple[int, ...]) -> None:
    """Write to outs what is extreme of x along axes, which hold at least one element.

    x has any strides, outs the shape without the axes and any strides. As NumPy: the first of equal
    ones, the first NaN.
    """
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    if outs[0].size == 0:
        return
    if name not in _SEARCHES and not _is_numpys(x, axes):
        pair = records.record(("0", "1"), (x.dtype, x.dtype))
        reduction.reduce([x, x], outs, known(name), None, axes, pair, pair)
    elif kept:
        _each(name, x, outs, axes, kept)
    else:
        _whole(name, x, outs)


def routines(name: str, x: Array, outs: Sequence[Array], axes: tuple[int, ...]) -> list[Routine]:
    """Return what `find` would run."""
    if outs[0].size == 0:
        return []
    if name not in _SEARCHES and not _is_numpys(x, axes):
        pair = records.record(("0", "1"), (x.dtype, x.dtype))
        return reduction.routines([x, x], outs, known(name), None, axes, pair, pair)
    if len(axes) < x.ndim:
        kept = max(n for axis, n in enumerate(x.shape) if axis not in axes)
        tasks = min(kept, max(1, x.size // _CHUNK))
    else:
        tasks = _SHARES * threads.num_threads() if x.nbytes >= _LARGE_BYTES else 1
    functions = (_SEARCHES[name],) if name in _SEARCHES else _ENDS
    return [of_numpy(each.__name__, x.size, tasks, x.nbytes) for each in functions]


def _is_numpys(x: Array, axes: tuple[int, ...]) -> bool:
    """Return whether NumPy finds both ends sooner than a kernel: of all, or of long rows."""
    if x.dtype.kind == "V" or x.dtype == np.float16:
        return False
    row = [x.shape[axis] for axis in axes]
    is_row = axes == tuple(range(x.ndim - len(axes), x.ndim)) and x.flags.c_contiguous
    return len(axes) == x.ndim or (is_row and prod(row) * x.itemsize >= _LONG_BYTES)


def _whole(name: str, x: Array, outs: Sequence[Array]) -> None:
    flat = x.reshape(-1) if name in _SEARCHES else x.ravel(order="K")  # a copy, if need be
    tasks = _SHARES * threads.num_threads() if flat.nbytes >= _LARGE_BYTES else 1
    if tasks == 1:
        functions = (_SEARCHES[name],) if name in _SEARCHES else _ENDS
        with np.errstate(invalid="ignore"):
            for out, function in zip(outs, functions, strict=True):
                out[...] = function(flat)
    elif name in _SEARCHES:
        _first(_SEARCHES[name], flat, outs[0], tasks)
    else:
        _ends(flat, outs, tasks)


def _first(search: Callable[..., Any], flat: Array, out: Array, tasks: int) -> None:
    found = np.empty(tasks, np.int64)

    def look(first: int, last: int) -> None:
        for task in range(first, last):
            begin, end = (flat.size * i // tasks for i in (task, task + 1))
            found[task] = begin + search(flat[begin:end])

    threads.run(look, tasks, flat.nbytes)
    out[...] = found[search(flat[found])]


def _ends(flat: Array, outs: Sequence[Array], tasks: int) -> None:
    ends = [np.empty(tasks, flat.dtype) for _ in outs]

    def fold(first: int, last: int) -> None:
        for task in range(first, last):
            begin, end = (flat.size * i // tasks for i in (task, task + 1))
            pieces = [flat[i : min(i + _CHUNK, end)] for i in range(begin, end, _CHUNK)]
            pairs = [[reduce(piece) for reduce in _ENDS] for piece in pieces]  # read from L2 again
            for found, reduce, values in zip(ends, _ENDS, zip(*pairs, strict=True), strict=True):
                found[task] = reduce(np.array(values, flat.dtype))

    threads.run(_quiet(fold), tasks, flat.nbytes)
    with np.errstate(invalid="ignore"):
        for out, found, reduce in zip(outs, ends, _ENDS, strict=True):
            out[...] = reduce(found)


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
        if name in _SEARCHES:
            outs[0][where] = _SEARCHES[name](piece, axis=axes[0] if len(axes) == 1 else None)
            return
        for out, reduce in zip(outs, _ENDS, strict=True):
            out[where] = reduce(piece, axis=axes)

    threads.run(_quiet(body), tasks, x.nbytes)


def _quiet(body: Callable[[int, int], None]) -> Callable[[int, int], None]:
    """Return what a thread does without NumPy's word of NaN: each has a state of its own."""

    def run(first: int, last: int) -> None:
        with np.errstate(invalid="ignore"):
            body(first, last)

    return run


_SEARCHES: dict[str, Callable[..., Any]] = {"arg_minimum": np.argmin, "arg_maximum": np.argmax}
_ENDS: tuple[Callable[..., Any], ...] = (np.min, np.max)
