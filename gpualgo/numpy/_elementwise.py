"""NumPy's elementwise functions that are not ufuncs, and `vectorize`: one transform each."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

from gpualgo import copy, transform
from gpualgo._base import dtypes
from gpualgo._base.errors import CompileError, shown
from gpualgo._lazy import is_lazy
from gpualgo._lazy.combining import applied
from gpualgo.lazy import functions
from gpualgo.numpy import _call
from gpualgo.numpy._call import UNSET, NotTaken, array_of, is_host, numpy_function
from gpualgo.numpy._ufuncs import LAZY, NUMBERS_ALONE, UFUNCS, UFunc, arguments_of, mapped

_CLIP = UFunc("clip", np._core.umath.clip, functions.clipped)  # type: ignore[attr-defined]


@numpy_function(
    "One transform", few=0,
    differs="on a GPU a complex limit with a NaN part is NaN (NumPy compares the other part)",
)  # fmt: skip
def clip(
    a: Any, a_min: Any = UNSET, a_max: Any = UNSET, out: Any = None, *, min: Any = UNSET,
    max: Any = UNSET, **kwargs: Any,
) -> Any:  # fmt: skip
    """Return the elements limited to the range from a minimum to a maximum.

    >>> gnp.clip([1, 5, 9], 2, 8)
    array([2, 5, 8])
    """
    low, high = _limits(a_min, a_max, min, max)
    kind = _call.dtype_of(a, "clip")
    if kind.kind in "iu":  # a Python number outside the dtype's range is no limit
        info = np.iinfo(kind)
        low = None if type(low) is int and low <= info.min else low
        high = None if type(high) is int and high >= info.max else high
    if low is None and high is None:
        return UFUNCS["positive"](a, out=out, **kwargs)
    if low is None:
        return UFUNCS["minimum"](a, high, out=out, **kwargs)
    if high is None:
        return UFUNCS["maximum"](a, low, out=out, **kwargs)
    return _CLIP(a, low, high, out=out, **kwargs)


def _limits(a_min: Any, a_max: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Return the limits, given as a_min and a_max or by the array API's names."""
    if a_min is UNSET and a_max is UNSET:
        return (None if low is UNSET else low), (None if high is UNSET else high)
    for name, one in (("a_min", a_min), ("a_max", a_max)):
        if one is UNSET:
            raise TypeError(f"clip() missing 1 required positional argument: {name!r}")
    if low is not UNSET or high is not UNSET:
        raise ValueError("clip: a_min and a_max are given, so min and max must not be")
    return a_min, a_max


@numpy_function("One transform", arrays=0)
def nan_to_num(
    x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    """Return the elements with NaN and infinities replaced by numbers.

    >>> gnp.nan_to_num([1.0, float("nan"), float("inf")], nan=-1, posinf=9)
    array([ 1., -1.,  9.])
    """
    name = "nan_to_num"
    if not copy and (not hasattr(x, "ndim") or isinstance(x, np.generic)):
        raise ValueError(f"{name}: copy=False needs an array, got {type(x).__name__}")
    values = array_of(x, name)
    if not copy and isinstance(x, np.ndarray) and not x.dtype.isnative:  # `values` is a copy
        x[...] = nan_to_num(values, nan=nan, posinf=posinf, neginf=neginf)
        return x
    if type(values) is np.ndarray and _call.is_few(values.size, _call.FEW):
        return np.nan_to_num(values, copy, nan, posinf, neginf)
    kind = _call.dtype_of(values, name)
    if dtypes.kind(kind) not in "fc":
        return values if not copy or is_lazy(values) else _copied(values)
    if not copy and is_lazy(values):
        raise NotTaken(f"{name}: copy=False of a lazy array, which has no memory")
    replacements = tuple(
        one if one is None or type(one) in (bool, int, float) else array_of(one, name)
        for one in (nan, posinf, neginf)
    )
    for one in replacements:
        shape = tuple(getattr(one, "shape", ()))
        if np.broadcast_shapes(shape, tuple(values.shape)) != tuple(values.shape):
            message = f"{name}: numbers of shape {shape} do not fit into x of {tuple(values.shape)}"
            raise ValueError(message)
    op, numbers = functions.finite_of(kind, *replacements)
    return mapped(op, (values, *numbers), None if copy else values, name)


def _copied(x: Any) -> Any:
    return _call.number_of(copy(x))


def _close(x: Any, y: Any, rtol: Any, atol: Any) -> Any:
    as_float = y * 1.0  # as float: abs of the least integer overflows
    near = np.less_equal(abs(x - as_float), atol + rtol * abs(as_float))
    return (near & np.isfinite(as_float)) | (x == y)  # complex infinities times 1.0 have NaN parts


def _close_or_nan(x: Any, y: Any, rtol: Any, atol: Any) -> Any:
    return _close(x, y, rtol, atol) | (np.isnan(x) & np.isnan(y))


@numpy_function("One transform", arrays=2, weak=True)
def isclose(a: Any, b: Any, rtol: Any = 1.0e-5, atol: Any = 1.0e-8, equal_nan: Any = False) -> Any:
    """Return where elements are equal within ``atol + rtol · |b|``.

    >>> gnp.isclose([1.0, 2.0], [1.0 + 1e-9, 2.1])
    array([ True, False])
    """
    numbers = (bool, int, float, complex)
    x, y, rtol, atol = (
        one if type(one) in numbers else array_of(one, "isclose") for one in (a, b, rtol, atol)
    )
    on_host = [one for one in (rtol, atol) if type(one) in numbers or type(one) is np.ndarray]
    if not all(np.all(np.isfinite(one)) for one in on_host):
        message = f"One of rtol or atol is not valid, atol: {atol}, rtol: {rtol}"
        if np.geterr()["invalid"] == "warn":
            _call.warn(message)
        elif np.geterr()["invalid"] == "raise":
            raise FloatingPointError(message)
    op = _close_or_nan if equal_nan else _close
    return mapped(op, (x, float(y) if type(y) is int else y, rtol, atol), None, "isclose")


@numpy_function(
    "One transform",
    ("isposinf", lambda x: np.isinf(x) & (x > 0), "Return where elements are positive infinity.",
     'gnp.isposinf([1.0, float("inf"), -float("inf")])', "array([False,  True, False])"),
    ("isneginf", lambda x: np.isinf(x) & (x < 0), "Return where elements are negative infinity.",
     'gnp.isneginf([1.0, float("inf"), -float("inf")])', "array([False, False,  True])"),
)  # fmt: skip
def _is_infinite(name: str, op: Any, x: Any, out: Any = None) -> Any:
    kind = _call.dtype_of(x, name)
    if kind.kind == "c":
        raise TypeError(f"{name}: {kind} has more than one infinity; pass a part of it")
    return mapped(op, (x,), _call.out_of(out, name), name)


def _sinc(x: Any) -> Any:
    y = x * math.pi
    return np.where(y == 0, y * 0 + 1, np.sin(y) / y)


@numpy_function("One transform; host arrays: NumPy's loops on all cores")
def sinc(x: Any) -> Any:
    """Return ``sin(πx) / (πx)``, which is 1 where x is 0.

    >>> gnp.sinc([0.0, 0.5, 1.5]).round(3)
    array([ 1.   ,  0.637, -0.212])
    """
    if type(x) is np.ndarray and x.ndim and _call.is_few(x.size, _call.ALL):
        y = UFUNCS["multiply"](x, math.pi)
        y[y == 0] = np.finfo(y.dtype).eps if y.dtype.kind == "f" else 1e-20
        return UFUNCS["divide"](UFUNCS["sin"](y), y, out=y)
    return mapped(_sinc, (x,), None, "sinc")


# --- Parts of complex numbers: real and imaginary parts, and angles.


@numpy_function(
    "None for host arrays; one transform on a GPU",
    ("real", np.real, "Return the real parts; real numbers are returned unchanged.",
     "gnp.real([1 + 2j, 3])", "array([1., 3.])"),
    ("imag", np.imag, "Return the imaginary parts; zeros for real numbers.",
     "gnp.imag([1 + 2j, 3])", "array([2., 0.])"),
    arrays=0, differs="on a GPU a new array, not a view",
)  # fmt: skip
def _part(name: str, native: Any, val: Any) -> Any:
    if isinstance(val, (np.number, np.bool_)) or type(val) in (bool, int, float, complex):
        return native(val)
    val = array_of(val, name)
    if is_lazy(val):
        return getattr(val, name)
    if is_host(val):
        return native(val)
    if name == "real" and _call.dtype_of(val, name).kind != "c":
        return val
    return mapped(native, (val,), None, name)


def _angle(z: Any) -> Any:
    return np.arctan2(np.imag(z) * 1, np.real(z))  # of a bool, NumPy takes the integer 0


@numpy_function("One transform; host arrays: NumPy's loops on all cores")
def angle(z: Any, deg: Any = False) -> Any:
    """Return the angles of complex numbers, in radians or degrees.

    >>> gnp.angle([1, 1j, -1], deg=True)
    array([  0.,  90., 180.])
    """
    if type(z) is np.ndarray and _call.is_few(z.size, _call.ALL):
        angles = UFUNCS["arctan2"](z.imag if z.dtype.kind == "c" else 0, z.real)
        if not deg:
            return angles
        return UFUNCS["multiply"](angles, 180 / math.pi, out=angles if angles.ndim else None)
    op = (lambda z: _angle(z) * (180 / math.pi)) if deg else _angle
    return mapped(op, (z,), None, "angle")


# --- Rounding to decimals, tens or integers: one transform each.


@numpy_function(
    "One transform",
    ("round", "Return the elements rounded to a number of decimals, halves to the even digit.",
     "gnp.round([1.25, 1.75, 2.5], 1)", "array([1.2, 1.8, 2.5])"),
    ("around", "Return the elements rounded to a number of decimals, as `round`.",
     "gnp.around([0.5, 1.5, 2.5])", "array([0., 2., 2.])"),
    differs="an integer whose rounding its dtype does not hold becomes the nearest that it holds",
)  # fmt: skip
def _round(name: str, a: Any, decimals: Any = 0, out: Any = None) -> Any:
    decimals = operator.index(decimals)
    if not -(1 << 31) <= decimals < 1 << 31:
        raise OverflowError(f"{name}: decimals={decimals} is beyond 32 bits")
    dtype, out = _call.dtype_of(a, name), _call.out_of(out, name)
    is_integer = dtypes.kind(dtype) in "ui"
    if out is not None:
        _call.check_shape(out, tuple(a.shape), name)
    if not decimals or (is_integer and decimals > 0):
        return UFUNCS["positive" if is_integer else "rint"](a, out=out)
    if is_integer:
        unit = _power_of_ten(-decimals)
        if math.isinf(unit):
            raise NotTaken(f"{name}: decimals={decimals} is beyond float64; use numpy.{name}")
        return _round_to_tens(a, unit, out, name)
    if dtype.kind == "b":
        raise NotTaken(f"{name}: bools have no decimals; use numpy.{name}")
    op = _to_decimals if decimals > 0 else _to_tens
    if dtype.kind == "c":
        op = _by_parts(dtype, op)
    return mapped(op, (a, _power_of_ten(abs(decimals))), out, name)


@functools.lru_cache(256)
def _power_of_ten(exponent: int) -> float:
    """Return a power of ten as NumPy computes it: by products, which round beyond 10**22."""
    power = 1.0
    for _ in range(min(exponent, 400)):
        power *= 10.0
    return power


def _to_decimals(a: Any, unit: Any) -> Any:
    return np.rint(a * unit) / unit


def _to_tens(a: Any, unit: Any) -> Any:
    return np.rint(a / unit) * unit


@functools.cache
def _by_parts(dtype: np.dtype[Any], op: Any) -> Any:
    """Return an operator that applies another to the parts of complex numbers of a dtype."""
    kind = dtype.type
    return lambda a, unit: kind(op(a.real, unit), op(a.imag, unit))


def _round_to_tens(x: Any, unit: float, out: Any, name: str) -> Any:
    """Return integers rounded to tens, hundreds, ...; ``out=`` receives float64, as in NumPy."""
    rounded = applied(lambda a, ten: _to_tens(np.float64(a), ten), (x, unit), name)
    if out is not None:
        if isinstance(out, np.ndarray) and not out.flags.writeable:
            raise ValueError(f"{name}: out is read-only")
        _call.check_cast(np.dtype(float), out, name)
        return _call.evaluate_into(rounded, out, name)
    rounded = _call.cast(rounded, _call.dtype_of(x, name), name)
    return rounded if is_lazy(x) else _call.number_of(copy(rounded))


@numpy_function("One transform")
def fix(x: Any, out: Any = None) -> Any:
    """Return the elements rounded towards zero.

    >>> gnp.fix([2.9, -2.9])
    array([ 2., -2.])
    """
    return UFUNCS["trunc"](x, out=out)


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
        self, pyfunc: Any = UNSET, otypes: Any = None, doc: Any = None, excluded: Any = None,
        cache: Any = False, signature: Any = None,
    ) -> None:  # fmt: skip
        if pyfunc is not UNSET and not callable(pyfunc):
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
        if pyfunc is not UNSET:
            self._adopt_name(pyfunc)

    def _adopt_name(self, pyfunc: Any) -> None:
        functools.update_wrapper(self, pyfunc, updated=())
        if self._doc is not None:
            self.__doc__ = self._doc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.pyfunc is UNSET:
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
    converted = [_call.cast(x, kind, "vectorize") for x, kind in zip(parts, kinds, strict=True)]
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


_call.TABLE["vectorize"] = _call.Entry(
    "vectorize",
    vectorize,
    np.vectorize,
    "the function is compiled for the dtypes of the elements (NumPy passes Python numbers); "
    "arguments are positional only",
)
