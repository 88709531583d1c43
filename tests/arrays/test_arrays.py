"""Arrays of other libraries, in and out, and the layouts that NumPy alone can have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import (
    DTYPES,
    Backend,
    affine,
    assert_same,
    compose,
    fold,
    is_emulated,
    random_array,
    scaled,
)

import gpualgo as ga
from gpualgo._arrays.view import as_view, byte_bounds

Host = np.ndarray[Any, Any]


class ArrayInterface:
    """An object that is an array through `__array_interface__` alone."""

    def __init__(self, array: Host) -> None:
        self._array = array
        self.__array_interface__ = array.__array_interface__


class DLPack:
    """A host array that shows DLPack alone, as other libraries' tensors do."""

    def __init__(self, array: Host) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


class CudaArrayInterface:
    """A device array that shows `__cuda_array_interface__` alone."""

    def __init__(self, array: Any) -> None:
        self._array = array
        self.__cuda_array_interface__ = array.__cuda_array_interface__


X = np.arange(15.0)
VIEWS = (
    *(X, X[:0], X[:1], X[::2], X[1:14:3], X[::-1], X[::-4], X[3:4].reshape(())),
    *(X.reshape(3, 5)[:, ::2], X.reshape(3, 5).T[::-2], X.reshape(3, 5)[1:1]),
    *(np.broadcast_to(X[3:4], (9,)), np.lib.stride_tricks.as_strided(X, (5,), (4,))),
)


@pytest.mark.parametrize("view", VIEWS, ids=lambda x: f"{x.shape} {x.strides}")
def test_bounds_are_numpy_s(view: Host) -> None:
    assert byte_bounds(as_view(view, "test")) == np.lib.array_utils.byte_bounds(view)


@pytest.mark.parametrize("wrap", [ArrayInterface, DLPack])
def test_host_protocols(backend: Backend, wrap: type) -> None:
    x = random_array((30, 40), np.dtype("float32"))
    assert_same(np.asarray(ga.reduce(wrap(x), None, max)), x.max())
    assert_same(np.asarray(ga.reduce(wrap(x[::2, 1:]), None, max, axis=0)), x[::2, 1:].max(axis=0))
    assert_same(np.asarray(ga.transform(lambda a, b: a - b, wrap(x), x)), x - x)


@pytest.mark.parametrize("wrap", [ArrayInterface, DLPack, Host.__dlpack__])
def test_out_is_given_back_itself(backend: Backend, wrap: Callable[[Host], Any]) -> None:
    x = np.arange(4.0)
    indices, order = np.zeros(4, np.int64), [0, 1, 2, 3]
    values, total = np.zeros(4), np.zeros(())
    calls: list[tuple[Host, Any, Callable[[Any], Any]]] = [
        (total, 6, lambda out: ga.reduce(x, out=out)),
        (values, [0, 1, 3, 6], lambda out: ga.inclusive_scan(x, out=out)),
        (values, [0, 2, 4, 6], lambda out: ga.transform(lambda a: a * 2, x, out=out)),
        (values, order, lambda out: ga.radix_sort(x, out=out)),
        (indices, order, lambda out: ga.argsort(x, out=out)),
        (indices, [1, 1, 1, 1], lambda out: ga.histogram(x, 4, (0, 4), out=out)),
    ]
    for array, expected, call in calls:
        out = wrap(array)
        assert call(out) is out
        assert array.tolist() == expected


def test_subclasses_and_memory_maps(backend: Backend, tmp_path: Any) -> None:
    x = affine(70_001)
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert_same(np.asarray(ga.reduce(mapped, None, compose)), fold(compose, x))


@pytest.mark.parametrize("dtype", [t for t in DTYPES if t.itemsize > 1], ids=str)
def test_unaligned_numpy(backend: Backend, dtype: np.dtype[Any]) -> None:
    """Fields of packed records start at any byte."""
    records = np.zeros(5000, [("flag", "u1"), ("value", dtype)])
    records["value"] = random_array(5000, dtype)
    x = records["value"]
    assert not x.flags.aligned
    assert_same(np.asarray(ga.reduce(x, None, lambda a, b: b)), x[-1, ...])
    assert_same(np.asarray(ga.transform(lambda a: a, x)), np.ascontiguousarray(x))
    out = np.zeros(5000, records.dtype)
    ga.transform(lambda a: a, x, out=out["value"])
    assert_same(out["value"], x)
    assert not out["flag"].any()


def test_numpy_on_every_backend(backend: Backend) -> None:
    """Host arrays in every chunking: sizes around a power of two, strided and broadcast."""
    usual, emulated = (1, 1000, (1 << 20) - 1, (1 << 22) + 1, 5_000_001), (1, 1000, 70_001)
    for n in emulated if is_emulated else usual:
        x = affine(n)
        assert_same(np.asarray(ga.reduce(x, None, compose)), fold(compose, x))
        assert_same(ga.transform(lambda a: a ^ 1, x), x ^ 1)
    x = affine((scaled(1201, emulated=121), 1301))[::-1, ::3]
    for axis in (0, 1, None):
        assert_same(np.asarray(ga.reduce(x, None, compose, axis=axis)), fold(compose, x, axis))
    y = np.broadcast_to(affine((1, 434), seed=2), x.shape)
    assert_same(ga.transform(compose, x, y), compose(x, y))


def check_torch(device: str) -> Any:
    """Return torch, whose tensors on a device are taken and given back."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: its tensors go untested")
    x = torch.arange(12, dtype=torch.float32, device=device).reshape(3, 4)
    total = ga.reduce(x.t(), 0.0, lambda a, b: a + b)
    assert isinstance(total, torch.Tensor)
    assert (total.device.type, total.shape, total.item()) == (device, (), 66)
    assert torch.equal(ga.reduce(x, axis=1), x.sum(1))
    assert torch.equal(ga.transform(lambda a, b: a * b, x, x), x * x)
    half = ga.transform(lambda a: a + 1, x.to(torch.bfloat16))
    assert half.dtype == torch.bfloat16
    assert torch.equal(half, x.to(torch.bfloat16) + 1)
    out = torch.empty(4, device=device)
    assert ga.reduce(x, axis=0, out=out) is out
    assert torch.equal(out, x.sum(0))
    return torch


def test_torch_on_the_host(backend: Backend) -> None:
    check_torch("cpu")


def test_torch_on_the_device(cuda: Backend) -> None:
    torch = check_torch("cuda")
    with torch.cuda.stream(torch.cuda.Stream()):
        assert ga.reduce(torch.ones(1 << 20, device="cuda")).item() == 1 << 20


def test_cuda_array_interface(cuda: Backend) -> None:
    x = random_array((33, 65), np.dtype("float32"))
    device = CudaArrayInterface(cuda.to_device(x)[:, ::2])
    result = ga.reduce(device, None, max, axis=1)
    assert hasattr(result, "__cuda_array_interface__")
    assert_same(cuda.xp.asnumpy(cuda.xp.asarray(result)), x[:, ::2].max(axis=1))
    result = ga.transform(lambda a, b: a - b, device, device)
    assert_same(cuda.xp.asnumpy(cuda.xp.asarray(result)), x[:, ::2] - x[:, ::2])


def test_device_arrays_ignore_the_default(cuda: Backend) -> None:
    with ga.default_device("cpu"):
        assert isinstance(ga.reduce(cuda.xp.ones(3)), cuda.xp.ndarray)


def test_pinned_host_memory(cuda: Backend) -> None:
    pinned = cuda.xp.cuda.alloc_pinned_memory(8 * 100_001)
    x = np.frombuffer(pinned, np.uint64, 100_001)
    x[:] = affine(100_001)
    assert_same(np.asarray(ga.reduce(x, None, compose)), fold(compose, x))
