"""Warm calls on the CPU: NumPy arrays of a known layout, a kernel that is at hand.

What the first call has decided is kept with its problem, but for memory: addresses, and the values
that the operator captures or that the scan begins with, are each call's own. Results are new, or
the only one is an `out=` that is as a new one would be and lies apart from what is read. All else
goes by `host.run`: other outputs, arrays of other classes, and what problems do not prepare.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._arrays.view import NumPy, NumPyOnCPU, View
from gpualgo._base.extents import inverse, ordered
from gpualgo._cpu.address import address
from gpualgo._operators.operator import CapturesChanged, Operator
from gpualgo._pipeline.problem import Array, Problem, is_plain

if TYPE_CHECKING:
    from gpualgo._pipeline.problem import Prepared

_UNKNOWN = object()
ndarray = np.ndarray


def prepare(
    problem: Problem, views: tuple[View, ...], op: Operator | None, arrays: list[Array],
    results: list[Array],
) -> None:  # fmt: skip
    """Keep with a problem what its next calls need, where they can do without the general path."""
    problem.is_asked = True
    if problem.arrays or problem.is_empty or problem.reads_data:
        return
    if any(view.library not in (NumPy, NumPyOnCPU) for view in views):
        return
    if not any(result.size for result in results):
        return
    prepared = problem.prepared(op, arrays, results)
    if prepared is not None:
        problem.warm = Warm(problem, prepared, op, views)


def are_as_new(problem: Problem, arrays: list[Array], results: list[Array]) -> bool:
    """Return whether a call's only output is such as it would make itself, in C order.

    An output that shares memory with an input is not: what is kept must hold for outputs elsewhere.
    """
    if len(results) > 1 or problem.structure is not None or problem.is_counted:
        return False
    return not inverse(problem.results[0].order) and _is_as_new(results[0], arrays)


def _is_as_new(result: Array, arrays: list[Array]) -> bool:
    flags = result.flags
    if not (flags.c_contiguous and flags.writeable and flags.aligned):
        return False
    return not any(np.may_share_memory(result, array) for array in arrays)


class Warm:
    """A warm call."""

    def __init__(
        self, problem: Problem, prepared: Prepared, op: Operator | None, views: tuple[View, ...]
    ) -> None:
        self._problem: Problem = weakref.proxy(
            problem
        )  # no cycle: one that is given up goes at once
        self._prepared = prepared
        self._names = None if problem.structure is None else problem.structure.names
        results = problem.results
        if problem.structure is not None:
            count = results[-1:] if problem.is_counted else ()
            results = (results[0]._replace(dtype=problem.structure), *count)
        self._results = [(ordered(r.shape, r.order), r.dtype) for r in results]
        self._axes = [inverse(r.order) for r in results]
        self._is_turned = any(self._axes)
        self._is_counted, self._is_bound = problem.is_counted, problem.results[0].is_bound
        self._is_scalar = problem.gives_scalars and not problem.results[0].shape
        # All that broadcasts to a layout is of one problem, whatever its own shape.
        self._may_broadcast = any(0 in view.strides or 1 in view.shape for view in views)
        is_one = len(self._results) == 1 and self._names is None
        self._takes_out = is_one and not (self._is_turned or self._is_counted)
        self._is_plain = self._takes_out and not (self._may_broadcast or problem.has_numbers)
        self._init: tuple[Any, Array | None, int] = (_UNKNOWN, None, 0)  # and its address
        self._state: Any = None
        if problem.has_numbers and op is not None:
            from gpualgo._cpu.captured import state_of

            self._state = state_of(op.key)

    def __call__(self, views: tuple[View, ...], op: Any, init: Any, out: Any = None) -> Any:
        """Return the result; None: the general path is to say what it is, or what is wrong."""
        arrays = [view.owner for view in views]
        for array in arrays:
            if type(array) is not ndarray:
                return None
        kept = self._init  # held: another thread's call may put its own there
        if out is None and self._is_plain and init is kept[0]:
            made = np.empty(*self._results[0])
            self._prepared(arrays, (made,), kept[2])
            return made[()] if self._is_scalar else made
        return self._made(arrays, views, op, init, out)

    def _made(
        self, arrays: list[Array], views: tuple[View, ...], op: Any, init: Any, out: Any
    ) -> Any:
        """Return the result whatever it takes."""
        if out is not None:
            out = out.owner if type(out) is View else out
            if not self._fits(out, arrays, init):
                return None
        if self._may_broadcast:
            arrays = [
                x if x.shape == view.shape else np.broadcast_to(x, view.shape)
                for x, view in zip(arrays, views, strict=True)
            ]
        known, start, begin = self._init
        words = b""
        if known is not init or self._state is not None:
            try:
                if known is not init:
                    start = self._problem.encode(init)
                    begin = 0 if start is None else address(start)
                    if is_plain(init):
                        self._init = init, start, begin
                if self._state is not None:
                    words = self._problem.words(op)
            except (TypeError, ValueError, CapturesChanged):
                return None
        if out is not None:
            made = [out]
        else:
            made = [np.empty(shape, dtype) for shape, dtype in self._results]
        if self._is_turned:  # axes lie in another order than C's
            pairs = zip(made, self._axes, strict=True)
            made = [array.transpose(axes) if axes else array for array, axes in pairs]
        outs = made
        if self._names is not None:
            outs = [*[made[0][name] for name in self._names], *made[1:]]
        if self._state is None:
            self._prepared(arrays, outs, begin)
        else:
            user = object()
            try:
                self._state.take(user, b"", words)
                self._prepared(arrays, outs, begin)
            finally:
                try:
                    self._state.leave(user)
                except BaseException:  # of a signal's handler
                    self._state.leave(user)
                    raise
        if out is not None:
            return out
        if self._is_counted:
            return counted(made, self._is_bound)
        if len(made) > 1:
            return tuple([result[()] for result in made] if self._is_scalar else made)
        return made[0][()] if self._is_scalar else made[0]

    def _fits(self, out: Any, arrays: list[Array], init: Any) -> bool:
        """Return whether an output is as a new result would be, and shares no memory."""
        if not self._takes_out or type(out) is not np.ndarray or type(init) is View:
            return False
        shape, dtype = self._results[0]
        return out.dtype == dtype and out.shape == shape and _is_as_new(out, arrays)


def counted(results: list[Array], is_bound: bool) -> tuple[Any, ...]:
    """Return new results, as long as the last of them says if that bounds them; it as a number."""
    *found, last = results
    count = int(last)
    for array in found if is_bound else ():  # which nobody else has: the rest is given back
        array.resize(count, refcheck=False)
    return *found, count
