"""DeviceArray without a GPU: its views are NumPy's, byte for byte."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import support
from fake_driver import FakeDriver, install
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy
from support import DTYPES, assert_same, random_array, since_numpy

from gpualgo._arrays import device_array
from gpualgo._arrays.device_array import DeviceArray
from gpualgo._arrays.view import as_view

Host = np.ndarray[Any, Any]
BASE = 0x7F00_0000_0000


def mirror(array: Host) -> DeviceArray:
    """Return a DeviceArray laid out as a host array, whose memory is never touched."""
    return DeviceArray(
        array.ctypes.data, array.shape, array.strides, array.dtype, 0, 0, False, array
    )


def assert_like(got: DeviceArray, want: Host) -> None:
    """Assert that two views see the same bytes in the same order."""
    assert got.shape == want.shape
    assert (got.dtype, got.ndim, got.size) == (want.dtype, want.ndim, want.size)
    assert (got.nbytes, got.itemsize) == (want.nbytes, want.itemsize)
    if want.size:
        assert got.ptr == want.ctypes.data
        assert all(
            n == 1 or a == b for n, a, b in zip(want.shape, got.strides, want.strides, strict=True)
        )


def view_at(array: Host, key: Any) -> Host:
    """Return array[key] as an array, 0-d ones included."""
    items = key if isinstance(key, tuple) else (key,)
    return array[items if Ellipsis in items else (*items, ...)]


FUZZ = settings(max_examples=support.examples(300), deadline=None, derandomize=True)
SHAPES = st_numpy.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=6)


@given(st.data(), SHAPES)
@FUZZ
def test_indexing_is_that_of_numpy(data: st.DataObject, shape: tuple[int, ...]) -> None:
    want = np.zeros(shape, np.int32)
    got = mirror(want)
    for _ in range(2):
        key = data.draw(
            st_numpy.basic_indices(want.shape, allow_newaxis=True, max_dims=8), label="key"
        )
        got, want = got[key], view_at(want, key)
        assert_like(got, want)


@since_numpy("2.1")
@given(st.data(), SHAPES)
@FUZZ
def test_reshaping_is_that_of_numpy(data: st.DataObject, shape: tuple[int, ...]) -> None:
    base = np.zeros(shape, np.int16)
    x = view_at(base, data.draw(st_numpy.basic_indices(shape), label="key"))
    x = x.transpose(data.draw(st.permutations(range(x.ndim)), label="axes"))
    new = data.draw(st.sampled_from([*factorings(x.size)]), label="new")
    try:
        want = x.reshape(new, copy=False)
    except ValueError:
        with pytest.raises(ValueError, match="without a copy"):
            mirror(x).reshape(new)
    else:
        assert_like(mirror(x).reshape(new), want)
        assert_like(mirror(x).reshape(*new, -1) if x.size else mirror(x).reshape(new),
                    want.reshape(*new, 1) if x.size else want)  # fmt: skip


def factorings(size: int) -> Iterator[tuple[int, ...]]:
    """Yield some shapes of so many elements."""
    yield (size,)
    yield (1, size, 1)
    for first in (2, 3, 4, 5, 6, 12):
        if size % first == 0:
            yield (first, size // first)
            yield (size // first, 1, first)
            if size // first % 2 == 0:
                yield (first, 2, size // first // 2)
    if size == 1:
        yield ()


@given(SHAPES, st.data())
@FUZZ
def test_retyping_is_that_of_numpy(shape: tuple[int, ...], data: st.DataObject) -> None:
    dtypes = st.sampled_from([np.dtype(t) for t in ("u1", "i2", "f4", "f8", "c16")])
    x = np.zeros(shape, data.draw(dtypes))
    new = data.draw(dtypes)
    try:
        want = x.view(new)
    except ValueError:
        with pytest.raises(ValueError, match=r"^view: "):
            mirror(x).view(new)
    else:
        if not x.size or x.ctypes.data % new.itemsize == 0:
            assert_like(mirror(x).view(new), want)


def test_transposing() -> None:
    x = np.zeros((2, 3, 4))
    assert_like(mirror(x).T, x.T)
    assert_like(mirror(x).transpose(1, 0, -1), x.transpose(1, 0, 2))
    assert_like(mirror(x[0, 0, :1].reshape(())).T, x[0, 0, :1].reshape(()).T)
    for axes in ((0, 1), (0, 0, 1), (0, 1, 2, 2)):
        with pytest.raises(ValueError, match=r"^transpose: "):
            mirror(x).transpose(*axes)


def test_wrong_indices() -> None:
    x = mirror(np.zeros((3, 4)))
    for key in (3, -4, (0, 4), (0, 0, 0), (..., ...)):
        with pytest.raises(IndexError, match="DeviceArray"):
            x[key]
    for key in (1.0, True, [0, 1], "a", np.zeros(3, bool)):
        with pytest.raises(IndexError, match="ints, slices"):
            x[key]


def test_wrong_shapes_and_types() -> None:
    x = mirror(np.zeros((4, 6), np.float32))
    for shape in ((5, 5), (-1, 5), (-1, -1), (-2, 12), (0, -1)):
        with pytest.raises(ValueError, match="reshape: 24 elements"):
            x.reshape(shape)
    with pytest.raises(ValueError, match=r"^view: .*last axis must be contiguous"):
        x[:, ::2].view(np.uint8)
    with pytest.raises(ValueError, match=r"^view: .*must be a divisor"):
        x[:, :5].view(np.float64)
    with pytest.raises(ValueError, match=r"^view: .*0d array"):
        x[0, 0].view(np.uint8)
    with pytest.raises(ValueError, match="alignment"):
        x[:, 1:3].view(np.complex64)[:, :1].view(np.uint8)[:, 1:5].view(np.float32)
    with pytest.raises(TypeError, match="object"):
        x.view(object)


def test_length_and_iteration() -> None:
    x = mirror(np.zeros((3, 2)))
    assert len(x) == 3
    assert [row.shape for row in x] == [(2,)] * 3
    with pytest.raises(TypeError, match="0-d"):
        len(x[0, 0])
    with pytest.raises(TypeError, match="0-d"):
        iter(x[0, 0]).__next__()
    assert "shape=(3, 2), dtype=float64, cuda:0" in repr(x)


def test_a_view_keeps_the_owner() -> None:
    class Owner:
        pass

    owner = Owner()
    seen = weakref.ref(owner)
    x = DeviceArray(BASE, (8,), (4,), np.dtype("f4"), 0, 0, False, owner)
    part = x[2:].reshape(2, 3).T.view(np.int32)[::2]
    del x, owner
    gc.collect()
    assert seen() is not None
    del part
    gc.collect()
    assert seen() is None


def test_the_interface() -> None:
    host = np.zeros((4, 6), np.float32)
    x = mirror(host)
    interface = x.__cuda_array_interface__
    assert interface == {
        "shape": (4, 6), "typestr": "<f4", "data": (host.ctypes.data, False), "strides": None,
        "version": 3, "stream": 1,
    }  # fmt: skip
    assert x.T.__cuda_array_interface__["strides"] == host.T.strides
    assert x[:, 6:].__cuda_array_interface__["data"] == (0, False)
    records = mirror(np.zeros(3, "u1,f8"))
    assert records.__cuda_array_interface__["descr"] == np.dtype("u1,f8").descr
    elsewhere = DeviceArray(BASE, (4,), (4,), np.dtype("f4"), 1, 0x99, True, None)
    assert elsewhere[1:].__cuda_array_interface__["stream"] == 0x99
    assert elsewhere[1:].__cuda_array_interface__["data"] == (BASE + 4, True)


def test_big_arrays_are_arithmetic_alone() -> None:
    x = DeviceArray(BASE, (1 << 40,), (8,), np.dtype("f8"), 0, 0, False, None)
    assert x[-1].ptr == BASE + 8 * ((1 << 40) - 1)
    assert x.reshape(1 << 20, -1)[1 << 19, 3].ptr == BASE + 8 * ((1 << 39) + 3)
    assert x.nbytes == 1 << 43


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    return install(monkeypatch)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_copying_and_filling(fake: FakeDriver, dtype: np.dtype[Any]) -> None:
    value = random_array(3, dtype)[1]
    for seen in ((), (slice(None), 1), (slice(None, None, -2), slice(1, None, 3)), (0, slice(0, 0)),
                 (slice(None), None, slice(2, 4))):  # fmt: skip
        host = random_array((6, 8), dtype)
        x = mirror(host)[seen]
        assert_same(x.copy_to_host(), host[seen])
        host[seen] = value
        written = random_array((6, 8), dtype)
        target = as_view(mirror(written)[seen], "out")
        device_array.fill(target, np.asarray(value), 0)
        assert_same(written, host)
        assert_same(mirror(host).T.copy_to_host(), host.T)
    assert_same(mirror(np.broadcast_to(host[0], (5, 8))).copy_to_host(), np.stack([host[0]] * 5))
    fake.capturing = {0}
    with pytest.raises(RuntimeError, match="copy_to_host"):
        mirror(host).copy_to_host()


def test_no_array_interface_takes_a_copy_unasked() -> None:
    x = mirror(np.arange(3))
    with pytest.raises(TypeError, match="copy_to_host"):
        np.asarray(x)
    with pytest.raises(TypeError):
        np.arange(3) + x
