"""Warm calls on the CPU: NumPy arrays of a known layout and a compiled kernel.

The first call's decisions are cached with its problem. Addresses, captured scalars and init belong
to each call. Results are new arrays, or `out=` with the layout of new arrays, each of which is an
input, or overlaps none. All other calls take `host.run`: other outputs, and subclasses of ndarray.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gpualgo._arrays.view import NumPy, NumPyOnCPU, View
from gpualgo._base import records
from gpualgo._base.errors import CapturesChanged
from gpualgo._base.strides import inverse
from gpualgo._cpu.memory import address, run_with_words, state_of
from gpualgo._operators.operator import Operator
from gpualgo._pipeline.problem import Array, Dtype, Problem, is_plain

if TYPE_CHECKING:
    from gpualgo._cpu.plan import Make, Plan, Run

_UNKNOWN = object()
ndarray = np.ndarray
# Arguments of `ndarray`: shape, dtype, no buffer, and strides, which are None for C order.
Layout: TypeAlias = tuple[tuple[int, ...], np.dtype[Any], None, int, tuple[int, ...] | None]


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


def layouts_of(problem: Problem) -> list[Layout]:
    """Return the layouts of new arrays, the first of which may have results as fields."""
    results, structure = problem.results, problem.structure
    if structure is not None:
        count = results[-1:] if problem.has_dynamic_length else ()
        results = (results[0]._replace(dtype=structure), *count)
    return [(r.shape, r.dtype, None, 0, r.strides() if inverse(r.order) else None) for r in results]


def new_results(layouts: list[Layout], structure: Dtype | None) -> tuple[list[Array], list[Array]]:
    """Return new results, and the arrays that hold them: those that are fields have one."""
    owners: list[Array] = [ndarray(*layout) for layout in layouts]
    names = () if structure is None else structure.names or ()
    return [*[owners[0][name] for name in names], *owners[1:]] if names else owners, owners


def layouts_of_outputs(problem: Problem) -> list[Layout]:
    """Return the layouts of new results; empty if no `out=` is as they are."""
    layouts, structure = layouts_of(problem), problem.structure
    if structure is None:
        return layouts
    pairs = [*zip(problem.results, records.offsets(structure), strict=False)]
    if any(offset % result.dtype.alignment for result, offset in pairs):
        return []
    strides = problem.results[0]._replace(dtype=structure).strides()
    return [*[(result.shape, result.dtype, None, 0, strides) for result, _ in pairs], *layouts[1:]]


def are_inputs(
    layouts: Sequence[Layout], outs: Sequence[Any], arrays: Sequence[Array]
) -> bool | None:
    """Return whether an output is an input.

    None if an output has not the layout of a new result, or shares memory with another array.
    """
    if len(layouts) != len(outs):
        return None
    found = False
    for out, (shape, dtype, _, _, strides) in zip(outs, layouts, strict=True):
        if type(out) is not ndarray or out.shape != shape or out.dtype != dtype:
            return None
        flags = out.flags
        if not (flags.writeable and flags.aligned):
            return None
        if not flags.c_contiguous if strides is None else out.strides != strides:
            return None
        for array in arrays:
            if array is out:
                found = True
            elif np.may_share_memory(out, array):
                return None
    if len(outs) > 1:  # fields of one structured array alternate in memory, so bounds do not tell
        may_share: Any = np.may_share_memory  # its stub allows only -1 and 0 for max_work
        if any(may_share(first, other, 1000) for first, other in combinations(outs, 2)):
            return None
    return found


class Warm:
    """A cached call that skips the general path."""

    __slots__ = (
        "_is_bound", "_is_counted", "_may_broadcast", "_new", "_outputs", "_problem",
        "_run", "_state", "_structure", "init", "is_scalar", "make",
    )  # fmt: skip

    def __init__(
        self, problem: Problem, op: Operator | None, views: Sequence[View] | Sequence[Array]
    ) -> None:
        """`op` has captured numbers that CPU code reads; None for calls on a GPU."""
        self._problem: Problem = weakref.proxy(problem)  # no reference cycle
        self._run: Run | None = None  # for new results
        self.make: Make | None = None  # for one new result
        self._structure, self._new = problem.structure, layouts_of(problem)
        self._outputs = layouts_of_outputs(problem)
        self._is_counted = problem.has_dynamic_length
        self._is_bound = self._is_counted and problem.results[0].is_upper_bound
        self.is_scalar = problem.returns_scalars and not problem.results[0].shape
        # Arrays of different shapes share a problem if they broadcast to the same layout.
        self._may_broadcast = any(0 in view.strides or 1 in view.shape for view in views)
        # The last init, as an array, and that array's address.
        self.init: tuple[Any, Array | None, int] = (_UNKNOWN, None, 0)
        self._state = state_of(op.key) if problem.has_numbers and op is not None else None

    def use(self, plan: Plan) -> None:
        """Run this plan for new results."""
        self._run = plan.run
        (shape, dtype, _, _, strides), *others = self._new
        is_one = not others and strides is None and self._structure is None
        if is_one and self._state is None and self._problem.choice is None:
            self.make = plan.make(shape, dtype, self.is_scalar)

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
        outs: Sequence[Array]
        if out is not None:
            out = out.owner if type(out) is View else out
            outs = out if len(self._outputs) > 1 and type(out) is tuple else (out,)
            is_in_place = are_inputs(self._outputs, outs, arrays)
            if is_in_place is None or type(init) is View:
                return None
            if is_in_place:
                key = tuple([(x.shape, x.strides, True, *[x is a for a in arrays]) for x in outs])
                plan = self._problem.cpu_plans.get(key)
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
        if out is None:
            if self.make is not None:
                return self.make(arrays, init_address)
            outs, results = new_results(self._new, self._structure)
        if self._state is None:
            run(arrays, outs, init_address)
        else:
            run_with_words(self._state, b"", scalars, run, arrays, outs, init_address)
        if out is not None:
            return out
        if self._is_counted:
            return counted(results, self._is_bound)
        return self._result_of(results)

    def _result_of(self, results: Sequence[Array]) -> Any:
        if self.is_scalar:
            results = [result[()] for result in results]
        return tuple(results) if len(results) > 1 else results[0]


def counted(results: list[Array], is_upper_bound: bool) -> tuple[Any, ...]:
    """Return new results and the count; with `is_upper_bound`, resize the results to the count."""
    *arrays, count_array = results
    count = int(count_array)
    for array in arrays if is_upper_bound else ():  # nobody else has them: unused memory is freed
        array.resize(count, refcheck=False)
    return *arrays, count
