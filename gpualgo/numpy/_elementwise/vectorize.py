"""`vectorize`: a Python function of numbers as one of arrays, compiled into one kernel."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gpualgo._algorithms.transform import transform
from gpualgo._algorithms.transform.copying import copy
from gpualgo._base import dtypes
from gpualgo._base.errors import CompileError, shown
from gpualgo._lazy import ufuncs
from gpualgo._lazy.combining import applied
from gpualgo.numpy._call import function
from gpualgo.numpy._call.arguments import NotTaken
from gpualgo.numpy._elementwise.ufunc_calls import LAZY, NUMBERS_ALONE, arguments_of

_UNSET: Any = np._NoValue


class vectorize:
    """Make a function of numbers one of arrays, broadcast against each other.

    Parameters
    ----------
    pyfunc : callable
        A function of numbers that operators may be: see docs/operators.md. It may return a tuple,
        which makes a tuple of arrays. Left out, the object is a decorator.
    otypes : str or list of dtypes, optional
        The dtype of each result; without it what NumPy's rules give for `pyfunc`.
    doc : str, optional
        The docstring; without it that of `pyfunc`.
    excluded, cache, signature
        As `numpy.vectorize` has them, and not possible here but for None, False and None: a
        compiled function takes numbers, and is not called once more to find its dtypes.

    Raises
    ------
    NotTaken
        An option is not possible here; or `pyfunc` cannot be compiled, when it is called.

    Notes
    -----
    One transform; of lazy arrays the result is lazy. The function is compiled once for the dtypes
    of its arguments, and runs on the GPU or on all cores. What numbers it captures are those of the
    moment of each call. See docs/numpy.md.

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
            self._named(pyfunc)

    def _named(self, pyfunc: Any) -> None:
        functools.update_wrapper(self, pyfunc, updated=())
        if self._doc is not None:
            self.__doc__ = self._doc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.pyfunc is _UNSET:
            (self.pyfunc,) = args
            self._named(self.pyfunc)
            return self
        if kwargs:
            raise NotTaken(
                f"vectorize: arguments go by place here, got {', '.join(kwargs)} by name"
            )
        if not args:
            raise ValueError("vectorize: cannot call a function on no arguments")
        given, _, place = arguments_of(args, "vectorize")
        if place == NUMBERS_ALONE:
            given[0] = np.asarray(given[0])
        try:
            if self.otypes is None and place != LAZY:
                return transform(self.pyfunc, *given)
            made = applied(self.pyfunc, given, "vectorize")
            found = made if self.otypes is None else _as_types(made, self.otypes)
        except (CompileError, TypeError) as error:
            text = str(error).partition(": ")[2]
            text = f"pyfunc {text[3:]}" if text.startswith("op ") else text
            raise NotTaken(f"vectorize: {text}") from None
        if place == LAZY:
            names = None if isinstance(found, tuple) else found.dtype.names
            return found if names is None else tuple([found[name] for name in names])
        return tuple(map(copy, found)) if isinstance(found, tuple) else copy(found)


def _as_types(made: Any, kinds: tuple[np.dtype[Any], ...]) -> Any:
    """Return a lazy array of the dtypes, of tuples one for each number."""
    names = made.dtype.names
    parts = [made] if names is None else [made[name] for name in names]
    if len(parts) != len(kinds):
        raise ValueError(
            f"vectorize: the function returns {len(parts)} numbers, otypes has {len(kinds)}"
        )
    found = [
        x if x.dtype == kind else ufuncs.cast(x, x.dtype, kind, "vectorize")
        for x, kind in zip(parts, kinds, strict=True)
    ]
    return found[0] if names is None else tuple(found)


def _kinds_of(otypes: Any) -> tuple[np.dtype[Any], ...] | None:
    """Return the dtypes of results."""
    if otypes is None:
        return None
    given = list(otypes) if isinstance(otypes, (str, list, tuple)) else [otypes]
    if isinstance(otypes, str) and (unknown := set(otypes).difference(np.typecodes["All"])):
        raise ValueError(f"vectorize: otypes {otypes!r} has {min(unknown)!r}, which is no typecode")
    try:
        return tuple([dtypes.as_dtype(one, "vectorize: otypes") for one in given])
    except TypeError as error:
        raise NotTaken(str(error)) from None


function.TABLE["vectorize"] = function.Entry(
    "vectorize",
    vectorize,
    np.vectorize,
    "One transform; with otypes= of several results one for each",
    "dtypes are those of NumPy's rules for the elements', which NumPy hands to the function as "
    "Python's numbers; the function is compiled, and called with arguments by place alone",
)
