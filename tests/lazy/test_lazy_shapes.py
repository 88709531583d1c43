"""Slices and other shapes of lazy arrays: views of what they read, or elements gathered."""

from __future__ import annotations

import numpy as np
import pytest
from support import LAYOUTS, Backend, assert_same, random_array

import gpualgo as ga


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
