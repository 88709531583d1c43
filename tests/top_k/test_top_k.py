"""top_k and kth_value beside a loop: every size, dtype, layout and axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import support
from hypothesis import given, settings
from hypothesis import strategies as st
from ranked import MODES, NUMBERS, ODD, check, check_ranks, some
from support import Backend, a_few

import gpualgo as ga

WIDTHS = [1, 2, 31, 32, 33, 127, 1023, 1024, 1025, 2049]


@pytest.mark.parametrize("length", WIDTHS)
def test_every_length(backend: Backend, length: int) -> None:
    x = some((3, length), "float32", length)
    for k in {1, min(length, 8), min(length, 33), length // 2, length}:
        check(backend, x, k, "largest")
    check_ranks(backend, x, [0, length // 2, length - 1])


@pytest.mark.parametrize("num_rows", [1, 2, 7, 8, 9, 63, 65])
def test_every_number_of_rows(backend: Backend, num_rows: int) -> None:
    x = some((num_rows, 100), "float32", num_rows)
    check(backend, x, 5, "largest")
    check(backend, x, 50, "largest")
    check_ranks(backend, x, [3, 60])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", NUMBERS)
def test_every_dtype(backend: Backend, dtype: str, mode: str) -> None:
    x = some((2, 601), dtype)
    check(backend, x, 7, mode)
    check(backend, x, 200, mode)
    check_ranks(backend, x, [0, 300, 600])
    check_ranks(backend, x, 5)


def test_bfloat16() -> None:
    host = Backend("cpu", np)
    bfloat16 = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    x = some((2, 601), "float32").astype(bfloat16)
    with ga.default_device("cpu"):
        for mode in MODES:
            check(host, x, 70, mode)
        check_ranks(host, x, [0, 300, 600])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_zeros_infinities_and_nan(backend: Backend, dtype: str, mode: str) -> None:
    x = np.random.default_rng(0).choice(np.array(ODD, dtype), (2, 90))
    for row in (x, np.full((2, 90), np.nan, dtype), np.resize(np.array([0.0, -0.0], dtype), 90)):
        for k in (1, 30, 60, 90):
            check(backend, row, k, mode)
        check_ranks(backend, row, list(range(0, 90, 13)))


@pytest.mark.parametrize("x", [np.zeros(3001, np.int32), np.arange(3001), np.arange(3001)[::-1]])
def test_equal_and_ordered_elements(backend: Backend, x: Any) -> None:
    for mode in MODES:
        check(backend, x.copy(), 40, mode)
    check_ranks(backend, x.copy(), [0, 1500, 3000])


def test_every_axis(backend: Backend) -> None:
    x = some((5, 36, 7), "float32")
    for axis in a_few((0, 1, 2, -2, None), 2):
        seen = x.ravel() if axis is None else np.moveaxis(x, axis, -1)
        order = np.argsort(seen, axis=-1, kind="stable")
        given, last = backend.to_device(x), -1 if axis is None else axis
        values, indices = ga.top_k(given, 3, axis=axis, mode="smallest")
        want = np.moveaxis(order[..., :3], -1, last)
        np.testing.assert_array_equal(backend.to_host(indices), want)
        want = np.moveaxis(np.take_along_axis(seen, order[..., :3], -1), -1, last)
        np.testing.assert_array_equal(backend.to_host(values), want)
        got = backend.to_host(ga.kth_value(given, np.array([4, 2]), axis=axis))
        want = np.take_along_axis(seen, order, -1)[..., [4, 2]]
        np.testing.assert_array_equal(got, np.moveaxis(want, -1, 0))


def test_no_elements(backend: Backend) -> None:
    assert ga.top_k(backend.to_device(np.arange(9)), 0).values.shape == (0,)


@pytest.mark.parametrize("shape", [(700,), (3, 700), (3, 20), (200, 5000)])
def test_no_ranks(backend: Backend, shape: tuple[int, ...]) -> None:
    found = ga.kth_value(backend.to_device(np.zeros(shape, np.float32)), [])
    assert found.shape == (0, *shape[:-1])


def test_many_ranks(backend: Backend) -> None:
    check_ranks(backend, some((2, 700), "float32"), list(range(0, 700, 50)))


@settings(max_examples=support.examples(30), deadline=None)
@given(st.data())
def test_anything_on_the_cpu(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(NUMBERS))
    length, seed = data.draw(st.integers(1, 300)), data.draw(st.integers(0, 999))
    x = some((data.draw(st.integers(1, 4)), length), dtype, seed)
    host = Backend("cpu", np)
    with ga.default_device("cpu"):
        check(host, x, data.draw(st.integers(0, length)), data.draw(st.sampled_from(MODES)))
        check_ranks(host, x, data.draw(st.lists(st.integers(0, length - 1), max_size=5)))


@pytest.mark.parametrize("length", [32, 33, 1000, 1024])
def test_short_rows_in_which_few_lanes_hold_the_first(backend: Backend, length: int) -> None:
    """On a GPU every 32nd element is of one lane: more may come up to the bound than lanes."""
    x = np.stack([np.arange(length) % 32, -(np.arange(length) % 32), np.zeros(length, int)])
    x[:2] += np.arange(length) // 64 * 100 * (np.arange(length) % 32 < 3)
    for k in (1, 2, 8, 16, 17, 32):
        check(backend, x.astype(np.float32), k, "largest")
        check(backend, x.astype(np.int16), k, "smallest")


def _kinds(length: int) -> dict[str, Any]:
    """Return three rows of each kind: of different elements, and of ones that are often equal."""
    rng, shape = np.random.default_rng(length), (3, length)
    mostly_nan = np.where(rng.random(shape) < 0.02, rng.random(shape), np.nan)
    return {
        "different": rng.permuted(np.arange(3 * length).reshape(shape), axis=1) - length,
        "with ties": some(shape, "float32", length),
        "equal": np.full(shape, -7, np.int16),
        "mostly NaN": mostly_nan.astype(np.float32),
        "NaN": np.full(shape, np.nan, np.float16),
        "two values": rng.random(shape) < 0.5,
        "rising": np.linspace(-1, 1, 3 * length).reshape(shape),
    }


@pytest.mark.parametrize("about", _kinds(1))
@pytest.mark.parametrize(
    ("length", "k"),
    [(33, 33), (100, 64), (129, 100), (1000, 1000), (1024, 513), (1025, 33), (3000, 500),
     (2000, 1024)],
)  # fmt: skip
def test_rows_in_registers(backend: Backend, length: int, k: int, about: str) -> None:
    """A warp holds a row, or a block does; of equal elements the first are taken."""
    for mode in MODES:
        check(backend, _kinds(length)[about], k, mode)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_every_dtype_in_a_block(backend: Backend, dtype: str) -> None:
    """Rows of 8-byte elements of which a warp sorts 512 at most, and others of which 1024."""
    for k in (5, 100, 512, 513, 1025):
        check(backend, some((2, 1100), dtype), k, a_few(MODES, 1)[0])


@pytest.mark.parametrize("length", [16383, 16384, 16385])
def test_the_longest_rows_in_registers(backend: Backend, length: int) -> None:
    x = np.random.default_rng(0).standard_normal((2, length)).astype(np.float32)
    x[:, ::100] = 2
    for k in (3, 100, 1024):
        check(backend, x, k, "largest")
    check(backend, (x * 2).astype(np.int8), 40, "smallest")


@pytest.mark.parametrize("k", [20, 33, 100])
def test_rows_with_gaps_and_of_any_alignment(backend: Backend, k: int) -> None:
    for dtype, length in (("float32", 500), ("int8", 1300), ("int64", 120)):
        x = some((4, length), dtype, length)
        for index in (np.s_[:, 1:], np.s_[::2, 3:-1], np.s_[:, :5:-1]):
            seen = x[index]
            if seen.shape[-1] >= k:
                check(backend, seen, k, "largest", backend.to_device(x)[index])


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8", "bool"])
@pytest.mark.parametrize("shape", [(16_385,), (2, 16_500)])
def test_rows_of_which_registers_hold_parts(
    backend: Backend, dtype: str, shape: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(0)
    x = (50 * rng.standard_normal(shape)).astype(dtype)
    spaced = backend.to_device(np.repeat(x, 2, axis=-1))[..., ::2]
    for k in (0, 1, 40, 300):
        want = np.argsort(-x.astype(np.float64), axis=-1, kind="stable")[..., :k]
        for array in (backend.to_device(x), spaced):
            values, indices = ga.top_k(array, k)
            np.testing.assert_array_equal(backend.to_host(indices), want)
            np.testing.assert_array_equal(
                backend.to_host(values), np.take_along_axis(x, want, axis=-1)
            )
