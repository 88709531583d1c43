"""NumPy's ufuncs: one class, and an instance for each ufunc that operators may use."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpualgo import copy, transform
from gpualgo._algorithms.transform.problem import NUMBERS
from gpualgo._base import dtypes, recording
from gpualgo._base.errors import CompileError, shown
from gpualgo._lazy import is_lazy, operators
from gpualgo._lazy.combining import applied
from gpualgo._operators.numpy_rules import table
from gpualgo._pipeline import checks
from gpualgo.lazy import asarray as lazy_of
from gpualgo.lazy import reductions
from gpualgo.numpy import _call, _folds, _loops
from gpualgo.numpy._call import ARRAY_TYPES, UNSET, NotTaken, array_of, is_host

# --- Docstrings of ufuncs, generated on access: NumPy's first line and an example.

PASSES = (
    "One transform; host arrays: NumPy's loop on all cores; lazy arrays: none, the result is lazy"
)

_CALL = """
``{name}({arguments}, /, out=None, *, where=True, casting='same_kind', dtype=None, subok=True)``

For lazy arrays the result is lazy, unless ``out=`` is given. Without ``out=``, elements for which
``where=`` is false are zero. ``signature=`` and ``order=`` raise a TypeError.
"""

_ULP = (
    "on a GPU within {ulp} ulp (complex: {complex} ulp of the magnitude, and any value for complex "
    "infinities and NaN)"
)
_OTHER = dict.fromkeys(("absolute", "sqrt", "sign"), "on a GPU complex results within 16 ulp")
_OTHER["power"] = (
    "on a GPU integers to an array of negative powers give 0, 1 or -1 (NumPy: ValueError)"
)


def differs(native: np.ufunc) -> str:
    """Return the known differences from NumPy's ufunc."""
    entry = table.entry_of(native)
    differences = []
    if entry is not None and entry.ulp:
        differences.append(_ULP.format(ulp=entry.ulp, complex=4 * entry.ulp))
    if native.__name__ in _OTHER:
        differences.append(_OTHER[native.__name__])
    return "; ".join(differences)


def _sample_of(native: np.ufunc) -> tuple[str, str]:
    """Return arguments for an example, by the ufunc's dtypes and domain."""
    if native.__name__.startswith("logical"):
        return "[True, False]", "[True, True]"
    if all(kind not in "".join(native.types) for kind in "ed"):
        return "[6, 3]", "[3, 5]"
    return "[1.0, 2.0]" if native is np.arccosh else "[0.25, 0.5]", "[2.0, 0.5]"


class Doc:
    """Descriptor of a docstring: the class's own, and one for each instance."""

    def __init__(self, of_class: str) -> None:
        self._of_class = of_class

    def __get__(self, one: Any, cls: type | None = None) -> str:
        return self._of_class if one is None else documented(one._native)


def documented(native: np.ufunc) -> str:
    name = native.__name__
    parts = [part for part in (native.__doc__ or "").split("\n\n") if not part.startswith(name)]
    summary = " ".join(parts[0].split()) if parts else f"Apply `numpy.{name}` element by element"
    summary = summary.rstrip(".") + "."
    arguments = _sample_of(native)[: native.nin]
    with np.errstate(all="ignore"):
        result = repr(native(*(eval(text, {}) for text in arguments)))
    own = f"{summary}\n\n>>> gnp.{name}({', '.join(arguments)})\n{result}"
    call = _CALL.strip().format(name=name, arguments="x" if native.nin == 1 else "x1, x2")
    return _call.docstring(own, name, PASSES, differs(native), call)


# --- Calls of ufuncs: conversion of arguments, and calls with ``out=``, ``where=`` or ``dtype=``.

NUMBERS_ALONE, HOST, OWN, DEVICE, LAZY = range(5)  # locations; OWN: host arrays, no NumPy loop


def arguments_of(args: tuple[Any, ...], name: str) -> tuple[list[Any], int, int]:
    """Return arguments as arrays and numbers, the host arrays' total size, and a location code."""
    if recording.active:
        recording.refuse_in_graph_of_cpu(name)
    operands, size, location = list(args), 0, NUMBERS_ALONE
    for i, x in enumerate(operands):
        if type(x) in NUMBERS:
            continue
        if type(x) is not np.ndarray or dtypes.name_of(x.dtype) is None:
            is_scalar = isinstance(x, np.generic)
            x = operands[i] = array_of(x, f"{name}: argument {i + 1}")
            if type(x) is not np.ndarray:
                location = max(location, LAZY if is_lazy(x) else DEVICE)
                continue
            if is_scalar:
                operands[i] = x[()]
        size += x.size
        location = max(location, HOST if x.dtype.kind != "V" else OWN)
    if location >= DEVICE:  # kernels take numbers from the host, but no arrays
        operands = [x[()] if type(x) is np.ndarray and not x.ndim else x for x in operands]
    return operands, size, location


def plain(ufunc: np.ufunc, op: Any, given: list[Any], location: int, name: str) -> Any:
    """Return a ufunc's result, computed by op, without options: by one transform, or lazily."""
    kinds = operators.kinds_of(given, name) if op is not ufunc else ()
    if kinds and (kind := _common_dtype(ufunc, *kinds)) is not None:
        return computed(ufunc, op, given, location == LAZY, (None,), True, kind, "same_kind", name)
    if location == LAZY:
        if op is not ufunc:
            return applied(op, given, name)
        return operators.called(ufunc, "__call__", tuple(given), {})
    return _call.number_of(transformed(ufunc, given, name, op))


def transformed(ufunc: np.ufunc, given: Sequence[Any], name: str, op: Any = None) -> Any:
    """Return a ufunc's result, computed by op if given, on arrays that are not lazy and numbers."""
    try:
        return transform(ufunc if op is None else op, *given)
    except (TypeError, ValueError, OverflowError, CompileError) as error:
        raise numpy_error(ufunc, given, error, name) from None


@functools.lru_cache(256, typed=True)  # as np.dtype(float) == float
def _common_dtype(ufunc: np.ufunc, *kinds: Any) -> np.dtype[Any] | None:
    """Return the dtype to convert all arguments to; None if they have it or NumPy rejects them."""
    try:
        common: np.dtype[Any] = ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout))[-1]
    except TypeError:
        return None
    is_common = all(kind == common for kind in kinds if isinstance(kind, np.dtype))
    return None if is_common else common


def mapped(op: Any, args: tuple[Any, ...], out: Any, name: str) -> Any:
    """Apply a function element by element; the result is lazy if an array is."""
    operands, _, location = arguments_of(args, name)
    if location == NUMBERS_ALONE:
        operands[0] = np.asarray(operands[0])
    try:
        if location == LAZY or out is not None:
            result = applied(op, operands, name)
            if out is None:
                return result
            _call.check_cast(result.dtype, out, name)
            shape = tuple(out.shape)
            if result.shape != shape and np.broadcast_shapes(result.shape, shape) == shape:
                result = result.broadcast_to(shape)
            return _call.evaluate_into(result, out, name)
        return _call.number_of(transform(op, *operands))
    except CompileError as error:
        raise _unsupported(operands, error, name) from None


def _unsupported(given: Sequence[Any], error: BaseException, name: str) -> NotTaken:
    """Return the error for unsupported arguments, without the name of an internal operator."""
    text = str(error).partition(": ")[2]
    if text.startswith("op "):
        kinds = [type(x).__name__ if type(x) in NUMBERS else str(_call.dtype_of(x, name))
                 for x in given]  # fmt: skip
        text = f"there is no kernel for {', '.join(kinds)}; convert them, or use numpy.{name}"
    return NotTaken(f"{name}: {text}")


def numpy_error(ufunc: np.ufunc, given: Sequence[Any], error: BaseException, name: str) -> Any:
    """Return the error that NumPy raises for arguments of these dtypes, else this package's."""
    samples = [
        x if type(x) in NUMBERS else np.ones((), _call.dtype_of(x, name)) for x in given
    ]  # fmt: skip
    try:
        with np.errstate(all="ignore"):
            ufunc(*samples)
    except (TypeError, ValueError, OverflowError) as numpy_error:
        return numpy_error
    if isinstance(error, (TypeError, CompileError)):
        return _unsupported(given, error, name)
    return error


def outs_of(
    ufunc: np.ufunc, args: tuple[Any, ...], out: Any, name: str
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the inputs, and the outputs as a tuple of arrays or None."""
    nin, nout = ufunc.nin, ufunc.nout
    if not nin <= len(args) <= nin + nout:
        raise TypeError(
            f"{name}() takes from {nin} to {nin + nout} positional arguments but {len(args)} "
            "were given"
        )
    if len(args) > nin:
        if out is not None:
            raise TypeError(f"{name}: out is given by position and by keyword; pass it once")
        out = (*args[nin:], *(None,) * (nin + nout - len(args)))
    outs = out if isinstance(out, tuple) else (out,)
    if out is None:
        outs = (None,) * nout
    if len(outs) != nout:
        kind = ValueError if isinstance(out, tuple) else TypeError
        raise kind(f"{name}: out must be a tuple of {nout} arrays or None")
    for one in outs:
        if one is not None and not hasattr(one, "dtype"):
            raise TypeError(f"{name}: out must be an array, got {type(one).__name__}")
        operators.no_lazy_out(one, name)
    return args[:nin], outs


def mask_of(where: Any, name: str) -> Any:
    """Return ``where=`` as True, False or an array of bool."""
    if type(where) in (bool, int, np.bool_):
        return bool(where) or np.False_
    if not hasattr(where, "dtype"):
        where = np.asarray(where, bool)  # as NumPy does with lists of numbers
    return _call.bools_of(where, name)


def _select(mask: Any, new: Any, old: Any) -> Any:
    return new if mask else old


def computed(
    ufunc: np.ufunc, op: Any, given: Sequence[Any], is_lazy: bool, outs: tuple[Any, ...],
    where: Any, dtype: Any, casting: str, name: str,
) -> Any:  # fmt: skip
    """Return a ufunc's result for arguments with any options: one transform for each output.

    If `is_lazy`, results without an output are lazy.
    """
    if any(map(_call.is_swapped, outs)):
        options = where, dtype, casting, name
        return _call.with_native_outs(
            outs, lambda *outs: computed(ufunc, op, given, is_lazy, outs, *options)
        )
    inputs, kinds = tuple(given), None
    out_dtypes = [None if out is None else _call.dtype_of(out, name) for out in outs]
    inputs, kinds = operators.of_loop(ufunc, name, inputs, dtype, casting, tuple(out_dtypes))
    if casting == "unsafe":
        for x, converted in zip(given, inputs, strict=True):
            if x is not converted and hasattr(x, "dtype"):
                _call.warn_of_parts(_call.dtype_of(x, name), converted.dtype)
        for kind, wanted in zip(kinds, out_dtypes, strict=True):
            _call.warn_of_parts(kind, wanted or kind)
    parts: Sequence[Any] = (op,)
    if len(outs) > 1:
        parts = (np.floor_divide, np.remainder)
    try:
        values = [applied(part, inputs, name) for part in parts]
        values = [_call.cast(x, kind, name) for x, kind in zip(values, kinds, strict=True)]
    except (TypeError, ValueError, OverflowError, CompileError) as error:
        raise numpy_error(ufunc, given, error, name) from None
    if len(values) > 1 and any(out is not None for out in outs):
        # Compute all before any is written: an output may be an input, too.
        values = [lazy_of(copy(x)) for x in values]
    mask = None if where is True else lazy_of(where)
    shape = np.broadcast_shapes(*[x.shape for x in values], () if mask is None else mask.shape)
    full = np.broadcast_shapes(shape, *[tuple(out.shape) for out in outs if out is not None])
    for out in outs:
        if out is not None:
            _call.check_shape(out, full, name)
    final = []
    for x, out in zip(values, outs, strict=True):
        x = _fit(x, mask, full, out, name)
        if out is not None:
            _call.write(x, out)
        final.append(out if out is not None else x if is_lazy else _call.number_of(copy(x)))
    return final[0] if len(final) == 1 else tuple(final)


def _fit(x: Any, mask: Any, shape: tuple[int, ...], out: Any, name: str) -> Any:
    """Return a result in a shape and out's dtype; elements outside the mask keep out's values."""
    if out is not None:
        x = _call.cast(x, _call.dtype_of(out, name), name)
    if x.shape != shape:
        x = x.broadcast_to(shape)
    if mask is None:
        return x
    return applied(_select, (mask, x, x.dtype.type(0) if out is None else out), name)


_IN_FLOAT16 = np.hypot, np.logaddexp, np.logaddexp2  # of numbers of one byte
_FEW = {"reduce": _call.FEW_FOR_ONE_PASS, "reduceat": 1 << 22}  # NumPy takes less time
_MASKED = 1 << 14  # from this size a cheap ufunc with ``where=`` is a transform
_ON_HOST = (type(None), bool, np.bool_, np.ndarray)  # types of ``where=`` and ``out=``
_CODES = frozenset("?bBhHiIlLqQefdFD")  # typecodes of dtypes that have kernels
_RELATIONS = (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)
_CASTING = ("no", "equiv", "safe", "same_kind", "unsafe")


class UFunc:
    """An elementwise function, like `numpy.ufunc`.

    Attributes
    ----------
    nin, nout, nargs : int
        The number of inputs, of outputs, and of both.
    types : list of str
        NumPy's loops with supported dtypes; `ntypes` is their number.
    identity : number or None
        The identity element, as in NumPy.
    """

    __module__ = "gpualgo.numpy"
    signature = None  # None: works on elements, not on core dimensions

    def __init__(self, name: str, native: np.ufunc, op: Any = None) -> None:
        """Create a ufunc: `native` is NumPy's, `op` an operator that computes it."""
        self.__name__ = native.__name__
        self.__qualname__ = native.__name__
        self._name, self._native, self._op = name, native, native if op is None else op
        self.nin, self.nout, self.nargs = native.nin, native.nout, native.nargs
        self.types = [one for one in native.types if _CODES.issuperset(one.replace("->", ""))]
        self.ntypes, self.identity = len(self.types), native.identity

    def __repr__(self) -> str:
        return f"<gpualgo ufunc {self.__name__!r}>"

    def __reduce__(self) -> str:
        return self._name

    @property
    def __signature__(self) -> inspect.Signature:
        names = ["x"] if self.nin == 1 else [f"x{i + 1}" for i in range(self.nin)]
        called = inspect.signature(type(self).__call__).parameters.values()
        inputs = [inspect.Parameter(one, inspect.Parameter.POSITIONAL_ONLY) for one in names]
        return inspect.Signature([*inputs, *list(called)[2:]])

    def __call__(
        self, *args: Any, out: Any = None, where: Any = True, casting: Any = "same_kind",
        order: Any = "K", dtype: Any = None, subok: Any = True, signature: Any = None,
    ) -> Any:  # fmt: skip
        name, native = self.__name__, self._native
        outs: tuple[Any, ...] = (None,)
        if len(args) != self.nin or out is not None:
            args, outs = outs_of(native, args, out, name)
        is_plain = where is True and dtype is None and casting == "same_kind" and order == "K"
        if is_plain and signature is None and outs[0] is None is outs[-1]:
            if self._op is native and ARRAY_TYPES.issuperset(map(type, args)):
                return transformed(native, args, name)
            operands, size, location = arguments_of(args, name)
            if location == NUMBERS_ALONE:
                return native(*operands)
            if location == HOST and _call.is_few(size, _call.ALL):
                is_short = size < _loops.DEAR[1]
                return native(*operands) if is_short else _loops.run(native, operands, size)
            return plain(native, self._op, operands, location, name)
        operands, size, location = arguments_of(args, name)
        if order != "K" or signature is not None:
            self._refuse(order, signature)
        if casting not in _CASTING:
            if type(casting) is not str:
                raise TypeError(f"{name}: casting must be str, not {type(casting).__name__}")
            raise ValueError(f"{name}: casting must be one of {_CASTING}, got {shown(casting)}")
        if where is not True:
            where = mask_of(where, name)
        outs = outs if len(outs) == self.nout else (None,) * self.nout
        if location <= HOST and all(isinstance(x, _ON_HOST) for x in (where, *outs)):
            size += sum(one.size for one in outs if one is not None)
            is_few = location == NUMBERS_ALONE or _call.is_few(size, _call.ALL)
            if is_few and (where is True or self._is_masked_by_numpy(operands, size, outs)):
                return _loops.run(native, operands, size, outs, where, dtype, casting)
        options = outs, where, dtype, casting
        try:
            return computed(native, self._op, operands, location == LAZY, *options, name)
        except NotTaken:  # no kernel, such as of `reciprocal` for integers
            if location > HOST or not _call.is_few(size, _call.ALL):
                raise
        return _loops.run(native, operands, size, *options)

    def _is_masked_by_numpy(self, given: list[Any], size: int, outs: tuple[Any, ...]) -> bool:
        """Return whether NumPy runs a call with ``where=``: it is small, or dear with outputs.

        NumPy 2.4 crashes with ``where=`` if it compares with a Python number beyond the dtype.
        """
        if self._native in _RELATIONS and any(type(x) is int for x in given):
            return False
        is_dear = _loops.sizes_of(self._native) == _loops.DEAR
        return size < _MASKED or (is_dear and all(one is not None for one in outs))

    def _refuse(self, order: Any, signature: Any) -> None:
        name = self.__name__
        if signature is not None:
            raise NotTaken(f"{name}: signature= is not possible here; use dtype=, or numpy.{name}")
        if order not in ("C", "F", "A"):
            raise ValueError(
                f"{name}: order must be one of 'C', 'F', 'A', or 'K', got {shown(order)}"
            )
        raise NotTaken(f"{name}: order={shown(order)} is not possible here; leave it out")

    def reduce(
        self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None,
        keepdims: Any = False, initial: Any = UNSET, where: Any = True,
    ) -> Any:  # fmt: skip
        """Return the elements combined over axes, in one reduction; see `numpy.ufunc.reduce`.

        Raises
        ------
        NotTaken
            The ufunc is not known to be associative, which a parallel reduction needs.
        """

        def run(x: Any, out: Any, name: str) -> Any:
            return _folds.reduced(self._native, x, name, axis, dtype, out, keepdims, initial, where)

        options = {"keepdims": keepdims, "initial": initial, "where": where}
        return self._combine("reduce", run, array, (axis,), dtype, out, **options)

    def accumulate(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
        """Return elements combined with all before along an axis; see `numpy.ufunc.accumulate`.

        Raises
        ------
        NotTaken
            The ufunc is not known to be associative, which a parallel scan needs.
        """

        def run(x: Any, out: Any, name: str) -> Any:
            along = _single_axis(axis, x.ndim, name)
            return _folds.accumulated(self._native, x, along, dtype, out, name)

        return self._combine("accumulate", run, array, (axis,), dtype, out)

    def _combine(
        self, method: str, run: Callable[..., Any], array: Any, args: tuple[Any, ...], dtype: Any,
        out: Any, **options: Any,
    ) -> Any:  # fmt: skip
        """Return what NumPy's method returns for few elements, else what `run` does."""
        name, native = f"{self.__name__}.{method}", self._native
        if self.nin != 2:
            raise ValueError(f"{name}: {method} needs a function of two arguments")
        if self.nout != 1:
            raise ValueError(f"{name}: {method} needs a function that returns a single value")
        if native not in reductions.RULES:
            raise NotTaken(
                f"{name}: {self.__name__} is not known to be associative, which a parallel "
                f"{method} needs; use numpy.{name}"
            )
        x = array_of(array, f"{name}: array")
        few = _FEW.get(method, _call.FEW) if options.get("where", True) is True else _call.FEW
        own = _call.dtype_of(x, name)
        is_narrow = not _call.has_order(own) or (own.itemsize == 1 and native in _IN_FLOAT16)
        are_few = is_host(x) and _call.is_few(x.size, few) and not is_narrow
        if are_few and _call.is_numpys({"dtype": dtype, "out": out}, True):
            return getattr(native, method)(x, *args, dtype, out, **options)
        kinds: Any = {}
        if dtype is not None:
            kinds = {"signature": (dtypes.as_dtype(dtype, name), None, None), "casting": "unsafe"}
        if dtype is not None or out is None:  # raises as NumPy
            native.resolve_dtypes((None, own, None), reduction=True, **kinds)
        return _call.with_native_outs((out,), lambda out: run(x, out, name))

    def outer(self, A: Any, B: Any, /, **kwargs: Any) -> Any:
        """Return the ufunc of all pairs of elements of two arrays; see `numpy.ufunc.outer`."""
        name = f"{self.__name__}.outer"
        if self.nin != 2:
            raise ValueError(f"{name}: outer needs a function of two arguments")
        first, second = (array_of(x, f"{name}: {letter}") for x, letter in ((A, "A"), (B, "B")))
        num_axes = len(second.shape)
        if num_axes and len(first.shape):
            if type(first) is not np.ndarray:
                first = lazy_of(first)
            was_lazy = is_lazy(A) or is_lazy(B)
            first = first[(..., *(None,) * num_axes)]
            if not was_lazy and is_lazy(first) and not kwargs.get("out"):
                result = self(first, second, **kwargs)
                return tuple(map(copy, result)) if isinstance(result, tuple) else copy(result)
        return self(first, second, **kwargs)

    def at(self, a: Any, indices: Any, b: Any = None, /) -> None:
        """Combine elements of an array in place with others, by index; see `numpy.ufunc.at`."""
        _folds.at(self._native, a, indices, b, f"{self.__name__}.at")

    def reduceat(
        self, array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None
    ) -> Any:
        """Return the elements of segments combined; see `numpy.ufunc.reduceat`."""
        if hasattr(indices, "__cuda_array_interface__"):
            indices = _call.host_of(indices, f"{self.__name__}.reduceat")

        def run(x: Any, out: Any, name: str) -> Any:
            along = _call.axis_of(axis, x.ndim, name)
            return _folds.reduceat(self._native, x, indices, along, dtype, out, name)

        return self._combine("reduceat", run, array, (indices, axis), dtype, out)


def _single_axis(axis: Any, ndim: int, name: str) -> Any:
    if axis is None or isinstance(axis, tuple):
        axes = tuple(range(ndim)) if axis is None else axis
        if ndim and len(axes) != 1:
            raise ValueError(f"{name}: accumulate takes one axis, got axis={shown(axis)}")
        return axes[0] if len(axes) == 1 else 0
    axis = checks.plain_axis(axis, name)
    return checks.axis_of(axis, ndim, name) if ndim or axis not in (0, -1) else axis


def _all_ufuncs() -> dict[str, UFunc]:
    """Return the ufuncs by name; all names of one function share an instance."""
    objects: dict[np.ufunc, UFunc] = {}
    ufuncs = {}
    for entry in table.ENTRIES:
        module, _, name = entry.name.rpartition(".")
        native = getattr(np, name, None) if module == "np" else None
        if isinstance(native, np.ufunc):
            ufuncs[name] = objects.setdefault(native, UFunc(native.__name__, native))
    return dict(sorted(ufuncs.items()))


UFUNCS = _all_ufuncs()
for _name, _ufunc in UFUNCS.items():
    _call.TABLE[_name] = _call.Entry(_name, _ufunc, _ufunc._native, differs(_ufunc._native))
UFunc.__doc__ = Doc(UFunc.__doc__ or "")  # type: ignore[assignment]
