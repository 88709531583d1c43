"""Random dimensions, dtypes, layouts, axes and weights of histogram, against a Python loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sums_of_weights import assert_sum
from support import REAL, Backend, scaled

import gpualgo as ga

WEIGHTS = ("bool", "int8", "int64", "uint16", "float16", "float32", "float64", "complex64")


def _array(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any, backend: Backend) -> Any:
    """Return an array with random steps, order of axes and extents of one, here and there."""
    shape = tuple(1 if rng.random() < 0.2 else n for n in shape)
    values: Any = rng.standard_normal(shape) * 4
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    if np.dtype(dtype).kind == "u":
        values = abs(values)
    values = values.astype(dtype)
    order = rng.permutation(len(shape))
    steps = [int(rng.choice([1, 1, 1, 2, -1, -3])) for _ in shape]
    full = [n * abs(k) for n, k in zip(shape, steps, strict=True)]
    base = backend.to_device(np.zeros([full[i] for i in order], dtype))
    turned = base.transpose([int(np.flatnonzero(order == i)[0]) for i in range(len(shape))])
    view = turned[tuple(np.s_[::k] for k in steps)]
    view = view[tuple(np.s_[:n] for n in shape)]
    view[...] = backend.to_device(values)
    return view, values


def _places(values: Any, edges: list[float]) -> Any:
    wide = np.asarray(values, np.float64)
    place = np.searchsorted(edges, wide, "right") - 1
    place = np.where(wide == edges[-1], len(edges) - 2, place)
    return np.where((wide >= edges[0]) & (wide <= edges[-1]), place, -1)


@pytest.mark.parametrize("seed", range(scaled(60, emulated=12)))
def test_anything(backend: Backend, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ndim, dims = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.integers(1, (70, 13, 7)[ndim - 1], ndim))
    pairs = [_array(rng, shape, rng.choice(REAL), backend) for _ in range(dims)]
    full = np.broadcast_shapes(*(values.shape for _, values in pairs))
    bins: list[Any] = []
    edges: list[list[float]] = []
    for _ in range(dims):
        if rng.random() < 0.5:
            bins.append(int(rng.integers(1, 6)))
            edges.append(np.linspace(-6, 6, bins[-1] + 1).tolist())
        else:
            edges.append(sorted(rng.integers(-8, 9, 4).tolist()))
            bins.append(edges[-1])
    wide = np.float64(-6), np.float64(6)  # with which all dtypes have float64 edges
    ends = tuple(wide if isinstance(one, int) else None for one in bins)
    weights: Any = None
    values = np.ones(full, np.int64)
    if rng.random() < 0.7:
        weights, values = _array(rng, full, rng.choice(WEIGHTS), backend)
    axis = tuple(int(a) for a in np.flatnonzero(rng.random(len(full)) < 0.6))
    got = ga.histogram(tuple(x for x, _ in pairs), tuple(bins), ends, weights=weights, axis=axis)
    kept = [a for a in range(len(full)) if a not in axis]
    flat = np.zeros(full, np.int64)
    for (_, x), one in zip(pairs, edges, strict=True):
        place = np.broadcast_to(_places(x, one), full)
        is_inside = (flat >= 0) & (place >= 0)
        flat = np.where(is_inside, flat * (len(one) - 1) + place, -1)
    order = (*kept, *axis)
    flat, spread = flat.transpose(order), np.broadcast_to(values, full).transpose(order)
    found = backend.to_host(got)
    for index in np.ndindex(*(full[a] for a in kept)):
        for i, one in enumerate(found[index].ravel()):
            assert_sum(one, spread[index][flat[index] == i])
