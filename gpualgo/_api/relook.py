"""Requests that each call of a plan creates anew: for lazy arrays and for changing operators."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from gpualgo._api.describe import describe
from gpualgo._driver import default_device
from gpualgo._lazy import is_lazy
from gpualgo._operators.captured import is_array
from gpualgo._operators.operator import Operator, as_operator
from gpualgo._pipeline.problem import Problem, Request

# Parameters that are input arrays.
_INPUTS = (
    "x", "keys", "values", "arrays", "weights", "predicate", "a", "b", "a_values", "b_values",
    "offsets", "indices",
)  # fmt: skip
Relook = Callable[[tuple[Any, ...]], Request]


def request_factory(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], problem: Problem
) -> Relook | None:
    """Return a function that creates the request for other arrays; None if no argument is lazy."""
    named = dict(zip(_positions(function), args, strict=False))
    inputs = (*_INPUTS, "init") if problem.has_row_init else _INPUTS
    slots = [slot for slot, x in named.items() if slot[1] in inputs and _is_data(x)]
    keywords = [name for name in inputs if _is_data(kwargs.get(name))]
    are_lazy = map(is_lazy, (*(named[slot] for slot in slots), *map(kwargs.get, keywords)))
    if not (problem.composes_operator or any(are_lazy)):
        return None
    count = len(slots) + len(keywords)

    def relook(arrays: tuple[Any, ...]) -> Request:
        if len(arrays) != count:
            raise TypeError(f"{problem.where}: the plan takes {count} array(s), got {len(arrays)}")
        new_args = list(args)
        for (i, _), x in zip(slots, arrays, strict=False):
            new_args[i] = x
        new_kwargs = dict(zip(keywords, arrays[len(slots) :], strict=True))
        if not problem.views_on_host:
            return describe("prepare", function, tuple(new_args), {**kwargs, **new_kwargs})
        with default_device.fixed(problem.device, "the plan was prepared for this device"):
            return describe("prepare", function, tuple(new_args), {**kwargs, **new_kwargs})

    return relook


def _positions(function: Callable[..., Any]) -> Iterator[tuple[int, str]]:
    """Yield the position and the parameter name of each positional argument."""
    count = itertools.count()
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            yield from zip(count, itertools.repeat(name), strict=False)
        elif parameter.kind is not parameter.KEYWORD_ONLY:
            yield next(count), name


def _is_data(x: Any) -> bool:
    """Return whether an argument is an array, lazy or not, or a tuple that contains one."""
    if isinstance(x, tuple):
        return any(map(_is_data, x))
    return is_lazy(x) or is_array(x)


def changeable(op: Any, problem: Problem) -> Any:
    """Return the function whose captured values may change between calls; None if they cannot."""
    if op is None:
        return None
    operator: Operator = as_operator(op, problem.where, problem.num_arguments)
    return None if operator.name is not None else operator.fn
