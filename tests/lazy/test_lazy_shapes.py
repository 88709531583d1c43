"""Slices and other shapes of lazy arrays: views of what they read, or elements gathered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import LAYOUTS, Backend, assert_same, random_array

import gpualgo as ga
from gpualgo._lazy.combining import quotient, remainder
from gpualgo.lazy.functions import VIEWS


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


CALLS: dict[Any, list[tuple[Any, ...]]] = {
    np.transpose: [(), ((),), ((1, 0),), ((2, 0, 1),)],
    np.swapaxes: [(0, 1), (0, -1)],
    np.moveaxis: [((), ()), (0, -1), (0, 1)],
    np.rollaxis: [(0,), (1,), (-1, 1)],
    np.expand_dims: [(0,), (-1,)],
    np.squeeze: [(), (0,)],
    np.flip: [(), (None,), ((),), (0,), (-1,), ((0, 1),)],
    np.flipud: [()],
    np.fliplr: [()],
    np.rot90: [(turns,) for turns in range(4)],
    np.broadcast_to: [((),), ((2,),), ((2, 1),), ((3, 2, 1),)],
    np.diagonal: [(), (1,), (-1,), (0, 1, 0)],
}


@pytest.mark.parametrize("shape", [(), (1,), (2,), (1, 1), (2, 1), (2, 3), (2, 1, 3)])
@pytest.mark.parametrize("fn", VIEWS, ids=lambda fn: fn.__name__)
def test_view_functions_return_views_of_what_is_read(fn: Any, shape: tuple[int, ...]) -> None:
    x = random_array(shape, np.dtype("float64"))
    for given in CALLS[fn]:
        try:
            want = fn(x, *given)
        except (ValueError, IndexError) as error:  # the same for a lazy array
            with pytest.raises(type(error)):
                fn(ga.lazy.asarray(x), *given)
            continue
        made = fn(ga.lazy.asarray(x) * 1, *given)
        (leaf,) = made.leaves
        assert type(leaf.array) is np.ndarray
        assert np.shares_memory(leaf.array, x) or not np.size(want)
        assert_same(ga.copy(made), np.asarray(want))


def test_flip_without_axes_reads_when_it_is_computed() -> None:
    a, b = np.array(3.0), np.array(5.0)
    difference = np.flip(ga.lazy.asarray(a)) - np.flip(ga.lazy.asarray(b), ())
    assert ga.copy(difference) == -2.0
    a[...] = 1
    assert ga.copy(difference) == -4.0
    assert ga.copy(np.flip(ga.lazy.arange(3)[1])) == 1  # it has no memory to read
    with pytest.raises(np.exceptions.AxisError):
        np.flip(ga.lazy.asarray(a), 0)


def test_flip_without_axes_of_every_backend(backend: Backend) -> None:
    x = ga.lazy.asarray(backend.to_device(np.arange(3.0)))
    assert_same(backend.to_host(ga.copy(np.flip(x[1]) * 2)), np.array(2.0))
