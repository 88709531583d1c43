"""Checked arguments of an algorithm on runs of equal neighbouring elements."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from gpualgo._algorithms.select.problem import BOOL, COUNT, HEADS, Selecting
from gpualgo._arrays.forms import Form
from gpualgo._base import records
from gpualgo._lazy.sources import Source, arguments_of, elements_of
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import checks, outputs
from gpualgo._pipeline.problem import Call, Result

NO_OPERATOR = "no_operator"  # the placeholder operator, of which only the source is called


class RunLengthEncoded(NamedTuple):
    """Result of `run_length_encode`: the first element and the length of each run."""

    values: Any
    lengths: Any


class RunsParams(NamedTuple):
    """The arguments apart from the arrays and the equality."""

    form: Form | Source | None
    gives_lengths: bool


class Runs(Selecting):
    """Arguments that equal calls share that find the first elements of runs."""

    kept = HEADS
    op_name = "eq"

    def __init__(self, call: Call) -> None:
        device, views, op, params, where = call.device, call.views, call.op, call.params, call.where
        form, self.gives_lengths = params
        self.inputs, self.forms = arguments_of(views, form)
        super().__init__(call)
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
