"""Operators of custom ops: named by their contents, with the derivatives of what they compute.

A custom op takes tensors and numbers, but no functions, and PyTorch keeps compiled graphs on disk.
So an operator's name is a digest of its code, which means the same in each process.
"""

from __future__ import annotations

import builtins
import functools
import hashlib
import operator
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import count
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from gpualgo._api.derivatives import (
    Framework,
    functions_of,
    is_holomorphic,
    rebound,
    variables_of,
)
from gpualgo._operators.captured import Resolved
from gpualgo._operators.key import frozen, python_function, resolve
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
_SAME = (
    *("add", "multiply", "maximum", "minimum", "fmax", "fmin", "logaddexp", "logaddexp2", "hypot"),
    *("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"),
)
_TWINS = {getattr(torch, name): getattr(np, name) for name in _SAME} | {torch.mul: np.multiply}
_MAX, _MIN = max, min
_CONSTANT = (types.ModuleType, types.BuiltinFunctionType, np.ufunc, type)
_MODULES = ("builtins", "cmath", "math", "numpy", "operator", "torch")  # that nobody changes


def find(name: str) -> Operator:
    found = _operators.get(name)
    if found is None:
        raise RuntimeError(
            f"gpualgo.torch: this process does not know the operator {name} of a graph; pass it to "
            "gpualgo.torch.register before the graph runs"
        )
    return found


def named(op: Any, vjp: Any, where: str, num_arguments: int = 2) -> Any:
    """Return a context: the name of an operator in a call that is not compiled."""
    parsed = _parsed(op, vjp, where, num_arguments)
    name = _name_of(parsed)
    if name is None:  # values of its variables may change
        return held(parsed)
    _operators[name] = parsed
    return nullcontext(name)


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
def constant_name(
    op: Any, vjp: Any, where: str, num_arguments: int = 2, **facts: Any
) -> str:  # fmt: skip
    """Return the name of an operator in a call that is compiled; `facts` are of its `Operator`."""
    op = Compiled(op, **facts) if facts else op
    with patch.multiple(builtins, max=_MAX, min=_MIN):  # torch.export puts its own ones there
        parsed = _parsed(op, vjp, where, num_arguments)
        name = _name_of(parsed)
    if name is None:
        advice = "pass them as tensors, as in elements of several numbers"
        if where == "select":
            advice = "pass a tensor of bool, as in select(x, x > limit)"
        raise TypeError(
            f"{where}: op reads variables, which a compiled graph would keep as they are now; "
            f"{advice}, or call it outside torch.compile"
        )
    _operators[name] = parsed
    return name


def _parsed(op: Any, vjp: Any, where: str, num_arguments: int) -> Operator:
    if isinstance(op, functools.partial):  # torch.export's own max and min
        op = op.keywords.get("real_callable", op)
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
    known = known if vjp is None else None
    if not is_closed(compiled.fn) or len(functions_of(compiled.fn, [])) > 1:  # gradients run later
        compiled = Compiled(
            frozen(compiled.fn), identity=compiled.identity, commutative=compiled.commutative
        )
    if vjp is not None:
        vjp = tuple([d if is_closed(d) else rebound(d, _as_now, {}) for d in vjp])
    return Operator(compiled, known, vjp, where)


def _as_now(value: Any) -> Any:
    """Return what a derivative reads; a module as its variables are now."""
    if isinstance(value, types.ModuleType) and not _is_constant(value):
        return types.SimpleNamespace(**vars(value))
    return value


def _name_of(parsed: Operator) -> str | None:
    """Return the digest of an operator's contents; None if it reads variables."""
    digest = hashlib.sha256(f"{parsed.fn.identity!r} {parsed.fn.commutative}".encode())
    functions = (parsed.fn.fn, *(parsed.vjp or ()))
    for fn in functions:
        if not is_closed(fn):
            return None
        found: Resolved = resolve(fn)
        digest.update(digest_of(found.key).encode())
    return f"{getattr(functions[0], '__name__', 'op')}-{digest.hexdigest()[:24]}"


def is_closed(fn: Any) -> bool:
    """Return whether a function reads no variables but global modules, built-ins and functions.

    torch.compile does not notice that a closure of equal code has other variables.
    """
    functions = functions_of(fn, [])
    return all(
        not (each.__defaults__ or each.__kwdefaults__ or each.__closure__)
        and all(_is_constant(v) or python_function(v) for _, v in variables_of(each))
        for each in functions
    ) and (bool(functions) or isinstance(fn, _CONSTANT))


def _is_constant(value: Any) -> bool:
    if isinstance(value, types.ModuleType):
        return value.__name__.partition(".")[0] in _MODULES
    return isinstance(value, _CONSTANT)


ADD = "add"
_operators[ADD] = Operator(as_operator(operator.add, "reduce", 2), "add", None, "reduce")


# --- Derivatives of an operator, elementwise: functions of the arguments, which are tensors.


def _is_inexact(x: Tensor) -> bool:
    return bool(x.is_floating_point() or x.is_complex())


def _tensors(xs: Sequence[Any]) -> list[Tensor]:
    """Return tensors and numbers as tensors; the numbers do not determine a result's dtype."""
    are_inexact = any(isinstance(x, Tensor) and _is_inexact(x) for x in xs)
    kinds = {float: torch.float64, complex: torch.complex128}
    if are_inexact:  # PyTorch computes with integers in float32
        xs = [float(x) if type(x) is int else x for x in xs]
    return [x if isinstance(x, Tensor) else torch.tensor(x, dtype=kinds.get(type(x))) for x in xs]


_NAMES = {
    "equal": "eq", "absolute": "abs", "fabs": "abs", "conjugate": "conj", "power": "pow",
    "invert": "bitwise_not",
    "rint": "round", "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift",
    "max": "maximum", "min": "minimum",
}  # fmt: skip


class _Torch:
    """PyTorch's functions by the names of computations, of tensors and numbers."""

    def __getattr__(self, does: str) -> Any:
        if does.startswith("whole_"):  # a kernel's result is an int64
            return lambda x: getattr(torch, does.removeprefix("whole_"))(x.to(torch.float64))
        found = getattr(torch, _NAMES.get(does, does))
        if does in ("max", "min"):
            return lambda *xs: functools.reduce(found, _tensors(xs))
        return lambda *xs: found(*_tensors(xs))

    @staticmethod
    def cbrt(x: Tensor) -> Tensor:
        return x.sign() * x.abs() ** (1 / 3)

    @staticmethod
    def floor_divide(*xs: Any) -> Tensor:
        return torch.floor_divide(*[x.detach() for x in _tensors(xs)])  # its derivative is zero

    @staticmethod
    def heaviside(*xs: Any) -> Tensor:
        x, at_zero = _tensors(xs)
        return torch.where(x == 0, at_zero, torch.where(x.isnan(), x, (x > 0).to(x)))

    @staticmethod
    def round(x: Tensor, digits: int = 0) -> Tensor:
        return torch.round(x, decimals=digits)

    @staticmethod
    def logaddexp(*xs: Any) -> Tensor:
        """`torch.logaddexp` with derivatives of equal infinities too, as of masked numbers."""
        a, b = _tensors(xs)
        is_same = (a == b) & a.isinf()
        both = [torch.where(is_same, 0, x) for x in (a, b)]
        return torch.where(is_same, a / 2 + b / 2, torch.logaddexp(both[0], both[1]))


_torch = Framework(Tensor, _Torch())


class _AsNumbers(TorchFunctionMode):
    """Within it tensors are like numbers: `x += y` makes a new one, and integers have any size."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # fmt: skip
        if any(type(x) is int and abs(x) >= 1 << 63 for x in args):
            args = [float(x) if type(x) is int else x for x in args]
        name = getattr(func, "__name__", "")
        if name in ("__floordiv__", "__ifloordiv__", "__rfloordiv__", "floor_divide_"):
            return _Torch.floor_divide(*(args[::-1] if name == "__rfloordiv__" else args))
        if name.endswith("_") and not name.endswith("__"):  # as mul_ of `*=`
            func = getattr(Tensor, name[:-1])
        elif name.startswith("__i") and hasattr(Tensor, plain := f"__{name[3:]}"):  # as __iand__
            func = getattr(Tensor, plain)
        found = func(*args, **(kwargs or {}))
        if isinstance(found, Tensor) and _is_inexact(found) and name != "to":
            given = [x for x in args if isinstance(x, Tensor)]
            if given and not any(map(_is_inexact, given)):  # PyTorch computes it in float32
                args = [x.to(torch.float64) if isinstance(x, Tensor) else x for x in args]
                return func(*args, **(kwargs or {}))
        return found


def partials(parsed: Operator, left: Sequence[Tensor], right: Sequence[Tensor]) -> Any:
    """Return the derivatives by the left and the right argument.

    Each is [i][k], of number i of the result by number k of the argument.
    """
    if parsed.vjp is not None:
        return tuple(
            _matrix(d(element(left), element(right)), left, parsed.where) for d in parsed.vjp
        )
    one = torch.ones_like(left[0])
    a, b = left[0], right[0]
    if parsed.known == "add":
        return ((one,),), ((one,),)
    if parsed.known == "multiply":
        return ((b,),), ((a,),)
    if parsed.known in ("maximum", "minimum"):
        is_left = ((a >= b if parsed.known == "maximum" else a <= b) | a.isnan()).to(a.dtype)
        return ((is_left,),), ((1 - is_left,),)
    if parsed.known == "logaddexp":
        share = torch.sigmoid(torch.where((a == b) & a.isinf(), 0, a - b))
        return ((share,),), ((1 - share,),)
    return _derived(parsed, left, right)


def element(tensors: Sequence[Tensor]) -> Any:
    return tensors[0] if len(tensors) == 1 else tuple(tensors)


def dtype_of(tensors: Sequence[Tensor]) -> torch.dtype:
    """Return the dtype of an element's gradients."""
    return functools.reduce(torch.promote_types, [x.dtype for x in tensors])


def _matrix(found: Any, like: Sequence[Tensor], where: str) -> Any:
    """Return what a function of `vjp` has returned as rows of tensors."""
    rows = found if isinstance(found, (tuple, list)) else [[found]]
    size = len(like)
    try:
        matrix = [
            [torch.as_tensor(x).to(like[0].device, dtype_of(like)).expand_as(like[0]) for x in row]
            for row in rows
        ]
    except (TypeError, RuntimeError) as error:
        raise TypeError(f"{where}: vjp returns what is no derivative ({error})") from error
    if len(matrix) != size or any(len(row) != size for row in matrix):
        raise TypeError(f"{where}: vjp must return {size} rows of {size} for elements of {size}")
    return matrix


def _derived(parsed: Operator, left: Sequence[Tensor], right: Sequence[Tensor]) -> Any:
    """Return the derivatives of a Python function of arithmetic, by PyTorch's own."""
    if left[0].numel() == 1:  # a function may branch on, or convert, a tensor of one number
        pairs = [[each.reshape(1).expand(2) for each in side] for side in (left, right)]
        found = _derived(parsed, *pairs)
        return [[[x[:1].reshape_as(left[0]) for x in row] for row in side] for side in found]
    count, dtype, device = len(left), dtype_of(left), left[0].device
    # Integers keep their dtype, and have no derivatives.
    given = [x.to(dtype) if _is_inexact(x) else x for x in (*left, *right)]
    wanted = [i for i, x in enumerate(given) if _is_inexact(x)]
    fn = _torch.of(parsed.fn.fn)
    if dtype.is_complex and not is_holomorphic(parsed.fn.fn):
        raise TypeError(f"{parsed.where}: op has no gradient, as it is no holomorphic function")

    def computed(*numbers: Tensor) -> tuple[Tensor, ...]:
        xs = list(given)
        for i, x in zip(wanted, numbers, strict=True):
            xs[i] = x
        with _AsNumbers():
            found = fn(element(xs[:count]), element(xs[count:]))
        results = found if isinstance(found, tuple) else (found,)
        of_dtype = [torch.as_tensor(each).to(device, dtype) for each in results]
        return tuple([each.expand_as(left[0]) for each in of_dtype])

    try:
        results, pull = torch.func.vjp(computed, *[given[i] for i in wanted])
        zeros = [torch.zeros_like(each) for each in results]
        rows = []
        for i, each in enumerate(results):
            row = [torch.zeros_like(x, dtype=dtype) for x in given]
            found = pull((*zeros[:i], torch.ones_like(each), *zeros[i + 1 :]))
            for k, derivative in zip(wanted, found, strict=True):
                row[k] = derivative
            rows.append(row)
    except (TypeError, RuntimeError, AttributeError, ValueError, ArithmeticError) as error:
        raise TypeError(
            f"{parsed.where}: op has no gradient that PyTorch can derive ({error}); pass "
            "vjp=(left, right), functions of tensors for its two partial derivatives"
        ) from error
    return [row[:count] for row in rows], [row[count:] for row in rows]
