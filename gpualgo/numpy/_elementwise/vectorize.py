"""`vectorize`: turns a Python function of numbers into one compiled kernel for arrays."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gpualgo._algorithms.transform import transform
from gpualgo._algorithms.transform.copying import copy
from gpualgo._base import dtypes
from gpualgo._base.errors import CompileError, shown
from gpualgo._lazy import operators
from gpualgo._lazy.combining import applied
from gpualgo.numpy._call import function
from gpualgo.numpy._call.arguments import NotTaken
from gpualgo.numpy._elementwise.ufuncs import LAZY, NUMBERS_ALONE, arguments_of

_UNSET: Any = np._NoValue


class vectorize:
    """Return a function of arrays, made from a function of numbers; arrays are broadcast.

    Parameters
    ----------
    pyfunc : callable
        A pure function of numbers that can be an operator. If it returns a tuple, the result is a
        tuple of arrays. Without it the object is a decorator.
    otypes : str or list of dtypes, optional
        The dtype of each result; by default determined by NumPy's promotion rules.
    doc : str, optional
        The docstring; by default that of `pyfunc`.
    excluded, cache, signature
        Parameters of `numpy.vectorize` that must be None, False and None here: a compiled function
        takes only numbers, and is not called to determine its dtypes.

    Raises
    ------
    NotTaken
        An option is not supported; or `pyfunc` cannot be compiled, when it is called.

    Notes
    -----
    One transform; for lazy arrays the result is lazy. The function is compiled once for the dtypes
    of its arguments, and runs on the GPU or on all cores. Each call uses the current values of
    captured numbers.

    See https://github.com/gpualgo/gpualgo/blob/main/docs/operators.md for what it may contain.

    See https://github.com/gpualgo/gpualgo/blob/main/docs/numpy.md.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.vectorize(lambda a, b: a - b if a > b else a + b)([1, 2, 3, 4], 2)
    array([3, 4, 1, 2])
    >>> @gnp.vectorize
    ... def halved(a):
    ...     return a / 2
    >>> halved([1, 2])
    array([0.5, 1. ])
    """

    __module__ = "gpualgo.numpy"

    def __init__(
        self, pyfunc: Any = _UNSET, otypes: Any = None, doc: Any = None, excluded: Any = None,
        cache: Any = False, signature: Any = None,
    ) -> None:  # fmt: skip
        if pyfunc is not _UNSET and not callable(pyfunc):
            raise TypeError("When used as a decorator, only accepts keyword arguments.")
        for name, value in (("excluded", excluded), ("signature", signature), ("cache", cache)):
            if value is not None and value is not False and not (name == "excluded" and not value):
                raise NotTaken(
                    f"vectorize: {name}={shown(value)} is not possible here; leave it out, or use "
                    "numpy.vectorize"
                )
        self.otypes = _kinds_of(otypes)
        self.excluded: set[Any] = set()
        self.cache, self.signature = False, None
        self._doc, self.pyfunc = doc, pyfunc
        if pyfunc is not _UNSET:
            self._adopt_name(pyfunc)

    def _adopt_name(self, pyfunc: Any) -> None:
        functools.update_wrapper(self, pyfunc, updated=())
        if self._doc is not None:
            self.__doc__ = self._doc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.pyfunc is _UNSET:
            (self.pyfunc,) = args
            self._adopt_name(self.pyfunc)
            return self
        if kwargs:
            raise NotTaken(
                f"vectorize: pass arguments by position, got {', '.join(kwargs)} by keyword"
            )
        if not args:
            raise ValueError("vectorize: cannot call a function on no arguments")
        operands, _, location = arguments_of(args, "vectorize")
        if location == NUMBERS_ALONE:
            operands[0] = np.asarray(operands[0])
        try:
            if self.otypes is None and location != LAZY:
                return transform(self.pyfunc, *operands)
            computed = applied(self.pyfunc, operands, "vectorize")
            result = computed if self.otypes is None else _as_types(computed, self.otypes)
        except (CompileError, TypeError) as error:
            text = str(error).partition(": ")[2]
            text = f"pyfunc {text[3:]}" if text.startswith("op ") else text
            raise NotTaken(f"vectorize: {text}") from None
        if location == LAZY:
            names = None if isinstance(result, tuple) else result.dtype.names
            return result if names is None else tuple([result[name] for name in names])
        return tuple(map(copy, result)) if isinstance(result, tuple) else copy(result)


def _as_types(elements: Any, kinds: tuple[np.dtype[Any], ...]) -> Any:
    """Return a lazy array converted to the dtypes; a tuple of arrays if its elements are tuples."""
    names = elements.dtype.names
    parts = [elements] if names is None else [elements[name] for name in names]
    if len(parts) != len(kinds):
        raise ValueError(
            f"vectorize: the function returns {len(parts)} numbers, otypes has {len(kinds)}"
        )
    converted = [
        x if x.dtype == kind else operators.cast(x, x.dtype, kind, "vectorize")
        for x, kind in zip(parts, kinds, strict=True)
    ]
    return converted[0] if names is None else tuple(converted)


def _kinds_of(otypes: Any) -> tuple[np.dtype[Any], ...] | None:
    if otypes is None:
        return None
    listed = list(otypes) if isinstance(otypes, (str, list, tuple)) else [otypes]
    if isinstance(otypes, str) and (unknown := set(otypes).difference(np.typecodes["All"])):
        raise ValueError(f"vectorize: otypes {otypes!r} has {min(unknown)!r}, not a typecode")
    try:
        return tuple([dtypes.as_dtype(one, "vectorize: otypes") for one in listed])
    except TypeError as error:
        raise NotTaken(str(error)) from None


function.TABLE["vectorize"] = function.Entry(
    "vectorize",
    vectorize,
    np.vectorize,
    "One transform; with several `otypes`, one for each",
    "the function is compiled for the dtypes of the elements (NumPy passes Python numbers); "
    "arguments are positional only",
)
