"""Calls of `searchsorted`: arguments as they come."""

from __future__ import annotations

from typing import Any

from gpualgo._algorithms.merge_sort import in_order
from gpualgo._algorithms.merge_sort.comparison import plain_ways
from gpualgo._algorithms.searchsorted.problem import INDEX, Search, arguments_of
from gpualgo._arrays.view import as_view
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
        raise TypeError(f"{where}: side must be 'left' or 'right', got {side!r}")
    if side not in ("left", "right"):
        raise ValueError(f"{where}: side must be 'left' or 'right', got {side!r}")
    if is_lazy(a) or is_lazy(v):
        from gpualgo._lazy.real import made

        a, v = (made(x, False, f"{where}: {n}", stream) for x, n in ((a, "a"), (v, "v")))
    views, forms = arguments_of(a, v, where, less is not None)
    if dtype is None:
        dtype = INDEX if out is None else as_view(out, f"{where}: out").dtype
        if dtype.kind not in "iu":
            raise TypeError(
                f"{where}: out has dtype {dtype}, and results are places; pass integers"
            )
    ways = plain_ways(descending, forms[0], less, where)
    num_leaves = 1 if forms[0] is None else len(forms[0].names)
    rest = ways, side == "right", dtype, num_leaves, forms
    num_arguments = 0 if less is None else 2
    problem = problem_of(Search, views, less, None, rest, where, num_arguments)
    if device_checks.are_on():
        in_order.check(a, views[0], "a", where, less, descending, stream)
    return problem, views
