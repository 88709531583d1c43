"""Histograms beside CUB, CuPy, PyTorch and NumPy.

Bins are powers of two over [0, 1), so that
every library finds the same bin; counters are of 32 bits where a library gives the choice.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._bench import data
from gpualgo._bench.peers import cub
from gpualgo._bench.support import OURS, Row, Work, as_tensor, gpu, torch

CUB = (cub.HISTOGRAM,)  # what these rows compile of it
_FLOAT_COUNTS = 1 << 24  # torch.histc counts in float32, exactly up to this


def _poisoned(bins: int) -> list[Any]:
    """Return outputs in which a count that was not written is seen."""
    return [gpu().full(bins, -7, "int32") for _ in range(2)]


def _even(bins: int, make: Callable[[int], Any], n: int) -> Work:
    cupy, x, out = gpu(), make(n), _poisoned(bins)
    contenders = {OURS: lambda: ga.histogram(x, bins, (0, 1), out=out[0])}
    if x.dtype == "float32":
        contenders |= cub.histogram(x, out[1], 1)
    contenders["CuPy"] = lambda: cupy.histogram(x, bins, (0, 1))[0]
    expected = cupy.bincount((x * bins).astype("int32"), minlength=bins)
    if torch() and int(expected.max()) <= _FLOAT_COUNTS:
        tensor = as_tensor(x)
        contenders["torch"] = lambda: torch().histc(tensor, bins, 0, 1)
    return Work(contenders, expected, any_dtype=True)


def _bytes(n: int) -> Work:
    cupy, x, out = gpu(), data.bits(n, "uint8"), _poisoned(256)
    contenders = {OURS: lambda: ga.histogram(x, 256, (0, 256), out=out[0])}
    contenders |= cub.histogram(x, out[1], 256)
    contenders["CuPy"] = lambda: cupy.bincount(x, minlength=256)
    if torch():
        tensor = as_tensor(x)
        contenders["torch"] = lambda: torch().bincount(tensor, minlength=256)
    return Work(contenders, cupy.bincount(x, minlength=256), any_dtype=True)


def _edges(bins: int, n: int) -> Work:
    cupy, x, out = gpu(), data.unit(n), _poisoned(bins)
    edges = (np.linspace(0, 1, bins + 1) ** 2).astype(np.float32)
    on_device = cupy.asarray(edges)
    contenders = {OURS: lambda: ga.histogram(x, edges, out=out[0])}
    contenders |= cub.histogram_edges(x, on_device, out[1])
    contenders["CuPy"] = lambda: cupy.histogram(x, on_device)[0]
    found = cupy.searchsorted(on_device, x, side="right") - 1
    return Work(contenders, cupy.bincount(found, minlength=bins), any_dtype=True)


def _numpy(n: int) -> Work:
    x = np.random.default_rng(0).random(n, np.float32)
    contenders = {
        OURS: lambda: ga.histogram(x, 256, (0, 1)),
        "NumPy": lambda: np.histogram(x, 256, (0, 1))[0],
    }
    return Work(contenders, np.histogram(x, 256, (0, 1))[0])


def _pairs(bins: int, n: int) -> Work:
    """Return samples of two dimensions, beside CuPy, which stacks them first."""
    cupy, x, y = gpu(), data.unit(n), data.unit(n, 1)
    out, span = gpu().full((bins, bins), -7, "int32"), ((0, 1), (0, 1))
    contenders = {
        OURS: lambda: ga.histogram((x, y), bins, span, out=out),
        "CuPy": lambda: cupy.histogram2d(x, y, bins, span)[0],
    }
    place = (x * bins).astype("int32") * bins + (y * bins).astype("int32")
    expected = cupy.bincount(place, minlength=bins * bins).reshape(bins, bins)
    return Work(contenders, expected, any_dtype=True)


def _weighted(bins: int, dtype: str, n: int) -> Work:
    """Return sums of weights; the peers' are not exact, and those of torch know the bins."""
    cupy, x = gpu(), data.unit(n)
    weights = (data.unit(n, 1) - 0.25).astype(dtype)
    contenders = {
        OURS: lambda: ga.histogram(x, bins, (0, 1), weights=weights),
        "CuPy": lambda: cupy.histogram(x, bins, (0, 1), weights=weights)[0],
    }
    place = (x * bins).astype("int64")
    if torch():
        at, w = as_tensor(place), as_tensor(weights)
        contenders["torch"] = lambda: torch().bincount(at, w, bins)
    expected = cupy.bincount(place, weights.astype("float64"), bins)
    return Work(
        contenders, expected, tolerance=1e-3 if dtype == "float32" else 1e-9, any_dtype=True
    )


def _weighted_pairs(bins: int, n: int) -> Work:
    cupy, x, y = gpu(), data.unit(n), data.unit(n, 1)
    weights, span = x - 0.25, ((0, 1), (0, 1))
    contenders = {
        OURS: lambda: ga.histogram((x, y), bins, span, weights=weights),
        "CuPy": lambda: cupy.histogram2d(x, y, bins, span, weights=weights)[0],
    }
    place = (x * bins).astype("int64") * bins + (y * bins).astype("int64")
    if torch():
        at, w = as_tensor(place), as_tensor(weights)
        contenders["torch"] = lambda: torch().bincount(at, w, bins * bins).reshape(bins, bins)
    expected = cupy.bincount(place, weights.astype("float64"), bins * bins).reshape(bins, bins)
    return Work(contenders, expected, tolerance=1e-3, any_dtype=True)


def _numpy_pairs(n: int) -> Work:
    x, y = np.random.default_rng(0).random((2, n), np.float32)
    weights, span = y.astype(np.float64) - 0.25, ((0, 1), (0, 1))
    contenders = {
        OURS: lambda: ga.histogram((x, y), 32, span, weights=weights),
        "NumPy": lambda: np.histogram2d(x, y, 32, span, weights=weights)[0],
    }
    return Work(contenders, np.histogram2d(x, y, 32, span, weights=weights)[0], tolerance=1e-9)


def _skewed(n: int) -> Any:
    return gpu().full(n, 0.3, "float32")


SIZES = (16, 20, 24, 28, 30)
QUICK = {256: (16, 20, 28), 4096: (28,), 65536: (28,)}  # by bins: logarithms of n


def _even_rows() -> list[Row]:
    found = []
    for bins in (32, 128, 256, 2048, 4096, 65536, 1 << 21):
        beside = "CUB" if bins in (4096, 65536) else ""  # the one its target was measured with
        name = f"histogram {bins} bins, f32" + (f", beside {beside}" if beside else "")
        build, quick = functools.partial(_even, bins, data.unit), QUICK.get(bins, ())
        for power in SIZES if quick else (28,):
            n = 1 << power
            found.append(Row(name, n, "device", build, 4 * n, quick=power in quick, beside=beside))
    return found


def _joint_rows() -> list[Row]:
    """Return rows of two dimensions, and of weights."""
    found, n = [], 1 << 26
    for bins in (32, 1024):
        name = f"histogram {bins}x{bins} bins, f32 pairs"
        build = functools.partial(_pairs, bins)
        found += [Row(name, n, "device", build, 8 * n, quick=bins == 32)]
        name = f"{name}, f32 weights"
        build = functools.partial(_weighted_pairs, bins)
        found += [Row(name, n, "device", build, 12 * n, quick=False)]
    for bins, dtype in ((256, "float32"), (256, "float64"), (65536, "float32"), (65536, "float64")):
        name = f"histogram {bins} bins, f32, {dtype} weights"
        moved = (4 + np.dtype(dtype).itemsize) * n
        build = functools.partial(_weighted, bins, dtype)
        found.append(Row(name, n, "device", build, moved, quick=bins == 256))
    return found


def rows() -> list[Row]:
    """Return all rows, those that need a GPU among them; bytes moved: each sample read."""
    n = 1 << 24
    cpu = [Row("histogram 256 bins, f32", n, "cpu", _numpy, 4 * n)]
    few = 1 << 20
    name = "histogram 32x32 bins, f32 pairs, f64 weights"
    cpu.append(Row(name, few, "cpu", _numpy_pairs, 16 * few))
    found = _even_rows()
    for power in SIZES:
        n, quick = 1 << power, power in (16, 20, 28)
        found.append(Row("histogram 256 bins, u8", n, "device", _bytes, n, quick=quick))
    n = 1 << 28
    skewed, edges = functools.partial(_even, 256, _skewed), functools.partial(_edges, 2048)
    wide = functools.partial(_even, 256, lambda n: data.unit(n).astype("float64"))
    found.append(Row("histogram 256 bins, f64", n, "device", wide, 8 * n))
    name = "histogram 256 bins, f32, all in one bin"
    found.append(Row(name, n, "device", skewed, 4 * n, quick=False))
    found.append(Row("histogram 2048 bins by edges, f32", n, "device", edges, 4 * n, quick=False))
    return found + _joint_rows() + cpu
