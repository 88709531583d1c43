"""What a wrapped namespace answers with: functions of ours that hand on what they do not take."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._base import dtypes
from gpualgo.numpy._call.arguments import NotTaken

if TYPE_CHECKING:
    from gpualgo.numpy._wrap.namespace import Namespace

# Libraries whose dtypes are NumPy's, and whose arrays algorithms know.
_NUMPYS = frozenset(("numpy", "cupy", "gpualgo", "ml_dtypes"))
_KNOWN = _NUMPYS | {"torch"}
# Libraries whose arrays are NumPy's in another class, and mean the same.
_OVER_NUMPY = frozenset(("array_api_strict",))
_METHODS = ("reduce", "accumulate", "reduceat", "outer", "at")


def name_of(namespace: Any) -> str:
    """Return what a namespace is called."""
    return str(getattr(namespace, "__name__", None) or type(namespace).__name__)


class Answer:
    """A function of `gpualgo.numpy` that hands on what it does not take."""

    def __init__(self, ours: Callable[..., Any], over: Namespace, name: str) -> None:
        """Make it of our function and the namespace whose function of that name is the other."""
        self._ours, self._over, self._name = ours, over, name
        root = _root(name_of(over._namespace))
        self._is_numpys, self._is_cupys = root in _NUMPYS, root == "cupy"
        self.__wrapped__ = ours
        self.__signature__ = _signature_of(ours, self._theirs(()) if self._is_numpys else None)
        self.__name__ = getattr(ours, "__name__", name)  # of np.abs it is "absolute"
        self.__qualname__ = self.__name__
        self.__doc__ = ours.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call our function, else the namespace's."""
        return self._called(self._ours, (), args, kwargs)

    def _called(
        self, ours: Callable[..., Any], path: tuple[str, ...], args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:  # fmt: skip
        """Call a function of ours, else the namespace's attribute at a path from that name."""
        given, others, is_other = args, kwargs, False
        is_own = any(map(_has_own, args)) or (kwargs and any(map(_has_own, kwargs.values())))
        if is_own or ("out" in kwargs and _means_more(kwargs["out"])):
            return self._handed_on(path, args, kwargs, "an argument has functions of its own")
        if self._is_cupys and _are_of_host(args, kwargs):
            return self._handed_on(path, args, kwargs, "an array is NumPy's; pass cupy.asarray(x)")
        try:
            if not self._is_numpys:
                found = _Translated()
                given, others = found.of(args), found.of(kwargs)
                is_other = found.has_other
            result = ours(*given, **others)
        except NotTaken as error:
            refusal = str(error)  # alone: its frames would hold this one, and the arguments
        except TypeError as error:
            if not _is_beyond(ours, given, others):
                raise
            refusal = str(error)  # it has not begun
        else:
            return self._given_back(result) if is_other else result
        return self._handed_on(path, args, kwargs, refusal)

    def _handed_on(self, path: tuple[str, ...], args: Any, kwargs: Any, refusal: str) -> Any:
        """Call the namespace's own; raise why ours did not take it where there is none."""
        theirs = self._theirs(path)
        if theirs is None:
            raise NotTaken(refusal)
        return theirs(*args, **kwargs)

    def _theirs(self, path: tuple[str, ...]) -> Any:
        theirs = getattr(self._over._namespace, self._name, None)
        for name in path:
            theirs = getattr(theirs, name, None)
        return theirs

    def _given_back(self, result: Any) -> Any:
        """Return arrays of NumPy's as the namespace's own."""
        if isinstance(result, tuple) and hasattr(result, "_fields"):
            return type(result)(*map(self._given_back, result))
        if isinstance(result, (tuple, list)):
            return type(result)(map(self._given_back, result))
        if isinstance(result, (np.ndarray, np.generic)):
            return self._over._namespace.asarray(np.asarray(result))
        return result

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name not in ("_implementation",):
            raise AttributeError(f"{self!r} has no attribute {name!r}")
        return getattr(getattr(self._over._namespace, self._name), name)

    def __repr__(self) -> str:
        return f"<{self._name} of {self._over!r}>"

    def __eq__(self, other: object) -> bool:
        """Return whether it is the same function, or the namespace's own that it stands for."""
        if isinstance(other, Answer):
            return (self._over, self._name) == (other._over, other._name)
        return other is not None and other is self._theirs(())

    def __hash__(self) -> int:  # that of the namespace's own: tables know both
        return hash(self._theirs(()) or self._name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return getattr, (self._over, self._name)

    def __copy__(self) -> Answer:
        return self

    def __deepcopy__(self, memo: Any) -> Answer:
        return self


class UFuncAnswer(Answer):
    """A ufunc of `gpualgo.numpy` that hands on what it, or a method of it, does not take."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """That of the namespace's own: programs ask whether a function is a `numpy.ufunc`."""
        theirs = self._theirs(())
        return UFuncAnswer if theirs is None else type(theirs)

    def __getattr__(self, name: str) -> Any:
        ours, theirs = self._ours, self._theirs(())
        if name not in _METHODS:
            return getattr(theirs if hasattr(theirs, name) else ours, name)
        method = getattr(ours, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            return self._called(method, (name,), args, kwargs)

        call.__name__, call.__doc__ = name, method.__doc__
        call.__qualname__ = f"{self._name}.{name}"
        return call


# How classes say that NumPy's functions of their instances are theirs, or give theirs back.
_PROTOCOLS = ("__array_ufunc__", "__array_function__", "__array_wrap__")
_own: dict[type, bool] = dict.fromkeys((np.ndarray, int, float, bool, str, type(None)), False)


def _has_own(x: Any) -> bool:
    """Return whether an argument has a class with functions of its own, as pandas' have.

    Of lists the first item tells, or those in it: others are not looked at one by one.
    """
    cls = type(x)
    if cls is list or cls is tuple:
        if not x or (_own.get(type(x[0])) is False and type(x[0]) is not np.ndarray):
            return False
        return any(map(_has_own, x))
    found = _own.get(cls)
    if found is None:
        root = _root(cls.__module__)
        is_known = root in _KNOWN and (root != "numpy" or issubclass(cls, (np.ndarray, np.generic)))
        found = not is_known and any(hasattr(cls, name) for name in _PROTOCOLS)
        _own[cls] = found
    return found


def _are_of_host(args: Any, kwargs: Any) -> bool:
    """Return whether all arrays of a call are NumPy's, which CuPy refuses."""
    found = [type(x) is np.ndarray for x in (*args, *kwargs.values()) if hasattr(x, "__array__")]
    return bool(found) and all(found)


def _means_more(x: Any) -> bool:
    """Return whether an output is more than its elements, or none at all: ``out=...``."""
    if isinstance(x, (tuple, list)):
        return any(map(_means_more, x))
    return x is ... or (isinstance(x, np.ndarray) and type(x) is not np.ndarray)


def _is_beyond(ours: Callable[..., Any], args: Any, kwargs: Any) -> bool:
    """Return whether a call has what a function knows nothing of: parameters, dtypes, classes."""
    try:
        bound = inspect.signature(ours).bind(*args, **kwargs).arguments
    except TypeError:
        return True
    if any(x is ... for x in bound.values()):
        return True
    found = [x.dtype for x in bound.values() if isinstance(x, np.ndarray)]
    try:
        found.append(np.dtype(bound.get("dtype")))
    except TypeError:
        pass  # no dtype of NumPy's
    return any(dtypes.name_of(dtype) is None for dtype in found)


def _signature_of(ours: Callable[..., Any], theirs: Any) -> inspect.Signature:
    """Return the signature of NumPy's function, else that of ours as NumPy would show it."""
    try:
        return inspect.signature(theirs)
    except (TypeError, ValueError):  # there is none, or it is written in C
        found = inspect.signature(ours)
    plain = [one.replace(annotation=one.empty) for one in found.parameters.values()]
    return found.replace(parameters=plain, return_annotation=found.empty)


def _root(module: str) -> str:
    return module.partition(".")[0]


class _Translated:
    """Arguments of libraries other than NumPy as our functions know them."""

    def __init__(self) -> None:
        self.has_other = False  # an array that results become as well

    def of(self, x: Any) -> Any:
        """Return an argument; raise NotTaken for what is not known here."""
        cls = type(x)
        if cls in (int, float, bool, str, type(None), np.ndarray):
            return x
        if cls is tuple or cls is list:
            return cls(map(self.of, x))
        if cls is dict:
            return {key: self.of(value) for key, value in x.items()}
        root = _root(cls.__module__)
        if root in _NUMPYS:
            return x
        if cls.__name__.lower() == "dtype":
            name = str(x).rpartition(".")[2]
            if name not in dtypes.NAMES:
                raise NotTaken(f"{x} has no kernel")
            return dtypes.from_name(name)
        if getattr(x, "requires_grad", False) is True:
            raise NotTaken("a tensor that requires grad would lose its gradient here")
        if root not in _KNOWN and hasattr(cls, "__array_namespace__"):
            if root not in _OVER_NUMPY:
                raise NotTaken(f"arrays of {root} are its own functions' to work on")
            self.has_other = True
            return np.asarray(x)
        return x
