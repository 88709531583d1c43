"""NumPy's names, at memory's speed: ``import gpualgo.numpy as gnp``.

NumPy's signatures and results on arrays of NumPy, CuPy, PyTorch and lazy ones; on a GPU, and on all
cores of a CPU. What is not here is an AttributeError; `wrap` hands it on. See docs/numpy.md.
"""

from __future__ import annotations

from typing import Any

from gpualgo.numpy._arguments import NotTaken
from gpualgo.numpy._counts import bincount
from gpualgo.numpy._histograms import histogram, histogram_bin_edges
from gpualgo.numpy._histograms_joint import histogram2d, histogramdd
from gpualgo.numpy._reductions import prod, sum
from gpualgo.numpy._wrap import Namespace, wrap

__all__ = [
    "Namespace",
    "NotTaken",
    "bincount",
    "histogram",
    "histogram2d",
    "histogram_bin_edges",
    "histogramdd",
    "prod",
    "sum",
    "wrap",
]


def __getattr__(name: str) -> Any:
    from gpualgo.numpy._function import TABLE
    from gpualgo.numpy._missing import told

    raise AttributeError(told(name, TABLE))


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
