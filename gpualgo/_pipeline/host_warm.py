"""Warm calls on the CPU: NumPy arrays of a known layout and a compiled kernel.

The first call's decisions are cached with its problem. Addresses, captured scalars and init belong
to each call. Results are new arrays, or one `out=` with the layout of a new array that is an input,
or overlaps none. All other calls take `host.run`: other outputs, and subclasses of ndarray.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._arrays.view import NumPy, NumPyOnCPU, View
from gpualgo._base.errors import CapturesChanged
from gpualgo._base.strides import inverse, ordered
from gpualgo._cpu.memory import address
from gpualgo._operators.operator import Operator
from gpualgo._pipeline.problem import Array, Problem, is_plain

if TYPE_CHECKING:
    from gpualgo._cpu.plan import Make, Plan, Run

_UNKNOWN = object()
ndarray = np.ndarray


def prepare(
    problem: Problem, views: tuple[View, ...], op: Operator | None, plan: Plan | None
) -> None:
    """Cache what later calls need on the problem, if they can skip the general path.

    `plan` is that of calls with new results.
    """
    if problem.arrays or problem.reads_data:
        return
    if problem.warm is None and all(view.library in (NumPy, NumPyOnCPU) for view in views):
        problem.warm = Warm(problem, op, views)
    if problem.warm is not None and plan is not None:
        problem.warm.use(plan)


def are_as_new(problem: Problem, arrays: list[Array], results: list[Array]) -> bool:
    """Return whether a call's only output has the layout of a new array and overlaps no input."""
    if len(results) > 1 or problem.structure is not None or problem.has_dynamic_length:
        return False
    result, flags = results[0], results[0].flags
    if not (flags.c_contiguous and flags.writeable and flags.aligned):
        return False
    return not inverse(problem.results[0].order) and not any(
        np.may_share_memory(result, array) for array in arrays
    )


class Warm:
    """A cached call that skips the general path."""

    __slots__ = (
        "_axes", "_is_bound", "_is_counted", "_is_transposed", "_may_broadcast", "_names",
        "_problem", "_results", "_run", "_state", "_takes_out", "init", "is_scalar", "make",
    )  # fmt: skip

    def __init__(
        self, problem: Problem, op: Operator | None, views: Sequence[View] | Sequence[Array]
    ) -> None:
        """`op` has captured numbers that CPU code reads; None for calls on a GPU."""
        self._problem: Problem = weakref.proxy(problem)  # no reference cycle
        self._run: Run | None = None  # for new results
        self.make: Make | None = None  # for one new result
        self._names = None if problem.structure is None else problem.structure.names
        results = problem.results
        if problem.structure is not None:
            count = results[-1:] if problem.has_dynamic_length else ()
            results = (results[0]._replace(dtype=problem.structure), *count)
        self._results = [(ordered(r.shape, r.order), r.dtype) for r in results]
        self._axes = [inverse(r.order) for r in results]
        self._is_transposed = any(self._axes)
        self._is_counted = problem.has_dynamic_length
        self._is_bound = self._is_counted and problem.results[0].is_upper_bound
        self.is_scalar = problem.returns_scalars and not problem.results[0].shape
        # Arrays of different shapes share a problem if they broadcast to the same layout.
        self._may_broadcast = any(0 in view.strides or 1 in view.shape for view in views)
        is_one = len(self._results) == 1 and self._names is None
        self._takes_out = is_one and not (self._is_transposed or self._is_counted)
        # The last init, as an array, and that array's address.
        self.init: tuple[Any, Array | None, int] = (_UNKNOWN, None, 0)
        self._state: Any = None
        if problem.has_numbers and op is not None:
            from gpualgo._cpu.memory import state_of

            self._state = state_of(op.key)

    def use(self, plan: Plan) -> None:
        """Run this plan for new results."""
        self._run = plan.run
        if self._takes_out and self._state is None and self._problem.choice is None:
            self.make = plan.make(*self._results[0], self.is_scalar)

    def __call__(self, views: tuple[View, ...], op: Any, init: Any, out: Any = None) -> Any:
        """Return the result; None if the fast path does not apply and the caller must fall back."""
        arrays = [view.owner for view in views]
        for array in arrays:
            if type(array) is not ndarray:
                return None
        if self._may_broadcast:
            arrays = [
                x if x.shape == view.shape else np.broadcast_to(x, view.shape)
                for x, view in zip(arrays, views, strict=True)
            ]
        return self.call(arrays, op, init, out)

    def call(self, arrays: Sequence[Array], op: Any, init: Any, out: Any) -> Any:
        """Return the result for arrays of the problem's shapes; None as `__call__` does."""
        run = self._run
        if out is not None:
            out = out.owner if type(out) is View else out
            are_out = self._inputs_at(out, arrays)
            if are_out is None or type(init) is View:
                return None
            if True in are_out:
                plan = self._problem.cpu_plans.get(((out.shape, out.strides, True, *are_out),))
                run = None if plan is None else plan.run
        if run is None:
            return None
        cached_init, start, init_address = self.init
        scalars = b""
        if cached_init is not init or self._state is not None:
            try:
                if cached_init is not init:
                    start = self._problem.encode(init)
                    init_address = 0 if start is None else address(start)
                    if is_plain(init):
                        self.init = init, start, init_address
                if self._state is not None:
                    scalars = self._problem.captured_scalars(op)
            except (TypeError, ValueError, CapturesChanged):
                return None
        if out is not None:
            results = [out]
        elif self.make is not None:
            return self.make(arrays, init_address)
        else:
            results = [np.empty(shape, dtype) for shape, dtype in self._results]
        if self._is_transposed:  # the axes in memory are not in C order
            pairs = zip(results, self._axes, strict=True)
            results = [array.transpose(axes) if axes else array for array, axes in pairs]
        outs = results
        if self._names is not None:
            outs = [*[results[0][name] for name in self._names], *results[1:]]
        if self._state is None:
            run(arrays, outs, init_address)
        else:
            user = object()
            try:
                self._state.take(user, b"", scalars)
                run(arrays, outs, init_address)
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
            return tuple([result[()] for result in results] if self.is_scalar else results)
        return results[0][()] if self.is_scalar else results[0]

    def _inputs_at(self, out: Any, arrays: Sequence[Array]) -> list[bool] | None:
        """Return for each input whether it is out=.

        None if out has not the layout of a new result, or shares memory with another input.
        """
        if not self._takes_out or type(out) is not ndarray:
            return None
        flags = out.flags
        if (out.shape, out.dtype) != self._results[0]:
            return None
        if not (flags.c_contiguous and flags.writeable and flags.aligned):
            return None
        are_out = [array is out for array in arrays]
        for array, is_same in zip(arrays, are_out, strict=True):
            if not is_same and np.may_share_memory(out, array):
                return None
        return are_out


def counted(results: list[Array], is_upper_bound: bool) -> tuple[Any, ...]:
    """Return new results and the count; with `is_upper_bound`, resize the results to the count."""
    *arrays, count_array = results
    count = int(count_array)
    for array in arrays if is_upper_bound else ():  # nobody else has them: unused memory is freed
        array.resize(count, refcheck=False)
    return *arrays, count
