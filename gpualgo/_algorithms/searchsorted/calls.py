"""Arguments of `searchsorted`."""

from __future__ import annotations

from typing import Any

from gpualgo._algorithms.merge_sort import problem as in_order
from gpualgo._algorithms.merge_sort.comparison import descending_of
from gpualgo._algorithms.searchsorted.problem import INDEX, Search, arguments_of
from gpualgo._arrays.view import as_view
from gpualgo._base.errors import shown
from gpualgo._lazy import is_lazy
from gpualgo._pipeline import device_checks
from gpualgo._pipeline.inputs import Views
from gpualgo._pipeline.problem import Problem, problem_of

_WHERE = "searchsorted"


def search_problem(
    a: Any, v: Any, side: Any, less: Any, descending: Any, dtype: Any, out: Any, stream: Any
) -> tuple[Problem, Views]:
    """Return the problem of a search, and its views."""
    where = _WHERE
    if not isinstance(side, str):
        raise TypeError(f"{where}: side must be 'left' or 'right', got {shown(side)}")
    if side not in ("left", "right"):
        raise ValueError(f"{where}: side must be 'left' or 'right', got {shown(side)}")
    a, v = _materialized(a, v, out, where, stream)
    views, forms = arguments_of(a, v, where, less is not None)
    if dtype is None:
        dtype = INDEX if out is None else as_view(out, f"{where}: out").dtype
        if dtype.kind not in "iu":
            raise TypeError(
                f"{where}: out has dtype {dtype}, but results are indices; pass an integer array"
            )
    directions = descending_of(descending, forms[0], less, where)
    num_leaves = 1 if forms[0] is None else len(forms[0].names)
    params = directions, side == "right", dtype, num_leaves, forms, False
    num_arguments = 0 if less is None else 2
    problem = problem_of(Search, views, less, None, params, where, num_arguments)
    if device_checks.are_on():
        in_order.check(a, views[0], "a", where, less, descending, stream)
    return problem, views


def binning_problem(bins: Any, v: Any, side: str, where: str) -> tuple[Problem, Views]:
    """Return the problem of a search in an array on a GPU that is sorted in either direction.

    If it is descending, results are indices in its reverse, counted from the end.
    """
    views, forms = arguments_of(*_materialized(bins, v, None, where, None), where, False)
    if views[0].device < 0 or forms[0] is not None:
        raise TypeError(f"{where}: bins are no array of numbers on a GPU")
    params = (False,), side == "right", INDEX, 1, forms, True
    return problem_of(Search, views, None, None, params, where, 0), views


def _materialized(a: Any, v: Any, out: Any, where: str, stream: Any) -> tuple[Any, Any]:
    """Return both arrays, computed if they are lazy."""
    if not (is_lazy(a) or is_lazy(v)):
        return a, v
    from gpualgo._lazy.combining import place_lazy
    from gpualgo._lazy.construction import made

    a, v = place_lazy((a, v), (out,), where)
    return made(a, False, f"{where}: a", stream), made(v, False, f"{where}: v", stream)
