"""Checked arguments of the algorithms by key: accumulator dtype and results."""

from __future__ import annotations

import math
import types
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpualgo._algorithms import materialized
from gpualgo._algorithms.radix_sort.problem import key_dtype_of
from gpualgo._algorithms.select.problem import CHUNK as CHUNK
from gpualgo._algorithms.select.problem import PIECE as PIECE
from gpualgo._algorithms.select.problem import check_bool
from gpualgo._arrays.forms import Form, form_of
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._lazy import is_lazy
from gpualgo._lazy.sources import Source, computed, tried
from gpualgo._operators.operator import Operator, as_operator
from gpualgo._pipeline import checks, inputs
from gpualgo._pipeline.problem import Call, Problem, Result, problem_of

# --- Argument tables of the kernels by key on the CPU, and sizes.

# The argument table is that of a selection (select/problem.py), with the inputs, comparisons
# and outputs of each field of a key, then of a value. After its records: FOLD: address of the
# function below. INIT: address of the initial value, or 0. PARTS: address of the parts' records,
# RECORD bytes each; 0 if there is one part, whose record is at STATE in scratch memory. XS, YS:
# offsets in scratch memory of the addresses of values and of results; RESULTS: of results that are
# not written to the output directly. IN_TURN: one thread processes all parts. TOTAL: where to write
# the number of runs.
(FOLD, INIT, PARTS, RECORD, STATE, XS, YS, RESULTS, KEYS, REDUCES, IN_TURN, NUM_PARTS,
 TOTAL) = range(13)  # fmt: skip
EXTRA = 13

# A part's record: numbers of runs that begin in it and before it, whether it has had an element,
# whether a run is open before it, the number of aggregates written last, and the address of the
# initial value; then the fold of its elements since its last run began, and the run open before it.
HEADS, BEFORE, HAS_VALUE, HAS_CARRY, NUM_WRITTEN, START_AT = range(6)
VALUE = 64  # bytes

# Steps of the function f(step, record, marks, xs, count, ys).
ELEMENTS, NEXT, LAST = range(3)


def value_bytes(itemsize: int) -> int:
    """Return the distance of a record's two values."""
    return -(-itemsize // 16) * 16


# --- Arguments of calls by key: keys and values.

Forms = tuple[Form | None, Form | None]
Classes = tuple[tuple[Form, ...], ...]
Input = tuple[tuple[View, ...], Any, Any, int, Classes]
"""Inputs, the operator, the form of (key, value) pairs, the number of key arrays, tuple classes."""


class ByKeyParams(NamedTuple):
    dtype: Any
    form: Form | Source  # of pairs of a key and a value
    num_keys: int  # number of key arrays, if nothing is computed
    classes_of: Classes  # of tuples in keys and in x, if something is computed
    has_eq: bool
    classes: Any
    in_any_order: bool = False  # equal keys need not be neighbours
    size: int = 0  # number of results of a reduction by index


def parse_call(
    kind: Any, where: str, keys: Any, x: Any, init: Any, op: Any, consecutive: Any, eq: Any,
    dtype: Any, stream: Any, outs: Any,
) -> tuple[Any, tuple[View, ...], Any]:  # fmt: skip
    """Return the problem of a call by key, its views, and its operator."""
    in_any_order = not checks.flag_argument(consecutive, "consecutive", where)
    if eq is not None and in_any_order:
        raise ValueError(
            f"{where}: eq needs consecutive=True, because otherwise keys are grouped by value; "
            "pass consecutive=True, or leave eq out"
        )
    keys, x = place_lazy_inputs(keys, x, outs, where)
    views, op, form, num_keys, classes = input_of(keys, x, op, eq, where, stream, in_any_order)
    params = ByKeyParams(
        dtype, form, num_keys, classes, eq is not None, checks.classes_of(dtype), in_any_order
    )
    problem = problem_of(kind, views, op, init, params, where)
    if problem.is_checked:
        tried(problem, x, op, init, stream)
    return problem, views, op


def place_lazy_inputs(keys: Any, x: Any, others: Any, where: str) -> tuple[Any, Any]:
    """Return keys and values; lazy ones that read no array are placed on the others' device."""
    if not (is_lazy(keys) or is_lazy(x)):
        return keys, x
    from gpualgo._lazy.combining import place_lazy

    keys, x = place_lazy((keys, x), others, where)
    return keys, x


def input_of(
    keys: Any, x: Any, op: Any, eq: Any, where: str, stream: Any, in_any_order: bool = False
) -> Input:
    if eq is not None:
        op = _with_equality(op, eq, where)
    if is_lazy(keys) or is_lazy(x):
        if eq is None and not in_any_order:
            return _computed(keys, x, op, where)
        keys, x = materialized({"keys": keys, "x": x}, (), where, stream)
    try:
        views, (form, x_form) = arguments_of(keys, x, where)
    except inputs.NumberOnGPU:
        if eq is not None:
            raise
        if not in_any_order:
            return _computed(keys, x, op, where)
        from gpualgo._lazy.combining import zipped

        keys, x = zipped(keys, f"{where}: keys"), zipped(x, f"{where}: x")
        return input_of(keys, x, op, None, where, stream, in_any_order)
    num_keys = 1 if form is None else len(form.names)
    return views, op, Form(tuple, (form, x_form)), num_keys, ()


def arguments_of(keys: Any, x: Any, where: str) -> tuple[tuple[View, ...], Forms]:
    of_keys, form = inputs.spread(keys, f"{where}: keys")
    of_x, x_form = inputs.spread(x, f"{where}: x")
    check_shapes(of_keys[0].shape, of_x[0].shape, where)
    check_count(len(of_keys) + len(of_x), where)
    return (*of_keys, *of_x), (form, x_form)


def check_shapes(keys: tuple[int, ...], x: tuple[int, ...], where: str) -> None:
    """Raise ValueError unless each value has a key."""
    if keys != x:
        raise ValueError(f"{where}: keys have shape {keys} and x {x}; pass a key for each element")


def check_count(count: int, where: str) -> None:
    """Raise TypeError if a key and a value have too many numbers together."""
    if count > records.MAX_FIELDS:
        raise TypeError(
            f"{where}: a key and an element of x have {count} numbers together, at most "
            f"{records.MAX_FIELDS} are possible"
        )


def _computed(keys: Any, x: Any, op: Any, where: str) -> Input:
    from gpualgo._lazy import combining
    from gpualgo._operators.operator import fuse

    lazy_parts = [combining.zipped(a, f"{where}: {n}") for a, n in ((keys, "keys"), (x, "x"))]
    check_shapes(lazy_parts[0].shape, lazy_parts[1].shape, where)
    lazy_pairs = combining.zipped((keys, x), f"{where}: keys and x")
    combining.check_count(lazy_pairs.leaves, records.MAX_FIELDS, f"{where}: keys and x read")
    joined = fuse(as_operator(op, where, 2), lazy_pairs.function)
    classes = (lazy_parts[0].forms, lazy_parts[1].forms)
    return lazy_pairs.views, joined, Source(lazy_pairs.forms), 0, classes


def _with_equality(op: Any, eq: Any, where: str) -> Operator:
    from gpualgo._operators.operator import fuse

    if isinstance(eq, Operator):
        eq = eq.fn
    if not callable(eq):
        raise TypeError(
            f"{where}: eq must be callable, got {type(eq).__name__}; "
            "pass a function such as lambda a, b: a == b"
        )
    try:
        as_operator(eq, where, 2)
    except TypeError as error:
        error.args = (str(error).replace(f"{where}: op ", f"{where}: eq ", 1),)
        raise
    if not isinstance(eq, types.FunctionType):
        builtin = eq
        eq = lambda a, b: builtin(a, b)  # noqa: E731
    return fuse(as_operator(op, where, 2), eq)


COUNT = np.dtype(np.int64)
REDUCE, INCLUSIVE, EXCLUSIVE = "reduce", "inclusive", "exclusive"


class ReducedByKey(NamedTuple):
    """Result of `reduce_by_key`: a key and an aggregate for each run or group."""

    keys: Any
    aggregates: Any


class ByKey(Problem):
    needs_associativity = True
    spreads_tuples = True
    mode = REDUCE
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
        self.acc: np.dtype[Any] = checks.element_accumulator(
            values, self.x_form, init, params.dtype, where
        )
        checks.check_operator(op, self.acc, where)
        self.has_init = init is not None
        self.has_eq = params.has_eq
        if self.has_eq:
            check_bool(self, op.source, self.key, "eq", 2)
        self.in_any_order = self.copies_page_locked = params.in_any_order
        if self.in_any_order:  # in place, each pass of the sort would cross the bus
            for view, name in zip(views[:count], self.inputs, strict=False):
                key_dtype_of(view.dtype, where, name)
        self._set_results(count, isinstance(form, Source))
        if self.mode == EXCLUSIVE and init is None:
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
        return len(records.field_dtypes(self.key))

    @classmethod
    def row_of(cls, views: Sequence[View], params: tuple[Any, ...]) -> tuple[str, Sequence[View]]:
        in_any_order = params[6]
        return ("order", views[: params[2]]) if in_any_order else ("one pass", views[:1])

    def _set_results(self, num_views: int, is_computed: bool) -> None:
        """Set the results: of a scan, one for each element."""
        size = (math.prod(self.shape),)
        self.form = self.x_form
        self.results = tuple(
            Result(size, leaf, () if is_computed or self.in_any_order else (num_views + i,))
            for i, leaf in enumerate(records.field_dtypes(self.acc))
        )

    def parse_arrays(self, arguments: tuple[Any, ...]) -> tuple[tuple[View, ...], Forms] | None:
        return arguments_of(*arguments, self.where) if len(arguments) == 2 else None


class InclusiveScan(ByKey):
    shape_attributes = "shape", "results"
    mode = INCLUSIVE
    planned_in = "gpualgo._algorithms.by_index"  # a table scans keys of a narrow range on the CPU


class ExclusiveScan(InclusiveScan):
    mode = EXCLUSIVE


class Reduction(ByKey):
    shape_attributes = "shape", "results"
    has_dynamic_length = True
    planned_in = "gpualgo._algorithms.by_index"  # tables reduce keys of a narrow range

    def _set_results(self, num_views: int, is_computed: bool) -> None:
        size = (math.prod(self.shape),)
        kinds = [*records.field_dtypes(self.key), *records.field_dtypes(self.acc)]
        outs = tuple(Result(size, kind, is_upper_bound=True) for kind in kinds)
        self.results = (*outs, Result((), COUNT))
        self.form = Form(ReducedByKey, (self.key_form, self.x_form))
        self.output_names = (*[f"out{p}" for p in self.form.subscripts], "out_count")
