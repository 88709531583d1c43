"""Checked arguments of the algorithms by key: accumulator dtype and results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpualgo._algorithms.by_key.calls import Forms, arguments_of, check_count
from gpualgo._arrays.forms import Form, form_of
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._base.errors import CompileError
from gpualgo._lazy.sources import Source, computed
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import checks, elements, inputs, outputs
from gpualgo._pipeline.problem import Call, Problem, Result

BOOL, COUNT = np.dtype(np.bool_), np.dtype(np.int64)
REDUCE, INCLUSIVE, EXCLUSIVE = "reduce", "inclusive", "exclusive"


class ReducedByKey(NamedTuple):
    """Result of `reduce_by_key`: a key and an aggregate for each run or group."""

    keys: Any
    aggregates: Any


class ByKey(Problem):
    """Arguments that equal calls of an algorithm by key share."""

    needs_associativity = True
    spreads_tuples = True
    way = REDUCE
    keys_name = "keys"

    def __init__(self, call: Call) -> None:
        views, op, init, params, where = call.views, call.op, call.init, call.params, call.where
        form, count = params.form, params.num_keys
        if isinstance(form, Source):
            self.inputs, self.forms = (f"{self.keys_name} or x",) * len(views), ()
        else:
            of_keys, of_x = form.items
            names = inputs.names(views[:count], of_keys, self.keys_name)
            self.inputs = (*names, *inputs.names(views[count:], of_x, "x"))
            self.forms = (of_keys, of_x)
        super().__init__(call)
        checks.same_place(list(views), where)
        self.composes_operator = params.has_eq
        self.shape = views[0].shape
        values = self._set_elements(views, op, form)
        self.acc: np.dtype[Any] = elements.accumulator(
            values, self.x_form, init, params.dtype, where
        )
        elements.check_operator(op, self.acc, where)
        self.has_init = init is not None
        self.has_eq = params.has_eq
        if self.has_eq:
            self._check_equality(op)
        self._set_results(count, isinstance(form, Source))
        if self.way == EXCLUSIVE and init is None:
            reason = "op has no known identity for the first result of a run"
            self.default_start = self.identity(op, reason)
            self.has_init = True

    def _set_elements(
        self, views: tuple[View, ...], op: Operator, form: Form | Source
    ) -> tuple[View, ...]:
        """Set the dtypes of keys and pairs; return the views with the values' dtypes."""
        where, count = self.where, self.params[2]
        pairs: Form | None = None
        self.source: records.Source
        if isinstance(form, Source):
            self.source, pairs, typed_views = computed(op, views, form, self.device, where)
            assert pairs is not None
            names = records.register_dtype(self.source).names or ()
            count = sum(name.split(".")[0] == "0" for name in names)
            check_count(len(names), where)
        else:
            for view, name in zip(views, self.inputs, strict=True):
                checks.element(view, name, where)
            pairs, typed_views = form, views
            self.source = records.record(form.names, [view.dtype for view in views])
        forms = pairs.items
        if self.params[3]:  # forms of both classes may have the same fields
            forms = tuple(
                None if form_of_item is None else form_of(form_of_item.names, classes)
                for form_of_item, classes in zip(forms, self.params[3], strict=True)
            )
        self.key_form, self.x_form = forms
        kinds = records.field_dtypes(records.register_dtype(self.source))
        key_names = None if self.key_form is None else self.key_form.names
        self.key = kinds[0] if key_names is None else records.record(key_names, kinds[:count])
        return typed_views[count:]

    @property
    def num_keys(self) -> int:
        """Number of fields of a key."""
        return len(records.field_dtypes(self.key))

    def _check_equality(self, op: Operator) -> None:
        """Raise TypeError unless eq returns a bool, CompileError if it does not compile."""
        args = self.key, self.key
        try:
            returned = outputs.dtype_of(op.source, args, None, self.device, self.where)
        except CompileError as error:
            checks.name(error, op.source, self.where, "eq")
            raise
        if returned != BOOL:
            raise TypeError(
                f"{self.where}: eq returns {records.shown(returned)} of two "
                f"{records.shown(self.key)}, but must return bool; compare, as in "
                "lambda a, b: a == b"
            )

    def _set_results(self, num_views: int, is_computed: bool) -> None:
        """Set the results: of a scan, one for each element."""
        size = (math.prod(self.shape),)
        self.form = self.x_form
        self.results = tuple(
            Result(size, leaf, () if is_computed else (num_views + i,))
            for i, leaf in enumerate(records.field_dtypes(self.acc))
        )

    def taken(
        self, arguments: Sequence[Any], where: str
    ) -> tuple[tuple[View, ...], tuple[Form | None, ...]] | None:
        if len(arguments) != 2:
            return None
        try:
            return arguments_of(arguments[0], arguments[1], self.where)
        except ValueError:  # shapes differ from the prepared ones, which the caller reports
            return None


class InclusiveScan(ByKey):
    """Arguments that equal calls of `inclusive_scan_by_key` share."""

    way = INCLUSIVE


class ExclusiveScan(ByKey):
    """Arguments that equal calls of `exclusive_scan_by_key` share."""

    way = EXCLUSIVE


class Reduction(ByKey):
    """Arguments that equal calls of `reduce_by_key` share."""

    has_dynamic_length = True

    def _set_results(self, num_views: int, is_computed: bool) -> None:
        size = (math.prod(self.shape),)
        kinds = [*records.field_dtypes(self.key), *records.field_dtypes(self.acc)]
        outs = tuple(Result(size, kind, is_upper_bound=True) for kind in kinds)
        self.results = (*outs, Result((), COUNT))
        self.form = Form(ReducedByKey, (self.key_form, self.x_form))
        self.output_names = (*[f"out{p}" for p in self.form.places], "out_count")


__all__ = ["ByKey", "ExclusiveScan", "Forms", "InclusiveScan", "ReducedByKey", "Reduction"]
