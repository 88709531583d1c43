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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any
from unittest.mock import patch
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from gpualgo._api.derivatives import (
    Framework,
    both_of,
    functions_of,
    given_of,
    rebound,
    variables_of,
)
from gpualgo._operators.captured import Resolved
from gpualgo._operators.key import frozen, python_function, resolve
from gpualgo._operators.operator import Operator as Compiled
from gpualgo._operators.operator import as_operator
from gpualgo._operators.tokens import digest_of


@dataclass(frozen=True, eq=False)
class Operator:
    """An operator of a call; `vjp(a, b)` returns its two partial derivatives, if they are given.

    It is found by its name for as long as a call or the graph of a gradient has it.
    """

    name: str
    fn: Compiled
    known: str | None  # the name of a recognised operator
    vjp: Callable[..., Any] | None
    where: str


_operators: WeakValueDictionary[str, Operator] = WeakValueDictionary()  # by name
_constant: dict[str, Operator] = {}  # those that read no variables, which stay
_numbers = count()
_SAME = (
    *("add", "multiply", "maximum", "minimum", "fmax", "fmin", "logaddexp", "logaddexp2", "hypot"),
    *("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"),
)
_TWINS = {getattr(torch, name): getattr(np, name) for name in _SAME} | {torch.mul: np.multiply}
_MAX, _MIN = max, min
_NEVER_CHANGED = (types.ModuleType, types.BuiltinFunctionType, np.ufunc, type)
_MODULES = ("builtins", "cmath", "math", "numpy", "operator", "torch")  # that nobody changes


def find(name: str) -> Operator:
    found = _operators.get(name)
    if found is None:
        raise RuntimeError(
            f"gpualgo.torch: this process does not know the operator {name} of a graph; pass it to "
            "gpualgo.torch.register before the graph runs"
        )
    return found


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def constant_name(
    op: Any, vjp: Any, where: str, num_arguments: int = 2, **facts: Any
) -> str:  # fmt: skip
    """Return the name of an operator in a call that is compiled; `facts` are of its `Operator`."""
    op = Compiled(op, **facts) if facts else op
    with patch.multiple(builtins, max=_MAX, min=_MIN):  # torch.export puts its own ones there
        name = parsed(op, vjp, where, num_arguments).name
    if name in _constant:
        return name
    advice = "pass them as tensors, as in elements of several numbers"
    if where == "select":
        advice = "pass a tensor of bool, as in select(x, x > limit)"
    raise TypeError(
        f"{where}: op reads variables, which a compiled graph would keep as they are now; "
        f"{advice}, or call it outside torch.compile"
    )


def parsed(op: Any, vjp: Any, where: str, num_arguments: int = 2) -> Operator:
    """Return the operator of a call; one that reads variables has a name of its own each time."""
    if isinstance(op, functools.partial):  # torch.export's own max and min
        op = op.keywords.get("real_callable", op)
    fn = _TWINS.get(op, op) if isinstance(op, types.BuiltinFunctionType) else op
    compiled = as_operator(fn, where, num_arguments)
    vjp = given_of(vjp, where, lambda d: d if is_closed(d) else rebound(d, _as_now, {}))
    known = "logaddexp" if compiled.fn is np.logaddexp else compiled.name
    known = known if vjp is None else None
    if not is_closed(compiled.fn) or len(functions_of(compiled.fn, [])) > 1:  # gradients run later
        compiled = Compiled(
            frozen(compiled.fn), identity=compiled.identity, commutative=compiled.commutative
        )
    digest = digest_name(compiled, vjp)
    both = _KNOWN.get(known) if vjp is None else both_of(vjp)
    found = Operator(digest or f"call-{next(_numbers)}", compiled, known, both, where)
    _operators[found.name] = found
    if digest is not None:
        _constant[digest] = found
    return found


def _as_now(value: Any) -> Any:
    """Return what a derivative reads; a module as its variables are now."""
    if isinstance(value, types.ModuleType) and not _is_constant(value):
        return types.SimpleNamespace(**vars(value))
    return value


def digest_name(compiled: Compiled, vjp: Any) -> str | None:
    """Return a name made of an operator's contents; None if it reads variables."""
    digest = hashlib.sha256(f"{compiled.identity!r} {compiled.commutative}".encode())
    for fn in (compiled.fn, *(vjp or ())):
        if not is_closed(fn):
            return None
        found: Resolved = resolve(fn)
        digest.update(digest_of(found.key).encode())
    return f"{getattr(compiled.fn, '__name__', 'op')}-{digest.hexdigest()[:24]}"


def is_closed(fn: Any) -> bool:
    """Return whether a function reads no variables but global modules, built-ins and functions.

    torch.compile does not notice that a closure of equal code has other variables.
    """
    functions = functions_of(fn, [])
    return all(
        not (each.__defaults__ or each.__kwdefaults__ or each.__closure__)
        and all(_is_constant(v) or python_function(v) for _, v in variables_of(each))
        for each in functions
    ) and (bool(functions) or isinstance(fn, _NEVER_CHANGED))


def _is_constant(value: Any) -> bool:
    if isinstance(value, types.ModuleType):
        return value.__name__.partition(".")[0] in _MODULES
    return isinstance(value, _NEVER_CHANGED)


# --- Derivatives of an operator, elementwise: functions of the arguments, which are tensors.


def _of_extreme(is_left: Any) -> Any:
    def derivatives(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        left = (is_left(a, b) | a.isnan()).to(a.dtype)
        return left, 1 - left

    return derivatives


def _of_logaddexp(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    left = torch.sigmoid(torch.where((a == b) & a.isinf(), 0, a - b))
    return left, 1 - left


_KNOWN: dict[str | None, Any] = {
    "add": lambda a, b: (torch.ones_like(a),) * 2,
    "multiply": lambda a, b: (b, a),
    "maximum": _of_extreme(torch.ge),
    "minimum": _of_extreme(torch.le),
    "logaddexp": _of_logaddexp,
}
ADD = parsed(operator.add, None, "reduce")


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


class _Torch(Framework):
    """PyTorch's functions of tensors and numbers."""

    name, array, module, vjp = "PyTorch", Tensor, torch, staticmethod(torch.func.vjp)
    detach, is_inexact = "detach the tensors", staticmethod(_is_inexact)

    def is_complex(self, dtype: torch.dtype) -> bool:
        return bool(dtype.is_complex)

    def call(self, fn: Any, *args: Any) -> Any:
        with _AsNumbers():
            return fn(*args)

    def typed(self, x: Any, like: Tensor, dtype: torch.dtype) -> Tensor:
        return torch.as_tensor(x).to(like.device, dtype).expand_as(like)

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


_CONVERSIONS = ("__bool__", "__complex__", "__float__", "__index__", "__int__")


class _AsNumbers(TorchFunctionMode):
    """Within it tensors are like numbers: `x += y` makes a new one, and integers have any size."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # fmt: skip
        if any(type(x) is int and abs(x) >= 1 << 63 for x in args):
            args = [float(x) if type(x) is int else x for x in args]
        name = getattr(func, "__name__", "")
        if name in _CONVERSIONS:  # PyTorch converts and branches on tensors of one number
            raise TypeError(f"{name} of a tensor has no derivative")
        if name in ("__floordiv__", "__ifloordiv__", "__rfloordiv__", "floor_divide_"):
            return framework.floor_divide(*(args[::-1] if name == "__rfloordiv__" else args))
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


framework = _Torch()
