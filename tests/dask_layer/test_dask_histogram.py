"""histogram of dask arrays beside the single machine's."""

from __future__ import annotations

import numpy as np
import pytest
from chunked import built, cut

import gpualgo as ga
import gpualgo.dask as gd

RNG = np.random.default_rng(11)
H = RNG.integers(-50, 50, (20, 30), dtype=np.int8)
X = cut(H, (7, 0, 13), (9, 11, 10))


def test_weights_that_round_repeat() -> None:
    h, weights = RNG.random(300), RNG.random(300).astype(np.float32)
    x = cut(h, (100, 150, 50))
    got = built(gd.histogram, x, 8, weights=weights).compute()
    assert got.dtype == np.float32
    assert np.allclose(got, ga.histogram(h, 8, weights=weights), rtol=1e-6)
    assert np.array_equal(got, gd.histogram(x, 8, weights=weights).compute())


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


def test_bins_that_are_masked_or_dask_arrays() -> None:
    edges = np.ma.masked_equal([0, 3, 6], 3)
    for bins, x in ((edges, X), ((edges, 2), (X, X))):
        with pytest.raises(TypeError, match=r"bins.* is a masked array"):
            built(ga.histogram, x, bins)
    for options in (
        {"bins": cut(np.arange(3), (2, 1))}, {"bins": 3, "range": (0, cut(np.ones(1), (1,)))},
    ):  # fmt: skip
        with pytest.raises(TypeError, match="bins and range must not be dask arrays"):
            built(ga.histogram, X, **options)
