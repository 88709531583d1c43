"""Lazy random numbers: those of NumPy's Philox, bit for bit, wherever they are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import a_few, assert_same

import gpualgo as ga

SEEDS = [0, 1, 12345, 2**40, 2**200 + 7]
FLOATS = [np.dtype("float32"), np.dtype("float64")]


def numbers(n: int, seed: int, dtype: Any) -> np.ndarray[Any, Any]:
    """Return what NumPy draws."""
    return np.random.Generator(np.random.Philox(seed)).random(n, dtype)


def bits(n: int, seed: int, dtype: Any) -> np.ndarray[Any, Any]:
    """Return NumPy's words, of 32 bits the low halves first."""
    words = np.asarray(np.random.Philox(seed).random_raw(n))
    if dtype == np.uint64:
        return words
    halves = [words & np.uint64(0xFFFFFFFF), words >> np.uint64(32)]
    return np.stack(halves, axis=1).ravel()[:n].astype(np.uint32)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_random(seed: int, dtype: np.dtype[Any]) -> None:
    made = ga.lazy.random(1003, seed=seed, dtype=dtype)
    assert (made.shape, made.dtype) == ((1003,), dtype)
    assert_same(ga.copy(made), numbers(1003, seed, dtype))


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
@pytest.mark.parametrize("seed", SEEDS)
def test_random_bits(seed: int, dtype: Any) -> None:
    made = ga.lazy.random_bits(1003, seed=seed, dtype=dtype)
    assert_same(ga.copy(made), bits(1003, seed, dtype))


def test_a_seed_of_numpy() -> None:
    got = ga.copy(ga.lazy.random(5, seed=np.int64(9)))
    assert_same(got, numbers(5, 9, np.float64))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(
    "index",
    [
        np.s_[1:], np.s_[2:90:3], np.s_[::-1], np.s_[97:3:-4], np.s_[5], np.s_[50:50], np.s_[-3:],
        np.s_[3:], np.s_[None, 1::2], np.s_[..., 4],
    ],
    ids=str,
)  # fmt: skip
def test_slices(index: Any, dtype: np.dtype[Any]) -> None:
    want = numbers(101, 5, dtype)[index]
    assert_same(ga.copy(ga.lazy.random(101, seed=5, dtype=dtype)[index]), np.asarray(want))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_other_shapes(dtype: np.dtype[Any]) -> None:
    flat = numbers(210, 8, dtype)
    made = ga.lazy.random((5, 6, 7), seed=8, dtype=dtype)
    real = flat.reshape(5, 6, 7)
    assert_same(ga.copy(made), real)
    assert_same(ga.copy(made.reshape(14, 15)), real.reshape(14, 15))
    assert_same(ga.copy(made.T), real.T)
    assert_same(ga.copy(made.transpose(1, 0, 2)[:, ::2]), real.transpose(1, 0, 2)[:, ::2])
    assert_same(ga.copy(made.T.reshape(-1)), real.T.reshape(-1))
    assert_same(ga.copy(made[:, 2].ravel()), real[:, 2].ravel())
    assert_same(ga.copy(np.broadcast_to(made[0], (2, 6, 7))), np.broadcast_to(real[0], (2, 6, 7)))


def test_of_several_axes_and_of_none() -> None:
    generator = np.random.Generator(np.random.Philox(4))
    assert_same(ga.copy(ga.lazy.random((3, 4), seed=4)), generator.random((3, 4)))
    assert_same(ga.copy(ga.lazy.random((), seed=4)), numbers(1, 4, np.float64).reshape(()))
    assert ga.copy(ga.lazy.random((0, 3), seed=4)).shape == (0, 3)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(100_003,), (37, 211), (211, 37)], ids=str)
def test_read_by_all_kernels(backend: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """What is added has few bits, so that sums do not depend on their order."""
    made = np.floor(ga.lazy.random(shape, seed=3, dtype=dtype) * 16)
    real = np.floor(numbers(int(np.prod(shape)), 3, dtype).reshape(shape) * 16)
    for axis in a_few((None, *range(len(shape))), 2):
        assert_same(ga.reduce(made, axis=axis), np.sum(real, axis=axis, dtype=dtype))
        want = np.cumsum(real, axis=axis, dtype=dtype)
        assert_same(ga.inclusive_scan(made, axis=axis), want)


@pytest.mark.parametrize("seed", [-1, 1.5, True, "a", None, np.float64(3)])
def test_seeds_that_are_none(seed: Any) -> None:
    with pytest.raises(TypeError, match="seed must be an int that is not negative"):
        ga.lazy.random(3, seed=seed)


def test_dtypes_that_are_none() -> None:
    with pytest.raises(TypeError, match=r"lazy\.random: dtype must be float64 or float32"):
        ga.lazy.random(3, seed=1, dtype=np.int32)
    with pytest.raises(TypeError, match=r"lazy\.random_bits: dtype must be uint64 or uint32"):
        ga.lazy.random_bits(3, seed=1, dtype=np.int64)
    with pytest.raises(TypeError, match="seed"):
        ga.lazy.random(3)  # type: ignore[call-arg]
