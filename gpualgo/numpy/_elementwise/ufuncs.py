"""NumPy's ufuncs: one class, and an instance for each ufunc that operators may use."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from gpualgo._algorithms.transform.scalars import NUMBERS
from gpualgo._base import dtypes
from gpualgo._base.errors import shown
from gpualgo._lazy import is_lazy
from gpualgo._operators.numpy_rules import table
from gpualgo._pipeline import checks
from gpualgo.lazy import asarray as lazy_of
from gpualgo.lazy import reductions
from gpualgo.numpy._call import function, loops, results
from gpualgo.numpy._call.arguments import ARRAY_TYPES, NotTaken, array_of
from gpualgo.numpy._elementwise import ufunc_calls, ufunc_docs
from gpualgo.numpy._folds.accumulating import accumulated
from gpualgo.numpy._folds.reducing import reduced

_UNSET: Any = np._NoValue
_ALL = 1 << 62  # unfused ufuncs on host arrays run in NumPy at any size
_MASKED = 1 << 14  # from this size a cheap ufunc with ``where=`` is a transform
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
        is_plain = where is True and dtype is None and casting == "same_kind"
        if (
            is_plain and out is None and order == "K" and signature is None
            and len(args) == self.nin and self._op is native
            and ARRAY_TYPES.issuperset(map(type, args))
        ):  # fmt: skip
            return ufunc_calls.transformed(native, args, name)
        outs: tuple[Any, ...] = (None,)
        if len(args) != self.nin or out is not None:
            args, outs = ufunc_calls.outs_of(native, args, out, name)
        operands, size, location = ufunc_calls.arguments_of(args, name)
        if order != "K" or signature is not None:
            self._refuse(order, signature)
        if is_plain and not any(one is not None for one in outs):
            if location == ufunc_calls.NUMBERS_ALONE:
                return native(*operands)
            if location == ufunc_calls.HOST and function.is_few(size, _ALL):
                return loops.run(native, operands, size)
            return ufunc_calls.plain(native, self._op, operands, location, name)
        if casting not in _CASTING:
            if type(casting) is not str:
                raise TypeError(f"{name}: casting must be str, not {type(casting).__name__}")
            raise ValueError(f"{name}: casting must be one of {_CASTING}, got {shown(casting)}")
        if where is not True:
            where = ufunc_calls.mask_of(where, name)
        outs = outs if len(outs) == self.nout else (None,) * self.nout
        if location <= ufunc_calls.HOST and _are_host((where, *outs)):
            size += sum(one.size for one in outs if one is not None)
            is_few = location == ufunc_calls.NUMBERS_ALONE or function.is_few(size, _ALL)
            if is_few and (where is True or self._is_masked_by_numpy(operands, size, outs)):
                return loops.run(native, operands, size, outs, where, dtype, casting)
        return ufunc_calls.computed(
            native, self._op, operands, location, outs, where, dtype, casting, name
        )

    def _is_masked_by_numpy(self, given: list[Any], size: int, outs: tuple[Any, ...]) -> bool:
        """Return whether NumPy runs a call with ``where=``: it is small and has outputs.

        NumPy 2.4 crashes with ``where=`` if it compares with a Python number beyond the dtype.
        """
        if any(one is None for one in outs):
            return False
        if self._native in _RELATIONS and any(type(x) is int for x in given):
            return False
        return size < _MASKED or loops.sizes_of(self._native) == loops.DEAR

    def _refuse(self, order: Any, signature: Any) -> None:
        name = self.__name__
        if signature is not None:
            raise NotTaken(f"{name}: signature= is not possible here; use dtype=, or numpy.{name}")
        if order not in ("C", "F", "A"):
            raise ValueError(
                f"{name}: order must be one of 'C', 'F', 'A', or 'K', got {shown(order)}"
            )
        raise NotTaken(f"{name}: order={shown(order)} is not possible here; leave it out")

    # --- methods ------------------------------------------------------------------------------

    def reduce(
        self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None,
        keepdims: Any = False, initial: Any = _UNSET, where: Any = True,
    ) -> Any:  # fmt: skip
        """Return the elements combined over axes, in one reduction; see `numpy.ufunc.reduce`.

        Raises
        ------
        NotTaken
            The ufunc is not known to be associative, which a parallel reduction needs.
        """
        name = self._check_associative("reduce")
        x = array_of(array, f"{name}: array")
        if _is_few(x):
            options: dict[str, Any] = {"axis": axis, "dtype": dtype, "out": out, "where": where}
            if initial is not _UNSET:
                options["initial"] = initial
            return self._native.reduce(x, keepdims=keepdims, **options)
        self._check_loop(x, dtype, name)
        rule = reductions.RULES[self._native]
        if rule is reductions.OWN and dtype is None:
            own = results.dtype_of(x, name)
            dtype = self._native.resolve_dtypes((own, own, None))[2]
        if where is not True and where is not _UNSET:
            where = ufunc_calls.mask_of(where, name)
            if initial is _UNSET and self.identity is not None and rule is not reductions.BOOL:
                kind = np.dtype(results.dtype_of(x, name) if dtype is None else dtype)
                initial = np.asarray(self.identity).astype(kind)[()]
            if np.ndim(where) == 0 and not is_lazy(where):
                where = lazy_of(np.bool_(where)).broadcast_to(tuple(x.shape))
        native = function.native_copy_of(out)
        result = reduced(self._native, x, axis, dtype, native, keepdims, initial, where, name)
        return results.given_back(out, result) if native is not out else result

    def accumulate(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
        """Return elements combined with all before along an axis; see `numpy.ufunc.accumulate`.

        Raises
        ------
        NotTaken
            The ufunc is not known to be associative, which a parallel scan needs.
        """
        name = self._check_associative("accumulate")
        x = array_of(array, f"{name}: array")
        if _is_few(x):
            return self._native.accumulate(x, axis, dtype, out)
        self._check_loop(x, dtype, name)
        axis = _single_axis(axis, x.ndim, name)
        native = function.native_copy_of(out)
        result = accumulated(self._native, x, axis, dtype, native, name)
        return results.given_back(out, result) if native is not out else result

    def _check_loop(self, x: Any, dtype: Any, name: str) -> None:
        """Raise NumPy's TypeError for dtypes that it does not combine."""
        own = results.dtype_of(x, name)
        options: dict[str, Any] = {}
        if dtype is not None:
            options = {"signature": (dtypes.as_dtype(dtype, name), None, None), "casting": "unsafe"}
        self._native.resolve_dtypes((None, own, None), reduction=True, **options)

    def _check_associative(self, method: str) -> str:
        name = f"{self.__name__}.{method}"
        if self.nin != 2:
            raise ValueError(f"{name}: {method} needs a function of two arguments")
        if self.nout != 1:
            raise ValueError(f"{name}: {method} needs a function that returns a single value")
        if self._native not in reductions.RULES:
            raise NotTaken(
                f"{name}: {self.__name__} is not known to be associative, which a parallel "
                f"{method} needs; use numpy.{name}"
            )
        return name

    def outer(self, A: Any, B: Any, /, **kwargs: Any) -> Any:
        """Return the ufunc of all pairs of elements of two arrays; see `numpy.ufunc.outer`."""
        name = f"{self.__name__}.outer"
        if self.nin != 2:
            raise ValueError(f"{name}: outer needs a function of two arguments")
        first, second = (
            x if type(x) in NUMBERS else array_of(x, f"{name}: an argument") for x in (A, B)
        )
        num_axes = len(getattr(second, "shape", ()))
        if num_axes and len(getattr(first, "shape", ())):
            if type(first) is not np.ndarray:
                first = lazy_of(first)
            was_lazy = is_lazy(A) or is_lazy(B)
            first = first[(..., *(None,) * num_axes)]
            if not was_lazy and is_lazy(first) and not kwargs.get("out"):
                return self._evaluated(first, second, kwargs)
        return self(first, second, **kwargs)

    def _evaluated(self, first: Any, second: Any, kwargs: dict[str, Any]) -> Any:
        from gpualgo._algorithms.transform.copying import copy

        result = self(first, second, **kwargs)
        return tuple(map(copy, result)) if isinstance(result, tuple) else copy(result)

    def at(self, a: Any, indices: Any, b: Any = None, /) -> None:
        """Raise NotTaken: use `gpualgo.reduce_by_index`."""
        raise NotTaken(
            f"{self.__name__}.at is not possible here; use gpualgo.reduce_by_index, or "
            f"numpy.{self.__name__}.at"
        )

    def reduceat(
        self, array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None
    ) -> None:
        """Raise NotTaken: use `gpualgo.segmented_reduce`."""
        raise NotTaken(
            f"{self.__name__}.reduceat is not possible here; use gpualgo.segmented_reduce, or "
            f"numpy.{self.__name__}.reduceat"
        )


def _single_axis(axis: Any, ndim: int, name: str) -> Any:
    """Return the axis of ``accumulate``, which accepts only one."""
    if axis is None or isinstance(axis, tuple):
        axes = tuple(range(ndim)) if axis is None else axis
        if ndim and len(axes) != 1:
            raise ValueError(f"{name}: accumulate takes one axis, got axis={shown(axis)}")
        return axes[0] if len(axes) == 1 else 0
    axis = checks.plain_axis(axis, name)
    return checks.axis_of(axis, ndim, name) if ndim or axis not in (0, -1) else axis


def _are_host(arrays: tuple[Any, ...]) -> bool:
    """Return whether ``where=`` and ``out=`` are NumPy arrays, or omitted."""
    return all(x is None or isinstance(x, (bool, np.bool_, np.ndarray)) for x in arrays)


def _is_few(x: Any) -> bool:
    return type(x) is np.ndarray and function.is_few(x.size, function.FEW)


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
    function.TABLE[_name] = function.Entry(
        _name, _ufunc, _ufunc._native, ufunc_docs.PASSES, ufunc_docs.differs(_ufunc._native)
    )
UFunc.__doc__ = ufunc_docs.Doc(UFunc.__doc__ or "")  # type: ignore[assignment]
