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
ROUNDED = ("histogram", "round")  # the dtype decides, where others are the more exact in float64


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


def data(xp, n, dtype):
    rng = xp.random.default_rng(0)
    x, y = (rng.random(n, dtype=dtype) for _ in range(2))
    nans = xp.where(y < 0.1, xp.asarray(np.nan, dtype), x)
    ints = rng.integers(0, 1000, n)
    ints[-1:] = 999  # which decides how many counts bincount gives
    edges = xp.linspace(0, 1, 257).astype(dtype)
    return Data(x, y, nans, ints, x < 0.5, x > 2, x.reshape(-1, min(n, COLUMNS)), edges)


class Case(NamedTuple):
    """A call, which gpualgo.numpy, NumPy and CuPy have alike, and what stands for it elsewhere."""

    call: Any  # a function of the library and the data
    torch: Any = None  # PyTorch's
    algorithm: Any = None  # the algorithm that the name stands for, called with the same arrays


CASES = {
    "sum": Case(lambda np, d: np.sum(d.x), lambda d: d.x.sum(), lambda d: ga.reduce(d.x)),
    "sum axis=0": Case(lambda np, d: np.sum(d.rows, axis=0), lambda d: d.rows.sum(0)),
    "sum where": Case(lambda np, d: np.sum(d.x, where=d.mask)),
    "prod": Case(lambda np, d: np.prod(d.x), lambda d: d.x.prod()),
    "min": Case(lambda np, d: np.min(d.x), lambda d: d.x.min()),
    "max axis=1": Case(lambda np, d: np.max(d.rows, axis=1), lambda d: d.rows.amax(1),
                       lambda d: ga.reduce(d.rows, None, max, axis=1)),
    "ptp": Case(lambda np, d: np.ptp(d.x)),
    "mean": Case(lambda np, d: np.mean(d.x), lambda d: d.x.mean()),
    "mean axis=1": Case(lambda np, d: np.mean(d.rows, axis=1), lambda d: d.rows.mean(1)),
    "var": Case(lambda np, d: np.var(d.x), lambda d: d.x.var(correction=0)),
    "std axis=0": Case(lambda np, d: np.std(d.rows, axis=0), lambda d: d.rows.std(0, correction=0)),
    "average weighted": Case(lambda np, d: np.average(d.x, weights=d.y)),
    "any": Case(lambda np, d: np.any(d.few)),
    "all": Case(lambda np, d: np.all(d.mask)),
    "count_nonzero": Case(lambda np, d: np.count_nonzero(d.mask), lambda d: d.mask.count_nonzero()),
    "argmin": Case(lambda np, d: np.argmin(d.x), algorithm=lambda d: ga.argmin(d.x)),
    "argmax axis=1": Case(lambda np, d: np.argmax(d.rows, axis=1), lambda d: d.rows.argmax(1)),
    "nansum": Case(lambda np, d: np.nansum(d.nans), lambda d: d.nans.nansum()),
    "nanmean": Case(lambda np, d: np.nanmean(d.nans), lambda d: d.nans.nanmean()),
    "nanvar": Case(lambda np, d: np.nanvar(d.nans)),
    "nanmax": Case(lambda np, d: np.nanmax(d.nans)),
    "nanargmax": Case(lambda np, d: np.nanargmax(d.nans)),
    "median": Case(lambda np, d: np.median(d.x)),
    "quantile of three": Case(lambda np, d: np.quantile(d.x, [0.05, 0.5, 0.95])),
    "percentile axis=1": Case(lambda np, d: np.percentile(d.rows, 90, axis=1)),
    "nanmedian": Case(lambda np, d: np.nanmedian(d.nans)),
    "cumsum": Case(lambda np, d: np.cumsum(d.x), lambda d: d.x.cumsum(0),
                   lambda d: ga.inclusive_scan(d.x)),
    "cumprod": Case(lambda np, d: np.cumprod(d.x)),
    "cumsum axis=1": Case(lambda np, d: np.cumsum(d.rows, axis=1), lambda d: d.rows.cumsum(1)),
    "nancumsum": Case(lambda np, d: np.nancumsum(d.nans)),
    "diff": Case(lambda np, d: np.diff(d.x), lambda d: d.x.diff()),
    "ediff1d": Case(lambda np, d: np.ediff1d(d.x)),
    "trapezoid": Case(lambda np, d: np.trapezoid(d.x)),
    "maximum.accumulate": Case(lambda np, d: np.maximum.accumulate(d.x),
                               lambda d: d.x.cummax(0).values),
    "sort": Case(lambda np, d: np.sort(d.x), lambda d: d.x.sort()[0], lambda d: ga.radix_sort(d.x)),
    "sort axis=1": Case(lambda np, d: np.sort(d.rows, axis=1), lambda d: d.rows.sort(1)[0]),
    "argsort": Case(lambda np, d: np.argsort(d.x, kind="stable"),
                    lambda d: d.x.argsort(stable=True), lambda d: ga.argsort(d.x)),
    "lexsort": Case(lambda np, d: np.lexsort((d.x, d.ints))),
    "partition": Case(lambda np, d: np.partition(d.x, d.x.size // 2)[d.x.size // 2]),
    "unique": Case(lambda np, d: np.unique(d.x), lambda d: d.x.unique()),
    "unique of ints": Case(lambda np, d: np.unique(d.ints)),
    "unique, counts": Case(lambda np, d: np.unique(d.ints, return_counts=True),
                           lambda d: d.ints.unique(return_counts=True)),
    "unique, inverse": Case(lambda np, d: np.unique(d.ints, return_inverse=True)),
    "searchsorted": Case(lambda np, d: np.searchsorted(d.edges, d.x),
                         lambda d: torch().searchsorted(d.edges, d.x),
                         lambda d: ga.searchsorted(d.edges, d.x)),
    "digitize": Case(lambda np, d: np.digitize(d.x, d.edges)),
    "nonzero": Case(lambda np, d: np.nonzero(d.mask)[0], lambda d: d.mask.nonzero()[:, 0]),
    "flatnonzero": Case(lambda np, d: np.flatnonzero(d.mask)),
    "extract": Case(lambda np, d: np.extract(d.mask, d.x), None, lambda d: ga.select(d.x, d.mask)),
    "compress": Case(lambda np, d: np.compress(d.mask, d.x)),
    "where": Case(lambda np, d: np.where(d.mask, d.x, d.y), lambda d: d.x.where(d.mask, d.y)),
    "isin": Case(lambda np, d: np.isin(d.ints, d.ints[:100])),
    "intersect1d": Case(lambda np, d: np.intersect1d(d.ints, d.ints[::2])),
    "union1d": Case(lambda np, d: np.union1d(d.x, d.y)),
    "setdiff1d": Case(lambda np, d: np.setdiff1d(d.ints, d.ints[:100])),
    "setxor1d": Case(lambda np, d: np.setxor1d(d.x, d.y)),
    "histogram": Case(lambda np, d: np.histogram(d.x, 256)[0]),
    "histogram, weights": Case(lambda np, d: np.histogram(d.x, 256, weights=d.y)[0]),
    "histogram2d": Case(lambda np, d: np.histogram2d(d.x, d.y, 64)[0]),
    "bincount": Case(lambda np, d: np.bincount(d.ints), lambda d: d.ints.bincount(),
                     lambda d: ga.histogram(d.ints, 1000, (0, 1000))),
    "bincount, weights": Case(lambda np, d: np.bincount(d.ints, d.y)),
    "add": Case(lambda np, d: np.add(d.x, d.y), lambda d: d.x + d.y,
                lambda d: ga.transform(np.add, d.x, d.y)),
    "exp": Case(lambda np, d: np.exp(d.x), lambda d: d.x.exp(),
                lambda d: ga.transform(np.exp, d.x)),
    "sqrt": Case(lambda np, d: np.sqrt(d.x)),
    "sin": Case(lambda np, d: np.sin(d.x)),
    "less": Case(lambda np, d: np.less(d.x, d.y)),
    "clip": Case(lambda np, d: np.clip(d.x, 0.25, 0.75), lambda d: d.x.clip(0.25, 0.75)),
    "round": Case(lambda np, d: np.round(d.x, 2)),
    "nan_to_num": Case(lambda np, d: np.nan_to_num(d.nans)),
    "isnan": Case(lambda np, d: np.isnan(d.nans)),
    "dot": Case(lambda np, d: np.dot(d.x, d.y), lambda d: d.x.dot(d.y)),
    "vdot": Case(lambda np, d: np.vdot(d.x, d.y)),
}  # fmt: skip

cpu_data = functools.lru_cache(2)(lambda xp, n: (data(xp, n, "float64"),))
device_data = functools.lru_cache(1)(lambda xp, n: (data(xp, n, "float32"),))


def expected(name, given):
    """Return what NumPy gives for the arrays of a GPU; of more, which would take minutes, CuPy.

    CuPy rounds otherwise, and NumPy is quick at it.
    """
    if given.x.size > MOST_FOR_NUMPY and name != "round":
        try:
            return CASES[name].call(gpu(), given)
        except Exception:  # what CuPy does not have
            return CASES[name].call(gnp, given)
    host = Data(*[array.get() for array in given])
    if name not in ROUNDED:
        host = host._replace(x=host.x.astype(float), rows=host.rows.astype(float))
    found = CASES[name].call(np, host)
    return tuple(map(gpu().asarray, found)) if isinstance(found, tuple) else gpu().asarray(found)


NUMPY = []
for name, (call, by_torch, algorithm) in CASES.items():
    ours, on_gpu = partial(call, gnp), {"dtype": "f32", "tolerance": 1e-2, "any_dtype": True}
    NUMPY += row(f"gnp.{name}", "cpu 10 20*", cpu_data, 8, ours, call, dtype="f64", tolerance=1e-9)
    NUMPY += row(f"gnp.{name}", "24 28", device_data, 4, ours, call, torch=by_torch,
                 expected=partial(expected, name), **on_gpu)  # fmt: skip
    if algorithm:
        NUMPY += row(f"gnp.{name}", "host 10*", device_data, 0, ours, call, expected=ours,
                     others={"the algorithm": algorithm}, **on_gpu)  # fmt: skip
