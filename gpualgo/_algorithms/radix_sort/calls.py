"""Sorts by value, as `radix_sort` and `sort` call them: arguments as they come."""

from __future__ import annotations

from typing import Any

from gpualgo._algorithms.radix_sort.problem import Sort
from gpualgo._arrays.view import View, view_of
from gpualgo._lazy import is_lazy
from gpualgo._pipeline import checks
from gpualgo._pipeline.problem import problem_of
from gpualgo._pipeline.run import run


def sort_as(
    where: str, keys: Any, values: Any, descending: Any, bits: tuple[Any, Any], axis: Any,
    out: Any, stream: Any,
) -> Any:  # fmt: skip
    """Sort keys by value, and values along, for the public function of that name."""
    if is_lazy(keys) or is_lazy(values):
        keys, values, out = made_real(keys, values, axis, out, stream, where)
    views: tuple[View, ...] = ()
    if not (isinstance(keys, tuple) or isinstance(values, tuple)):
        views = (view_of(keys, f"{where}: keys"),)
    if not views or views[0].dtype.names is not None:
        return sort_tuples(where, keys, values, descending, bits, axis, None, out, stream)
    if values is not None:
        views = (*views, view_of(values, f"{where}: values"))
    if descending is not False:
        descending = checks.flag(descending, "descending", where)
    begin_bit, end_bit = bits
    if type(begin_bit) is not int:
        begin_bit = checks.integer(begin_bit, "begin_bit", where)
    if end_bit is not None and type(end_bit) is not int:
        end_bit = checks.integer(end_bit, "end_bit", where)
    if type(axis) is not int:
        axis = checks.plain_axis(axis, where)
    rest = (descending, begin_bit, end_bit, axis, None)
    problem = problem_of(Sort, views, None, None, rest, where, 0)
    return run(problem, views, None, None, out, stream)


def made_real(
    keys: Any, values: Any, axis: Any, out: Any, stream: Any, where: str
) -> tuple[Any, Any, Any]:
    """Return keys, values and out once lazy ones are computed: new arrays are sorted in place."""
    from gpualgo._lazy.real import made

    are_lazy = is_lazy(keys) and (values is None or is_lazy(values))
    is_flat = axis is None and are_lazy
    keys = made(keys, is_flat, f"{where}: keys", stream)
    values = made(values, is_flat, f"{where}: values", stream)
    if out is None and are_lazy:
        out = keys if values is None else (keys, values)
    return keys, values, out


def sort_tuples(where: str, *arguments: Any) -> Any:
    """Sort where keys or values are several arrays; what does so is loaded when it first comes."""
    from gpualgo._algorithms.radix_sort import tuples

    return tuples.sort(where, *arguments)
