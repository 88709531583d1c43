"""What numba says of an operator, in the words of the operator's author."""

from __future__ import annotations

import contextlib
import inspect
import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import types

from gpualgo._base import dtypes as _dtypes
from gpualgo._base.errors import CompileError
from gpualgo._operators.key import python_function
from gpualgo._operators.numpy_rules.types import Weak, native, scalar_name


def source_of(fn: Any) -> str:
    """Return where fn was written, with its line where the file can be read."""
    fn = python_function(fn) or fn
    code = getattr(fn, "__code__", None)
    if code is None:
        return repr(fn)
    try:
        line = inspect.getsource(fn).strip().splitlines()[0]
    except (OSError, TypeError, IndexError):
        line = f"<function {fn.__name__}>"
    return f"{code.co_filename}:{code.co_firstlineno}: {line}"


@contextlib.contextmanager
def explained(fn: Any, arg_dtypes: tuple[np.dtype[Any], ...]) -> Iterator[None]:
    """Turn whatever numba raises within into a CompileError with fn's source line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numba's notes on its own performance
            yield
    except Exception as error:
        if isinstance(error, CompileError):
            raise CompileError(f"{error}: {source_of(fn)}") from None
        reason = re.sub(r"\x1b\[[0-9;]*m", "", str(error) or repr(error)).strip()
        dtypes = ", ".join(str(dtype) for dtype in arg_dtypes)
        if "row_stack" in reason:
            reason += "; numba-cuda does not work with NumPy 2.5: pip install 'numpy<2.5'"
        raise CompileError(
            f"op could not be compiled for ({dtypes}): {source_of(fn)}\n"
            f"{type(error).__name__}: {reason}"
        ) from error


def result_of(fn: Any, returned: types.Type, wanted: np.dtype[Any] | None) -> np.dtype[Any]:
    """Return the dtype of op's result; raise TypeError if it is no number or does not fit."""
    name = scalar_name(returned)
    if name is None:
        what = "None" if returned is types.none else str(returned)
        raise TypeError(f"op returns {what}, not a number; return a scalar: {source_of(fn)}")
    inferred = (
        np.dtype(scalar_name(native(returned)))
        if isinstance(returned, Weak)
        else _dtypes.from_name(name)
    )
    if wanted is None:
        return inferred
    weak_fits = isinstance(returned, Weak) and _weak_fits(returned.kind, wanted)
    if not weak_fits and not _dtypes.can_cast(inferred, wanted):
        raise TypeError(
            f"op returns {inferred}, which does not fit {wanted}; pass dtype=np.{inferred} or "
            f"convert inside op: {source_of(fn)}"
        )
    return wanted


def _weak_fits(kind: str, wanted: np.dtype[Any]) -> bool:
    ranks = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
    return {"int": 1, "float": 2, "complex": 3}[kind] <= ranks[_dtypes.kind(wanted)]
