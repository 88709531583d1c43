"""NumPy's names as parallel algorithms: ``import gpualgo.numpy as gnp``.

Functions have NumPy's signatures and results. They accept arrays of NumPy, CuPy and PyTorch and
lazy arrays, and run on a GPU or on all cores of the CPU. Missing names raise AttributeError; `wrap`
delegates them to NumPy. See https://github.com/gpualgo/gpualgo/blob/main/docs/numpy.md.
"""

from __future__ import annotations

from typing import Any

from gpualgo._base import show_signatures as _show_signatures
from gpualgo.numpy._call.arguments import NotTaken
from gpualgo.numpy._counting.counts import bincount
from gpualgo.numpy._counting.histograms import (
    histogram,
    histogram2d,
    histogram_bin_edges,
    histogramdd,
)
from gpualgo.numpy._elementwise import ufunc_names as _ufunc_names
from gpualgo.numpy._elementwise.functions import (
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
from gpualgo.numpy._elementwise.ufunc_names import *  # noqa: F403 -- its __all__ is the table of ufuncs
from gpualgo.numpy._elementwise.vectorize import vectorize
from gpualgo.numpy._products import dot, inner, vdot
from gpualgo.numpy._ranks.nan_quantiles import nanmedian, nanpercentile, nanquantile
from gpualgo.numpy._ranks.quantiles import median, percentile, quantile
from gpualgo.numpy._reductions.moments import average, mean, std, var
from gpualgo.numpy._reductions.nan import (
    nanargmax,
    nanargmin,
    nanmax,
    nanmean,
    nanmin,
    nanprod,
    nanstd,
    nansum,
    nanvar,
)
from gpualgo.numpy._reductions.reductions import (
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    count_nonzero,
    max,
    min,
    prod,
    ptp,
    sum,
)
from gpualgo.numpy._scans import (
    cumprod,
    cumsum,
    cumulative_prod,
    cumulative_sum,
    diff,
    ediff1d,
    nancumprod,
    nancumsum,
    trapezoid,
)
from gpualgo.numpy._selection import argwhere, compress, extract, flatnonzero, nonzero, where
from gpualgo.numpy._sets import (
    intersect1d,
    isin,
    setdiff1d,
    setxor1d,
    union1d,
    unique,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
)
from gpualgo.numpy._sorting import (
    argpartition,
    argsort,
    digitize,
    lexsort,
    partition,
    searchsorted,
    sort,
    top_k,
)
from gpualgo.numpy._wrap.namespace import Namespace, wrap

__all__ = [
    "Namespace",
    "NotTaken",
    "all",
    "amax",
    "amin",
    "angle",
    "any",
    "argmax",
    "argmin",
    "argpartition",
    "argsort",
    "argwhere",
    "around",
    "average",
    "bincount",
    "clip",
    "compress",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "digitize",
    "dot",
    "ediff1d",
    "extract",
    "fix",
    "flatnonzero",
    "histogram",
    "histogram2d",
    "histogram_bin_edges",
    "histogramdd",
    "imag",
    "inner",
    "intersect1d",
    "isclose",
    "isin",
    "isneginf",
    "isposinf",
    "lexsort",
    "max",
    "mean",
    "median",
    "min",
    "nan_to_num",
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanpercentile",
    "nanprod",
    "nanquantile",
    "nanstd",
    "nansum",
    "nanvar",
    "nonzero",
    "partition",
    "percentile",
    "prod",
    "ptp",
    "quantile",
    "real",
    "round",
    "searchsorted",
    "setdiff1d",
    "setxor1d",
    "sinc",
    "sort",
    "std",
    "sum",
    "top_k",
    "trapezoid",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "var",
    "vdot",
    "vectorize",
    "where",
    "wrap",
]
__all__ += _ufunc_names.__all__

_show_signatures(type(_ufunc_names.add), *(globals()[name] for name in __all__))


def __getattr__(name: str) -> Any:
    from gpualgo.numpy._call.arguments import told
    from gpualgo.numpy._call.function import TABLE

    raise AttributeError(told(name, TABLE))


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
