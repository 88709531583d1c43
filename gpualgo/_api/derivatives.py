"""What `gpualgo.torch` and `gpualgo.jax` share: the recurrence of gradients, functions rebound."""

from __future__ import annotations

import builtins
import functools
import math
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gpualgo._operators.key import facts_of, python_function
from gpualgo._operators.numpy_rules import table
from gpualgo._operators.tokens import contents_of


def compose(f: Any, g: Any) -> Any:
    """Return g after f, of functions h -> a * h + b given by (a, b).

    A coefficient of zero begins anew: products before it that are not finite have no effect.
    """
    return g if g[0] == 0 else (g[0] * f[0], g[0] * f[1] + g[1])


def compose_pairs(f: Any, g: Any) -> Any:
    """Return g after f, of functions h -> h A + b of row vectors of two numbers.

    They are given by (a00, a01, a10, a11, b0, b1). A matrix of zeros begins anew, as in `compose`.
    """
    if g[0] == 0 and g[1] == 0 and g[2] == 0 and g[3] == 0:
        return g
    return (
        f[0] * g[0] + f[1] * g[2], f[0] * g[1] + f[1] * g[3],
        f[2] * g[0] + f[3] * g[2], f[2] * g[1] + f[3] * g[3],
        f[4] * g[0] + f[5] * g[2] + g[4], f[4] * g[1] + f[5] * g[3] + g[5],
    )  # fmt: skip


def rebound(
    fn: Any, changed: Callable[[Any], Any], names: dict[str, Any], copies: Any = None
) -> Any:  # fmt: skip
    """Return a function that reads `changed` values of its variables, as the functions it reads do.

    `names` has other built-in functions by name.
    """
    copies = {} if copies is None else copies
    if not isinstance(fn, types.FunctionType):
        return changed(fn)
    if fn in copies:
        return copies[fn]
    read = {"__builtins__": builtins, **names}
    cells = tuple([types.CellType() for _ in fn.__closure__ or ()])
    copies[fn] = copy = types.FunctionType(fn.__code__, read, fn.__name__, fn.__defaults__, cells)
    copy.__kwdefaults__ = fn.__kwdefaults__
    for name in set(names_in(fn.__code__)).intersection(fn.__globals__):
        read[name] = rebound(fn.__globals__[name], changed, names, copies)
    for cell, old in zip(cells, fn.__closure__ or (), strict=True):
        cell.cell_contents = rebound(old.cell_contents, changed, names, copies)
    return copy


# Rules of functions that take arrays themselves, or none, which raises an error: frameworks convert
# to other dtypes than kernels do.
_NATIVE = (
    *("operator", "pair", "plain", "contains", "conversion", "philox"),
    *("construct", "bool", "cmath"),
)


class Framework:
    """What computes with a framework's arrays as operators do with numbers."""

    def __init__(self, array: type, library: Any) -> None:
        """`library` has functions of arrays by the names of computations (`does` of an Entry)."""
        self.array, self.library = array, library
        values = vars(builtins).items()
        self.builtins = {name: self.of(value) for name, value in values if table.entry_of(value)}

    def of(self, value: Any) -> Any:
        """Return what stands for a function, or for a variable that it reads."""
        value = getattr(value, "py_func", value)  # of a function that numba.njit has decorated
        if isinstance(value, types.FunctionType):
            return rebound(value, self.of, self.builtins)
        if isinstance(value, types.ModuleType):
            return _Namespace(self, value) if value in (np, math) else value
        entry = table.entry_of(value)
        if entry is None or entry.style in _NATIVE:
            return value
        name = f"whole_{entry.does}" if entry.style == "whole" else entry.does
        return functools.partial(self._call, value, name)

    def _call(self, fn: Any, does: str, *args: Any) -> Any:
        if any(isinstance(arg, self.array) for arg in args):
            return getattr(self.library, does)(*args)
        found = fn(*args)  # of Python's and NumPy's numbers, which a framework would round
        return found[()] if isinstance(found, np.ndarray) else found


class _Namespace:
    """A module whose functions take a framework's arrays."""

    def __init__(self, framework: Framework, module: types.ModuleType) -> None:
        self._framework, self._module = framework, module

    def __getattr__(self, name: str) -> Any:
        return self._framework.of(getattr(self._module, name))


def functions_of(fn: Any, found: list[Any]) -> list[Any]:
    """Return the Python functions that a function consists of: itself and those that it reads."""
    fn = python_function(fn)
    if fn is not None and fn not in found:
        found.append(fn)
        for _, value in variables_of(fn):
            functions_of(value, found)
    return found


def variables_of(fn: types.FunctionType) -> list[tuple[str, Any]]:
    """Return the names and the values of the variables that a function reads."""
    names = [name for name in facts_of(fn.__code__).reads.globals if name in fn.__globals__]
    cells = map(contents_of, fn.__closure__ or ())
    read = [(name, fn.__globals__[name]) for name in names]
    return [*read, *zip(fn.__code__.co_freevars, cells, strict=True)]


def is_holomorphic(fn: Any) -> bool:
    """Return whether an operator reads no function that is not; it has a gradient of complex."""
    for each in functions_of(fn, []):
        read = [getattr(value, "__name__", "") for _, value in variables_of(each)]
        if not _OTHERS.isdisjoint([*names_in(each.__code__), *read]):
            return False
    return getattr(fn, "__name__", "") not in _OTHERS


_OTHERS = {"abs", "absolute", "angle", "conj", "conjugate", "imag", "real", "sign"}


def names_in(code: types.CodeType) -> Iterator[str]:
    """Yield the names that a function's code and the functions defined in it read."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from names_in(constant)
