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


# A call, which gpualgo.numpy, NumPy and CuPy have alike; PyTorch's; the algorithm underneath.
CASES = {
    "sum": "np.sum(x) | x.sum() | ga.reduce(x)", "sum axis=0": "np.sum(rows, axis=0) | rows.sum(0)",
    "sum where": "np.sum(x, where=mask)", "prod": "np.prod(x) | x.prod()",
    "min": "np.min(x) | x.min()",
    "max axis=1": "np.max(rows, axis=1) | rows.amax(1) | ga.reduce(rows, None, max, axis=1)",
    "ptp": "np.ptp(x)", "mean": "np.mean(x) | x.mean()",
    "mean axis=1": "np.mean(rows, axis=1) | rows.mean(1)", "var": "np.var(x) | x.var(correction=0)",
    "std axis=0": "np.std(rows, axis=0) | rows.std(0, correction=0)",
    "average weighted": "np.average(x, weights=y)", "any": "np.any(few)", "all": "np.all(mask)",
    "count_nonzero": "np.count_nonzero(mask) | mask.count_nonzero()",
    "argmin": "np.argmin(x) |  | ga.argmin(x)",
    "argmax axis=1": "np.argmax(rows, axis=1) | rows.argmax(1)",
    "nansum": "np.nansum(nans) | nans.nansum()", "nanmean": "np.nanmean(nans) | nans.nanmean()",
    "nanvar": "np.nanvar(nans)", "nanmax": "np.nanmax(nans)", "nanargmax": "np.nanargmax(nans)",
    "median": "np.median(x)", "quantile of three": "np.quantile(x, [0.05, 0.5, 0.95])",
    "percentile axis=1": "np.percentile(rows, 90, axis=1)", "nanmedian": "np.nanmedian(nans)",
    "cumsum": "np.cumsum(x) | x.cumsum(0) | ga.inclusive_scan(x)", "cumprod": "np.cumprod(x)",
    "cumsum axis=1": "np.cumsum(rows, axis=1) | rows.cumsum(1)", "nancumsum": "np.nancumsum(nans)",
    "diff": "np.diff(x) | x.diff()", "ediff1d": "np.ediff1d(x)", "trapezoid": "np.trapezoid(x)",
    "maximum.accumulate": "np.maximum.accumulate(x) | x.cummax(0).values",
    "sort": "np.sort(x) | x.sort()[0] | ga.radix_sort(x)",
    "sort axis=1": "np.sort(rows, axis=1) | rows.sort(1)[0]",
    "argsort": "np.argsort(x, kind='stable') | x.argsort(stable=True) | ga.argsort(x)",
    "lexsort": "np.lexsort((x, ints))", "partition": "np.partition(x, x.size // 2)[x.size // 2]",
    "unique": "np.unique(x) | x.unique()", "unique of ints": "np.unique(ints)",
    "unique, counts": "np.unique(ints, return_counts=True) | ints.unique(return_counts=True)",
    "unique, inverse": "np.unique(ints, return_inverse=True)",
    "searchsorted":
    "np.searchsorted(edges, x) | torch().searchsorted(edges, x) | ga.searchsorted(edges, x)",
    "digitize": "np.digitize(x, edges)", "nonzero": "np.nonzero(mask)[0] | mask.nonzero()[:, 0]",
    "flatnonzero": "np.flatnonzero(mask)", "extract": "np.extract(mask, x) |  | ga.select(x, mask)",
    "compress": "np.compress(mask, x)", "where": "np.where(mask, x, y) | x.where(mask, y)",
    "isin": "np.isin(ints, ints[:100])", "intersect1d": "np.intersect1d(ints, ints[::2])",
    "union1d": "np.union1d(x, y)", "setdiff1d": "np.setdiff1d(ints, ints[:100])",
    "setxor1d": "np.setxor1d(x, y)", "histogram": "np.histogram(x, 256)[0]",
    "histogram, weights": "np.histogram(x, 256, weights=y)[0]",
    "histogram2d": "np.histogram2d(x, y, 64)[0]",
    "bincount": "np.bincount(ints) | ints.bincount() | ga.histogram(ints, 1000, (0, 1000))",
    "bincount, weights": "np.bincount(ints, y)",
    "add": "np.add(x, y) | x + y | ga.transform(np.add, x, y)",
    "exp": "np.exp(x) | x.exp() | ga.transform(np.exp, x)", "sqrt": "np.sqrt(x)",
    "sin": "np.sin(x)", "less": "np.less(x, y)",
    "clip": "np.clip(x, 0.25, 0.75) | x.clip(0.25, 0.75)", "round": "np.round(x, 2)",
    "nan_to_num": "np.nan_to_num(nans)", "isnan": "np.isnan(nans)",
    "dot": "np.dot(x, y) | x.dot(y)", "vdot": "np.vdot(x, y)",
}  # fmt: skip
ARRAYS, NAMES = ", ".join(Data._fields), {"ga": ga, "np": np, "torch": torch}


def case(name):
    """Return the calls of a case, functions of the arrays, the first of the library before them."""
    texts = zip((f"np, {ARRAYS}", ARRAYS, ARRAYS), CASES[name].split(" | "), strict=False)
    return [each and eval(f"lambda {given}: {each}", NAMES) for given, each in texts]


cpu_data = functools.lru_cache(2)(partial(data, dtype="float64"))
device_data = functools.lru_cache(1)(partial(data, dtype="float32"))


def expected(name, *given):
    """Return what NumPy gives for the arrays of a GPU; of more, which would take minutes, CuPy.

    CuPy rounds otherwise, and NumPy is quick at it.
    """
    call, given = case(name)[0], Data(*given)
    if given.x.size > MOST_FOR_NUMPY and name != "round":
        try:
            return call(gpu(), *given)
        except Exception:  # what CuPy does not have
            return call(gnp, *given)
    host = Data(*[array.get() for array in given])
    if name not in ROUNDED:
        host = host._replace(x=host.x.astype(float), rows=host.rows.astype(float))
    found = call(np, *host)
    return tuple(map(gpu().asarray, found)) if isinstance(found, tuple) else gpu().asarray(found)


NUMPY = []
for name in CASES:
    call, by_torch, algorithm = [*case(name), None, None][:3]
    ours, on_gpu = partial(call, gnp), {"tolerance": 1e-2, "any_dtype": True}
    NUMPY += row(f"gnp.{name}", "cpu 10 20*", cpu_data, 8, ours, call, tolerance=1e-9)
    NUMPY += row(f"gnp.{name}", "24 28", device_data, 4, ours, call, torch=by_torch or None,
                 expected=partial(expected, name), **on_gpu)  # fmt: skip
    if algorithm:
        NUMPY += row(f"gnp.{name}", "host 10*", device_data, 0, ours, call, expected=ours,
                     others={"the algorithm": algorithm}, **on_gpu)  # fmt: skip
