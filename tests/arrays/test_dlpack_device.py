"""StridedMemoryViews, and DLPack of memory on a GPU, both ways."""

from __future__ import annotations

import contextlib
import gc
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support import Backend, assert_same, random_array

import gpualgo as ga


def strided_memory_view(array: np.ndarray[Any, Any], **changes: Any) -> Any:
    """Return an object like cuda.core's, which needs a driver to make."""
    values = {
        "ptr": array.ctypes.data,
        "shape": array.shape,
        "strides": tuple(s // array.itemsize for s in array.strides),
        "dtype": array.dtype,
        "readonly": not array.flags.writeable,
        "is_device_accessible": False,
        "device_id": -1,
        "exporting_obj": array,
        **changes,
    }
    return type("StridedMemoryView", (), values)()


def test_strided_memory_views_of_the_host() -> None:
    x = np.arange(24).reshape(4, 6)
    assert_same(
        np.asarray(ga.transform(lambda a: a, strided_memory_view(x[::-1, ::2]))), x[::-1, ::2]
    )
    assert int(ga.reduce(strided_memory_view(x, strides=None))) == 276
    with pytest.raises(TypeError, match="dtype"):
        ga.reduce(strided_memory_view(x, dtype=None))


# On a GPU


class OnDevice:
    """A device array that shows DLPack alone, and remembers what it was asked for."""

    def __init__(self, array: Any) -> None:
        self._array, self.streams = array, []  # type: ignore[var-annotated]

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        self.streams.append(stream)
        if max_version is None:
            return self._array.__dlpack__(stream=stream)
        try:
            return self._array.__dlpack__(stream=stream, max_version=max_version)
        except TypeError:
            return self._array.__dlpack__(stream=stream)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


def libraries(cuda: Backend) -> list[Any]:
    """Return functions from a host array to a device array, one for each library here."""
    made = [cuda.to_device]
    with contextlib.suppress(ImportError):
        import torch

        made.append(lambda a: torch.from_numpy(a.copy()).cuda())
    return made


def test_device_producers_and_capsules(cuda: Backend) -> None:
    x = random_array((40, 50), np.dtype("float32"))
    for make in libraries(cuda):
        device = make(x)
        producer = OnDevice(device)
        for form in (producer, device.__dlpack__()):
            total = ga.reduce(form, None, max, axis=0)
            assert isinstance(total, ga.DeviceArray)
            assert_same(total.copy_to_host(), x.max(axis=0))
        assert producer.streams == [1]
        assert_same(ga.transform(lambda a: a, OnDevice(device[::2, 1:])).copy_to_host(), x[::2, 1:])
        assert_same(
            ga.radix_sort(OnDevice(device.reshape(-1))).copy_to_host(), np.sort(x.reshape(-1))
        )


def test_round_trips(cuda: Backend) -> None:
    x = random_array((6, 8), np.dtype("int32"))
    result = ga.transform(lambda a: a + 1, OnDevice(cuda.to_device(x)))
    for array in (result, result[::2, ::-1].T, result[1, 2], result[3:3]):
        want = array.copy_to_host()
        back = cuda.xp.from_dlpack(array)
        assert_same(cuda.to_host(back), want)
        if array.size:
            assert back.data.ptr == array.ptr
        assert_same(cuda.to_host(cuda.xp.asarray(array)), want)
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: its tensors go untested")
    back = torch.from_dlpack(result)
    assert back.data_ptr() == result.ptr
    assert_same(back.cpu().numpy(), x + 1)
    assert_same(ga.reduce(OnDevice(back), None, max).copy_to_host(), np.asarray((x + 1).max()))


def test_bfloat16_on_the_device(cuda: Backend) -> None:
    torch = pytest.importorskip("torch", reason="CuPy exports no bfloat16")
    x = torch.arange(100, device="cuda").to(torch.bfloat16)
    result = ga.transform(lambda a: a + 1, OnDevice(x))
    assert result.dtype == ml_dtypes.bfloat16
    back = torch.from_dlpack(result)
    assert back.dtype == torch.bfloat16
    assert torch.equal(back, x + 1)


def test_an_export_keeps_the_memory(cuda: Backend) -> None:
    result = ga.transform(lambda a: a + 1, OnDevice(cuda.xp.arange(1000)))
    owner = weakref.ref(result.owner)
    back = cuda.xp.from_dlpack(result)
    del result
    gc.collect()
    assert owner() is not None
    assert int(back.sum()) == 500500
    del back
    gc.collect()
    assert owner() is None


def test_strided_memory_views_of_a_gpu(cuda: Backend) -> None:
    utils = pytest.importorskip("cuda.core.utils", reason="cuda.core is not installed")
    x = random_array((6, 8), np.dtype("float32"))
    device = cuda.to_device(x)
    for array, host in ((device, x), (device[::2, ::-1], x[::2, ::-1])):
        seen = utils.StridedMemoryView.from_cuda_array_interface(array, -1)
        cuda.xp.cuda.Device().synchronize()
        assert_same(ga.transform(lambda a: a * 2, seen).copy_to_host(), host * 2)
    seen = utils.StridedMemoryView.from_dlpack(device, -1)
    assert_same(ga.reduce(seen, None, max).copy_to_host(), np.asarray(x.max()))


def test_numpy_refuses_device_memory(cuda: Backend) -> None:
    result = ga.transform(lambda a: a + 1, OnDevice(cuda.xp.arange(10)))
    for _ in range(3):
        with pytest.raises((BufferError, RuntimeError)):
            np.from_dlpack(result)
    assert int(result.copy_to_host().sum()) == 55
