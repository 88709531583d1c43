"""NumPy's names, at memory's speed: ``import gpualgo.numpy as gnp``.

NumPy's signatures and results on arrays of NumPy, CuPy, PyTorch and lazy ones; on a GPU, and on all
cores of a CPU. What is not here is an AttributeError; `wrap` hands it on. See docs/numpy.md.
"""

from __future__ import annotations

from typing import Any

from gpualgo.numpy._arguments import NotTaken
from gpualgo.numpy._extremes import amax, amin, argmax, argmin, max, min, ptp
from gpualgo.numpy._moments import average, mean, std, var
from gpualgo.numpy._nan import nanmax, nanmean, nanmin, nanprod, nanstd, nansum, nanvar
from gpualgo.numpy._nan_places import nanargmax, nanargmin
from gpualgo.numpy._reductions import all, any, count_nonzero, prod, sum

__all__ = [
    "NotTaken",
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "average",
    "count_nonzero",
    "max",
    "mean",
    "min",
    "nanargmax",
    "nanargmin",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
    "prod",
    "ptp",
    "std",
    "sum",
    "var",
]


def __getattr__(name: str) -> Any:
    from gpualgo.numpy._function import TABLE
    from gpualgo.numpy._missing import told

    raise AttributeError(told(name, TABLE))


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
