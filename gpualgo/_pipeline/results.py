"""Results of a call, and the dtype that an operator returns, found by compiling it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gpualgo._base import dtypes, records
from gpualgo._base.extents import inverse, ordered, ordered_strides
from gpualgo._driver.default_device import CPU
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import elements


class Result(NamedTuple):
    """One output: shape, dtype, and the indices of inputs that it may overwrite in place.

    `order`: axes of a new result in memory, outermost first; empty for C order.
    `is_upper_bound`: the shape is an upper bound, see `counted`.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    in_place_of: tuple[int, ...] = ()
    order: tuple[int, ...] = ()
    is_upper_bound: bool = False

    def strides(self) -> tuple[int, ...]:
        """Return the byte strides of a new result."""
        return ordered_strides(self.shape, self.dtype.itemsize, self.order)

    def made(self, make: Callable[[tuple[int, ...]], Any], library: Any) -> Any:
        """Return a new array; `make` allocates one of a shape in C order."""
        array = make(ordered(self.shape, self.order))
        return library.transposed(array, inverse(self.order)) if self.order else array


def dtype_of(
    op: Operator, arguments: tuple[records.Argument, ...], wanted: Any, device: int, where: str
) -> np.dtype[Any]:
    """Return the dtype of op's results; op is compiled to find out."""
    if device == CPU:
        from gpualgo._cpu.operator import compile_operator

        def infer(requested: np.dtype[Any] | None) -> np.dtype[Any]:
            return compile_operator(op, arguments, requested).result_dtype
    else:
        from gpualgo._cuda import build
        from gpualgo._driver import device as gpu

        def infer(requested: np.dtype[Any] | None) -> np.dtype[Any]:
            return build.result_dtype(op, arguments, requested, gpu.get(device).capability)

    if wanted is None:
        return infer(None)
    if not isinstance(wanted, tuple) and getattr(wanted, "names", None) is None:
        try:
            return infer(dtypes.as_dtype(wanted, where))
        except records.ReturnsTuple:  # apply the dtype to each field
            pass
    return infer(elements.requested_dtype(infer(None), wanted, where))
