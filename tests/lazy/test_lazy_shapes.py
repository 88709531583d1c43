"""Slices and other shapes of lazy arrays: views of what they read, or elements gathered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import LAYOUTS, Backend, assert_same, random_array

import gpualgo as ga

SHAPE = (4, 6, 5)
INT = np.dtype("int64")
INDICES: list[Any] = [
    0, -1, np.int64(2), np.s_[1:3], np.s_[::-1], np.s_[::2, ::-3], np.s_[..., 0], np.s_[..., ::2],
    np.s_[None], np.s_[:, None, 1], np.s_[1, ..., None], np.s_[3:1], np.s_[-2:, 1:-1, 4:0:-2],
    np.s_[1, 2, 3], np.s_[...], np.s_[:, -1], np.s_[None, None, 2, ..., -1, None], (),
]  # fmt: skip


def both() -> tuple[Any, np.ndarray[Any, Any]]:
    """Return a lazy array of all kinds of leaves, and the same one real."""
    x, row = random_array(SHAPE, INT), random_array(5, INT, 1)
    count = np.arange(120).reshape(SHAPE)
    return ga.lazy.asarray(x) * 3 + row + ga.lazy.arange(120).reshape(SHAPE), x * 3 + row + count


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_slices(index: Any) -> None:
    made, real = both()
    assert made[index].shape == real[index].shape
    assert_same(ga.copy(made[index]), np.asarray(real[index]))


def test_slices_of_slices() -> None:
    made, real = both()
    assert_same(ga.copy(made[1:, ::-2][..., 1:][:2, 0]), real[1:, ::-2][..., 1:][:2, 0])


SHAPES = [(120,), (-1,), (5, 24), (2, 2, 3, 2, 5), (4, 30), (20, 6), (1, 120, 1)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reshape(shape: tuple[int, ...]) -> None:
    made, real = both()
    assert_same(ga.copy(made.reshape(shape)), real.reshape(shape))
    assert_same(ga.copy(made.reshape(*shape)), real.reshape(shape))
    turned, back = made.transpose(2, 0, 1)[:, ::-1], real.transpose(2, 0, 1)[:, ::-1]
    assert_same(ga.copy(turned.reshape(shape)), back.reshape(shape))  # elements are gathered
    twice = turned.reshape(shape).reshape(6, 20)[::2] + 1
    assert_same(ga.copy(twice), back.reshape(6, 20)[::2] + 1)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_reshape_of_every_layout(backend: Backend, layout: str) -> None:
    x = random_array((6, 8), np.dtype("float32"))
    made = ga.lazy.asarray(backend.arrange(layout, x))
    for shape in ((48,), (8, 6), (2, 3, 8), (6, 2, 4)):
        assert_same(backend.to_host(ga.copy(made.reshape(shape) * 2)), x.reshape(shape) * 2)


def test_reshape_of_broadcast_and_of_empty_ones() -> None:
    x = random_array(5, INT)
    spread = np.broadcast_to(ga.lazy.asarray(x), (3, 5))
    assert_same(ga.copy(spread.reshape(15)), np.broadcast_to(x, (3, 5)).reshape(15))
    assert ga.copy(ga.lazy.asarray(np.empty((0, 3))).reshape(3, 0, 7)).shape == (3, 0, 7)
    assert_same(ga.copy(ga.lazy.asarray(x)[2].reshape(1, 1)), x[2].reshape(1, 1))
    assert_same(ga.copy(ga.lazy.full((2, 6), 3).T.reshape(4, 3)), np.full((4, 3), 3))


@pytest.mark.parametrize("shape", [(2,), (), (3, 1), (2, 4), (1,)])
def test_shapes_that_an_array_does_not_broadcast_to(shape: tuple[int, ...]) -> None:
    x = ga.lazy.asarray(np.arange(3))
    for call in (x.broadcast_to, lambda shape: np.broadcast_to(x, shape)):
        with pytest.raises(ValueError, match="broadcast"):
            call(shape)


def test_reshape_of_tuples() -> None:
    x, y = np.arange(6).reshape(2, 3), np.arange(6.0).reshape(2, 3)
    pair = ga.lazy.asarray((x, y)).T.reshape(6)
    a, b = ga.copy(pair)
    assert_same(a, x.T.reshape(6))
    assert_same(b, y.T.reshape(6))


def test_turned() -> None:
    made, real = both()
    assert_same(ga.copy(made.T), real.T)
    assert_same(ga.copy(made.transpose()), real.transpose())
    assert_same(ga.copy(made.transpose(1, 2, 0)), real.transpose(1, 2, 0))
    assert_same(ga.copy(made.transpose((0, 2, 1))), real.transpose(0, 2, 1))
    assert_same(ga.copy(made.ravel()), real.ravel())
    assert_same(ga.copy(made.T.ravel()), real.T.ravel())
    assert_same(ga.copy(made.swapaxes(0, 2)), real.swapaxes(0, 2))


@pytest.mark.parametrize("index", [[0, 1], np.array([0]), np.array([True] * 4), True, 1.5])
def test_indices_that_are_arrays(index: Any) -> None:
    made, _ = both()
    with pytest.raises(TypeError, match=r"indexed by integers.*lazy\.take"):
        made[index]


def test_other_bad_shapes() -> None:
    made, _ = both()
    with pytest.raises(IndexError):
        made[4]
    with pytest.raises(IndexError):
        made[0, 0, 0, 0]
    with pytest.raises(ValueError, match="cannot have shape"):
        made.reshape(7)
    with pytest.raises(ValueError, match="cannot have shape"):
        made.reshape(-1, -1)
    with pytest.raises(ValueError, match="cannot have shape"):
        made.reshape(-2, -60)
    with pytest.raises(TypeError, match="an extent must be an int"):
        made.reshape(2.0, 60)
    with pytest.raises(TypeError, match="without axes"):
        len(made[0, 0, 0])
    with pytest.raises(ValueError, match="broadcast"):
        np.broadcast_to(made, (4, 6, 7))
