"""The dtype of what an operator returns, which compiling it tells."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._base import dtypes, records
from gpualgo._driver.default_device import CPU
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import elements


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
