"""Warm calls on the CPU: NumPy arrays of a known layout and a compiled kernel.

The first call's decisions are cached with its problem. Addresses, captured scalars and init belong
to each call. Results are new arrays, or one `out=` with the layout of a new array that overlaps no
input. All other calls take `host.run`: other outputs, subclasses of ndarray, and problems without
`prepared`.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._arrays.view import NumPy, NumPyOnCPU, View
from gpualgo._base.errors import CapturesChanged
from gpualgo._base.strides import inverse, ordered
from gpualgo._cpu.memory import address
from gpualgo._operators.operator import Operator
from gpualgo._pipeline.problem import Array, Problem, is_plain

if TYPE_CHECKING:
    from gpualgo._cpu.plan import Plan, Run

_UNKNOWN = object()
ndarray = np.ndarray


def prepare(problem: Problem, views: tuple[View, ...], op: Operator | None, plan: Plan) -> None:
    """Cache what later calls need on the problem, if they can skip the general path."""
    if problem.arrays or problem.reads_data:
        return
    if all(view.library in (NumPy, NumPyOnCPU) for view in views):
        problem.warm = Warm(problem, plan.run, op, views)


def _is_as_new(result: Array, arrays: list[Array]) -> bool:
    flags = result.flags
    if not (flags.c_contiguous and flags.writeable and flags.aligned):
        return False
    return not any(np.may_share_memory(result, array) for array in arrays)


def are_as_new(problem: Problem, arrays: list[Array], results: list[Array]) -> bool:
    """Return whether a call's only output has the layout of a new array and overlaps no input."""
    if len(results) > 1 or problem.structure is not None or problem.has_dynamic_length:
        return False
    return not inverse(problem.results[0].order) and _is_as_new(results[0], arrays)


class Warm:
    """A cached call that skips the general path."""

    __slots__ = (
        "_axes", "_init", "_is_bound", "_is_counted", "_is_plain", "_is_scalar", "_is_transposed",
        "_may_broadcast", "_names", "_problem", "_results", "_run", "_state", "_takes_out",
    )  # fmt: skip

    def __init__(
        self, problem: Problem, run: Run, op: Operator | None, views: tuple[View, ...]
    ) -> None:
        self._problem: Problem = weakref.proxy(problem)  # no reference cycle
        self._run = run
        self._names = None if problem.structure is None else problem.structure.names
        results = problem.results
        if problem.structure is not None:
            count = results[-1:] if problem.has_dynamic_length else ()
            results = (results[0]._replace(dtype=problem.structure), *count)
        self._results = [(ordered(r.shape, r.order), r.dtype) for r in results]
        self._axes = [inverse(r.order) for r in results]
        self._is_transposed = any(self._axes)
        self._is_counted = problem.has_dynamic_length
        self._is_bound = problem.results[0].is_upper_bound
        self._is_scalar = problem.gives_scalars and not problem.results[0].shape
        # Arrays of different shapes share a problem if they broadcast to the same layout.
        self._may_broadcast = any(0 in view.strides or 1 in view.shape for view in views)
        is_one = len(self._results) == 1 and self._names is None
        self._takes_out = is_one and not (self._is_transposed or self._is_counted)
        self._is_plain = self._takes_out and not (self._may_broadcast or problem.has_numbers)
        # The last init, as an array, and that array's address.
        self._init: tuple[Any, Array | None, int] = (_UNKNOWN, None, 0)
        self._state: Any = None
        if problem.has_numbers and op is not None:
            from gpualgo._cpu.captured import state_of

            self._state = state_of(op.key)

    def __call__(self, views: tuple[View, ...], op: Any, init: Any, out: Any = None) -> Any:
        """Return the result; None if the fast path does not apply and the caller must fall back."""
        arrays = [view.owner for view in views]
        for array in arrays:
            if type(array) is not ndarray:
                return None
        cached = self._init  # a local copy: another thread may replace it meanwhile
        if out is None and self._is_plain and init is cached[0]:
            result = np.empty(*self._results[0])
            self._run(arrays, (result,), cached[2])
            return result[()] if self._is_scalar else result
        return self._compute(arrays, views, op, init, out)

    def _compute(
        self, arrays: list[Array], views: tuple[View, ...], op: Any, init: Any, out: Any
    ) -> Any:
        """Return the result; handles out=, broadcasting, captured scalars and several results."""
        if out is not None:
            out = out.owner if type(out) is View else out
            if not self._fits(out, arrays, init):
                return None
        if self._may_broadcast:
            arrays = [
                x if x.shape == view.shape else np.broadcast_to(x, view.shape)
                for x, view in zip(arrays, views, strict=True)
            ]
        cached_init, start, init_address = self._init
        scalars = b""
        if cached_init is not init or self._state is not None:
            try:
                if cached_init is not init:
                    start = self._problem.encode(init)
                    init_address = 0 if start is None else address(start)
                    if is_plain(init):
                        self._init = init, start, init_address
                if self._state is not None:
                    scalars = self._problem.words(op)
            except (TypeError, ValueError, CapturesChanged):
                return None
        if out is not None:
            results = [out]
        else:
            results = [np.empty(shape, dtype) for shape, dtype in self._results]
        if self._is_transposed:  # the axes in memory are not in C order
            pairs = zip(results, self._axes, strict=True)
            results = [array.transpose(axes) if axes else array for array, axes in pairs]
        outs = results
        if self._names is not None:
            outs = [*[results[0][name] for name in self._names], *results[1:]]
        if self._state is None:
            self._run(arrays, outs, init_address)
        else:
            user = object()
            try:
                self._state.take(user, b"", scalars)
                self._run(arrays, outs, init_address)
            finally:
                try:
                    self._state.leave(user)
                except BaseException:  # raised by a signal handler
                    self._state.leave(user)
                    raise
        if out is not None:
            return out
        if self._is_counted:
            return counted(results, self._is_bound)
        if len(results) > 1:
            return tuple([result[()] for result in results] if self._is_scalar else results)
        return results[0][()] if self._is_scalar else results[0]

    def _fits(self, out: Any, arrays: list[Array], init: Any) -> bool:
        """Return whether out= has the layout of a new result and shares no memory with an input."""
        if not self._takes_out or type(out) is not np.ndarray or type(init) is View:
            return False
        shape, dtype = self._results[0]
        return out.dtype == dtype and out.shape == shape and _is_as_new(out, arrays)


def counted(results: list[Array], is_upper_bound: bool) -> tuple[Any, ...]:
    """Return new results and the count; with `is_upper_bound`, resize the results to the count."""
    *arrays, count_array = results
    count = int(count_array)
    for array in arrays if is_upper_bound else ():  # nobody else has them: unused memory is freed
        array.resize(count, refcheck=False)
    return *arrays, count
