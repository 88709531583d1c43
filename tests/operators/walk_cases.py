"""What the walk over the table applies: expressions, edge values, and what NumPy has for each."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from support import BFLOAT16

from gpualgo._base import dtypes
from gpualgo._operators.numpy_rules import table
from gpualgo._operators.numpy_rules.table import Entry

Array = np.ndarray[Any, Any]


class Case(NamedTuple):
    """An expression of the arguments a, b, and what NumPy has for it."""

    text: str
    does: str
    reference: Callable[..., Any]
    ulp: int
    names: dict[str, Any]  # what the expression reads beside a and b
    operands: Callable[..., Any] = lambda *arrays: arrays  # what it computes with


def edges(dtype: np.dtype[Any]) -> Array:
    """Return the values at which functions are apt to go wrong."""
    kind = dtypes.kind(dtype)
    if kind == "b":
        return np.array([False, True])
    if kind in "iu":
        info = np.iinfo(dtype)
        wanted = [0, 1, -1, 2, -3, 7, 100, info.min, info.min + 1, info.max, info.max - 1]
        wanted += [sign * (2**bits + step) for bits in (24, 53) for step in (-1, 1)
                   for sign in (-1, 1)]  # fmt: skip
        fitting = sorted({value for value in wanted if info.min <= value <= info.max})
        return np.array(fitting, dtype)
    if kind == "c":
        part = [0.0, -0.0, 1.0, -1.0, 0.5, -3.0, math.inf, -math.inf, math.nan, 2.0**24 - 1]
        return np.array([complex(a, b) for a in part for b in part], dtype)
    info = (ml_dtypes if dtype == BFLOAT16 else np).finfo(dtype)
    limits = [float(info.max), float(info.tiny), float(info.smallest_subnormal)]
    sizes = [0.0, 1.0, 0.5, 1.5, 2.0, 3.0, 7.0, 100.0, math.inf, *limits]
    sizes += [2.0**24 - 1, 2.0**24 + 1, 2.0**53 - 1, 2.0**53 + 1]
    signed = [sign * size for size in sizes for sign in (1, -1)]
    with np.errstate(all="ignore"):
        return np.unique(np.array([*signed, math.nan]).astype(dtype).view(f"u{dtype.itemsize}")) \
            .view(dtype)  # fmt: skip


def grid(*dtypes_: np.dtype[Any]) -> list[Array]:
    """Return arrays in which every edge value of one dtype meets every one of the others."""
    values = [edges(dtype) for dtype in dtypes_]
    return [np.ascontiguousarray(part.ravel()) for part in np.meshgrid(*values, indexing="ij")]


# --- what NumPy has ---------------------------------------------------------------------------


def _loop(ufunc: np.ufunc, *args: Any, names: tuple[str, ...] | None = None) -> Any:
    """Call a ufunc; of bfloat16, which NumPy has not, through float32."""
    found = names or tuple(
        type(a).__name__ if type(a) in (int, float, complex) else str(dtypes.name_of(a.dtype))
        for a in args
    )
    call, result = dtypes.loop_of(ufunc, found)
    if "bfloat16" not in (*call, *found):
        return ufunc(*args)
    held = [np.asarray(a).astype(dtypes.from_name(n)) for a, n in zip(args, call, strict=True)]
    held = [a.astype(np.float32) if a.dtype == BFLOAT16 else a for a in held]
    return np.asarray(ufunc(*held)).astype(dtypes.from_name(result))


def _product(a: Any, b: Any) -> Any:
    """Return the product of complex numbers, each step rounded: NumPy's may be contracted."""
    joint = np.result_type(a, b)
    a, b = np.asarray(a, joint), np.asarray(b, joint)
    result = np.empty(np.broadcast_shapes(a.shape, b.shape), joint)
    result.real = a.real * b.real - a.imag * b.imag
    result.imag = a.real * b.imag + a.imag * b.real
    return result


def is_complex(*args: Any) -> bool:
    return any(np.iscomplexobj(a) for a in args)


def _integer_power(a: Any, b: Any) -> Any:
    """Return a ** b, and what is left of it toward zero where NumPy raises for b < 0."""
    if type(b) is int or np.result_type(a, b).kind == "f":  # uint64 and a signed one
        return np.power(a, b)
    result = np.power(a, np.abs(np.maximum(b, 0)).astype(np.asarray(b).dtype))
    unit = np.where(np.asarray(b) % 2 == 0, 1, a)
    kept = np.where((a == 1) | (a == -1), unit, 0).astype(result.dtype)
    return np.where(np.asarray(b) < 0, kept, result)


def _is_inexact(value: Any) -> bool:
    return dtypes.kind(np.asarray(value).dtype) in "fc"


def _ufunc(entry: Entry) -> Callable[..., Any]:
    ufunc = entry.ufunc
    assert ufunc is not None

    def reference(*args: Any) -> Any:
        if entry.does == "reciprocal" and not any(map(_is_inexact, args)):
            raise TypeError("refused: NumPy's 1 / 0 depends on the processor")
        if entry.does == "arccosh" and is_complex(*args):
            raise TypeError("refused: numba's takes the wrong side of its cut")
        if entry.does == "nextafter" and BFLOAT16 in [np.asarray(a).dtype for a in args]:
            return ufunc(*args)
        if entry.does == "nextafter" and _loop(ufunc, *args).dtype == np.float16:
            a, b = (np.asarray(x).astype(np.float16) for x in args)
            return np.where(a == b, b, ufunc(a, b))  # up to NumPy 2.4 it returns a
        if entry.does == "power" and not any(map(_is_inexact, args)):
            return _integer_power(*args)
        if entry.does == "multiply" and is_complex(*args):
            return _product(*args)
        if entry.does == "square" and is_complex(*args):
            return _product(*args, *args)
        return _loop(ufunc, *args)

    return reference


def _of_math(entry: Entry) -> Callable[..., Any]:
    ufunc = entry.ufunc
    numpy_s = _ufunc(entry) if ufunc is not None else None
    special = None if ufunc is not None else np.vectorize(_quiet(getattr(math, entry.does)))

    def reference(*args: Any) -> Any:
        if is_complex(*args):
            raise TypeError("math has no complex numbers")
        names = [dtypes.name_of(a.dtype) for a in args]
        joint = dtypes.result_name([str(name) for name in names], [])
        joint = joint if dtypes.is_inexact(joint) else "float64"
        held = [a.astype(dtypes.from_name(joint)) for a in args]
        if numpy_s is not None:
            return numpy_s(*held)
        assert special is not None
        return special(*(a.astype(np.float64) for a in held)).astype(dtypes.from_name(joint))

    return reference


def _quiet(fn: Callable[..., float]) -> Callable[..., float]:
    """Return fn with NaN or an infinity where Python raises."""

    def quiet(value: float) -> float:
        try:
            return fn(value)
        except OverflowError:
            is_pole = fn is math.gamma and abs(value) < 1
            return math.copysign(math.inf, value) if is_pole else math.inf
        except ValueError:
            if fn is math.gamma and value == 0:
                return math.copysign(math.inf, value)
            return math.inf if fn is math.lgamma and value == value else math.nan

    return quiet


REFERENCES: dict[str, Callable[[Entry], Callable[..., Any]]] = {
    "numpy": _ufunc, "operator": _ufunc, "math": _of_math,
}  # fmt: skip


def cases(arity: int) -> list[Case]:
    """Return an expression for each entry of the table that follows a ufunc or `math`."""
    found, seen = [], set()
    for entry in table.ENTRIES:
        fn = table.function_of(entry)
        if fn is None or entry.style not in REFERENCES or entry.arity[0] != arity:
            continue
        is_symbol = "." not in entry.name
        if fn in seen and not is_symbol:
            continue
        seen.add(fn)
        name = f"f{len(found)}"
        text = f"{name}({'a, b' if arity == 2 else 'a'})"
        if is_symbol:
            text = f"a {entry.name} b" if arity == 2 else f"{entry.name} a"
        reference = REFERENCES[entry.style](entry)
        found.append(Case(text, entry.does, reference, entry.ulp, {name: fn}))
    return found


def _raised_to(exponent: Any, power: Callable[..., Any]) -> Callable[..., Any]:
    """Return what an array raised to a number is: NumPy has shortcuts there for some exponents."""

    def raised(a: Array) -> Any:
        is_shortcut = exponent in (-1, 0, 0.5, 1, 2) and dtypes.kind(a.dtype) in "fc"
        return a**exponent if is_shortcut and a.dtype != BFLOAT16 else power(a, exponent)

    return raised


def partner_cases(partner: Any, is_literal: bool) -> list[Case]:
    """Return the operators of the language with a Python number on either side."""
    found = []
    for entry in table.ENTRIES:
        if "." in entry.name or entry.style != "operator" or entry.arity[0] != 2:
            continue
        reference = _ufunc(entry)
        known = "K" + "".join(c if c.isalnum() else "_" for c in repr(partner))
        shown = f"({partner!r})" if is_literal else known
        names = {} if is_literal else {known: partner}
        right = lambda a, f=reference: f(a, partner)  # noqa: E731
        sides = (lambda a: (a, partner)), (lambda a: (partner, a))
        if entry.name == "**":
            right = _raised_to(partner, reference)
        left = lambda a, f=reference: f(partner, a)  # noqa: E731
        found.append(Case(f"a {entry.name} {shown}", entry.does, right, entry.ulp, names, sides[0]))
        found.append(Case(f"{shown} {entry.name} a", entry.does, left, entry.ulp, names, sides[1]))
    return found
