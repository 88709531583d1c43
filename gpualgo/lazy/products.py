"""NumPy's products of vectors: one fused multiply and reduction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpualgo._lazy.array import LazyArray
from gpualgo._lazy.combining import applied, zipped
from gpualgo._lazy.kept import Kept
from gpualgo.lazy.reductions import dtype_of, reduced, wide


def product(conjugate: bool, name: str) -> Callable[..., Any]:
    """Return ``np.dot``, ``np.inner`` or ``np.vdot`` for 1-d arrays."""

    def call(a: Any, b: Any, out: Any = None) -> Any:
        x, y = (zipped(one, f"{name}: an argument") for one in (a, b))
        if x.ndim != 1 or x.shape != y.shape:
            raise TypeError(
                f"{name}: lazy arrays need one axis of one length, got shapes {x.shape} and "
                f"{y.shape}; materialize them with gpualgo.copy(x) or np.asarray(x) first"
            )
        return products(x, y, out, conjugate, name)

    return call


def products(x: Any, y: Any, out: Any, conjugate: bool, name: str) -> Any:
    """Return the sum of products of two arrays of one shape; 16-bit floats sum in float32."""
    kinds = tuple(dtype_of(one, name) if not isinstance(one, LazyArray) else one.dtype
                  for one in (x, y))  # fmt: skip
    kind = np.multiply.resolve_dtypes((*kinds, None))[2]
    product = _PRODUCT
    if conjugate and kinds[0].kind == "c":
        product = _CONJUGATED
    elif wide(kind) != kind:
        product = _IN_FLOAT32
    return reduced(np.add, product((x, y), name), None, kind, out, False, None, name)


def _conjugated(a: Any, b: Any) -> Any:
    return np.conjugate(a) * b


def _in_float32(a: Any, b: Any) -> Any:
    return np.float32(a) * np.float32(b)


_PRODUCT, _CONJUGATED, _IN_FLOAT32 = (
    Kept(lambda x, y, op=op: applied(op, (x, y), "product"))
    for op in (np.multiply, _conjugated, _in_float32)
)
