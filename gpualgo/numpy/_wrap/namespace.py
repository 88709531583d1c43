"""Namespaces that run NumPy's names here and delegate all others, so programs run unchanged."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from gpualgo.numpy._call.function import TABLE
from gpualgo.numpy._wrap.answers import Answer, UFuncAnswer, name_of


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
        function = (Answer if is_function else UFuncAnswer)(entry.function, self, name)
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
