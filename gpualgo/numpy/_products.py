"""Products of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo import reduce
from gpualgo.lazy import reductions
from gpualgo.numpy import _call, _loops
from gpualgo.numpy._call import BOOL, NotTaken, flattened, numpy_function
from gpualgo.numpy._folds import cast_result
from gpualgo.numpy._ufuncs import UFUNCS

_PASSES = "One reduction that multiplies while reading; host floats: BLAS on all cores"


def _product(a: Any, b: Any, out: Any, name: str) -> Any:
    x, y, is_conjugate = a, b if hasattr(b, "ndim") else np.asarray(b), name == "vdot"
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
    if type(x) is type(y) is np.ndarray and all(_call.has_order(z.dtype) for z in (x, y)):
        kind = x.dtype if x.dtype == y.dtype else np.result_type(x, y)
        few = _loops.ROW if kind in _BLAS else _call.FEW_FOR_ONE_PASS  # BLAS uses all cores
        if _call.is_few(x.size, _call.ALL if kind == BOOL else few):  # bools: up to the first pair
            return native(x, y) if out is None else native(x, y, out)
        copies = kind.kind == "c" and not is_conjugate
        is_blas = x.dtype == y.dtype in _BLAS and hasattr(np, "vecdot")  # new in NumPy 2
        if is_blas and _call.is_few(x.size, _call.FEW_FOR_ONE_PASS if copies else _call.ALL):
            total = _loops.dotted(np.conj(x) if copies else x, y)
            if out is not None:
                out[...] = total
            return total
    products, kind = reductions.products(x, y, is_conjugate, name)
    start, acc = reductions.started(np.add, kind), products.dtype
    if acc == kind:
        return _call.number_of(reduce(products, start, np.add, dtype=acc, out=out))
    total = reduce(products, start, np.add, dtype=acc)
    return _call.number_of(cast_result(total, kind, out, name))


_BLAS = frozenset(map(np.dtype, ("f4", "f8", "c8", "c16")))


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
