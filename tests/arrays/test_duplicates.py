"""Whether two elements of a view share a byte: told from its strides, beside counting all bytes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support import LAYOUTS

from gpualgo._arrays.view import View, has_duplicates
from gpualgo._driver.default_device import CPU


def _view(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int = 4) -> View:
    return View(1 << 20, shape, strides, np.dtype(f"V{itemsize}"), CPU, None, False, None)


def _counted(view: View) -> bool:
    itemsize = view.dtype.itemsize
    starts = [
        sum(i * s for i, s in zip(index, view.strides, strict=True))
        for index in itertools.product(*map(range, view.shape))
    ]
    touched = [start + byte for start in starts for byte in range(itemsize)]
    return len(set(touched)) < len(touched)


@pytest.mark.parametrize("itemsize", [1, 2, 4])
def test_as_counted(itemsize: int) -> None:
    rng = np.random.default_rng(itemsize)
    found = []
    for _ in range(3000):
        ndim = int(rng.integers(0, 4))
        shape = tuple(map(int, rng.integers(0, 5, ndim)))
        strides = tuple(map(int, rng.integers(-14, 15, ndim)))
        view = _view(shape, strides, itemsize)
        found.append(has_duplicates(view))
        assert found[-1] == _counted(view), view
    assert 100 < sum(found) < 2500


def test_interleaved_elements_are_apart() -> None:
    assert not has_duplicates(_view((3, 2), (8, 12)))  # 0 8 16 and 12 20 28
    assert has_duplicates(_view((4, 2), (8, 12), 8))
    assert has_duplicates(_view((3, 2), (8, 16)))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_slices_of_plain_arrays_have_none(layout: str) -> None:
    x = LAYOUTS[layout](np.zeros, (3, 4, 5))
    assert not has_duplicates(_view(x.shape, x.strides, x.itemsize))
    assert has_duplicates(_view(x.shape, (*x.strides[:-1], 0), x.itemsize))
