"""Products of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo import reduce
from gpualgo.lazy import reductions
from gpualgo.numpy import _call, _loops
from gpualgo.numpy._call import NotTaken, as_array, flattened, numpy_function
from gpualgo.numpy._folds import cast_result
from gpualgo.numpy._ufuncs import UFUNCS

_PASSES = "One reduction that multiplies while reading; host floats: BLAS on all cores"


def _product(a: Any, b: Any, out: Any, name: str) -> Any:
    """Return the product of two vectors, or of a number and another array."""
    x, y, is_conjugate = a, as_array(b), name == "vdot"
    if is_conjugate:
        x, y = flattened(x), flattened(y)
        if x.shape != y.shape:
            raise ValueError(f"vdot: the arrays have {x.shape[0]} and {y.shape[0]} elements")
    if x.ndim > 1 or y.ndim > 1:
        raise NotTaken(
            f"{name}: the arrays have {x.ndim} and {y.ndim} axes, here they may have one; use the "
            "matrix product of the arrays' own library"
        )
    if x.ndim and y.ndim and x.shape != y.shape:
        raise ValueError(f"{name}: shapes {tuple(x.shape)} and {tuple(y.shape)} not aligned")
    out = _call.out_of(out, name)
    if out is not None:
        _check_out(x, y, out, name)
    if not (x.ndim and y.ndim):
        return _call.number_of(UFUNCS["multiply"](x, y, out=out))
    native: Any = {"dot": np.dot, "inner": np.inner, "vdot": np.vdot}[name]
    is_exact = type(x) is type(y) is np.ndarray and all(_call.has_order(z.dtype) for z in (x, y))
    are_bools = is_exact and x.dtype == y.dtype == np.bool_  # NumPy stops at the first pair
    if is_exact and _call.is_few(x.size, _call.ALL if are_bools else _call.FEW_FOR_ONE_PASS):
        return native(x, y) if out is None else native(x, y, out)
    if out is None and _is_blas(x, y, is_conjugate):
        return _loops.dotted(x, y)
    products, kind = reductions.products(x, y, is_conjugate, name)
    start, acc = reductions.started(np.add, kind), products.dtype
    if acc == kind:
        return _call.number_of(reduce(products, start, np.add, dtype=acc, out=out))
    total = reduce(products, start, np.add, dtype=acc)
    return _call.number_of(cast_result(total, kind, out, name))


_BLAS = frozenset(map(np.dtype, ("f4", "f8", "c8", "c16")))


def _is_blas(x: Any, y: Any, is_conjugate: bool) -> bool:
    """Return whether NumPy's BLAS multiplies two vectors: floats of one dtype on the host."""
    return (
        type(x) is type(y) is np.ndarray
        and x.dtype == y.dtype
        and x.dtype in _BLAS
        and (is_conjugate or x.dtype.kind == "f")
        and hasattr(np, "vecdot")  # new in NumPy 2
        and _call.is_few(x.size, _call.ALL)
    )


def _check_out(x: Any, y: Any, out: Any, name: str) -> None:
    kind = np.result_type(_call.dtype_of(x, name), _call.dtype_of(y, name))
    shape = () if x.ndim and y.ndim else tuple(x.shape or y.shape)
    if _call.dtype_of(out, name) != kind or tuple(out.shape) != shape:
        raise ValueError(
            f"{name}: out must have shape {shape} and dtype {kind}, got {tuple(out.shape)} and "
            f"{_call.dtype_of(out, name)}"
        )


_ONE_AXIS = "arrays of 2 or more dimensions raise a TypeError"


@numpy_function(_PASSES, arrays=2, few=0, differs=_ONE_AXIS)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """Return the dot product of two vectors; numbers are multiplied.

    >>> int(gnp.dot([1, 2, 3], [4, 5, 6]))
    32
    """
    return _product(a, b, out, "dot")


@numpy_function(
    _PASSES,
    ("inner", "Return the inner product of two vectors.",
     "int(gnp.inner([1, 2, 3], [4, 5, 6]))", "32", {"differs": _ONE_AXIS}),
    ("vdot", "Return the dot product of two arrays, the first conjugated and both flattened.",
     "complex(gnp.vdot([1 + 2j, 3j], [1j, 2]))", "(2-5j)"),
    arrays=2, few=0,
)  # fmt: skip
def _new_product(name: str, a: Any, b: Any, /) -> Any:
    return _product(a, b, None, name)
