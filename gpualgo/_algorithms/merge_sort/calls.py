"""Calls of `merge_sort` and `merge`: argument checks, then the problem."""

from __future__ import annotations

from typing import Any

from gpualgo._algorithms.merge_sort import problem as in_order
from gpualgo._algorithms.merge_sort import problem as merging
from gpualgo._algorithms.merge_sort import problem as sorting
from gpualgo._algorithms.merge_sort.comparison import descending_of
from gpualgo._algorithms.radix_sort import materialize
from gpualgo._lazy import is_lazy
from gpualgo._pipeline import checks, device_checks
from gpualgo._pipeline.inputs import Views
from gpualgo._pipeline.problem import Problem, problem_of


def sort_spec(
    where: str, keys: Any, values: Any, less: Any, descending: Any, axis: Any, out: Any,
    stream: Any,
) -> tuple[Problem, Views, Any]:  # fmt: skip
    """Return the problem of a comparison sort, its views, and out."""
    if is_lazy(keys) or is_lazy(values):
        keys, values, out = materialize(keys, values, axis, out, stream, where)
    arguments = (keys,) if values is None else (keys, values)
    views, forms = sorting.arguments_of(arguments, where, less is not None)
    ways = descending_of(descending, forms[0], less, where)
    num_keys = 1 if forms[0] is None else len(forms[0].names)
    params = ways, checks.plain_axis(axis, where), num_keys, forms
    num_arguments = 0 if less is None else 2
    kind = sorting.MergeSort
    return problem_of(kind, views, less, None, params, where, num_arguments), views, out


def merge_problem(
    a: Any, b: Any, a_values: Any, b_values: Any, less: Any, descending: Any, out: Any, stream: Any
) -> tuple[Problem, Views]:
    where, arguments = "merge", [a, b]
    if (a_values is None) != (b_values is None):
        missing, present = ("a", "b") if a_values is None else ("b", "a")
        raise TypeError(
            f"{where}: {missing}_values is missing where {present}_values is given; pass both"
        )
    if a_values is not None:
        arguments += [a_values, b_values]
    if any(map(is_lazy, arguments)):
        from gpualgo._lazy.combining import place_lazy
        from gpualgo._lazy.construction import made

        arguments = list(place_lazy(arguments, (out,), where))
        names = ("a", "b", "a_values", "b_values")
        arguments = [
            made(x, False, f"{where}: {name}", stream)
            for x, name in zip(arguments, names, strict=False)
        ]
    views, forms = merging.merge_arguments(tuple(arguments), where, less is not None)
    ways = descending_of(descending, forms[0], less, where)
    num_keys = 1 if forms[0] is None else len(forms[0].names)
    params = ways, num_keys, forms
    num_arguments = 0 if less is None else 2
    problem = problem_of(merging.Merge, views, less, None, params, where, num_arguments)
    if device_checks.are_on():
        for x, name, first in zip(arguments, ("a", "b"), (0, num_keys), strict=False):
            in_order.check(x, views[first], name, where, less, descending, stream)
    return problem, views
