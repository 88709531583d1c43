"""Checked arguments of an algorithm on runs of equal neighbouring elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpualgo._arrays.forms import Form
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


NO_OPERATOR = "no_operator"  # the placeholder operator, of which only the source is called
BOOL, COUNT = np.dtype(np.bool_), np.dtype(np.int64)


class RunLengthEncoded(NamedTuple):
    """Result of `run_length_encode`: the first element and the length of each run."""

    values: Any
    lengths: Any


class RunsParams(NamedTuple):
    """The arguments apart from the arrays and the equality."""

    form: Form | Source | None
    gives_lengths: bool


class Runs(Problem):
    """Arguments that equal calls share that find the first elements of runs."""

    spreads_tuples = True
    has_dynamic_length = True
    op_name = "eq"
    keeps_rest = False
    picks: tuple[int, ...] | None = None

    def __init__(
        self,
        device: int,
        views: tuple[View, ...],
        op: Operator | None,
        init: Any,
        rest: RunsParams,
        where: str,
    ) -> None:
        form, self.gives_lengths = rest
        self.inputs, self.forms = arguments_of(views, form)
        super().__init__(device, views, op, init, rest, where)
        checks.same_place(list(views), where)
        self.shape = views[0].shape
        element_form: Form | None
        if isinstance(form, Source):
            assert op is not None
            self.source, element_form, _ = elements_of(op, views, form, device, where)
        else:
            for view, name in zip(views, self.inputs, strict=True):
                checks.element(view, name, where)
            element_form = form
            names = () if form is None else form.names
            kinds = [view.dtype for view in views]
            self.source = kinds[0] if form is None else records.record(names, kinds)
        if op is not None and op.name != NO_OPERATOR:
            self._check_equality(op)
        size = math.prod(self.shape)
        kinds = [*self.written, *([COUNT] if self.gives_lengths else [])]
        outs = tuple(Result((size,), kind, is_upper_bound=True) for kind in kinds)
        self.results = (*outs, Result((), COUNT))
        self.form = element_form
        if self.gives_lengths:
            self.form = Form(RunLengthEncoded, (element_form, None))
        names_of_outs = ["out"] if self.form is None else [f"out{p}" for p in self.form.places]
        self.output_names = (*names_of_outs, "out_count")

    @property
    def written(self) -> tuple[np.dtype[Any], ...]:
        """Dtypes of an element's fields."""
        return records.field_dtypes(records.register_dtype(self.source))

    @property
    def kept(self) -> str:
        """Selection criterion of the kernel."""
        from gpualgo._algorithms.select import tuning

        return tuning.HEADS

    def _check_equality(self, op: Operator) -> None:
        """Raise TypeError unless eq returns a bool."""
        element = records.register_dtype(self.source)
        returned = outputs.dtype_of(op, (element, element), None, self.device, self.where)
        if returned != BOOL:
            raise TypeError(
                f"{self.where}: eq returns {records.shown(returned)} of two "
                f"{records.shown(element)}, but must return bool; compare, as in "
                "lambda a, b: a == b"
            )

    def cuda(self, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
        from gpualgo._algorithms.select import cuda

        return cuda.plan_of(self, views, op, targets)

    def cpu(self, arrays: list[Array], results: list[Array], op: Any, init: Array | None) -> None:
        from gpualgo._algorithms.select import cpu

        *outs, count = results
        num_items = math.prod(self.shape)
        if num_items == 0:
            count[...] = 0
            return
        broadcast = [np.broadcast_to(array, self.shape) for array in arrays]
        if not self.gives_lengths:
            count[...] = cpu.heads(self.source, broadcast, outs, None, op)
            return
        *outs, lengths = outs
        starts = np.empty(min(num_items, len(lengths)) + 1, COUNT)
        num_runs = cpu.heads(self.source, broadcast, outs, starts, op)
        count[...] = num_runs
        num_written = min(num_runs, len(lengths))
        if num_runs < len(starts):
            starts[num_runs] = num_items
        np.subtract(starts[1 : num_written + 1], starts[:num_written], lengths[:num_written])

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
        if 0 in self.shape or any(array.shape != self.shape for array in arrays):
            return None
        from gpualgo._algorithms.select import cpu

        outs = results[: -1 - self.gives_lengths]
        return cpu.prepared_heads(self.source, arrays, outs, op, self.gives_lengths)

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
        # one block, since a run may continue in the next one
        block_bytes = sum(array.nbytes for array in broadcast) + 1
        blocks.select(self, broadcast, outs, count, op, stream, places, block_bytes)
        return True
