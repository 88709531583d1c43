"""Checked arguments of a selection: elements of any layout, and the predicate or mask."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpualgo._arrays.forms import Form, form_of
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._lazy.sources import Source, arguments_of, elements_of
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import checks, outputs
from gpualgo._pipeline.outputs import Result
from gpualgo._pipeline.problem import Array, Problem

if TYPE_CHECKING:
    from gpualgo._cuda.plan import Plan
    from gpualgo._pipeline.problem import Prepared
    from gpualgo._pipeline.routines import Routine


BOOL, COUNT = np.dtype(np.bool_), np.dtype(np.int64)


class Marked(NamedTuple):
    """The form of elements whose mask is the last array.

    If they are computed, each is computed with its mark as a pair; `picks` are the indices of the
    inputs that are the pair's fields, if all of them are inputs.
    """

    of_x: Form | Source | None
    picks: tuple[int, ...] | None = None


class SelectParams(NamedTuple):
    """The arguments apart from the arrays and the predicate."""

    form: Form | Source | Marked | None
    keeps_rest: bool


class Selection(Problem):
    """Arguments that equal calls of `select` or `stable_partition` share."""

    spreads_tuples = True
    has_dynamic_length = True
    op_name = "predicate"
    gives_lengths = False

    def __init__(
        self,
        device: int,
        views: tuple[View, ...],
        op: Operator | None,
        init: Any,
        rest: SelectParams,
        where: str,
    ) -> None:
        form, self.keeps_rest = rest
        self.is_marked = isinstance(form, Marked)
        of_x = form.of_x if isinstance(form, Marked) else form
        self.picks = form.picks if isinstance(form, Marked) else None
        is_computed = isinstance(of_x, Source)
        self.inputs, self.forms = arguments_of(views, of_x)
        if self.is_marked and not is_computed:
            self.inputs = (*arguments_of(views[:-1], of_x)[0], "predicate")
        super().__init__(device, views, op, init, rest, where)
        checks.same_place(list(views), where)
        self.shape = views[0].shape
        if self.is_marked and not is_computed:
            self._check_mask(views, of_x)
        else:
            assert op is not None
            self.source, element_form, _ = elements_of(op, views, of_x, device, where)
            self.form = element_form
            if self.is_marked:
                self._set_form_of_pairs(of_x)
            else:
                self._check_predicate(op)
        size = math.prod(self.shape)
        is_upper_bound = not self.keeps_rest
        outs = tuple(Result((size,), leaf, is_upper_bound=is_upper_bound) for leaf in self.written)
        self.results = (*outs, Result((), COUNT))
        names = [f"out{p}" for p in self.form.places] if self.form is not None else ["out"]
        self.output_names = (*names, "out_count")

    @property
    def kept(self) -> str:
        """Selection criterion of the kernel."""
        from gpualgo._algorithms.select import tuning

        return tuning.MARKED if self.is_marked else tuning.IF

    @property
    def written(self) -> tuple[np.dtype[Any], ...]:
        """Dtypes of an element's fields, without its mark."""
        numbers = records.field_dtypes(records.register_dtype(self.source))
        return numbers[: len(numbers) - self.is_marked]

    def _check_mask(self, views: tuple[View, ...], form: Any) -> None:
        """Check arrays of which the last is the mask."""
        *data_views, mask = views
        where = self.where
        if mask.dtype != BOOL:
            raise TypeError(
                f"{where}: predicate is an array of {mask.dtype}, but must be bool; "
                "pass predicate != 0, say"
            )
        for view, name in zip(data_views, self.inputs, strict=False):
            checks.element(view, name, where)
        if mask.shape != self.shape:
            raise ValueError(
                f"{where}: predicate has shape {mask.shape} and x {self.shape}; "
                "pass a bool for each element"
            )
        self.form = form
        self.forms = (form, None)
        names = ["0"] if form is None else [f"0.{name}" for name in form.names]
        if len(names) >= records.MAX_FIELDS:
            raise TypeError(
                f"{where}: x has elements of {len(names)} numbers, at most "
                f"{records.MAX_FIELDS - 1} are possible if predicate is an array"
            )
        self.source = records.record([*names, "1"], [view.dtype for view in views])

    def _set_form_of_pairs(self, source: Any) -> None:
        """Derive the form of the elements from that of the computed pairs."""
        pair = records.register_dtype(self.source)
        fields = records.field_dtypes(pair)[:-1]
        assert pair.names is not None
        names = [name.partition(".")[2] for name in pair.names[:-1]]
        self.form = form_of(names, source.forms) if len(fields) > 1 or names[0] else None

    def _check_predicate(self, op: Operator) -> None:
        """Raise TypeError unless the predicate returns a bool."""
        element = records.register_dtype(self.source)
        returned = outputs.dtype_of(op, (element,), None, self.device, self.where)
        if returned != BOOL:
            raise TypeError(
                f"{self.where}: predicate returns {records.shown(returned)} of "
                f"{records.shown(element)}, but must return bool; compare, as in lambda a: a != 0"
            )

    def cuda(self, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
        from gpualgo._algorithms.select import cuda

        return cuda.plan_of(self, views, op, targets)

    def read_by_cpu(self, arrays: list[Array]) -> tuple[records.Source, list[Array]]:
        """Return elements and arrays as the CPU reads them: inputs are not computed again."""
        source, picks = self.source, self.picks
        if picks is None or not isinstance(source, records.Computed):
            return source, arrays
        names = records.register_dtype(source).names or ()
        picked = records.record(names, [source.numbers[i] for i in picks])
        return picked, [arrays[i] for i in picks]

    def cpu(self, arrays: list[Array], results: list[Array], op: Any, init: Array | None) -> None:
        from gpualgo._algorithms.select import cpu

        *outs, count = results
        if 0 in self.shape:
            count[...] = 0
            return
        broadcast = [np.broadcast_to(array, self.shape) for array in arrays]
        kept = cpu.MARKED if self.is_marked else cpu.IF
        source, broadcast = self.read_by_cpu(broadcast)
        count[...] = cpu.select(source, broadcast, outs, op, kept, keeps_rest=self.keeps_rest)

    def routines(
        self, arrays: list[Array], results: list[Array], op: Any, init: Array | None
    ) -> list[Routine]:
        from gpualgo._algorithms.select import cpu
        from gpualgo._pipeline.routines import bytes_of

        items = math.prod(self.shape)
        return [cpu.routine(items, bytes_of(arrays))] if items else []

    def prepared(
        self, op: Operator | None, arrays: list[Array], results: list[Array]
    ) -> Prepared | None:
        if 0 in self.shape:
            return None
        if any(array.shape != self.shape for array in arrays):
            return None
        from gpualgo._algorithms.select import cpu
        from gpualgo._algorithms.select import cpu as cpu_prepared

        kept = cpu.MARKED if self.is_marked else cpu.IF
        source, arrays = self.read_by_cpu(arrays)
        return cpu_prepared.prepared_select(
            source, arrays, results[:-1], op, kept, self.picks, keeps_rest=self.keeps_rest
        )

    def run_chunked(
        self, arrays: list[Array], results: list[Array], op: Any, init: Array | None, stream: Any,
        places: list[View | None],
    ) -> bool:  # fmt: skip
        from gpualgo._algorithms.select import blocks

        if 0 in self.shape:
            results[-1][...] = 0
            return True
        *outs, count = results
        broadcast = [np.broadcast_to(array, self.shape) for array in arrays]
        blocks.select(self, broadcast, outs, count, op, stream, places)
        return True
