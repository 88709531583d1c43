"""histogram of dask arrays beside the single machine's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from chunked import built, check, cut

import gpualgo as ga
import gpualgo.dask as gd

RNG = np.random.default_rng(11)
H = RNG.integers(-50, 50, (20, 30), dtype=np.int8)
X = cut(H, (7, 0, 13), (9, 11, 10))


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1), ()])
def test_axes_and_bins(axis: Any) -> None:
    weights = RNG.integers(0, 9, H.shape)
    for options in (
        {"bins": 10}, {"bins": 7, "range": (-20, 30.5)}, {"bins": [-10, 0, 0, 25]},
        {"bins": 4, "dtype": np.uint16}, {"bins": 5, "weights": weights},
        {"bins": 5, "weights": weights[0]}, {"bins": 5, "weights": 2},
        {"bins": 5, "weights": cut(weights, (10, 10), (30,)), "dtype": np.int16},
    ):  # fmt: skip
        options = {"axis": axis, **options}
        real = {k: v.compute() if hasattr(v, "compute") else v for k, v in options.items()}
        check(built(ga.histogram, X, **options), ga.histogram(H, **real))


def test_floats_and_bool() -> None:
    for h in (RNG.random(300).astype(np.float32), RNG.random(300), RNG.random(300) < 0.3):
        x = cut(h, (100, 0, 1, 199))
        check(built(ga.histogram, x, 16), ga.histogram(h, 16))
        check(built(ga.histogram, x, 16, (0.25, 0.5)), ga.histogram(h, 16, (0.25, 0.5)))
    check(gd.histogram(cut(np.zeros(0), (0, 0)), 3), ga.histogram(np.zeros(0), 3))
    check(gd.histogram(cut(np.ones(9), (4, 5)), 3), ga.histogram(np.ones(9), 3))


def test_weights_that_round_repeat() -> None:
    h, weights = RNG.random(300), RNG.random(300).astype(np.float32)
    x = cut(h, (100, 150, 50))
    got = built(gd.histogram, x, 8, weights=weights).compute()
    assert got.dtype == np.float32
    assert np.allclose(got, ga.histogram(h, 8, weights=weights), rtol=1e-6)
    assert np.array_equal(got, gd.histogram(x, 8, weights=weights).compute())


def test_tuples() -> None:
    y = X[:, ::-1]
    pair, real = (X, y), (H, H[:, ::-1])
    for bins, ends in ((4, None), ((4, [-3, 0, 3]), ((-10, 10), None)), ((3, 2), None)):
        check(built(ga.histogram, pair, bins, ends), ga.histogram(real, bins, ends))
    check(built(ga.histogram, pair, 3, axis=1), ga.histogram(real, 3, axis=1))


def test_what_is_wrong() -> None:
    for options in (
        {"bins": 0}, {"bins": [3, 2]}, {"bins": 4, "dtype": np.int8}, {"bins": 2, "axis": 2},
        {"bins": 4, "range": (0, 1, 2)}, {"bins": 4, "range": (1, 0)}, {"bins": "auto"},
        {"bins": [0, 1], "range": (0, 1)},
    ):  # fmt: skip
        errors = []
        for x in (H, X):
            with pytest.raises((TypeError, ValueError)) as caught:
                built(ga.histogram, x, **options)
            errors.append((caught.type, str(caught.value)))
        assert errors[0] == errors[1]
    lazy = built(gd.histogram, cut(np.array([1.0, np.nan]), (1, 1)), 3)
    with pytest.raises(ValueError, match="not finite"):
        lazy.compute()
