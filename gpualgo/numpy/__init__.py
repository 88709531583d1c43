"""NumPy's names, at memory's speed: ``import gpualgo.numpy as gnp``.

NumPy's signatures and results on arrays of NumPy, CuPy, PyTorch and lazy ones; on a GPU, and on all
cores of a CPU. What is not here is an AttributeError; `wrap` hands it on. See docs/numpy.md.
"""

from __future__ import annotations

from typing import Any

from gpualgo.numpy._arguments import NotTaken
from gpualgo.numpy._nan_ranks import nanmedian, nanpercentile, nanquantile
from gpualgo.numpy._ranks import median, percentile, quantile
from gpualgo.numpy._reductions import prod, sum
from gpualgo.numpy._search import digitize, searchsorted
from gpualgo.numpy._sorts import argpartition, argsort, lexsort, partition, sort, top_k

__all__ = [
    "NotTaken",
    "argpartition",
    "argsort",
    "digitize",
    "lexsort",
    "median",
    "nanmedian",
    "nanpercentile",
    "nanquantile",
    "partition",
    "percentile",
    "prod",
    "quantile",
    "searchsorted",
    "sort",
    "sum",
    "top_k",
]


def __getattr__(name: str) -> Any:
    from gpualgo.numpy._function import TABLE
    from gpualgo.numpy._missing import told

    raise AttributeError(told(name, TABLE))


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
