"""Wrapped namespaces: NumPy's names call functions of this package, all else is delegated."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from gpualgo._base import dtypes
from gpualgo.numpy._call import TABLE, NotTaken


def wrap(namespace: Any) -> Namespace:
    """Return a namespace that runs NumPy's names here and delegates all others.

    Parameters
    ----------
    namespace : module
        NumPy, CuPy, PyTorch, or another that has NumPy's names.

    Returns
    -------
    Namespace
        Its attributes with names of `gpualgo.numpy` are the functions and ufuncs of that module,
        with their signatures and results. A call that they do not support is delegated to the
        namespace's own function: with arguments for which they raise `NotTaken`, such as strings
        and objects, with parameters that they do not have, with arrays of an unknown library, and
        with tensors that require a gradient. All other attributes are the namespace's own,
        including its classes: only `gpualgo.numpy.vectorize` is compiled, the namespace's
        ``vectorize`` is not.

    Notes
    -----
    The namespace itself and the methods of its arrays are not changed. The names have NumPy's
    meaning in every namespace: ``wrap(torch).sort(x)`` returns only sorted values.

    Examples
    --------
    >>> import numpy
    >>> import gpualgo.numpy as gnp
    >>> np = gnp.wrap(numpy)
    >>> np.bincount(np.arange(3) ** 2)
    array([1, 1, 0, 0, 1])
    >>> np.float32 is numpy.float32
    True
    """
    if isinstance(namespace, Namespace):
        return namespace
    if namespace is None or isinstance(namespace, (str, bytes, np.ndarray, np.generic)):
        raise TypeError(
            f"wrap: namespace is a {type(namespace).__name__}; pass a module, such as numpy"
        )
    wrapped = _namespaces.get(id(namespace))
    if wrapped is None:
        wrapped = _namespaces[id(namespace)] = Namespace(namespace)
    return wrapped


wrap.__module__ = "gpualgo.numpy"

# Namespaces in use, by the id of the wrapped one: another call returns the same object.
_namespaces: WeakValueDictionary[int, Namespace] = WeakValueDictionary()


class Namespace:
    """NumPy's names from `gpualgo.numpy`, all others from another namespace: see `wrap`."""

    __module__ = "gpualgo.numpy"

    def __init__(self, namespace: Any) -> None:
        """Wrap a namespace; `wrap` does not wrap a Namespace again."""
        self.__dict__["_namespace"] = namespace

    def __getattr__(self, name: str) -> Any:
        if name == "_namespace":  # copying and unpickling ask before it is set
            raise AttributeError(name)
        entry = TABLE.get(name)
        if entry is None or isinstance(entry.function, type):
            return getattr(self._namespace, name)
        is_function = inspect.isfunction(entry.function)
        function = (WrappedFunction if is_function else WrappedUFunc)(entry.function, self, name)
        self.__dict__[name] = function  # the next look-up finds it
        return function

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{self!r} cannot be changed; set {name} on the namespace itself")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{self!r} cannot be changed; {name} is not deleted")

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._namespace), *TABLE})

    def __repr__(self) -> str:
        return f"<gpualgo.numpy over {name_of(self._namespace)}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Namespace) and self._namespace is other._namespace

    def __hash__(self) -> int:
        return hash((Namespace, id(self._namespace)))

    def __copy__(self) -> Namespace:
        return self

    def __deepcopy__(self, memo: Any) -> Namespace:
        return self

    def __reduce__(self) -> Any:
        namespace = self._namespace
        if isinstance(namespace, ModuleType):
            return _of_module, (namespace.__name__,)
        return wrap, (namespace,)


def _of_module(name: str) -> Namespace:
    """Return the namespace that wraps a module; pickles refer to this function."""
    return wrap(importlib.import_module(name))


# --- Functions of a namespace: they call this package's, and delegate what it rejects.

# Libraries whose dtypes are NumPy's and whose arrays algorithms accept.
_NUMPY_LIKE = frozenset(("numpy", "cupy", "gpualgo", "ml_dtypes"))
_KNOWN = _NUMPY_LIKE | {"torch"}
# Libraries whose arrays wrap NumPy's without other meaning.
_NUMPY_WRAPPERS = frozenset(("array_api_strict",))
_METHODS = ("reduce", "accumulate", "reduceat", "outer", "at")


def name_of(namespace: Any) -> str:
    return str(getattr(namespace, "__name__", None) or type(namespace).__name__)


class WrappedFunction:
    """A function of `gpualgo.numpy` that delegates calls it does not support."""

    def __init__(self, function: Callable[..., Any], wrapper: Namespace, name: str) -> None:
        """Wrap a function of the table; `name` in the wrapped namespace gets what it rejects."""
        self._function, self._wrapper, self._name = function, wrapper, name
        root = _package(name_of(wrapper._namespace))
        self._is_numpy, self._is_cupy = root in _NUMPY_LIKE, root == "cupy"
        self.__wrapped__ = function
        self.__signature__ = _signature_of(function, self._native(()) if self._is_numpy else None)
        self.__name__ = getattr(function, "__name__", name)  # "absolute" for np.abs
        self.__qualname__ = self.__name__
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call_or_delegate(self._function, (), args, kwargs)

    def _call_or_delegate(
        self, function: Callable[..., Any], path: tuple[str, ...], args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:  # fmt: skip
        """Call a function; if it rejects the call, call the namespace's attribute at `path`."""
        positional, keywords, returns_other = args, kwargs, False
        is_own = any(map(_overrides, args)) or (kwargs and any(map(_overrides, kwargs.values())))
        if is_own or ("out" in kwargs and _has_other_meaning(kwargs["out"])):
            return self._delegate(
                path, args, kwargs, "an argument's class overrides NumPy's functions"
            )
        if self._is_cupy and _are_host_arrays(args, kwargs):
            return self._delegate(path, args, kwargs, "an array is NumPy's; pass cupy.asarray(x)")
        try:
            if not self._is_numpy:
                translated = _Translator()
                positional, keywords = translated.of(args), translated.of(kwargs)
                returns_other = translated.has_other
            result = function(*positional, **keywords)
        except NotTaken as error:
            refusal = str(error)  # not the error: its traceback holds the arguments
        except TypeError as error:
            if not _is_unsupported(function, positional, keywords):
                raise
            refusal = str(error)  # the function has not begun
        else:
            return self._to_namespace(result) if returns_other else result
        return self._delegate(path, args, kwargs, refusal)

    def _delegate(self, path: tuple[str, ...], args: Any, kwargs: Any, refusal: str) -> Any:
        """Call the namespace's own function; if there is none, raise why the call is rejected."""
        native = self._native(path)
        if native is None:
            raise NotTaken(refusal)
        return native(*args, **kwargs)

    def _native(self, path: tuple[str, ...]) -> Any:
        native = getattr(self._wrapper._namespace, self._name, None)
        for name in path:
            native = getattr(native, name, None)
        return native

    def _to_namespace(self, result: Any) -> Any:
        if isinstance(result, tuple) and hasattr(result, "_fields"):
            return type(result)(*map(self._to_namespace, result))
        if isinstance(result, (tuple, list)):
            return type(result)(map(self._to_namespace, result))
        if isinstance(result, (np.ndarray, np.generic)):
            return self._wrapper._namespace.asarray(np.asarray(result))
        return result

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name not in ("_implementation",):
            raise AttributeError(f"{self!r} has no attribute {name!r}")
        return getattr(getattr(self._wrapper._namespace, self._name), name)

    def __repr__(self) -> str:
        return f"<{self._name} of {self._wrapper!r}>"

    def __eq__(self, other: object) -> bool:
        """Return whether it is the same function, or the namespace's own that it stands for."""
        if isinstance(other, WrappedFunction):
            return (self._wrapper, self._name) == (other._wrapper, other._name)
        return other is not None and other is self._native(())

    def __hash__(self) -> int:  # equals the hash of the namespace's own function
        return hash(self._native(()) or self._name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return getattr, (self._wrapper, self._name)


class WrappedUFunc(WrappedFunction):
    """A ufunc of `gpualgo.numpy` that delegates calls it, or a method of it, does not support."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class of the namespace's own function: programs test for `numpy.ufunc`."""
        native = self._native(())
        return WrappedUFunc if native is None else type(native)

    def __getattr__(self, name: str) -> Any:
        function, native = self._function, self._native(())
        if name not in _METHODS:
            return getattr(native if hasattr(native, name) else function, name)
        method = getattr(function, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            return self._call_or_delegate(method, (name,), args, kwargs)

        call.__name__, call.__doc__ = name, method.__doc__
        call.__qualname__ = f"{self._name}.{name}"
        return call


# Methods by which classes override NumPy's functions or their results.
_PROTOCOLS = ("__array_ufunc__", "__array_function__", "__array_wrap__")
_overriding: dict[type, bool] = dict.fromkeys(
    (np.ndarray, int, float, bool, str, type(None)), False
)


def _overrides(x: Any) -> bool:
    """Return whether an argument's class overrides NumPy's functions, as pandas' do.

    Only the first item of a list decides whether its items are looked at.
    """
    cls = type(x)
    if cls is list or cls is tuple:
        if not x or (_overriding.get(type(x[0])) is False and type(x[0]) is not np.ndarray):
            return False
        return any(map(_overrides, x))
    has_override = _overriding.get(cls)
    if has_override is None:
        root = _package(cls.__module__)
        is_known = root in _KNOWN and (root != "numpy" or issubclass(cls, (np.ndarray, np.generic)))
        has_override = not is_known and any(hasattr(cls, name) for name in _PROTOCOLS)
        _overriding[cls] = has_override
    return has_override


def _are_host_arrays(args: Any, kwargs: Any) -> bool:
    """Return whether all arrays of a call are NumPy's, which CuPy rejects."""
    is_numpy = [type(x) is np.ndarray for x in (*args, *kwargs.values()) if hasattr(x, "__array__")]
    return bool(is_numpy) and all(is_numpy)


def _has_other_meaning(x: Any) -> bool:
    """Return whether an output has more meaning than its elements, or is ``...``."""
    if isinstance(x, (tuple, list)):
        return any(map(_has_other_meaning, x))
    return x is ... or (isinstance(x, np.ndarray) and type(x) is not np.ndarray)


def _is_unsupported(function: Callable[..., Any], args: Any, kwargs: Any) -> bool:
    """Return whether a call uses parameters, dtypes or classes that our function does not have."""
    try:
        arguments = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError:
        return True
    if any(x is ... for x in arguments.values()):
        return True
    used_dtypes = [x.dtype for x in arguments.values() if isinstance(x, np.ndarray)]
    try:
        used_dtypes.append(np.dtype(arguments.get("dtype")))
    except TypeError:
        pass  # not a NumPy dtype
    return any(dtypes.name_of(dtype) is None for dtype in used_dtypes)


def _signature_of(function: Callable[..., Any], native: Any) -> inspect.Signature:
    try:
        return inspect.signature(native)
    except (TypeError, ValueError):  # there is no such function, or it is written in C
        return inspect.signature(function)


def _package(module: str) -> str:
    return module.partition(".")[0]


class _Translator:
    """Converts arguments of other libraries to those that our functions accept."""

    def __init__(self) -> None:
        self.has_other = False  # an array was converted, so results are converted back

    def of(self, x: Any) -> Any:
        """Return a converted argument; raise NotTaken for an unknown one."""
        cls = type(x)
        if cls in (int, float, bool, str, type(None), np.ndarray):
            return x
        if cls is tuple or cls is list:
            return cls(map(self.of, x))
        if cls is dict:
            return {key: self.of(value) for key, value in x.items()}
        root = _package(cls.__module__)
        if root in _NUMPY_LIKE:
            return x
        if cls.__name__.lower() == "dtype":
            name = str(x).rpartition(".")[2]
            if name not in dtypes.NAMES:
                raise NotTaken(f"{x} has no kernel")
            return dtypes.from_name(name)
        if getattr(x, "requires_grad", False) is True:
            raise NotTaken("a tensor that requires grad would lose its gradient here")
        if root not in _KNOWN and hasattr(cls, "__array_namespace__"):
            if root not in _NUMPY_WRAPPERS:
                raise NotTaken(f"arrays of {root} are handled by that library's functions")
            self.has_other = True
            return np.asarray(x)
        return x


def of_native(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return the function of this package for one of NumPy's, None if there is none."""
    for entry in TABLE.values():
        if entry.native is function or getattr(np, entry.name, None) is function:
            return entry.function
    return None
