"""What `gpualgo.torch` and `gpualgo.jax` share: recurrences, operators and their derivatives."""

from __future__ import annotations

import builtins
import functools
import math
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gpualgo._base.errors import shown
from gpualgo._operators.key import facts_of, python_function
from gpualgo._operators.numpy_rules import table
from gpualgo._operators.tokens import contents_of
from gpualgo._pipeline import checks

MOST_NUMBERS = 2  # of an element that has a gradient


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


def element(xs: Sequence[Any]) -> Any:
    return xs[0] if len(xs) == 1 else tuple(xs)


def numbers(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def extent(value: Any, name: str, where: str) -> int:
    """Return a length of results as an int."""
    found = checks.integer(value, name, where)
    if found < 0:
        raise ValueError(f"{where}: {name} is {found}, but must not be negative")
    return found


def given_of(vjp: Any, where: str, copied: Callable[[Any], Any]) -> tuple[Any, Any] | None:
    """Return the functions of `vjp=`, copied, or None."""
    if vjp is None:
        return None
    if not (isinstance(vjp, tuple) and len(vjp) == 2 and all(map(callable, vjp))):
        raise TypeError(
            f"{where}: vjp must be a tuple of two functions, the derivatives of op by its left and "
            f"its right argument, got {type(vjp).__name__}"
        )
    return copied(vjp[0]), copied(vjp[1])


def both_of(vjp: tuple[Any, Any]) -> Callable[..., Any]:
    """Return one function for both derivatives."""
    return lambda a, b: (vjp[0](a, b), vjp[1](a, b))


# Rules of functions that take arrays themselves, or none, which raises an error: frameworks convert
# to other dtypes than kernels do.
_NATIVE = (
    *("operator", "pair", "plain", "contains", "conversion", "philox"),
    *("construct", "bool", "cmath"),
)


class Framework:
    """What computes with a framework's arrays as operators do with numbers.

    A subclass has `name`; `array`, the type; `module`, the framework's functions by NumPy's names;
    `vjp`, as `jax.vjp`; `detach`, how an array gets no gradient; and functions of arrays by the
    names of computations (`does` of an Entry).
    """

    name: str
    detach: str
    array: type
    module: Any
    vjp: Callable[..., Any]

    def __init__(self) -> None:
        values = vars(builtins).items()
        self.builtins = {name: self.of(value) for name, value in values if table.entry_of(value)}

    def is_inexact(self, x: Any) -> bool:
        """Return whether the elements of an array are floats or complex numbers."""
        raise NotImplementedError

    def is_complex(self, dtype: Any) -> bool:
        raise NotImplementedError

    def call(self, fn: Any, *args: Any) -> Any:
        """Return ``fn(*args)``, where arrays are like numbers."""
        return fn(*args)

    def typed(self, x: Any, like: Any, dtype: Any) -> Any:
        """Return a number or an array as an array of a dtype, with the shape of `like`."""
        raise NotImplementedError

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
            return getattr(self, does)(*args)
        found = fn(*args)  # of Python's and NumPy's numbers, which a framework would round
        return found[()] if isinstance(found, np.ndarray) else found

    def partials(
        self, fn: Any, vjp: Any, left: Sequence[Any], right: Sequence[Any], where: str
    ) -> Any:
        """Return the derivatives of an operator by its left and its right argument.

        Each is [i][k], of number i of the result by number k of the argument; those of integers
        are 0. `vjp(a, b)` returns both; if it is None, the framework derives them.
        """
        n = len(left)
        if n > MOST_NUMBERS:
            raise TypeError(
                f"{where}: elements of {n} numbers have no gradient, only those of one or two; "
                f"{self.detach}"
            )
        dtype = functools.reduce(self.module.promote_types, [x.dtype for x in left])
        if vjp is None:
            try:
                sides = self._derived(fn, left, right, dtype)
            except Exception as error:
                reason = f"{type(error).__name__}: {error}".splitlines()[0]
                raise TypeError(
                    f"{where}: op has no gradient that {self.name} can derive from {shown(fn)} "
                    f"({reason}); pass vjp=(left, right), functions of arrays for its two partial "
                    "derivatives"
                ) from error
        else:
            found = vjp(element(left), element(right))
            rows = [x if isinstance(x, (tuple, list)) else [[x]] for x in found]
            try:
                sides = [[[self.typed(x, left[0], dtype) for x in row] for row in side]
                         for side in rows]  # fmt: skip
            except (TypeError, ValueError, RuntimeError) as error:
                raise TypeError(f"{where}: vjp returns what is no derivative ({error})") from error
        if any([len(row) for row in side] != [n] * n for side in sides):
            raise TypeError(f"{where}: vjp must return {n} rows of {n} for elements of {n}")
        return [
            [row if self.is_inexact(x) else list(map(self.module.zeros_like, row))
             for row, x in zip(side, left, strict=True)]
            for side in sides
        ]  # fmt: skip

    def _derived(self, fn: Any, left: Sequence[Any], right: Sequence[Any], dtype: Any) -> Any:
        if self.is_complex(dtype) and not is_holomorphic(fn):
            raise TypeError("it is no holomorphic function")
        count = len(left)
        # Integers keep their dtype, and have no derivatives.
        given = [self.typed(x, x, dtype) if self.is_inexact(x) else x for x in (*left, *right)]
        wanted = [i for i, x in enumerate(given) if self.is_inexact(x)]
        bound = self.of(fn)

        def computed(*inexact: Any) -> list[Any]:
            xs = list(given)
            for i, x in zip(wanted, inexact, strict=True):
                xs[i] = x
            found = numbers(self.call(bound, element(xs[:count]), element(xs[count:])))
            return [self.typed(x, left[0], dtype) for x in found]

        results, pull = self.vjp(computed, *[given[i] for i in wanted])
        rows = [[self.module.zeros_like(x, dtype=dtype) for x in given] for _ in results]
        for k, row in enumerate(rows):
            found = pull([self.module.full_like(x, i == k) for i, x in enumerate(results)])
            for i, x in zip(wanted, found, strict=True):
                row[i] = x
        return [row[:count] for row in rows], [row[count:] for row in rows]

    def pulled_weights(self, g: Any, x: Any, edges: Any, last: Any, reached: Any = None) -> Any:
        """Return the gradient of a histogram's weights: for each sample that of its bin.

        `edges` are the least numbers of x's dtype in each bin, and behind the last one, if there
        are such; `last` is the end of the last bin, which has it. Only the first `reached` edges
        are, if that is given.
        """
        size, where = len(g), self.module.where
        bins = self.module.searchsorted(edges, x, side="right") - 1
        bins = where((x == edges[-1]) & (last >= edges[-1]), size - 1, bins)
        if reached is not None:
            bins = self.module.minimum(bins, reached - 1)
        inside = (bins >= 0) & (bins < size) & (x == x)
        return where(inside, g[where(inside, bins, 0)], 0)

    def whole_edges(self, edges: Any, dtype: Any) -> Any:
        """Return the least integers of a dtype that reach edges, and how many edges they reach."""
        limits, where = self.module.iinfo(dtype), self.module.where
        have = edges < limits.max + 1.0
        least = where(have, self.module.ceil(edges.clip(float(limits.min))), 0)
        least = self.typed(least, least, dtype)
        return where(have, least, self.module.full_like(least, limits.max)), have.sum()


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
