"""Scans whose lines have a start of their own each: lines first, then init op each result.

Their arrays: those of x, then those of init. On a GPU one more launch applies op to each result; an
exclusive scan's first results are copied by another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._algorithms.scan.problem import Scan
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import inputs, starts
from gpualgo._pipeline.problem import Array

if TYPE_CHECKING:
    from gpualgo._cuda.plan import Plan
    from gpualgo._pipeline.problem import Prepared


class StartedScan(Scan):
    """What equal calls of `inclusive_scan` share where init is an array of the lines' shape."""

    has_starts = True
    spreads_tuples = False  # init's shape is another one

    def __init__(
        self, device: int, views: tuple[View, ...], op: Operator, init: Any,
        rest: tuple[Any, ...], where: str,
    ) -> None:  # fmt: skip
        *own, self.pattern, _ = rest
        self.num_x = len(views) - starts.size_of(self.pattern)
        of_x, first = views[: self.num_x], views[self.num_x :]
        super().__init__(device, of_x, op, starts.values(self.pattern), tuple(own), where)
        self.rest = rest
        shape = tuple(n for i, n in enumerate(self.shape) if self.axis not in (None, i))
        names = starts.check(first, views[0], shape, self.acc, self.form, where)
        self.inputs = (*self.inputs, *names)
        if self.forms:
            self.forms = (*self.forms, None)

    def taken(
        self, arguments: Sequence[Any], where: str
    ) -> tuple[tuple[View, ...], tuple[Form | None, ...]] | None:
        if len(arguments) != 2:
            return None
        try:
            views, form = inputs.spread(arguments[0], f"{self.where}: x")
        except ValueError:  # no shape is as prepared, which is told next
            return None
        first = starts.again(arguments[1], self.pattern, where)
        return None if first is None else ((*views, *first), (form, None))

    @property
    def parts(self) -> tuple[slice, slice]:
        """Which results along the axis have no element before them, and which have some."""
        assert self.axis is not None
        if not self.is_exclusive:
            return slice(0), slice(None)
        return (slice(-1, None), slice(-1)) if self.is_reverse else (slice(1), slice(1, None))

    def cuda(self, views: Sequence[View], op: Operator, targets: Sequence[View]) -> Plan:
        from gpualgo._algorithms.scan import cuda
        from gpualgo._algorithms.transform import cuda as elementwise
        from gpualgo._algorithms.transform.policy import Applied
        from gpualgo._cuda.plan import Places

        at, acc = Places(len(views), len(targets)), self.acc
        begins = [at.source(i) for i in range(self.num_x, len(views))]
        plan = cuda.plan_of(self, views[: self.num_x], op, targets, at=at)
        number = starts.of_records(acc)
        alone, behind = self.parts
        first = [self._along(view) for view in views[self.num_x :]]
        outs, written = self._part(targets, behind, at)
        if 0 not in outs[0].shape:
            shape = outs[0].shape
            froms = [view._replace(shape=shape) for view in first]
            applied = Applied(op, (number, number), acc)
            within = written, [*begins, *written]
            plan.steps += elementwise.plan_of(applied, [*froms, *outs], shape, outs, within).steps
        outs, written = self._part(targets, alone, at)
        for out, place, view, begin in zip(outs, written, first, begins, strict=True):
            if 0 not in out.shape:
                same = Applied(_SAME, (out.dtype,), out.dtype)
                within = [place], [begin]
                plan.steps += elementwise.plan_of(same, [view], out.shape, [out], within).steps
        return plan

    def _along(self, view: View) -> View:
        """Return starts as they stand before a line's results."""
        axis = self.axis or 0
        shape = (*view.shape[:axis], 1, *view.shape[axis:])
        return view._replace(shape=shape, strides=(*view.strides[:axis], 0, *view.strides[axis:]))

    def _part(
        self, targets: Sequence[View], part: slice, at: Any
    ) -> tuple[list[View], list[tuple[int, int]]]:
        """Return part of each line's results, and where it lies."""
        axis = self.axis or 0
        length = self.shape[axis]
        begin, end, _ = part.indices(length)
        views, places = [], []
        for i, target in enumerate(targets):
            offset = begin * target.strides[axis]
            shape = (*target.shape[:axis], max(0, end - begin), *target.shape[axis + 1 :])
            views.append(target._replace(ptr=target.ptr + offset, shape=shape))
            places.append((at.target(i), offset))
        return views, places

    def cpu(self, arrays: list[Array], results: list[Array], op: Any, init: Array | None) -> None:
        from gpualgo._algorithms.scan import cpu
        from gpualgo._algorithms.transform import cpu as elementwise
        from gpualgo._cpu.operator import Applied

        assert self.axis is not None
        before: tuple[Any, ...] = (slice(None),) * self.axis
        of_x, acc, source = arrays[: self.num_x], self.acc, self.source
        alone, behind = self.parts
        outs, taken = [out[(*before, behind)] for out in results], of_x
        if self.is_exclusive:
            last = slice(1, None) if self.is_reverse else slice(-1)
            taken = [x[(*before, last)] for x in of_x]
        scanned = outs if not self.is_exclusive else [np.empty(out.shape, out.dtype) for out in outs]
        if outs[0].size:
            if isinstance(source, records.Computed):
                cpu.compute(taken, scanned, op, source, acc)
                taken, source = scanned, acc
            cpu.scan(
                taken, scanned, op, None, self.axis, False, self.is_reverse, source, acc
            )
            first = [
                np.broadcast_to(np.expand_dims(start, self.axis), outs[0].shape)
                for start in arrays[self.num_x :]
            ]
            number = starts.of_records(acc)
            elementwise.transform(Applied(op, (number, number), acc), [*first, *scanned], outs)
        for out, start in zip(results, arrays[self.num_x :], strict=True):
            out[(*before, alone)] = np.expand_dims(start, self.axis)

    def prepared(
        self, op: Operator | None, arrays: list[Array], results: list[Array]
    ) -> Prepared | None:
        return None

    def in_blocks(
        self, arrays: list[Array], results: list[Array], op: Any, init: Array | None, stream: Any,
        places: list[View | None],
    ) -> bool:  # fmt: skip
        return False


class StartedExclusiveScan(StartedScan):
    """What equal calls of `exclusive_scan` share where init is an array of the lines' shape."""

    is_exclusive = True


_SAME = Operator(lambda a: a)
