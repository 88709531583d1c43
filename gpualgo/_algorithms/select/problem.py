"""Checked arguments of a selection: elements of any layout, and the predicate or mask."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gpualgo._arrays.forms import Form, form_of
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._base.errors import CompileError
from gpualgo._cpu.plan import LEAF
from gpualgo._lazy.sources import Source, arguments_of, elements_of
from gpualgo._operators.operator import Operator, builtin
from gpualgo._pipeline import checks, outputs
from gpualgo._pipeline.problem import Call, Problem, Result

# --- Argument table of the selection kernels on the CPU, and sizes.

CHUNK = 2048  # elements that are marked and compacted at once, in L1
PIECE = 32 * CHUNK  # elements per task if several threads share them
SLOTS = 128  # bytes for the addresses of inputs and of an element's fields

# The argument table. TASK_OFFSETS: address of one word per task: the output index of its first
# element or, if COUNTS is set, its number of elements. TOTAL: number of all kept elements, after
# which the rest begins, or -1 without a rest. COMPUTE, MARK: addresses of functions, or 0. MARK
# decides which elements are kept, if COMPARES is set by comparing each with the previous one;
# without MARK, the input after the written ones does. NUMBERS: offset in scratch memory of the
# elements' indices, the last output, or 0. After TAIL come the lengths of the dimensions; for each
# input the entries of `layout.field_arguments` and its strides; for each output a record.
LENGTH, NDIM, INPUTS, OUTPUTS, PER_TASK, TASK_OFFSETS, COUNTS, TOTAL = range(8)
COMPUTE, COMPUTED, MARK, MARKS, PACKED, COMPARES, NUMBERS = range(8, 15)
TAIL = 15
READ = LEAF
OUT, SIZE, STRIDE, CAPACITY, PICK, PACK = range(6)
WRITTEN = 6


# Selection criteria, named as templates of select/tile.cuh.
IF, MARKED, HEADS = "KeepIf", "KeepMarked", "KeepHeads"
BOOL, COUNT = np.dtype(np.bool_), np.dtype(np.int64)

NO_OPERATOR = builtin("no_operator")  # a placeholder, of which only the source is called


class Marked(NamedTuple):
    """The form of elements whose mask is the last array.

    If they are computed, each is computed with its mark as a pair; `picks` are the indices of the
    inputs that are the pair's fields, if all of them are inputs.
    """

    of_x: Form | Source | None
    picks: tuple[int, ...] | None = None


class SelectParams(NamedTuple):
    form: Form | Source | Marked | None
    keeps_rest: bool


class Selecting(Problem):
    """Base of problems whose results are some of the elements, in order, and their number."""

    spreads_tuples = True
    has_dynamic_length = True
    keeps_rest = False
    gives_lengths = False  # of runs, after an element's fields
    picks: tuple[int, ...] | None = None  # indices of the inputs that are an element's fields
    criterion: str  # IF, MARKED or HEADS
    shape: tuple[int, ...]
    source: records.Source

    @property
    def written(self) -> tuple[np.dtype[Any], ...]:
        numbers = records.field_dtypes(records.register_dtype(self.source))
        return numbers[: len(numbers) - (self.criterion == MARKED)]


class Selection(Selecting):
    """Arguments that equal calls of `select` or `stable_partition` share."""

    shape_attributes = "shape", "results"
    op_name = "predicate"

    def __init__(self, call: Call) -> None:
        device, views, op, params, where = call.device, call.views, call.op, call.params, call.where
        form, self.keeps_rest = params
        self.is_marked = isinstance(form, Marked)
        self.criterion = MARKED if self.is_marked else IF
        of_x = form.of_x if isinstance(form, Marked) else form
        self.picks = form.picks if isinstance(form, Marked) else None
        is_computed = isinstance(of_x, Source)
        self.inputs, self.forms = arguments_of(views, of_x)
        if self.is_marked and not is_computed:
            self.inputs = (*arguments_of(views[:-1], of_x)[0], "predicate")
        super().__init__(call)
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
                check_bool(self, op, records.register_dtype(self.source), "predicate")
        size = math.prod(self.shape)
        is_upper_bound = not self.keeps_rest
        outs = tuple(Result((size,), leaf, is_upper_bound=is_upper_bound) for leaf in self.written)
        self.results = (*outs, Result((), COUNT))
        names = [f"out{p}" for p in self.form.subscripts] if self.form is not None else ["out"]
        self.output_names = (*names, "out_count")

    def _check_mask(self, views: tuple[View, ...], form: Any) -> None:
        """Check arrays of which the last is the mask."""
        *data_views, mask = views
        where = self.where
        checks.mask(mask, self.shape, where)
        for view, name in zip(data_views, self.inputs, strict=False):
            checks.element(view, name, where)
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
        pair = records.register_dtype(self.source)
        fields = records.field_dtypes(pair)[:-1]
        assert pair.names is not None
        names = [name.partition(".")[2] for name in pair.names[:-1]]
        self.form = form_of(names, source.forms) if len(fields) > 1 or names[0] else None


def check_bool(
    problem: Problem, op: Operator, element: np.dtype[Any], name: str, num_elements: int = 1
) -> None:
    """Raise TypeError unless a function, named in errors, returns a bool of so many elements."""
    arguments = (element,) * num_elements
    try:
        returned = outputs.dtype_of(op, arguments, None, problem.device, problem.where)
    except CompileError as error:
        checks.name(error, op, problem.where, name)
        raise
    if returned != BOOL:
        two, example = ("two ", "a, b: a == b") if num_elements == 2 else ("", "a: a != 0")
        raise TypeError(
            f"{problem.where}: {name} returns {records.shown(returned)} of {two}"
            f"{records.shown(element)}, but must return bool; compare, as in lambda {example}"
        )
