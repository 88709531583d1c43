"""NumPy's names, at memory's speed: ``import gpualgo.numpy as gnp``.

NumPy's signatures and results on arrays of NumPy, CuPy, PyTorch and lazy ones; on a GPU, and on all
cores of a CPU. What is not here is an AttributeError; `wrap` hands it on. See docs/numpy.md.
"""

from __future__ import annotations

from typing import Any

from gpualgo.numpy import _ufunc_names
from gpualgo.numpy._arguments import NotTaken
from gpualgo.numpy._differences import diff, ediff1d, trapezoid
from gpualgo.numpy._elementwise import (
    angle,
    around,
    clip,
    fix,
    imag,
    isclose,
    isneginf,
    isposinf,
    nan_to_num,
    real,
    round,
    sinc,
)
from gpualgo.numpy._products import dot, inner, vdot
from gpualgo.numpy._reductions import prod, sum
from gpualgo.numpy._scans import (
    cumprod,
    cumsum,
    cumulative_prod,
    cumulative_sum,
    nancumprod,
    nancumsum,
)
from gpualgo.numpy._ufunc_names import *  # noqa: F403 -- its __all__ is the table of ufuncs
from gpualgo.numpy._vectorize import vectorize

__all__ = [
    "NotTaken",
    "angle",
    "around",
    "clip",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "dot",
    "ediff1d",
    "fix",
    "imag",
    "inner",
    "isclose",
    "isneginf",
    "isposinf",
    "nan_to_num",
    "nancumprod",
    "nancumsum",
    "prod",
    "real",
    "round",
    "sinc",
    "sum",
    "trapezoid",
    "vdot",
    "vectorize",
]
__all__ += _ufunc_names.__all__


def __getattr__(name: str) -> Any:
    from gpualgo.numpy._function import TABLE
    from gpualgo.numpy._missing import told

    raise AttributeError(told(name, TABLE))


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
