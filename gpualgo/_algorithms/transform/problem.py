"""Checked arguments of a transformation: the broadcast shape and the dtype that op returns."""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gpualgo._arrays.forms import Form, form_of
from gpualgo._arrays.view import View
from gpualgo._base import dtypes, records
from gpualgo._base.errors import shown
from gpualgo._base.memo import Memo
from gpualgo._base.records import Separate
from gpualgo._base.strides import order_of
from gpualgo._operators.key import python_function
from gpualgo._operators.operator import as_operator
from gpualgo._pipeline import checks, inputs, outputs
from gpualgo._pipeline.problem import Call, Problem, Result

# --- Argument table of the transformation kernel on the CPU, and sizes.

CHUNK = 2048  # elements of each array that are buffered in L1 at once

# Modes of an operand: dense, dense rows, or else the address of the function that packs it.
DENSE, ROWS = 0, 1

# The argument table: numbers of elements, of elements at once and in a row, of dimensions; then for
# out and each array a record of address, item size and mode; then lengths; then strides.
COUNT, STEP, ROW, NDIM, HEAD = range(5)
START, SIZE, MODE, RECORD = range(4)


MAX_ARRAYS = 16  # in all arguments together


class Transformation(Problem):
    shape_attributes = "shape", "results"
    takes_any_ndim = True

    def __init__(self, call: Call) -> None:
        device, views, op, params, where = call.device, call.views, call.op, call.params, call.where
        dtype, self.forms, _, lazy_forms = params  # forms of the tuples inside lazy arguments
        forms, self.inputs = self.forms, _names(self.forms)
        super().__init__(call)
        if len(views) > MAX_ARRAYS:
            raise TypeError(
                f"{where}: the arguments hold {len(views)} arrays, at most {MAX_ARRAYS} are allowed"
            )
        checks.same_place(list(views), where)
        for view, name in zip(views, self.inputs, strict=True):
            checks.element(view, name, where)
        self.shape = inputs.broadcast([view.shape for view in views], where)
        self.arguments = _arguments(views, forms)
        self.reads = tuple(view.dtype for view in views)
        for argument in self.arguments:
            dtype_of_argument = argument.dtype if isinstance(argument, Separate) else argument
            checks.check_operator(op, dtype_of_argument, where)
        self.result = outputs.dtype_of(op, self.arguments, dtype, device, where)
        if records.is_record(self.result):
            self.form = form_of(self.result.names or (), (*forms, *lazy_forms))
        all_inputs = tuple(range(len(views)))
        layouts = [view.strides for view in views if view.shape == self.shape]
        order = order_of(self.shape, layouts)
        self.results = tuple(
            Result(self.shape, field, all_inputs, order)
            for field in records.field_dtypes(self.result)
        )


def _names(forms: tuple[Form | None, ...]) -> list[str]:
    names: list[str] = []
    for i, form in enumerate(forms, 1):
        paths = ("",) if form is None else tuple(f"[{path}]" for path in form.names)
        names += [f"argument {i}{path}" for path in paths]
    return names


def _arguments(
    views: tuple[View, ...], forms: tuple[Form | None, ...]
) -> tuple[records.Argument, ...]:
    """Return op's arguments: numbers, and tuples whose fields are separate arrays."""
    nums = iter(records.operand_dtype(view.dtype) for view in views)
    return tuple(
        next(nums) if form is None else Separate(records.record(names, [next(nums) for _ in names]))
        for form, names in ((form, () if form is None else form.names) for form in forms)
    )


# --- Scalar arguments of a transformation: binds them to its operator.

NUMBERS = frozenset(
    (bool, int, float, complex, *(np.dtype(n).type for n in dtypes.NAMES if n != "bfloat16"))
)
"""Types of all numbers but bfloat16's, which NumPy lacks."""


def is_scalar(x: Any) -> bool:
    return type(x) in NUMBERS or isinstance(x, np.generic)


class _Template(NamedTuple):
    """Binds numbers to the operators of one code object.

    Each code object needs its own template, as facts learnt about its numbers hold for it only.
    """

    # the operator's code, kept alive because the memo's key is its id; or the operator itself
    source: Any
    bind: Callable[..., types.FunctionType]
    code: types.CodeType


_templates: Memo[_Template] = Memo(1 << 10)


def bind(op: Any, arguments: tuple[Any, ...], where: str) -> tuple[Any, tuple[Any, ...]]:
    """Return an operator of the arrays alone, which captures the numbers, and the arrays."""
    pattern = tuple(map(is_scalar, arguments))
    template = None
    if type(op) is types.FunctionType and op.__defaults__ is None:
        template = _templates.look((id(op.__code__), pattern))
    if template is None:
        op = as_operator(op, where, len(arguments)).fn
        for i, number in enumerate(arguments, 1):
            if isinstance(number, np.generic):
                dtypes.check(number.dtype, f"{where}: argument {i}")
        if all(pattern):
            shown = ", ".join(map(repr, arguments))
            raise TypeError(
                f"{where}: all arguments are numbers ({shown}); pass at least one array"
            )
        template = _template_of(op, pattern)
    numbers: list[Any] = [op]
    arrays: list[Any] = []
    for argument, is_number in zip(arguments, pattern, strict=True):
        (numbers if is_number else arrays).append(argument)
    bound = template.bind(*numbers)
    bound.__code__ = template.code
    return bound, tuple(arrays)


def _template_of(fn: Any, pattern: tuple[bool, ...]) -> _Template:
    function = python_function(fn)
    source: Any = fn if function is None else function.__code__

    def make() -> _Template:
        location: dict[str, Any] = {"co_filename": shown(fn)}
        if function is not None:  # errors then name this function's line
            location = {"co_filename": source.co_filename, "co_firstlineno": source.co_firstlineno}
        bind = _binder(pattern)
        code = bind(fn, *pattern[: sum(pattern)]).__code__
        return _Template(source, bind, code.replace(**location))

    return _templates.made((id(source), pattern), make)


@cache
def _binder(pattern: tuple[bool, ...]) -> Callable[..., types.FunctionType]:
    """Return f(fn, *numbers), which returns a function of the array elements that calls fn."""
    names = [f"{'s' if is_number else 'a'}{i}" for i, is_number in enumerate(pattern)]
    numbers = [name for name in names if name[0] == "s"]
    arrays = [name for name in names if name[0] == "a"]
    outer, inner, call = (", ".join(parts) for parts in (["fn", *numbers], arrays, names))
    binder: Callable[..., types.FunctionType] = eval(f"lambda {outer}: lambda {inner}: fn({call})")
    return binder
