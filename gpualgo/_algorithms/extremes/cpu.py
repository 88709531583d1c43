"""Extremes on CPU cores: NumPy's own search, shared by threads, or a reduction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from gpualgo._algorithms.extremes.problem import Extremes
from gpualgo._algorithms.reduce import cpu as reduction
from gpualgo._base import records, threads
from gpualgo._base.strides import squeezed
from gpualgo._cpu.plan import Plan, of_numpy
from gpualgo._operators.operator import Operator, builtin
from gpualgo._pipeline import planners
from gpualgo._pipeline.problem import Array

_Functions: TypeAlias = tuple[Callable[..., Any], ...]
_SEARCHES: dict[str, _Functions] = {"arg_minimum": (np.argmin,), "arg_maximum": (np.argmax,)}
_MIN_MAX: _Functions = (np.min, np.max)

_CHUNK = 1 << 17  # elements that are processed at once: they stay in L2
_LARGE_BYTES = 1 << 26  # worth waking threads: NumPy's search is as fast as one core reads memory
_LONG_BYTES = 1 << 16  # rows of at least this many bytes are long
_TASKS_PER_THREAD = 2  # tasks per thread


@planners.for_cpu.register(Extremes)
def _(problem: Extremes, arrays: Sequence[Array], results: Sequence[Array], op: Any) -> Plan:
    """As in NumPy, the first of equal elements is found, or the first NaN."""
    x, name, axes, ndim = arrays[0], problem.functor, problem.axes, len(problem.shape)
    if problem.source is not None:
        return _of_computed(problem, problem.source, arrays, results, op)
    functions = _SEARCHES.get(name, _MIN_MAX)
    if functions is _MIN_MAX and not _is_numpy_faster(x, axes):
        pair = records.record(("0", "1"), (x.dtype, x.dtype))
        outs = squeezed(results, axes, ndim)
        plan = reduction.plan_of([x, x], outs, builtin(name), axes, pair, pair)
        return Plan(
            lambda arrays, outs, init: plan.run([*arrays, *arrays], outs, init), plan.routines
        )
    tasks = _num_tasks(x)
    if ndim:
        tasks = min(max(problem.shape), max(1, x.size // _CHUNK))

    def run(arrays: Sequence[Array], outs: Sequence[Array], _: int) -> None:
        outs = squeezed(outs, axes, ndim)
        if ndim:
            _search_axes(functions, arrays[0], outs, axes)
        else:
            _search_all(functions, arrays[0], outs)

    return Plan(run, [of_numpy(f.__name__, x.size, tasks, x.nbytes) for f in functions])


def _of_computed(
    problem: Extremes, source: records.Computed, arrays: Sequence[Array], results: Sequence[Array],
    op: Operator,
) -> Plan:  # fmt: skip
    axes, shape, acc = problem.axes, problem.shape, source.result
    value = records.field_dtypes(acc)[0]

    def targets(results: Sequence[Array]) -> Sequence[Array]:
        return [np.empty(shape, value), *results] if problem.has_index else results

    outs = targets(squeezed(results, axes, len(shape)))
    plan = reduction.plan_of(arrays, outs, op, axes, source, acc)
    return Plan(lambda xs, outs, init: plan.run(xs, targets(outs), init), plan.routines)


def _is_numpy_faster(x: Array, axes: tuple[int, ...]) -> bool:
    """Return whether NumPy is faster than a kernel for minmax: of all elements, or of long rows."""
    if x.dtype.kind == "V" or x.dtype == np.float16:
        return False
    row = [x.shape[axis] for axis in axes]
    is_row = axes == tuple(range(x.ndim - len(axes), x.ndim)) and x.flags.c_contiguous
    return len(axes) == x.ndim or (is_row and prod(row) * x.itemsize >= _LONG_BYTES)


def _num_tasks(x: Array) -> int:
    return _TASKS_PER_THREAD * threads.num_threads() if x.nbytes >= _LARGE_BYTES else 1


def _search_all(functions: _Functions, x: Array, outs: Sequence[Array]) -> None:
    flat = x.ravel(order="K") if functions is _MIN_MAX else x.reshape(-1)  # copies if needed
    tasks = _num_tasks(flat)
    if tasks == 1:
        with np.errstate(invalid="ignore"):
            for out, function in zip(outs, functions, strict=True):
                out[...] = function(flat)
    elif functions is not _MIN_MAX:
        found = np.array(reduction.of_pieces(flat, tasks, functions[0]))
        found += [flat.size * i // tasks for i in range(tasks)]
        outs[0][...] = found[functions[0](flat[found])]
    else:
        parts = zip(*reduction.of_pieces(flat, tasks, _ends_in_chunks), strict=True)
        with np.errstate(invalid="ignore"):
            for out, function, values in zip(outs, functions, parts, strict=True):
                out[...] = function(np.array(values, flat.dtype))


def _ends_in_chunks(x: Array) -> list[Any]:
    """Return the ends of an array that is read once: the second function reads from L2."""
    chunks = [x[i : i + _CHUNK] for i in range(0, x.size, _CHUNK)]
    pairs = [[function(chunk) for function in _MIN_MAX] for chunk in chunks]
    both = zip(_MIN_MAX, zip(*pairs, strict=True), strict=True)
    return [function(np.array(values, x.dtype)) for function, values in both]


def _search_axes(
    functions: _Functions, x: Array, outs: Sequence[Array], axes: tuple[int, ...]
) -> None:
    """Search along axes for each of several results; threads share the longest kept axis."""
    kept_axes = [axis for axis in range(x.ndim) if axis not in axes]
    longest = max(range(len(kept_axes)), key=lambda i: x.shape[kept_axes[i]])
    axis, length = kept_axes[longest], x.shape[kept_axes[longest]]
    tasks = min(length, max(1, x.size // _CHUNK))
    searched = axes[0] if len(axes) == 1 else axes

    def body(first: int, last: int) -> None:
        share = slice(first * length // tasks, last * length // tasks)
        piece = x[(slice(None),) * axis + (share,)]
        where = (slice(None),) * longest + (share,)
        with np.errstate(invalid="ignore"):  # the error state is per thread
            for out, function in zip(outs, functions, strict=True):
                out[where] = function(piece, axis=searched)

    threads.run(body, tasks, x.nbytes)
