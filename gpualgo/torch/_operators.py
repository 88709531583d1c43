"""Operators of custom ops: named by their contents, with the derivatives of what they compute.

A custom op takes tensors and numbers, but no functions, and PyTorch keeps compiled graphs on disk.
So an operator's name is a digest of its code, which means the same in each process.
"""

from __future__ import annotations

import hashlib
import math
import operator
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gpualgo._operators.captured import Resolved
from gpualgo._operators.key import resolve
from gpualgo._operators.operator import Operator as Compiled
from gpualgo._operators.operator import as_operator
from gpualgo._operators.tokens import digest_of


class Operator(NamedTuple):
    """An operator of a call; `vjp` has functions for its two partial derivatives."""

    fn: Any
    known: str | None  # the name of a recognised operator
    vjp: tuple[Callable[..., Any], Callable[..., Any]] | None
    where: str


_operators: dict[str, Operator] = {}  # by name; those that capture no values stay
_numbers = count()
_TWINS = {
    torch.add: np.add, torch.mul: np.multiply, torch.maximum: np.maximum,
    torch.minimum: np.minimum, torch.logaddexp: np.logaddexp,
}  # fmt: skip
_CONSTANT = (types.ModuleType, types.BuiltinFunctionType, np.ufunc, type)


def find(name: str) -> Operator:
    found = _operators.get(name)
    if found is None:
        raise RuntimeError(
            f"gpualgo.torch: this process does not know the operator {name} of a graph; pass it to "
            "gpualgo.torch.register before the graph runs"
        )
    return found


@contextmanager
def named(op: Any, vjp: Any, where: str, num_arguments: int = 2) -> Iterator[str]:
    """Yield the name of an operator in a call that is not compiled; its values may change."""
    parsed = _parsed(op, vjp, where, num_arguments)
    name = _name_of(parsed)
    if name is not None:
        _operators[name] = parsed
        yield name
        return
    with held(parsed) as name:
        yield name


@contextmanager
def held(parsed: Operator) -> Iterator[str]:
    """Yield the name of an operator that only this block knows."""
    name = f"call-{next(_numbers)}"
    _operators[name] = parsed
    try:
        yield name
    finally:
        del _operators[name]


def is_known(name: str) -> bool:
    return name in _operators


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def constant_name(op: Any, vjp: Any, where: str, num_arguments: int = 2) -> str:
    """Return the name of an operator in a call that is compiled."""
    parsed = _parsed(op, vjp, where, num_arguments)
    name = _name_of(parsed)
    if name is None:
        raise TypeError(
            f"{where}: op reads variables, which a compiled graph would keep as they are now; pass "
            "them as tensors, as in elements of several numbers, or call it outside torch.compile"
        )
    _operators[name] = parsed
    return name


def _parsed(op: Any, vjp: Any, where: str, num_arguments: int) -> Operator:
    fn = _TWINS.get(op, op) if isinstance(op, types.BuiltinFunctionType) else op
    compiled = as_operator(fn, where, num_arguments)
    if vjp is not None and not (
        isinstance(vjp, tuple) and len(vjp) == 2 and all(map(callable, vjp))
    ):
        raise TypeError(
            f"{where}: vjp must be a tuple of two functions, the derivatives of op by its first "
            f"and its second argument, got {type(vjp).__name__}"
        )
    known = "logaddexp" if compiled.fn is np.logaddexp else compiled.name
    if not is_closed(compiled.fn):  # gradients are computed later
        compiled = Compiled(
            frozen(compiled.fn), identity=compiled.identity, commutative=compiled.commutative
        )
    return Operator(
        compiled, known, None if vjp is None else (frozen(vjp[0]), frozen(vjp[1])), where
    )


def frozen(fn: Any) -> Any:
    """Return a function that reads variables as they are now."""
    if not isinstance(fn, types.FunctionType) or is_closed(fn):
        return fn
    names = {name: frozen(fn.__globals__[name]) for name in _names(fn.__code__)
             if name in fn.__globals__ and fn.__globals__[name] is not fn}  # fmt: skip
    cells = tuple([types.CellType(frozen(cell.cell_contents)) for cell in fn.__closure__ or ()])
    copy = types.FunctionType(fn.__code__, names, fn.__name__, fn.__defaults__, cells)
    copy.__kwdefaults__ = fn.__kwdefaults__
    return copy


def _name_of(parsed: Operator) -> str | None:
    """Return the digest of an operator's contents; None if it reads variables."""
    digest = hashlib.sha256()
    functions = (parsed.fn.fn, *(parsed.vjp or ()))
    for fn in functions:
        if not is_closed(fn):
            return None
        found: Resolved = resolve(fn)
        digest.update(digest_of(found.key).encode())
    return f"{getattr(functions[0], '__name__', 'op')}-{digest.hexdigest()[:24]}"


def is_closed(fn: Any) -> bool:
    """Return whether a function reads no variables but modules, built-ins and such functions."""
    if not isinstance(fn, types.FunctionType):
        return isinstance(fn, _CONSTANT)
    if fn.__defaults__ or fn.__kwdefaults__:
        return False
    values = [cell.cell_contents for cell in fn.__closure__ or ()]
    values += [fn.__globals__[n] for n in _names(fn.__code__) if n in fn.__globals__]
    return all(value is fn or is_closed(value) for value in values)


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


ADD = "add"
_operators[ADD] = Operator(as_operator(operator.add, "reduce", 2), "add", None, "reduce")


# --- Derivatives of an operator, elementwise: functions of the arguments, which are tensors.

# What an operator's function reads, for tensors.
_FOR_TENSORS = {np: torch, math: torch, max: torch.maximum, min: torch.minimum}


def partials(parsed: Operator, left: Sequence[Tensor], right: Sequence[Tensor]) -> Any:
    """Return the derivatives by the left and the right argument.

    Each is [i][k], of number i of the result by number k of the argument.
    """
    if parsed.vjp is not None:
        return tuple(_matrix(d(_element(left), _element(right)), left) for d in parsed.vjp)
    one = torch.ones_like(left[0])
    a, b = left[0], right[0]
    if parsed.known == "add":
        return ((one,),), ((one,),)
    if parsed.known == "multiply":
        return ((b,),), ((a,),)
    if parsed.known in ("maximum", "minimum"):
        is_left = (a >= b if parsed.known == "maximum" else a <= b).to(a.dtype)
        return ((is_left,),), ((1 - is_left,),)
    if parsed.known == "logaddexp":
        share = torch.where(a == b, one / 2, torch.sigmoid(a - b))  # of equal infinities, too
        return ((share,),), ((1 - share,),)
    return _derived(parsed, left, right)


def _element(tensors: Sequence[Tensor]) -> Any:
    return tensors[0] if len(tensors) == 1 else tuple(tensors)


def _matrix(found: Any, like: Sequence[Tensor]) -> Any:
    if isinstance(found, (tuple, list)):
        return [[torch.as_tensor(x).to(like[0]).expand_as(like[0]) for x in row] for row in found]
    return [[torch.as_tensor(found).to(like[0]).expand_as(like[0])]]


def _derived(parsed: Operator, left: Sequence[Tensor], right: Sequence[Tensor]) -> Any:
    """Return the derivatives of a Python function of arithmetic, by PyTorch's own."""
    if left[0].numel() == 1:  # a function may branch on, or convert, a tensor of one number
        pairs = [[each.reshape(1).expand(2) for each in side] for side in (left, right)]
        found = _derived(parsed, *pairs)
        return [[[x[:1].reshape_as(left[0]) for x in row] for row in side] for side in found]
    count = len(left)
    fn = for_tensors(parsed.fn.fn)

    def computed(*numbers: Tensor) -> tuple[Tensor, ...]:
        found = fn(_element(numbers[:count]), _element(numbers[count:]))
        results = found if isinstance(found, tuple) else (found,)
        return tuple([torch.as_tensor(each).to(left[0]).expand_as(left[0]) for each in results])

    try:
        results, pull = torch.func.vjp(computed, *left, *right)
        zeros = [torch.zeros_like(each) for each in results]
        rows = [
            pull((*zeros[:i], torch.ones_like(each), *zeros[i + 1 :]))
            for i, each in enumerate(results)
        ]
    except (TypeError, RuntimeError, AttributeError, ValueError) as error:
        raise TypeError(
            f"{parsed.where}: op has no gradient that PyTorch can derive ({error}); pass "
            "vjp=(left, right), functions of tensors for its two partial derivatives"
        ) from error
    return [row[:count] for row in rows], [row[count:] for row in rows]


def for_tensors(fn: Any) -> Any:
    """Return a function that computes with tensors what an operator computes with numbers."""
    if not isinstance(fn, types.FunctionType):
        return _FOR_TENSORS.get(fn, getattr(torch, getattr(fn, "__name__", ""), fn))
    names = {**fn.__globals__, "max": torch.maximum, "min": torch.minimum}
    for name, value in list(names.items()):
        if value is np or value is math:
            names[name] = torch
        elif value is not fn and name in fn.__code__.co_names and is_closed(value):
            names[name] = for_tensors(value)
    return types.FunctionType(fn.__code__, names, fn.__name__, fn.__defaults__, fn.__closure__)
