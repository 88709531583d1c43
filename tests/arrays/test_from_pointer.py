"""Raw pointers as arrays: what is checked, in every algorithm, and how long memory lives."""

from __future__ import annotations

import ctypes
import gc
import math
import weakref
from typing import Any

import numpy as np
import pytest
from support import BFLOAT16, DTYPES, Backend, assert_same, random_array, scaled

import gpualgo as ga
from gpualgo._driver import device, driver
from gpualgo._driver import device as gpu

BASE = 0x7F00_0000_0000


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the driver know one allocation of 1024 bytes at BASE, seen by kernels elsewhere."""

    def find(pointer: int) -> device.Allocation | None:
        if not BASE <= pointer < BASE + 1024:
            return None
        return device.Allocation(BASE, 1024, 0, pointer + 0x1000)

    monkeypatch.setattr(device, "find", find)
    monkeypatch.setattr(driver, "require_device", lambda ordinal: None)


class Index:
    """What has `__int__` alone, as cuda.bindings' pointers."""

    def __int__(self) -> int:
        return BASE


@pytest.mark.usefixtures("known")
def test_forms_of_pointers() -> None:
    for ptr in (BASE, np.uint64(BASE), np.int64(BASE), Index(), ctypes.c_void_p(BASE)):
        x = ga.from_pointer(ptr, (4, 2), "f4")
        assert (x.ptr, x.shape, x.strides) == (BASE + 0x1000, (4, 2), (8, 4))
    assert ga.from_pointer(BASE, 7, np.float64).shape == (7,)
    assert ga.from_pointer(BASE, [2, 3], "bfloat16").dtype == BFLOAT16
    assert ga.from_pointer(BASE, (), bool).nbytes == 1
    assert ga.from_pointer(BASE + 1, 3, "u1,f8").dtype.names
    assert ga.from_pointer(BASE, 3, "u1", readonly=True, stream=0x50).stream == 0x50


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("ptr", [True, 1.0, "7", None, np.zeros(1), np.float64(3), b"x"])
def test_no_pointers(ptr: Any) -> None:
    with pytest.raises(TypeError, match=r"^from_pointer: ptr must be an address"):
        ga.from_pointer(ptr, 1, "f4")


@pytest.mark.usefixtures("known")
def test_ranges() -> None:
    ga.from_pointer(BASE, 256, "f4")
    ga.from_pointer(BASE + 1020, 1, "f4")
    ga.from_pointer(BASE + 1020, 256, "f4", strides=(-4,))
    ga.from_pointer(BASE + 512, (1 << 40, 4), "f4", strides=(0, 4))
    for ptr, shape, strides in (
        (BASE, 257, None),
        (BASE + 4, 256, None),
        (BASE + 1016, 256, (-4,)),
        (BASE, (2, 2), (1024, 4)),
        (BASE, 1 << 60, None),
    ):
        with pytest.raises(ValueError, match="allocation only has"):
            ga.from_pointer(ptr, shape, "f4", strides=strides)
    for ptr in (0, 8, BASE - 4, BASE + 1024):
        with pytest.raises(ValueError, match="not the address of memory"):
            ga.from_pointer(ptr, 1, "f4")
    for ptr in (0, 7, BASE, BASE + 1024):
        assert ga.from_pointer(ptr, (3, 0), "f4").size == 0


@pytest.mark.usefixtures("known")
def test_wrong_arguments() -> None:
    for ptr, dtype in ((BASE + 2, "f4"), (BASE + 8, "c16"), (BASE + 1, "bfloat16")):
        with pytest.raises(ValueError, match="alignment"):
            ga.from_pointer(ptr, 1, dtype)
    with pytest.raises(ValueError, match="stride 6"):
        ga.from_pointer(BASE, 3, "f4", strides=(6,))
    for shape in (-1, (2, -3), (1 << 62, 1 << 62), (1 << 63,), (0, 1 << 70)):
        with pytest.raises(ValueError, match="shape"):
            ga.from_pointer(BASE, shape, "f4")
    for shape in (1.5, True, "3", (2, None)):
        with pytest.raises(TypeError, match="shape"):
            ga.from_pointer(BASE, shape, "f4")
    with pytest.raises(ValueError, match="do not match shape"):
        ga.from_pointer(BASE, (2, 3), "f4", strides=(4,))
    for dtype in (object, "nonsense", "V0"):
        with pytest.raises(TypeError, match="from_pointer: dtype"):
            ga.from_pointer(BASE, 1, dtype)
    for ptr in (-1, 1 << 64):
        with pytest.raises(ValueError, match="is not an address"):
            ga.from_pointer(ptr, 1, "f4")


def test_without_a_gpu() -> None:
    if driver.device_count():
        pytest.skip("this machine has a GPU")
    for shape in (4, 0):
        with pytest.raises(ga.NoDeviceError):
            ga.from_pointer(BASE, shape, "f4")


# On a GPU


class Allocated:
    """Memory of the driver's own, freed with the object."""

    def __init__(self, size: int, stream: int | None = None) -> None:
        api = driver.api()
        with gpu.get(0).current():
            found = api.cuMemAlloc(size) if stream is None else api.cuMemAllocAsync(size, stream)
            self.ptr = driver.check(found, "allocating")
        free = api.cuMemFree if stream is None else lambda p: api.cuMemFreeAsync(p, stream)
        self.finalizer = weakref.finalize(self, free, self.ptr)


@pytest.mark.parametrize("stream", [None, 0])
def test_memory_of_the_driver(cuda: Backend, stream: int | None) -> None:
    memory = Allocated(1 << 16, stream)
    x = ga.from_pointer(memory.ptr, 1 << 14, "i4", owner=memory)  # a CUdeviceptr
    cuda.xp.asarray(x)[...] = cuda.xp.arange(1 << 14)
    cuda.xp.cuda.Device().synchronize()
    assert int(ga.reduce(x[10:20]).copy_to_host()) == sum(range(10, 20))
    assert_same(x[::-3].copy_to_host(), np.arange(1 << 14, dtype=np.int32)[::-3])
    for offset in (0, 4096):
        size = (1 << 14) - offset // 4
        assert ga.from_pointer(int(memory.ptr) + offset, size, "i4").size == size
        with pytest.raises(ValueError, match="allocation only has"):
            ga.from_pointer(int(memory.ptr) + offset, (1 << 16) + size, "i4")
    seen = weakref.ref(memory)
    part = x[5:]
    del memory, x
    gc.collect()
    assert seen() is not None
    assert int(part[0].copy_to_host()) == 5
    del part
    gc.collect()
    assert seen() is None


def test_buffers_of_libraries(cuda: Backend) -> None:
    host = np.arange(1000, dtype=np.float32)
    made: list[tuple[int, Any]] = [((a := cuda.to_device(host)).data.ptr, a)]
    try:
        import torch
    except ImportError:
        pass
    else:
        tensor = torch.from_numpy(host).cuda()
        made.append((tensor.data_ptr(), tensor))
    try:
        from numba import cuda as numba_cuda

        numba_array = numba_cuda.to_device(host)
        made.append((numba_array.__cuda_array_interface__["data"][0], numba_array))
    except Exception as error:  # numba's CUDA target may be absent or broken
        print("numba goes untested:", error)
    cuda.xp.cuda.Device().synchronize()
    for pointer, owner in made:
        x = ga.from_pointer(pointer, 1000, "f4", owner=owner)
        assert_same(ga.transform(lambda v: v + 1, x[100:200]).copy_to_host(), host[100:200] + 1)


def test_a_buffer_of_cuda_core(cuda: Backend) -> None:
    core = pytest.importorskip("cuda.core", reason="cuda.core is not installed")
    device = core.Device(0)
    device.set_current()
    stream = device.create_stream()
    buffer = device.memory_resource.allocate(4000, stream=stream)
    x = ga.from_pointer(buffer.handle, 1000, "f4", owner=buffer, stream=stream)
    ones = ga.transform(lambda v: v + 1, cuda.xp.zeros(1000, "f4"))
    cuda.xp.cuda.Device().synchronize()
    ga.transform(lambda v: v * 3, ga.from_pointer(ones.data.ptr, 1000, "f4", owner=ones),
                 out=x, stream=stream)  # fmt: skip
    assert_same(ga.reduce(x).copy_to_host(), np.asarray(np.float32(3000)))


def test_page_locked_and_managed_memory(cuda: Backend) -> None:
    cupy = cuda.xp
    host = np.frombuffer(pinned := cupy.cuda.alloc_pinned_memory(4000), np.float32, 1000)
    host[:] = np.arange(1000)
    x = ga.from_pointer(pinned.ptr, 1000, "f4", owner=pinned)
    assert_same(ga.transform(lambda v: v + 1, x).copy_to_host(), host + 1)
    managed = cupy.cuda.malloc_managed(4000)
    y = ga.from_pointer(managed.ptr, 1000, "f4", owner=managed)
    ga.transform(lambda v: v * 2, x, out=y)
    assert_same(y.copy_to_host(), host * 2)
    plain = np.zeros(1 << 16, np.uint8)
    cupy.cuda.runtime.hostRegister(plain.ctypes.data, plain.nbytes, 0)
    try:
        z = ga.from_pointer(plain.ctypes.data, plain.nbytes, "u1", owner=plain)
        assert int(ga.reduce(z, None, max).copy_to_host()) == 0
        with pytest.raises(ValueError, match=r"allocation only has|not the address"):
            ga.from_pointer(plain.ctypes.data, 2 * plain.nbytes + (1 << 20), "u1")
    finally:
        cupy.cuda.runtime.hostUnregister(plain.ctypes.data)


def test_bad_addresses(cuda: Backend) -> None:
    host = np.zeros(1 << 20)
    with pytest.raises(ValueError, match="not the address of memory"):
        ga.from_pointer(host.ctypes.data, 10, "f8")
    memory = Allocated(1 << 22)
    pointer = int(memory.ptr)
    with pytest.raises(ValueError, match="alignment"):
        ga.from_pointer(pointer + 2, 10, "f4")
    with pytest.raises(ValueError, match=r"allocation only has|not the address"):
        ga.from_pointer(pointer, (1 << 20) + 1, "f4")
    with pytest.raises(ValueError, match=r"allocation only has"):
        ga.from_pointer(pointer + 4, 3, "f4", strides=(-4,))
    with gpu.get(0).current():
        memory.finalizer()
    with pytest.raises(ValueError, match=r"not the address|allocation only has"):
        ga.from_pointer(pointer, 1 << 20, "f4")
    assert ga.from_pointer(pointer, 0, "f4").size == 0
    assert ga.reduce(ga.from_pointer(0, 0, "f4"), 2.0).copy_to_host() == 2.0


def test_read_only_arrays_are_no_outputs(cuda: Backend) -> None:
    memory = Allocated(4096)
    x = ga.from_pointer(memory.ptr, 100, "f4", owner=memory, readonly=True)
    with pytest.raises(ValueError, match="read-only"):
        ga.transform(lambda a: a, x, out=x[:])


@pytest.mark.parametrize("dtype", [np.dtype(t) for t in ("u1", "f4", "i8")], ids=str)
def test_offset_views_in_every_algorithm(cuda: Backend, dtype: np.dtype[Any]) -> None:
    host = random_array(scaled(60_000, emulated=6000), dtype)
    device = cuda.to_device(host)
    cuda.xp.cuda.Device().synchronize()
    whole = ga.from_pointer(device.data.ptr, host.size, dtype, owner=device)
    for start, stop, step in (
        (0, None, 1),
        (1, None, 1),
        (7, 50_001, 1),
        (3, None, 2),
        (-1, None, -1),
    ):
        x, want = whole[start:stop:step], host[start:stop:step]
        assert_same(ga.reduce(x, None, max).copy_to_host(), np.asarray(want.max()))
        assert_same(ga.inclusive_scan(x, None, max).copy_to_host(), np.maximum.accumulate(want))
        assert_same(ga.transform(lambda a: a, x).copy_to_host(), want.copy())
        assert_same(ga.radix_sort(x).copy_to_host(), np.sort(want))
        assert_same(ga.argsort(x).copy_to_host(), np.argsort(want, kind="stable"))
        counts = np.histogram(want, 7, (0, 100))[0]
        assert_same(ga.histogram(x, 7, (0, 100)).copy_to_host(), counts.astype(np.int64))
        out = ga.from_pointer(Kept(x.nbytes + 64).ptr, x.nbytes + 64, "u1")[16:][: x.nbytes]
        typed = out.view(dtype)
        assert ga.transform(lambda a: a, x, out=typed) is typed
        assert_same(typed.copy_to_host(), want.copy())


_kept: list[Any] = []


class Kept(Allocated):
    """Memory that stays to the end."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        _kept.append(self)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_empty_reductions_fill(cuda: Backend, dtype: np.dtype[Any]) -> None:
    """Also into an output with gaps, and on a stream, without a copy from the host."""
    one = np.ones((), dtype)[()]

    def first(a: Any, b: Any) -> Any:
        return a

    x = ga.from_pointer(0, (0, 3, 4), dtype)
    assert_same(ga.reduce(x, one, first, axis=0).copy_to_host(), np.ones((3, 4), dtype))
    memory = cuda.xp.zeros((6, 8), dtype)
    stream = cuda.xp.cuda.Stream(non_blocking=True)
    cuda.xp.cuda.Device().synchronize()
    out = ga.from_pointer(memory.data.ptr, (6, 8), dtype, owner=memory)[::-2, 1::2]
    ga.reduce(x, one, first, axis=0, out=out, stream=stream)
    stream.synchronize()
    want = np.zeros((6, 8), dtype)
    want[::-2, 1::2] = one
    assert_same(cuda.to_host(memory), want)
    assert math.prod(out.shape) == 12


@pytest.mark.parametrize("dtype", ["i2", "i4", "c16"])
def test_empty_reductions_fill_at_any_address(cuda: Backend, dtype: str) -> None:
    memory = cuda.xp.zeros(4 * np.dtype(dtype).itemsize + 1, np.uint8)
    out = cuda.xp.ndarray((4,), dtype, memory[1:].data)
    offsets = cuda.to_device(np.zeros(5, np.int64))
    ga.segmented_reduce(cuda.to_device(np.zeros(0, dtype)), offsets, 3, np.add, out=out)
    assert_same(cuda.to_host(memory)[1:].view(dtype), np.full(4, 3, dtype))
