"""Python's operators and NumPy's protocols on lazy arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, NoReturn

import numpy as np

from gpualgo._base import dtypes
from gpualgo._lazy import hooks
from gpualgo._operators.numpy_rules import table

# --- NumPy ufuncs on lazy arrays: those that operators support, and some reductions.

MAKE_REAL = (
    "lazy arrays do not support this function; materialize it with gpualgo.copy(x) or "
    "np.asarray(x) first"
)


def called(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a ufunc, or of one of its methods, for arguments with a lazy array."""
    is_call = method == "__call__"
    name = f"np.{ufunc.__name__}" if is_call else f"np.{ufunc.__name__}.{method}"
    out = kwargs.pop("out", None)
    outs = out if isinstance(out, tuple) else (out,)
    for one in outs:
        no_lazy_out(one, name)
    if kwargs.get("where", True) is True:
        kwargs.pop("where", None)
    is_known = method in ("reduce", "accumulate") and ufunc.nin == 2
    if is_call:
        is_known = ufunc is np.divmod or table.entry_of(ufunc) is not None
    if not is_known:
        raise TypeError(f"{name}: {MAKE_REAL}")
    for option in kwargs:
        if option not in (("dtype",) if is_call else ("axis", "dtype", "keepdims", "initial")):
            raise no_option(name, option)
    # NumPy converts its scalars to 0-d arrays before it calls `__array_ufunc__`.
    inputs = tuple([x[()] if type(x) is np.ndarray and not x.ndim else x for x in inputs])
    if not is_call:
        of_numpy = getattr(import_module("gpualgo.numpy"), ufunc.__name__)
        return getattr(of_numpy, method)(*inputs, out=outs[0], **kwargs)
    dtype = kwargs.get("dtype")
    is_lazy = all(one is None for one in outs)
    if is_lazy and dtype is None:
        _check_loop(ufunc, *map(_kind_of, inputs))
        parts = (np.floor_divide, np.remainder) if ufunc is np.divmod else (ufunc,)
        made = tuple([hooks.applied(part, inputs, name) for part in parts])
        return made if len(made) > 1 else made[0]
    computed = import_module("gpualgo.numpy._ufuncs").computed
    outs = (None,) * ufunc.nout if is_lazy else outs
    return computed(ufunc, ufunc, inputs, is_lazy, outs, True, dtype, "same_kind", name)


def _kind_of(x: Any) -> Any:
    """Return what `_check_loop` takes for an argument; None if it is not known yet."""
    if type(x) in (int, float, complex):
        return type(x)
    return x._known_dtype() if hasattr(x, "leaves") else getattr(x, "dtype", None)


@lru_cache(256, typed=True)
def _check_loop(ufunc: np.ufunc, *kinds: Any) -> None:
    """Raise NumPy's error for dtypes without a loop, if NumPy knows all of them."""
    if all(isinstance(kind, type) or getattr(kind, "kind", "V") in "biufc" for kind in kinds):
        ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout))


def written(x: Any, out: Any, name: str) -> Any:
    shape = tuple(getattr(out, "shape", x.shape))
    if x.shape != shape:
        if np.broadcast_shapes(x.shape, shape) != shape:
            raise ValueError(f"{name}: out has shape {shape}, the result has {x.shape}")
        x = x.broadcast_to(shape)
    hooks.copy(x, out=out)
    return out


def no_lazy_out(out: Any, name: str) -> None:
    if hasattr(out, "leaves"):
        raise TypeError(f"{name}: out is a lazy array, which has no memory; pass an array")


def no_option(name: str, option: str) -> TypeError:
    return TypeError(
        f"{name}: {option}= is not possible with lazy arrays; materialize them with "
        "gpualgo.copy(x) or np.asarray(x) first"
    )


def of_loop(
    ufunc: np.ufunc, name: str, inputs: tuple[Any, ...], dtype: Any, casting: str = "same_kind",
    outs: tuple[np.dtype[Any] | None, ...] = (),
) -> tuple[tuple[Any, ...], tuple[np.dtype[Any], ...]]:  # fmt: skip
    """Return arguments converted to the dtypes of NumPy's loop, and the dtypes of its results.

    Without ``dtype=`` the arguments are returned unchanged. ``outs`` are the dtypes of the outputs;
    a cast that NumPy does not allow is a TypeError.
    """
    nin, nout = ufunc.nin, ufunc.nout
    wanted = None if dtype is None else dtypes.as_dtype(dtype, name)
    kinds = kinds_of(inputs, name)
    if casting == "equiv" and any(isinstance(kind, type) for kind in kinds):
        casting = "no"  # same for native byte order; NumPy 2.4 crashes on Python numbers and equiv
    options: dict[str, Any] = {"casting": casting}
    if wanted is not None:
        options["signature"] = (*(None,) * nin, *(wanted,) * nout)
    try:
        loop_dtypes = ufunc.resolve_dtypes((*kinds, *(outs or (None,) * nout)), **options)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None
    if wanted is None:
        return inputs, tuple(loop_dtypes[nin:])
    converted = [
        to.type(x) if isinstance(kind, type) else cast(x, kind, to, name)
        for x, kind, to in zip(inputs, kinds, loop_dtypes[:nin], strict=True)
    ]
    return tuple(converted), tuple(loop_dtypes[nin:])


def kinds_of(inputs: Sequence[Any], name: str) -> list[Any]:
    """Return arguments' dtypes for ``resolve_dtypes``: types for Python numbers."""
    return [type(x) if type(x) in (int, float, complex) else _dtype_of(x, name) for x in inputs]


def cast(x: Any, kind: np.dtype[Any], to: np.dtype[Any], name: str) -> Any:
    """Return an argument converted to a dtype; complex to real takes the real part."""
    if isinstance(x, (bool, np.generic)):
        return np.asarray(x).astype(to)[()]
    if kind.kind == "c" and to.kind != "c":
        x = hooks.applied(np.real, (x,), name)
    return hooks.applied(to.type, (x,), name)


def finfo(dtype: np.dtype[Any]) -> Any:
    """Return ``numpy.finfo``, also of bfloat16."""
    module: Any = np if dtype.kind in "fc" else import_module("ml_dtypes")
    return module.finfo(dtype)


def _dtype_of(x: Any, name: str) -> np.dtype[Any]:
    return dtypes.as_dtype(x.dtype, name) if hasattr(x, "dtype") else np.asarray(x).dtype


# Operands that NumPy would convert to arrays (also of objects) or repeat.
_NO_OPERANDS = (list, dict, set, frozenset, str, bytes, type(None))


def _applied(fn: Callable[..., Any], *arguments: Any) -> Any:
    for x in arguments:
        if isinstance(x, _NO_OPERANDS):
            raise TypeError(
                f"{fn.__name__.strip('_')}: a lazy array combines with arrays and numbers, not "
                f"with {type(x).__name__}; pass np.asarray(…), or compare with `is`"
            )
    return hooks.applied(fn, arguments, fn.__name__)


def _operator(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments: _applied(fn, *arguments)


def _with_reflected(fn: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    return _operator(fn), lambda self, other: _applied(fn, other, self)


def item(x: Any) -> Any:
    return x.item()


item.__name__ = "format"  # in messages
_METHODS = frozenset(name for name in dir(np.ndarray) if name[0] != "_")


def _conversion(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda self: self._number(convert)


def _method(fn: Any) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return hooks.implementation_of(fn)(self, *args, **kwargs)

    method.__doc__ = f"Return what ``numpy.{fn.__name__}`` does."
    return method


class Operators:
    __slots__ = ()
    __array_priority__ = 1000.0
    __hash__ = None  # type: ignore[assignment]

    __add__, __radd__ = _with_reflected(operator.add)
    __sub__, __rsub__ = _with_reflected(operator.sub)
    __mul__, __rmul__ = _with_reflected(operator.mul)
    __truediv__, __rtruediv__ = _with_reflected(operator.truediv)
    __floordiv__, __rfloordiv__ = _with_reflected(operator.floordiv)
    __mod__, __rmod__ = _with_reflected(operator.mod)
    __pow__, __rpow__ = _with_reflected(operator.pow)
    __lshift__, __rlshift__ = _with_reflected(operator.lshift)
    __rshift__, __rrshift__ = _with_reflected(operator.rshift)
    __and__, __rand__ = _with_reflected(operator.and_)
    __or__, __ror__ = _with_reflected(operator.or_)
    __xor__, __rxor__ = _with_reflected(operator.xor)
    __lt__, __le__ = _operator(operator.lt), _operator(operator.le)
    __gt__, __ge__ = _operator(operator.gt), _operator(operator.ge)
    __eq__, __ne__ = _operator(operator.eq), _operator(operator.ne)
    __neg__, __pos__ = _operator(operator.neg), _operator(operator.pos)
    __abs__, __invert__ = _operator(operator.abs), _operator(operator.invert)

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    def __matmul__(self, other: Any) -> NoReturn:
        raise TypeError(
            "matmul: lazy arrays have no matrix product; use np.dot of two with one axis, or "
            "materialize them with gpualgo.copy(x)"
        )

    __rmatmul__ = __matmul__

    # Conversion of one element to a number.

    def _number(self, convert: Callable[[Any], Any]) -> Any:
        size = getattr(self, "size", 0)
        if size != 1:
            raise (ValueError if convert is bool else TypeError)(
                f"{convert.__name__}: a lazy array of {size} elements is not one number; "
                "use np.any, np.all or another reduction of it"
            )
        return convert(hooks.copy(hooks.reshaped(self, (), "")))

    def __format__(self, spec: str) -> str:
        return format(self._number(item), spec) if spec else str(self)

    def __getattr__(self, name: str) -> NoReturn:
        cure = "; gpualgo.copy(x) materializes it" if name in _METHODS else ""
        raise AttributeError(f"a lazy array has no {name!r}{cure}", name=name, obj=self)

    __bool__, __int__ = _conversion(bool), _conversion(int)
    __float__, __complex__ = _conversion(float), _conversion(complex)

    def __index__(self) -> int:
        shape = getattr(self, "shape", None)
        if shape != ():
            raise TypeError(f"index: a lazy array of shape {shape} is not an integer")
        return operator.index(np.asarray(hooks.copy(self).item()))  # CuPy's have no __index__

    # Not supported: each element would be computed by its own call.

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(
            "a lazy array cannot be iterated, because each element would be a separate call; "
            "materialize it first, with gpualgo.copy(x) or np.asarray(x)"
        )

    def __contains__(self, value: Any) -> NoReturn:
        raise TypeError("`in` is not supported for a lazy array; use np.any(x == value)")

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise TypeError(
            "a lazy array has no elements to assign to; materialize it with gpualgo.copy(x), or "
            "use np.where"
        )

    def __copy__(self) -> Any:
        return self  # immutable

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(
            "a lazy array cannot be pickled or deep-copied, because it refers to functions and "
            "arrays; materialize it with gpualgo.copy(x)"
        )

    # Complex numbers.

    @property
    def real(self) -> Any:
        """The real part of each element."""
        return hooks.applied(np.real, (self,), "real")

    @property
    def imag(self) -> Any:
        """The imaginary part of each element."""
        return hooks.applied(np.imag, (self,), "imag")

    def conj(self) -> Any:
        """Return the complex conjugates."""
        return hooks.applied(np.conjugate, (self,), "conj")

    conjugate = conj

    # Array methods that are NumPy functions.

    sum, prod, mean = _method(np.sum), _method(np.prod), _method(np.mean)
    min, max = _method(np.min), _method(np.max)
    argmin, argmax = _method(np.argmin), _method(np.argmax)
    any, all = _method(np.any), _method(np.all)
    var, std = _method(np.var), _method(np.std)
    cumsum, cumprod = _method(np.cumsum), _method(np.cumprod)
    argsort, dot, clip = _method(np.argsort), _method(np.dot), _method(np.clip)
    round, squeeze, swapaxes = _method(np.round), _method(np.squeeze), _method(np.swapaxes)

    # NumPy's protocols.

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return called(ufunc, method, inputs, kwargs)

    def __cupy_override_elementwise_kernel__(self, kernel: Any, *inputs: Any, **kwargs: Any) -> Any:
        """Compute a CuPy ufunc: CuPy looks for this method in all arguments."""
        name = str(getattr(kernel, "name", kernel)).removeprefix("cupy_")
        ufunc = getattr(np, name, None)
        if not isinstance(ufunc, np.ufunc):
            raise TypeError(f"cupy.{name}: {MAKE_REAL}")
        return called(ufunc, "__call__", inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        implementation = hooks.implementation_of(func)
        if implementation is None:
            module = str(func.__module__).replace("numpy", "np", 1)
            raise TypeError(f"{module}.{func.__name__}: {MAKE_REAL}")
        return implementation(*args, **kwargs)
