"""Slices and other shapes of lazy arrays: views of what they read, or elements gathered."""

from __future__ import annotations

import numpy as np
import pytest
from support import LAYOUTS, Backend, assert_same, random_array

import gpualgo as ga
from gpualgo._lazy.combining import quotient, remainder


@pytest.mark.parametrize("layout", LAYOUTS)
def test_reshape_of_every_layout(backend: Backend, layout: str) -> None:
    x = random_array((6, 8), np.dtype("float32"))
    made = ga.lazy.asarray(backend.arrange(layout, x))
    for shape in ((48,), (8, 6), (2, 3, 8), (6, 2, 4)):
        assert_same(backend.to_host(ga.copy(made.reshape(shape) * 2)), x.reshape(shape) * 2)


def test_reshape_of_tuples() -> None:
    x, y = np.arange(6).reshape(2, 3), np.arange(6.0).reshape(2, 3)
    pair = ga.lazy.asarray((x, y)).T.reshape(6)
    a, b = ga.copy(pair)
    assert_same(a, x.T.reshape(6))
    assert_same(b, y.T.reshape(6))


def test_quotients_by_products_are_exact() -> None:
    """Below 2^52, where an element's index along an axis is found by them."""
    random = np.random.default_rng(0)
    for bits in range(1, 52):
        n = int(random.integers(1, 1 << bits))
        near = random.integers(0, max(1, (1 << 52) // n), 300)[:, None] * n + [-1, 0, 1, n - 1]
        index = near[(near >= 0) & (near < 1 << 52)]
        np.testing.assert_array_equal(quotient(index, n, 1 / n), index // n)
        np.testing.assert_array_equal(remainder(index, n, 1 / n), index % n)
