"""Sorts, orders and partitions beside NumPy's; descending ones beside a reference written here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpys_own import arrays, axes, check_same, examples
from support import BFLOAT16, Backend, scaled

import gpualgo as ga
import gpualgo.numpy as gnp

SMALL = settings(
    max_examples=examples(60, emulated=5), deadline=None, database=None, derandomize=True
)


def falling(x: Any, axis: Any) -> Any:
    """Return the stable order of the largest first, NaN last: of numbers of one dtype."""
    if axis is None:
        x, axis = x.ravel(), 0
    if x.dtype.kind in "bu":
        return np.argsort(~x, axis=axis, kind="stable")
    if x.dtype.kind == "i":
        return np.argsort(~x, axis=axis, kind="stable")
    if x.dtype.kind == "f":
        return np.argsort(-x, axis=axis, kind="stable")
    group = np.where(np.isnan(x.real), 2, np.isnan(x.imag))
    return np.lexsort((-x.imag, -x.real, group), axis=axis)


@SMALL
@given(st.data())
def test_sort(backend: Backend, data: Any) -> None:
    x = data.draw(arrays())
    check_same(backend, "sort", x, axis=data.draw(axes(x.ndim, tuples=False)))


@SMALL
@given(st.data())
def test_argsort_is_stable(backend: Backend, data: Any) -> None:
    x = data.draw(arrays())
    axis = data.draw(axes(x.ndim, tuples=False))
    stable = lambda a, axis: np.argsort(a, axis=axis, kind="stable")  # noqa: E731
    check_same(backend, "argsort", x, theirs=stable, axis=axis)


@SMALL
@given(st.data())
def test_the_largest_first(backend: Backend, data: Any) -> None:
    x = data.draw(arrays(min_dims=1))
    axis = data.draw(axes(x.ndim, tuples=False))
    order = falling(x, axis)
    check_same(
        backend, "argsort", x, theirs=lambda a, axis, descending: order, axis=axis, descending=True
    )
    flat, along = (x.ravel(), 0) if axis is None else (x, axis)
    want = np.take_along_axis(flat, order, along)
    check_same(
        backend, "sort", x, theirs=lambda a, axis, descending: want, axis=axis, descending=True
    )


def test_bfloat16(backend: Backend) -> None:
    x = np.array([3, np.nan, -1, -0.0, 0.0, np.inf], BFLOAT16)
    there = backend.to_device(x)
    assert backend.to_host(gnp.argsort(there)).tolist() == [2, 3, 4, 0, 5, 1]
    assert backend.to_host(gnp.argsort(there, descending=True)).tolist() == [5, 0, 3, 4, 2, 1]
    got = backend.to_host(gnp.sort(there)).astype(np.float32)
    np.testing.assert_array_equal(got, np.array([-1, 0, 0, 3, np.inf, np.nan], np.float32))


FEW_BFLOAT16: dict[str, Any] = {
    "sort": lambda lib, x, y: lib.sort(x),
    "sort rows": lambda lib, x, y: lib.sort(x.reshape(2, -1), axis=0),
    "argsort": lambda lib, x, y: lib.argsort(x, kind="stable"),
    "lexsort": lambda lib, x, y: lib.lexsort((y, x)),
    "partition": lambda lib, x, y: lib.partition(x, (0, 1, 2, 3, 4)),
    "argpartition": lambda lib, x, y: lib.argpartition(x, (0, 1, 2, 3, 4))[:5],
    "searchsorted": lambda lib, x, y: lib.searchsorted(y, x),
    "digitize": lambda lib, x, y: lib.digitize(x, y),
    "unique": lambda lib, x, y: lib.unique(x),
    "unique_inverse": lambda lib, x, y: lib.unique_inverse(y)[1],
    "unique with places": lambda lib, x, y: lib.unique(x[:4], return_index=True)[1],
    "isin": lambda lib, x, y: lib.isin(x, y),
    "union1d": lambda lib, x, y: lib.union1d(x, y),
    "intersect1d": lambda lib, x, y: lib.intersect1d(x, y),
    "setdiff1d": lambda lib, x, y: lib.setdiff1d(x, y),
    "setxor1d": lambda lib, x, y: lib.setxor1d(x, y),
    "nanargmax": lambda lib, x, y: lib.nanargmax(x),
    "nanargmin": lambda lib, x, y: lib.nanargmin(x),
}


@pytest.mark.few
@pytest.mark.parametrize("name", FEW_BFLOAT16)
def test_few_bfloat16_are_not_numpys(name: str) -> None:
    """NumPy finds no order where bfloat16 holds NaN; of float32 it finds the one that is wanted."""
    x = np.array([3, np.nan, 1, -np.nan, 2, np.nan, 0, -1], np.float32)
    y = np.array([0, 1, 2, 5, 7, 8, 9, 11], np.float32)
    with ga.default_device("cpu"):
        got = FEW_BFLOAT16[name](gnp, x.astype(BFLOAT16), y.astype(BFLOAT16))
    want = FEW_BFLOAT16[name](np, x, y)
    if want.dtype == np.float32:
        assert got.dtype == BFLOAT16
    np.testing.assert_array_equal(np.asarray(got).astype(want.dtype), want)


def test_lazy_arrays_and_lists(backend: Backend) -> None:
    x = np.array([[3.0, 1.0], [0.0, np.nan]], np.float32)
    there = ga.lazy.asarray(backend.to_device(x))
    np.testing.assert_array_equal(backend.to_host(gnp.sort(there * 2, axis=0)), np.sort(x * 2, 0))
    np.testing.assert_array_equal(backend.to_host(gnp.argsort(there, axis=None)), [2, 1, 0, 3])
    turned = there.astype(np.complex64)[::-1]
    np.testing.assert_array_equal(backend.to_host(gnp.argsort(turned)), [[0, 1], [1, 0]])
    np.testing.assert_array_equal(gnp.sort([[2, 1], [5, 4]]), [[1, 2], [4, 5]])
    np.testing.assert_array_equal(gnp.sort(np.array([2, 1], ">i4")), [1, 2])


@SMALL
@given(st.data())
def test_lexsort(backend: Backend, data: Any) -> None:
    shape = data.draw(st.sampled_from([(), (0,), (5,), (7, 3), (2, 3, 4)]))
    keys = [data.draw(arrays(shape=shape)) for _ in range(data.draw(st.integers(1, 3)))]
    axis = data.draw(st.sampled_from([-1, 0, max(len(shape) - 1, 0)]))
    check_same(backend, "lexsort", data.draw(st.sampled_from([tuple, list]))(keys), axis=axis)


def test_lexsort_of_many_keys(backend: Backend) -> None:
    random = np.random.default_rng(0)
    shape = scaled((40, 5), emulated=(6, 2))
    keys = [random.integers(0, 2, shape) for _ in range(19)]
    check_same(backend, "lexsort", keys)
    check_same(backend, "lexsort", keys, axis=0)
    check_same(backend, "lexsort", np.stack([keys[0], keys[1]]), axis=0)
    strided = random.integers(0, 2, (3, 2, 4)).transpose(2, 0, 1)
    check_same(backend, "lexsort", [strided] * 13)


def test_misaligned_arrays() -> None:
    z = np.zeros(8 * 240 + 1, np.uint8)[1:].view(np.complex64).reshape(4, 10, 6)
    z.real = np.random.default_rng(0).integers(0, 9, z.shape)
    z[0, 0, 0] = np.nan
    z = z.transpose(2, 0, 1)
    order = np.argsort(z, None, "stable")
    np.testing.assert_array_equal(gnp.argsort(z, axis=None), order)
    found = gnp.top_k(z, 3, axis=None, mode="smallest").indices
    np.testing.assert_array_equal(found, order[:3])


# --- partitions -------------------------------------------------------------------------------


def check_parted(keys: Any, kth: Any, axis: int) -> None:
    """Compare with the sorted keys: no larger ones before the k-th, no smaller ones behind."""
    ordered = np.sort(keys, axis=axis)
    ranks = np.atleast_1d(kth) % keys.shape[axis] if keys.size else []
    keys, ordered = np.moveaxis(keys, axis, -1), np.moveaxis(ordered, axis, -1)
    for rank in ranks:
        np.testing.assert_array_equal(keys[..., rank], ordered[..., rank])
        np.testing.assert_array_equal(np.sort(keys[..., :rank]), ordered[..., :rank])
    np.testing.assert_array_equal(np.sort(keys), ordered)


@SMALL
@given(st.data())
def test_partitions(backend: Backend, data: Any) -> None:
    x = data.draw(arrays(min_dims=1))
    axis = data.draw(axes(x.ndim, tuples=False))
    flat, along = (x.ravel(), 0) if axis is None else (x, axis)
    n = flat.shape[along]
    if not n:
        return
    kth: Any = data.draw(st.integers(-n, n - 1))
    if data.draw(st.booleans()):
        kth = [kth, data.draw(st.integers(-n, n - 1))]
    there = backend.to_device(x)
    got = backend.to_host(gnp.partition(there, kth, axis=axis))
    assert got.dtype == x.dtype
    check_parted(got, kth, along)
    order = backend.to_host(gnp.argpartition(there, kth, axis=axis))
    assert order.dtype == np.int64
    np.testing.assert_array_equal(np.sort(order, along), np.sort(np.argsort(flat, along), along))
    check_parted(np.take_along_axis(flat, order, along), kth, along)


@pytest.mark.few
def test_partitions_of_the_host_are_numpys() -> None:
    x = np.random.default_rng(0).standard_normal(100_000)
    with ga.default_device("auto"):
        np.testing.assert_array_equal(gnp.partition(x, 777), np.partition(x, 777))


@SMALL
@given(st.data())
def test_top_k(backend: Backend, data: Any) -> None:
    x = data.draw(arrays(min_dims=1))
    axis = data.draw(axes(x.ndim, tuples=False))
    flat, along = (x.ravel(), 0) if axis is None else (x, axis)
    k = data.draw(st.integers(0, flat.shape[along]))
    mode = data.draw(st.sampled_from(["largest", "smallest"]))
    values, indices = gnp.top_k(backend.to_device(x), k, axis=axis, mode=mode, sorted=False)
    order = falling(x, axis)
    if mode == "smallest":
        order = np.argsort(flat, axis=along, kind="stable")
    order = np.take(order, range(k), along)
    np.testing.assert_array_equal(backend.to_host(indices), order)
    got = backend.to_host(values)
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(got, np.take_along_axis(flat, order, along))


@pytest.mark.few
@pytest.mark.parametrize("shape", [(300,), (20, 30), (0, 3)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_few_elements_are_sorted_stably(dtype: str, shape: tuple[int, ...]) -> None:
    """Zeros of both signs keep their order, also where NumPy itself sorts."""
    rng = np.random.default_rng(0)
    x = rng.choice(np.array([0.0, -0.0, 1.0, -1.0], dtype), shape)
    if dtype.startswith("c"):
        x = x + 1j * rng.choice(np.array([0.0, -0.0, np.nan]), shape)
    for _ in range(3):
        assert gnp.sort(x).tobytes() == np.sort(x, kind="stable").tobytes()
