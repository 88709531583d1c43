"""NumPy's names, at memory's speed: ``import gpualgo.numpy as gnp``.

NumPy's signatures and results on arrays of NumPy, CuPy, PyTorch and lazy ones; on a GPU, and on all
cores of a CPU. What is not here is an AttributeError; `wrap` hands it on. See docs/numpy.md.
"""

from __future__ import annotations

from typing import Any

from gpualgo.numpy._arguments import NotTaken
from gpualgo.numpy._reductions import prod, sum
from gpualgo.numpy._selection import argwhere, compress, extract, flatnonzero, nonzero, where
from gpualgo.numpy._sets import intersect1d, isin, setdiff1d, setxor1d, union1d
from gpualgo.numpy._unique import unique, unique_all, unique_counts, unique_inverse, unique_values

__all__ = [
    "NotTaken",
    "argwhere",
    "compress",
    "extract",
    "flatnonzero",
    "intersect1d",
    "isin",
    "nonzero",
    "prod",
    "setdiff1d",
    "setxor1d",
    "sum",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "where",
]


def __getattr__(name: str) -> Any:
    from gpualgo.numpy._function import TABLE
    from gpualgo.numpy._missing import told

    raise AttributeError(told(name, TABLE))


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
