"""Arguments of calls by key: keys and values."""

from __future__ import annotations

import types
from itertools import combinations
from typing import Any, NamedTuple

from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import View, overlap
from gpualgo._base import records
from gpualgo._lazy import is_lazy
from gpualgo._lazy.sources import Source, tried
from gpualgo._operators.captured import check_no_overlap
from gpualgo._operators.operator import Operator, as_operator
from gpualgo._pipeline import checks, elements, inputs
from gpualgo._pipeline.problem import problem_of

Forms = tuple[Form | None, Form | None]
Classes = tuple[tuple[Form, ...], ...]
Input = tuple[tuple[View, ...], Any, Any, int, Classes]
"""Inputs, the operator, the form of (key, value) pairs, the number of key arrays, tuple classes."""


class ByKeyParams(NamedTuple):
    """The arguments apart from the arrays, op and init."""

    dtype: Any
    form: Form | Source  # of pairs of a key and a value
    num_keys: int  # number of key arrays, if nothing is computed
    classes_of: Classes  # of tuples in keys and in x, if something is computed
    has_eq: bool
    classes: Any


def parse_call(
    kind: Any, where: str, keys: Any, x: Any, init: Any, op: Any, eq: Any, dtype: Any, stream: Any,
    outs: Any = (),
) -> tuple[Any, tuple[View, ...], Any]:  # fmt: skip
    """Return the problem of runs of equal neighbouring keys, its views, and its operator."""
    keys, x = place_lazy_inputs(keys, x, outs, where)
    views, op, form, num_keys, classes = input_of(keys, x, op, eq, where, stream)
    params = ByKeyParams(dtype, form, num_keys, classes, eq is not None, elements.classes_of(dtype))
    problem = problem_of(kind, views, op, init, params, where)
    if problem.is_checked:
        tried(problem, x, op, init, stream)
    return problem, views, op


def place_lazy_inputs(keys: Any, x: Any, others: Any, where: str) -> tuple[Any, Any]:
    """Return keys and values; lazy ones that read no array are placed on the others' device."""
    if not (is_lazy(keys) or is_lazy(x)):
        return keys, x
    from gpualgo._lazy.combining import place_lazy

    keys, x = place_lazy((keys, x), others, where)
    return keys, x


def input_of(keys: Any, x: Any, op: Any, eq: Any, where: str, stream: Any) -> Input:
    """Return the views, operator and form of keys and values."""
    if eq is not None:
        op = _with_equality(op, eq, where)
    if is_lazy(keys) or is_lazy(x):
        if eq is None:
            return _computed(keys, x, op, where)
        from gpualgo._lazy.construction import made

        keys, x = (made(a, True, f"{where}: {n}", stream) for a, n in ((keys, "keys"), (x, "x")))
    try:
        views, (form, x_form) = arguments_of(keys, x, where)
    except inputs.NumberOnGPU:
        if eq is not None:
            raise
        return _computed(keys, x, op, where)
    num_keys = 1 if form is None else len(form.names)
    return views, op, Form(tuple, (form, x_form)), num_keys, ()


def arguments_of(keys: Any, x: Any, where: str) -> tuple[tuple[View, ...], Forms]:
    """Return the views of keys and values, and their forms."""
    of_keys, form = inputs.spread(keys, f"{where}: keys")
    of_x, x_form = inputs.spread(x, f"{where}: x")
    check_shapes(of_keys[0].shape, of_x[0].shape, where)
    check_count(len(of_keys) + len(of_x), where)
    return (*of_keys, *of_x), (form, x_form)


def check_shapes(keys: tuple[int, ...], x: tuple[int, ...], where: str) -> None:
    """Raise ValueError unless each value has a key."""
    if keys != x:
        raise ValueError(f"{where}: keys have shape {keys} and x {x}; pass a key for each element")


def check_count(count: int, where: str) -> None:
    """Raise TypeError if a key and a value have too many numbers together."""
    if count > records.MAX_FIELDS:
        raise TypeError(
            f"{where}: a key and an element of x have {count} numbers together, at most "
            f"{records.MAX_FIELDS} are possible"
        )


def _computed(keys: Any, x: Any, op: Any, where: str) -> Input:
    """Return the input of computed keys or values."""
    from gpualgo._lazy import combining
    from gpualgo._operators.operator import fuse

    lazy_parts = [combining.zipped(a, f"{where}: {n}") for a, n in ((keys, "keys"), (x, "x"))]
    check_shapes(lazy_parts[0].shape, lazy_parts[1].shape, where)
    lazy_pairs = combining.zipped((keys, x), f"{where}: keys and x")
    combining.check_count(lazy_pairs.leaves, records.MAX_FIELDS, f"{where}: keys and x read")
    joined = fuse(as_operator(op, where, 2), lazy_pairs.function)
    classes = (lazy_parts[0].forms, lazy_parts[1].forms)
    return lazy_pairs.views, joined, Source(lazy_pairs.forms), 0, classes


def _with_equality(op: Any, eq: Any, where: str) -> Operator:
    """Return op combined with the function that compares keys."""
    from gpualgo._operators.operator import fuse

    if isinstance(eq, Operator):
        eq = eq.fn
    if not callable(eq):
        raise TypeError(
            f"{where}: eq must be callable, got {type(eq).__name__}; "
            "pass a function such as lambda a, b: a == b"
        )
    try:
        as_operator(eq, where, 2)
    except TypeError as error:
        error.args = (str(error).replace(f"{where}: op ", f"{where}: eq ", 1),)
        raise
    if not isinstance(eq, types.FunctionType):
        builtin = eq
        eq = lambda a, b: builtin(a, b)  # noqa: E731
    return fuse(as_operator(op, where, 2), eq)


def check_outputs(
    problem: Any, views: tuple[View, ...], shape: tuple[int, ...], out: Any
) -> list[View]:
    """Raise unless `out` fits the results and overlaps no input; return its views."""
    where, form = problem.where, problem.x_form
    names = ["out"] if form is None else [f"out{path}" for path in form.places]
    outs = (out,) if form is None else inputs.outputs(problem, out)
    targets = [
        checks.output(array, views[0], shape, result.dtype, where, name)
        for array, result, name in zip(outs, problem.results, names, strict=True)
    ]
    for target, name in zip(targets, names, strict=True):
        for view, other in zip(views, problem.inputs, strict=True):
            if overlap(target, view):
                raise ValueError(f"{where}: {name} overlaps {other}; pass a separate array")
        check_no_overlap(problem.arrays, target, where, name, problem.op_name)
    for (name, target), (other, last) in combinations(zip(names, targets, strict=True), 2):
        if overlap(target, last):
            raise ValueError(f"{where}: {name} overlaps {other}; pass separate arrays")
    return targets
