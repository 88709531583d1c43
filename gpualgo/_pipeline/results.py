"""Results: what a call makes, and the dtype of what an operator returns, which compiling tells."""

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
    """One output: its shape, its dtype, and the inputs in whose place it may be written.

    `order`: of its axes in memory where it is made anew, outermost first; empty: C order.
    `is_bound`: it has at most that length, which elements decide (`counted`).
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    in_place_of: tuple[int, ...] = ()
    order: tuple[int, ...] = ()
    is_bound: bool = False

    def strides(self) -> tuple[int, ...]:
        """Return the byte strides where it is made anew."""
        return ordered_strides(self.shape, self.dtype.itemsize, self.order)

    def made(self, make: Callable[[tuple[int, ...]], Any], library: Any) -> Any:
        """Return a new array of a library; `make` makes one in C order, of a shape."""
        made = make(ordered(self.shape, self.order))
        return library.transposed(made, inverse(self.order)) if self.order else made


def dtype_of(
    op: Operator, arguments: tuple[records.Argument, ...], wanted: Any, device: int, where: str
) -> np.dtype[Any]:
    """Return the dtype of op's results; it is compiled to find out."""
    if device == CPU:
        from gpualgo._cpu.operator import compile_operator

        def found(asked: np.dtype[Any] | None) -> np.dtype[Any]:
            return compile_operator(op, arguments, asked).result_dtype
    else:
        from gpualgo._cuda import build
        from gpualgo._driver import device as gpu

        def found(asked: np.dtype[Any] | None) -> np.dtype[Any]:
            return build.result_dtype(op, arguments, asked, gpu.get(device).capability)

    if wanted is None:
        return found(None)
    if not isinstance(wanted, tuple) and getattr(wanted, "names", None) is None:
        try:
            return found(dtypes.as_dtype(wanted, where))
        except records.ReturnsTuple:  # one dtype for all its numbers
            pass
    return found(elements.wanted_of(found(None), wanted, where))
