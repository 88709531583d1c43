"""gpualgo.numpy, one row a function: beside NumPy on the CPU, CuPy and PyTorch on a GPU."""

import functools
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import gpualgo as ga
import gpualgo.numpy as gnp
from bench.inputs import COLUMNS
from bench.peers import gpu, torch
from bench.row import row

MOST_FOR_NUMPY = 1 << 24  # elements of an array whose expected result NumPy computes


class Data(NamedTuple):
    """Arrays of one library, of n elements each."""

    x: Any  # float64 on the CPU, float32 on a GPU
    y: Any
    nans: Any  # x, a tenth of it NaN
    ints: Any  # int64 below 1000
    mask: Any
    few: Any  # no element is true
    rows: Any  # x, rows of 1024
    edges: Any  # 256 bins
    weights: Any


def data(xp, n, dtype):
    """Return random numbers, made by the library that is to hold them."""
    rng = xp.random.default_rng(0)
    x, y = (rng.random(n, dtype=dtype) for _ in range(2))
    nans = xp.where(y < 0.1, xp.asarray(np.nan, dtype), x)
    ints = rng.integers(0, 1000, n)
    ints[-1:] = 999  # which decides how many counts bincount gives
    edges = xp.linspace(0, 1, 257).astype(dtype)
    return Data(x, y, nans, ints, x < 0.5, x > 2, x.reshape(-1, min(n, COLUMNS)), edges, y)


# Each is called with gpualgo.numpy, NumPy and CuPy alike.
CASES = {
    "sum": lambda np, d: np.sum(d.x),
    "sum axis=0": lambda np, d: np.sum(d.rows, axis=0),
    "sum where": lambda np, d: np.sum(d.x, where=d.mask),
    "prod": lambda np, d: np.prod(d.x),
    "min": lambda np, d: np.min(d.x),
    "max axis=1": lambda np, d: np.max(d.rows, axis=1),
    "ptp": lambda np, d: np.ptp(d.x),
    "mean": lambda np, d: np.mean(d.x),
    "mean axis=1": lambda np, d: np.mean(d.rows, axis=1),
    "var": lambda np, d: np.var(d.x),
    "std axis=0": lambda np, d: np.std(d.rows, axis=0),
    "average weighted": lambda np, d: np.average(d.x, weights=d.weights),
    "any": lambda np, d: np.any(d.few),
    "all": lambda np, d: np.all(d.mask),
    "count_nonzero": lambda np, d: np.count_nonzero(d.mask),
    "argmin": lambda np, d: np.argmin(d.x),
    "argmax axis=1": lambda np, d: np.argmax(d.rows, axis=1),
    "nansum": lambda np, d: np.nansum(d.nans),
    "nanmean": lambda np, d: np.nanmean(d.nans),
    "nanvar": lambda np, d: np.nanvar(d.nans),
    "nanmax": lambda np, d: np.nanmax(d.nans),
    "nanargmax": lambda np, d: np.nanargmax(d.nans),
    "median": lambda np, d: np.median(d.x),
    "quantile of three": lambda np, d: np.quantile(d.x, [0.05, 0.5, 0.95]),
    "percentile axis=1": lambda np, d: np.percentile(d.rows, 90, axis=1),
    "nanmedian": lambda np, d: np.nanmedian(d.nans),
    "cumsum": lambda np, d: np.cumsum(d.x),
    "cumprod": lambda np, d: np.cumprod(d.x),
    "cumsum axis=1": lambda np, d: np.cumsum(d.rows, axis=1),
    "nancumsum": lambda np, d: np.nancumsum(d.nans),
    "diff": lambda np, d: np.diff(d.x),
    "ediff1d": lambda np, d: np.ediff1d(d.x),
    "trapezoid": lambda np, d: np.trapezoid(d.x),
    "maximum.accumulate": lambda np, d: np.maximum.accumulate(d.x),
    "sort": lambda np, d: np.sort(d.x),
    "sort axis=1": lambda np, d: np.sort(d.rows, axis=1),
    "argsort": lambda np, d: np.argsort(d.x, kind="stable"),
    "lexsort": lambda np, d: np.lexsort((d.x, d.ints)),
    "partition": lambda np, d: np.partition(d.x, d.x.size // 2)[d.x.size // 2],
    "unique": lambda np, d: np.unique(d.x),
    "unique of ints": lambda np, d: np.unique(d.ints),
    "unique, counts": lambda np, d: np.unique(d.ints, return_counts=True),
    "unique, inverse": lambda np, d: np.unique(d.ints, return_inverse=True),
    "searchsorted": lambda np, d: np.searchsorted(d.edges, d.x),
    "digitize": lambda np, d: np.digitize(d.x, d.edges),
    "nonzero": lambda np, d: np.nonzero(d.mask)[0],
    "flatnonzero": lambda np, d: np.flatnonzero(d.mask),
    "extract": lambda np, d: np.extract(d.mask, d.x),
    "compress": lambda np, d: np.compress(d.mask, d.x),
    "where": lambda np, d: np.where(d.mask, d.x, d.y),
    "isin": lambda np, d: np.isin(d.ints, d.ints[:100]),
    "intersect1d": lambda np, d: np.intersect1d(d.ints, d.ints[::2]),
    "union1d": lambda np, d: np.union1d(d.x, d.y),
    "setdiff1d": lambda np, d: np.setdiff1d(d.ints, d.ints[:100]),
    "setxor1d": lambda np, d: np.setxor1d(d.x, d.y),
    "histogram": lambda np, d: np.histogram(d.x, 256)[0],
    "histogram, weights": lambda np, d: np.histogram(d.x, 256, weights=d.weights)[0],
    "histogram2d": lambda np, d: np.histogram2d(d.x, d.y, 64)[0],
    "bincount": lambda np, d: np.bincount(d.ints),
    "bincount, weights": lambda np, d: np.bincount(d.ints, d.weights),
    "add": lambda np, d: np.add(d.x, d.y),
    "exp": lambda np, d: np.exp(d.x),
    "sqrt": lambda np, d: np.sqrt(d.x),
    "sin": lambda np, d: np.sin(d.x),
    "less": lambda np, d: np.less(d.x, d.y),
    "clip": lambda np, d: np.clip(d.x, 0.25, 0.75),
    "round": lambda np, d: np.round(d.x, 2),
    "nan_to_num": lambda np, d: np.nan_to_num(d.nans),
    "isnan": lambda np, d: np.isnan(d.nans),
    "dot": lambda np, d: np.dot(d.x, d.y),
    "vdot": lambda np, d: np.vdot(d.x, d.y),
}

# PyTorch's own names for some of them.
TORCH = {
    "sum": lambda torch, d: d.x.sum(),
    "sum axis=0": lambda torch, d: d.rows.sum(0),
    "prod": lambda torch, d: d.x.prod(),
    "min": lambda torch, d: d.x.min(),
    "max axis=1": lambda torch, d: d.rows.amax(1),
    "mean": lambda torch, d: d.x.mean(),
    "mean axis=1": lambda torch, d: d.rows.mean(1),
    "var": lambda torch, d: d.x.var(correction=0),
    "std axis=0": lambda torch, d: d.rows.std(0, correction=0),
    "count_nonzero": lambda torch, d: torch.count_nonzero(d.mask),
    "argmax axis=1": lambda torch, d: d.rows.argmax(1),
    "nansum": lambda torch, d: d.nans.nansum(),
    "nanmean": lambda torch, d: d.nans.nanmean(),
    "cumsum": lambda torch, d: d.x.cumsum(0),
    "cumsum axis=1": lambda torch, d: d.rows.cumsum(1),
    "diff": lambda torch, d: torch.diff(d.x),
    "maximum.accumulate": lambda torch, d: torch.cummax(d.x, 0).values,
    "sort": lambda torch, d: d.x.sort().values,
    "sort axis=1": lambda torch, d: d.rows.sort(1).values,
    "argsort": lambda torch, d: d.x.argsort(stable=True),
    "unique": lambda torch, d: d.x.unique(),
    "unique, counts": lambda torch, d: d.ints.unique(return_counts=True),
    "searchsorted": lambda torch, d: torch.searchsorted(d.edges, d.x),
    "nonzero": lambda torch, d: d.mask.nonzero()[:, 0],
    "where": lambda torch, d: torch.where(d.mask, d.x, d.y),
    "bincount": lambda torch, d: d.ints.bincount(),
    "exp": lambda torch, d: d.x.exp(),
    "add": lambda torch, d: d.x + d.y,
    "clip": lambda torch, d: d.x.clip(0.25, 0.75),
    "dot": lambda torch, d: torch.dot(d.x, d.y),
}

# Of calls on device arrays: the algorithm that a name stands for, called with the same arrays.
UNDERNEATH = {
    "sum": lambda d: ga.reduce(d.x),
    "max axis=1": lambda d: ga.reduce(d.rows, None, max, axis=1),
    "argmin": lambda d: ga.argmin(d.x),
    "cumsum": lambda d: ga.inclusive_scan(d.x),
    "sort": lambda d: ga.radix_sort(d.x),
    "argsort": lambda d: ga.argsort(d.x),
    "searchsorted": lambda d: ga.searchsorted(d.edges, d.x),
    "add": lambda d: ga.transform(np.add, d.x, d.y),
    "exp": lambda d: ga.transform(np.exp, d.x),
    "extract": lambda d: ga.select(d.x, d.mask),
    "bincount": lambda d: ga.histogram(d.ints, 1000, (0, 1000)),
}

ROUNDED = ("histogram", "round")  # the dtype decides, where others are the more exact in float64

cpu_data = functools.lru_cache(2)(lambda xp, n: (data(xp, n, "float64"),))
device_data = functools.lru_cache(1)(lambda xp, n: (data(xp, n, "float32"),))


def expected(name, given):
    """Return what NumPy gives for the arrays of a GPU; of more, which would take minutes, CuPy.

    CuPy rounds otherwise, and NumPy is quick at it.
    """
    if given.x.size > MOST_FOR_NUMPY and name != "round":
        try:
            return CASES[name](gpu(), given)
        except Exception:  # what CuPy does not have
            return CASES[name](gnp, given)
    host = Data(*[array.get() for array in given])
    if name not in ROUNDED:
        host = host._replace(x=host.x.astype(float), rows=host.rows.astype(float))
    found = CASES[name](np, host)
    return tuple(map(gpu().asarray, found)) if isinstance(found, tuple) else gpu().asarray(found)


def function(name):
    case, by_torch, underneath = CASES[name], TORCH.get(name), UNDERNEATH.get(name)
    found = row(f"gnp.{name}", "cpu 10 20*", cpu_data, 8, partial(case, gnp), case, dtype="f64",
                tolerance=1e-9)  # fmt: skip
    found += row(f"gnp.{name}", "24 28", device_data, 4, partial(case, gnp), case,
                 torch=by_torch and (lambda d: by_torch(torch(), d)), dtype="f32",
                 expected=partial(expected, name), tolerance=1e-2, any_dtype=True)  # fmt: skip
    if underneath:
        found += row(f"gnp.{name}", "host 10*", device_data, 0, partial(case, gnp), case,
                     others={"the algorithm": underneath}, dtype="f32",
                     expected=partial(case, gnp), tolerance=1e-2, any_dtype=True)  # fmt: skip
    return found


ROWS = [found for name in CASES for found in function(name)]
