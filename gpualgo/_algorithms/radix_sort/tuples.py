"""Calls of `radix_sort` and `argsort` whose keys or values are tuples of arrays."""

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
    """Return the problem and views of function `where`; with an index dtype, of an argsort."""
    views, arg_forms = arguments_of((keys,) if values is None else (keys, values), where)
    ways = ways_of(descending, arg_forms[0], where)
    begin_bit, end_bit = bits
    begin_bit = checks.integer(begin_bit, "begin_bit", where)
    if end_bit is not None:
        end_bit = checks.integer(end_bit, "end_bit", where)
    if arg_forms[0] is not None and (begin_bit, end_bit) != (0, None):
        raise TypeError(
            f"{where}: begin_bit and end_bit have no meaning for keys of several numbers; "
            "leave them out, and shift or mask the numbers instead"
        )
    params = (ways, begin_bit, end_bit, checks.plain_axis(axis, where), index_dtype, arg_forms)
    return problem_of(TupleSort, views, None, None, params, where, 0), views


def ways_of(descending: Any, form: Form | None, where: str) -> tuple[bool, ...]:
    """Return for each field of a key whether it is sorted in descending order."""
    if form is None:
        return (checks.flag(descending, "descending", where),)
    if isinstance(descending, (bool, np.bool_)):
        return (bool(descending),) * len(form.names)
    flags = forms.parts_of(descending, form) if isinstance(descending, tuple) else None
    if flags is None or not all(isinstance(flag, (bool, np.bool_)) for flag in flags):
        raise TypeError(
            f"{where}: descending must be a bool, or a tuple of bools with the structure of "
            f"keys: {', '.join(inputs.names((), form, 'keys'))}; got {descending!r}"
        )
    return tuple(map(bool, flags))
