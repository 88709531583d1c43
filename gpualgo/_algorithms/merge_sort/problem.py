"""Specification of a sort by comparisons, and of values moved with the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpualgo._algorithms import materialized
from gpualgo._algorithms.radix_sort import materialize
from gpualgo._algorithms.radix_sort.problem import (
    Forms,
    KeysAndValues,
    Sort,
    arguments_of,
    descending_by_field,
    key_dtype_of,
    num_fields,
    values_of,
)
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import View
from gpualgo._base import log, recording, records
from gpualgo._lazy import is_lazy
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import checks, inputs, outputs
from gpualgo._pipeline.inputs import Views
from gpualgo._pipeline.problem import Call, Problem, Result, problem_of

# --- Argument table slots and sizes of the merge sort's CPU kernels.

RUN = 8  # elements sorted by insertion
BLOCK_BYTES = 1 << 17  # of a block that one thread sorts; with a copy it fits L2
PIECE_ITEMS = 1 << 14  # elements merged by one task

# Sorting blocks: addresses of keys, values and outputs (VALUES 0: positions are generated); the
# lengths of a row and of a block, and the blocks per row.
KEYS, VALUES, OUT_KEYS, OUT_VALUES, ROW_ITEMS, BLOCK, BLOCKS = range(7)

# Merging pairs of runs: addresses of both runs' keys and values, and of the outputs; the length of
# a row, the maximum lengths of first and second runs, the distance between their starts, pairs per
# row and pieces per pair.
(A_KEYS, A_VALUES, B_KEYS, B_VALUES, TO_KEYS, TO_VALUES, LENGTH, FIRST, SECOND, SECOND_BEGIN, PAIRS,
 PIECES) = range(12)  # fmt: skip


# Sorting segments: KEYS; the addresses of the segments' ends and of the first segment of each task.
ENDS, BOUNDS = 1, 2


def block_items(key: np.dtype[Any], value_bytes: int) -> int:
    """Return the block size: the largest RUN · 2^i whose keys and values fit BLOCK_BYTES."""
    items = RUN
    while 2 * items * (key.itemsize + value_bytes) <= BLOCK_BYTES:
        items *= 2
    return items


# --- Comparison of two elements: by a user function, or by value.

Dtype: TypeAlias = np.dtype[Any]
BOOL = np.dtype(np.bool_)


class Comparison(NamedTuple):
    element: Dtype
    op: Operator | None  # `less`; None: by value, the first field first
    directions: tuple[bool, ...]  # whether descending: per field, or one flag for op

    @property
    def is_turned(self) -> bool:
        """Whether a sorts before b if less(b, a)."""
        return self.directions[0]

    def with_op(self, op: Operator | None) -> Comparison:
        return self._replace(op=op)


def descending_of(descending: Any, form: Form | None, less: Any, where: str) -> tuple[bool, ...]:
    """Return the checked `descending`: one flag if `less` is given, else one per field."""
    if less is not None:
        return (checks.flag_argument(descending, "descending", where),)
    return descending_by_field(descending, form, where)


def comparison_of(
    views: Sequence[View], names: Sequence[str], form: Form | None, op: Operator | None,
    directions: tuple[bool, ...], device: int, where: str,
) -> Comparison:  # fmt: skip
    """Return the comparison of elements after checking them, without its operator.

    `names`: names of the views in messages.
    """
    for view, name in zip(views, names, strict=True):
        if op is None:
            key_dtype_of(view.dtype, where, name)
        else:
            checks.element(view, name, where)
    element = checks.element_of(views, form)
    if op is not None:
        checks.check_operator(op, element, where)
        dtype = outputs.dtype_of(op, (element, element), None, device, where)
        if dtype != BOOL:
            raise TypeError(
                f"op returns {records.shown(dtype)}, and not a bool; return a comparison, as "
                "lambda a, b: a < b does"
            )
    return Comparison(element, None, directions)  # cached problems must not hold captured arrays


class MergeSort(KeysAndValues):
    """Specification of a `merge_sort` call, or of `sort` with a function, shared by equal calls."""

    op_name = "less"

    def __init__(self, call: Call) -> None:
        directions, axis, forms = call.params
        super().__init__(call, ("keys", "values"), forms)
        keys, names = call.views[: self.num_keys], self.inputs[: self.num_keys]
        self.order = comparison_of(
            keys, names, forms[0], call.op, directions, call.device, call.where
        )
        self.set_rows(call, axis)
        self.by_value: Sort | None = None  # sorts by value on the CPU
        if call.op is None:
            params = directions, 0, None, axis, None, forms
            self.by_value = Sort(call._replace(op=None, init=None, params=params))

    @classmethod
    def row_of(cls, views: Sequence[View], params: tuple[Any, ...]) -> tuple[str, Sequence[View]]:
        return "merge sort", views[: num_fields(params[2][0])]


# --- Specification of a merge of two sorted arrays, and of values moved with them.


_NAMES = ("a", "b", "a_values", "b_values")


class Merge(KeysAndValues):
    """Specification of a `merge` call, shared by equal calls. Arrays: a, b, a_values, b_values."""

    op_name = "less"

    def __init__(self, call: Call) -> None:
        views, (directions, forms), where = call.views, call.params, call.where
        super().__init__(call, _NAMES, forms)
        count, values = self.num_keys, views[self.first_value :]
        for first, size in ((0, count), (self.first_value, self.num_values)):
            for i in range(first, first + size):
                own, other = views[i].dtype, views[i + size].dtype
                if own != other:
                    raise TypeError(
                        f"{where}: {self.inputs[i]} has dtype {own} and {self.inputs[i + size]} "
                        f"has {other}; pass equal dtypes"
                    )
        for i in (0, count):
            if len(views[i].shape) != 1:
                raise ValueError(
                    f"{where}: {self.inputs[i]} has {len(views[i].shape)} dimensions; pass "
                    "one-dimensional arrays"
                )
        for i, view in enumerate(values):
            shape = views[0 if i < self.num_values else count].shape
            if view.shape != shape:
                raise ValueError(
                    f"{where}: {self.inputs[self.first_value + i]} has shape {view.shape} but its "
                    f"keys have {shape}; pass one value for each key"
                )
        keys, names = views[:count], self.inputs[:count]
        self.order = comparison_of(keys, names, forms[0], call.op, directions, call.device, where)
        self.lengths = views[0].shape[0], views[count].shape[0]
        moved = *keys, *values[: self.num_values]
        self.results = tuple(Result((sum(self.lengths),), view.dtype) for view in moved)

    def parse_arrays(self, arguments: tuple[Any, ...]) -> tuple[Views, Forms] | None:
        if len(arguments) not in (2, 4):
            return None
        return merge_arguments(arguments, self.where, self.num_arguments > 0)


def merge_arguments(arguments: tuple[Any, ...], where: str, has_names: bool) -> tuple[Views, Forms]:
    a, form = inputs.spread(arguments[0], f"{where}: a", has_names)
    b, other = inputs.spread(arguments[1], f"{where}: b", has_names)
    _check_form(form, other, _NAMES[:2], where)
    if len(arguments) == 2:
        return (*a, *b), (form, other)
    values = [
        values_of(value, keys[0].shape, where, name, owner)
        for value, keys, name, owner in zip(arguments[2:], (a, b), _NAMES[2:], _NAMES, strict=False)
    ]
    (first, values_form), (second, other_form) = values
    _check_form(values_form, other_form, _NAMES[2:], where)
    return (*a, *b, *first, *second), (form, other, values_form, other_form)


def _check_form(form: Form | None, other: Form | None, names: Sequence[str], where: str) -> None:
    if form != other:
        raise TypeError(
            f"{where}: {names[1]} has another structure than {names[0]}; pass two arrays, or two "
            "tuples with the same fields"
        )


# --- Check that inputs are sorted (GPUALGO_CHECK=1).

Host = np.ndarray[Any, Any]


def check(
    x: Any, first: View, name: str, where: str, less: Any, descending: Any, stream: Any
) -> None:
    """Raise ValueError unless x is sorted; `first` is the view of its first field.

    Recorded calls are not checked, because their arrays may be placeholders.
    """
    if first.shape[0] < 2 or (recording.active and recording.current() is not None):
        return
    wrong = _inversions(x, first.shape[0], less, descending, where, stream)
    if wrong.size:
        raise ValueError(
            f"{where}: {name} is not in order from element {wrong[0]} on; sort it first, by the "
            "same less and descending"
        )


def _inversions(
    x: Any, length: int, less: Any, descending: Any, where: str, stream: Any
) -> np.ndarray[Any, Any]:
    """Return the elements that a stable sort would move, or that sort before their predecessor."""
    if less is None:
        from gpualgo._algorithms.radix_sort import argsort

        order = checks.values_on_host(
            argsort(x, descending=descending, stream=stream), where, stream
        )
        return np.flatnonzero(order != np.arange(order.size))
    from gpualgo._algorithms.transform import transform

    pair = _part(x, length, np.s_[1:]), _part(x, length, np.s_[:-1])
    marks = transform(less, *(pair[::-1] if descending else pair), stream=stream)
    return np.flatnonzero(checks.values_on_host(marks, where, stream)) + 1


def _part(x: Any, length: int, part: slice) -> Any:
    """Return a slice of x; broadcast items of a tuple are kept."""
    if not isinstance(x, tuple):
        return x[part]
    fields = [item[part] if getattr(item, "shape", ()) == (length,) else item for item in x]
    return type(x)(*fields) if hasattr(x, "_fields") else tuple(fields)


# --- Calls of `merge_sort` and `merge`: argument checks, then the problem.


def sort_spec(
    where: str, keys: Any, values: Any, less: Any, descending: Any, axis: Any, out: Any,
    stream: Any,
) -> tuple[Problem, Views, Any]:  # fmt: skip
    if is_lazy(keys) or is_lazy(values):
        keys, values, out = materialize(keys, values, axis, out, stream, where)
    arguments = (keys,) if values is None else (keys, values)
    views, forms = arguments_of(arguments, where, less is not None)
    directions = descending_of(descending, forms[0], less, where)
    params = directions, checks.plain_axis(axis, where), forms
    num_arguments = 0 if less is None else 2
    return problem_of(MergeSort, views, less, None, params, where, num_arguments), views, out


def merge_problem(
    a: Any, b: Any, a_values: Any, b_values: Any, less: Any, descending: Any, out: Any, stream: Any
) -> tuple[Problem, Views]:
    where, given = "merge", {"a": a, "b": b}
    if (a_values is None) != (b_values is None):
        missing, present = ("a", "b") if a_values is None else ("b", "a")
        raise TypeError(
            f"{where}: {missing}_values is missing where {present}_values is given; pass both"
        )
    if a_values is not None:
        given |= {"a_values": a_values, "b_values": b_values}
    arguments = tuple(materialized(given, (out,), where, stream))
    views, forms = merge_arguments(arguments, where, less is not None)
    directions = descending_of(descending, forms[0], less, where)
    num_arguments = 0 if less is None else 2
    problem = problem_of(Merge, views, less, None, (directions, forms), where, num_arguments)
    if log.checks_device_values():
        firsts = 0, num_fields(forms[0])
        for x, name, first in zip(arguments, _NAMES, firsts, strict=False):
            check(x, views[first], name, where, less, descending, stream)
    return problem, views
