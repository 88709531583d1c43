"""Calls of `radix_sort` and `argsort` whose keys or values are several arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._algorithms.radix_sort.tuple_problem import TupleSort, arguments_of
from gpualgo._arrays import forms
from gpualgo._arrays.forms import Form
from gpualgo._pipeline import checks, inputs
from gpualgo._pipeline.inputs import Views
from gpualgo._pipeline.problem import Problem, problem_of


def problem_and_views(
    where: str, keys: Any, values: Any, descending: Any, bits: tuple[Any, Any], axis: Any,
    index_dtype: Any,
) -> tuple[Problem, Views]:  # fmt: skip
    """Return the problem of the function called `where`; with an index dtype that of the order."""
    views, found = arguments_of((keys,) if values is None else (keys, values), where)
    ways = ways_of(descending, found[0], where)
    begin_bit, end_bit = bits
    begin_bit = checks.integer(begin_bit, "begin_bit", where)
    if end_bit is not None:
        end_bit = checks.integer(end_bit, "end_bit", where)
    if found[0] is not None and (begin_bit, end_bit) != (0, None):
        raise TypeError(
            f"{where}: begin_bit and end_bit have no meaning for keys of several numbers; "
            "leave them out, and shift or mask the numbers instead"
        )
    rest = (ways, begin_bit, end_bit, checks.plain_axis(axis, where), index_dtype, found)
    return problem_of(TupleSort, views, None, None, rest, where, 0), views


def ways_of(descending: Any, form: Form | None, where: str) -> tuple[bool, ...]:
    """Return for each number of a key whether the largest come first."""
    if form is None:
        return (checks.flag(descending, "descending", where),)
    if isinstance(descending, (bool, np.bool_)):
        return (bool(descending),) * len(form.names)
    found = forms.parts_of(descending, form) if isinstance(descending, tuple) else None
    if found is None or not all(isinstance(way, (bool, np.bool_)) for way in found):
        raise TypeError(
            f"{where}: descending must be True or False, or a tuple of these as keys is built, "
            f"for {', '.join(inputs.names((), form, 'keys'))}; got {descending!r}"
        )
    return tuple(map(bool, found))
