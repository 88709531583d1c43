"""Checked arguments of a search: a sorted array, queries, and the order of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._algorithms import materialized
from gpualgo._algorithms.merge_sort import problem as in_order
from gpualgo._algorithms.merge_sort.problem import comparison_of, descending_of
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import View, as_view
from gpualgo._base import dtypes, log
from gpualgo._base.errors import shown
from gpualgo._base.strides import order_of
from gpualgo._pipeline import checks, inputs
from gpualgo._pipeline.inputs import Views
from gpualgo._pipeline.problem import Array, Call, Problem, Result, problem_of
from gpualgo._pipeline.run import run

# --- Argument table of the search kernel on the CPU, and sizes.

BLOCK = 64  # queries that are bisected together, to have that many loads in flight

# The sorted array, its stride in bytes, its length; queries and results, both contiguous, and their
# number.
SORTED, STEP, NUM_SORTED, QUERIES, OUTPUT, NUM_QUERIES = range(6)


PLACE, IN_EITHER, AMONG, NOT_AMONG = "place", "in_either", "among", "not_among"  # answers

Forms = tuple[Form | None, ...]
INDEX, BOOL = np.dtype(np.int64), np.dtype(np.bool_)


class Search(Problem):
    """Arguments that equal calls of `searchsorted` share. Inputs: arrays of a, then those of v."""

    op_name = "less"
    returns_scalars = True
    copies_page_locked = True  # a page-locked array would cross the bus for every search step

    def __init__(self, call: Call) -> None:
        device, views, op, params, where = call.device, call.views, call.op, call.params, call.where
        directions, self.is_right, index, self.num_fields, self.forms, self.answer = params
        count = self.num_fields
        a, v, form = views[:count], views[count:], self.forms[0]
        names = [*inputs.names(a, form, "a"), *inputs.names(v, form, "v")]
        self.inputs = names
        super().__init__(call)
        checks.same_place(list(views), where)
        if len(a[0].shape) != 1:
            raise ValueError(
                f"{where}: a has {len(a[0].shape)} dimensions; pass a sorted one-dimensional array"
            )
        comparison_of(
            v, names[count:], form, op, directions, device, where
        )  # checks the dtypes of v
        common = [
            _common(x, y, name, other, where)
            for x, y, name, other in zip(a, v, names[:count], names[count:], strict=True)
        ]
        converted = [x._replace(dtype=dtype) for x, dtype in zip(a, common, strict=True)]
        comparison_of(a, names[:count], form, op, directions, device, where)
        self.order = comparison_of(converted, names[:count], form, op, directions, device, where)
        self.sides = checks.element_of(a, form), checks.element_of(v, form)
        (self.num_sorted,), self.shape = a[0].shape, v[0].shape
        self.is_empty = self.num_sorted == 0
        is_place = self.answer in (PLACE, IN_EITHER)
        result_dtype = index_dtype_of(index, self.num_sorted, where) if is_place else BOOL
        layouts = [view.strides for view in v]
        in_place = tuple(range(count, 2 * count))
        self.results = (Result(self.shape, result_dtype, in_place, order_of(self.shape, layouts)),)

    @classmethod
    def row_of(cls, views: Sequence[View], params: tuple[Any, ...]) -> tuple[str, Sequence[View]]:
        return "one pass", views[params[3] :]

    def of_empty(self, op: Any, init: Any) -> Array:
        return np.zeros((), self.results[0].dtype)

    def parse_arrays(self, arguments: tuple[Any, ...]) -> tuple[Views, Forms] | None:
        if len(arguments) != 2:
            return None
        return arguments_of(*arguments, self.where, self.num_arguments > 0)


def _common(x: View, y: View, name: str, other: str, where: str) -> np.dtype[Any]:
    """Return the dtype in which elements of a and v are compared: NumPy's common dtype."""
    if x.dtype == y.dtype:
        return x.dtype
    try:
        common = np.result_type(x.dtype, y.dtype)
    except TypeError:
        common = None
    if common is None or dtypes.name_of(common) is None:
        raise TypeError(
            f"{where}: {name} has dtype {x.dtype} and {other} has {y.dtype}, which have "
            "no common dtype in NumPy; convert one of them"
        )
    return common


def index_dtype_of(value: Any, length: int, where: str) -> np.dtype[Any]:
    """Return the dtype of results after checking that it is an integer dtype for `length`."""
    dtype = dtypes.as_dtype(value, where)
    if dtype.kind not in "iu":
        raise TypeError(f"{where}: dtype {dtype} cannot hold indices; pass an integer dtype")
    if length > np.iinfo(dtype).max:
        raise ValueError(
            f"{where}: dtype {dtype} cannot hold {length}, the length of a; pass dtype=np.int64"
        )
    return dtype


def arguments_of(a: Any, v: Any, where: str, has_names: bool) -> tuple[Views, Forms]:
    sorted_views, form = inputs.spread(a, f"{where}: a", has_names)
    if isinstance(v, NUMBERS) and not isinstance(v, np.void):
        v = _array_of(v, sorted_views[0], where)
    queries, query_form = inputs.spread(v, f"{where}: v", has_names)
    if form != query_form:
        raise TypeError(
            f"{where}: v and a differ in structure; pass two arrays, or two tuples with "
            "the same fields"
        )
    return (*sorted_views, *queries), (form, query_form)


NUMBERS = (bool, int, float, complex, np.generic)


def _array_of(number: Any, a: View, where: str) -> Any:
    """Return a 0-d array in a's library."""
    if a.device >= 0:
        raise TypeError(
            f"{where}: v is the number {number!r} but a is on a GPU; pass an array without "
            "dimensions on it"
        )
    array = np.asarray(number)
    dtypes.check_number(array, f"{where}: v")
    return a.library.from_numpy(array, a.owner)


# --- Arguments of `searchsorted`.

_WHERE = "searchsorted"


def search_problem(
    a: Any, v: Any, side: Any, less: Any, descending: Any, dtype: Any, out: Any, stream: Any
) -> tuple[Problem, Views]:
    where = _WHERE
    if not isinstance(side, str):
        raise TypeError(f"{where}: side must be 'left' or 'right', got {shown(side)}")
    if side not in ("left", "right"):
        raise ValueError(f"{where}: side must be 'left' or 'right', got {shown(side)}")
    a, v = materialized({"a": a, "v": v}, (out,), where, stream)
    views, forms = arguments_of(a, v, where, less is not None)
    if dtype is None:
        dtype = INDEX if out is None else as_view(out, f"{where}: out").dtype
        if dtype.kind not in "iu":
            raise TypeError(
                f"{where}: out has dtype {dtype}, but results are indices; pass an integer array"
            )
    directions = descending_of(descending, forms[0], less, where)
    num_fields = 1 if forms[0] is None else len(forms[0].names)
    params = directions, side == "right", dtype, num_fields, forms, PLACE
    num_arguments = 0 if less is None else 2
    problem = problem_of(Search, views, less, None, params, where, num_arguments)
    if log.checks_device_values():
        in_order.check(a, views[0], "a", where, less, descending, stream)
    return problem, views


def search_on_gpu(a: Any, v: Any, where: str, answer: str, side: str = "left") -> Any:
    """Return another answer about v in a sorted array of numbers on a GPU.

    IN_EITHER: indices in an array that is sorted in either direction. If it is descending, they are
    those in its reverse, counted from the end. AMONG, NOT_AMONG: whether an element equals that of
    v, or none does.
    """
    a, v = materialized({"a": a, "v": v}, (), where, None)
    views, forms = arguments_of(a, v, where, False)
    if views[0].device < 0 or forms[0] is not None:
        raise TypeError(f"{where}: the sorted array is no array of numbers on a GPU")
    params = (False,), side == "right", INDEX, 1, forms, answer
    problem = problem_of(Search, views, None, None, params, where, 0)
    return run(problem, views, None, None, None, None)
