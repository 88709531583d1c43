"""set_memory_resource: where memory comes from, what happens without any, what is refused."""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support import Backend, count_gpus, is_emulated, run_python, scaled

import gpualgo as ga
from gpualgo._algorithms.radix_sort.problem import Sort
from gpualgo._cuda import plan

N = scaled(1 << 22, emulated=20_003)


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if is_emulated:  # where few elements are sorted: what they need is not kept for a stream
        monkeypatch.setattr(plan, "_ENDS", dict.fromkeys(plan._ENDS, 0))
        Sort.problems.clear()
    yield
    Sort.problems.clear()
    if count_gpus():
        ga.set_memory_resource(None)


def sample(n: int = N) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).integers(0, 1 << 32, n, dtype=np.uint32)


def counting_resource() -> Any:
    """Return a resource that counts what it lends; `fail_at` makes it run out."""
    from cuda.core import Device, DeviceMemoryResource, MemoryResource

    Device(0).set_current()
    inner = DeviceMemoryResource(0)

    class Counting(MemoryResource):
        sizes: list[int]
        live = 0
        fail_at = -1

        @property
        def device_id(self) -> int:
            return 0

        @property
        def is_device_accessible(self) -> bool:
            return True

        @property
        def is_host_accessible(self) -> bool:
            return False

        def allocate(self, size: int, *, stream: Any) -> Any:
            from cuda.core import Buffer

            if len(self.sizes) == self.fail_at:
                raise MemoryError("no more")
            self.sizes.append(size)
            self.live += 1
            lent = inner.allocate(size, stream=stream)
            self.kept[int(lent.handle)] = lent
            return Buffer.from_handle(lent.handle, size, self, stream=stream)

        def deallocate(self, ptr: Any, size: int, *, stream: Any) -> None:
            self.live -= 1
            self.kept.pop(int(ptr)).close(stream)

    resource = Counting()
    resource.sizes, resource.kept = [], {}
    return resource


@pytest.mark.usefixtures("restored")
def test_a_resource_is_used_and_gets_all_back(cuda: Backend) -> None:
    resource = counting_resource()
    ga.set_memory_resource(resource)
    x = cuda.to_device(sample())
    np.testing.assert_array_equal(cuda.to_host(ga.radix_sort(x)), np.sort(sample()))
    assert max(resource.sizes) >= 4 * N
    assert resource.live == 0
    used = len(resource.sizes)
    ga.set_memory_resource(None)
    ga.radix_sort(x)
    assert len(resource.sizes) == used


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("name", ["cupy", "torch"])
def test_pools_of_libraries(cuda: Backend, name: str) -> None:
    pytest.importorskip(name)
    ga.set_memory_resource(name)
    x = cuda.to_device(sample())
    for _ in range(3):
        np.testing.assert_array_equal(cuda.to_host(ga.radix_sort(x)), np.sort(sample()))
    stream = cuda.xp.cuda.Stream(non_blocking=True)
    cuda.xp.cuda.Device().synchronize()
    got = ga.radix_sort(x, stream=stream)
    stream.synchronize()
    np.testing.assert_array_equal(cuda.to_host(got), np.sort(sample()))
    if name == "cupy":
        pool = cuda.xp.get_default_memory_pool()
        gc.collect()  # earlier tests' arrays
        ga.radix_sort(x, out=x)  # lets go of what was held for the other stream
        before = pool.used_bytes()
        ga.radix_sort(x, out=x)
        assert pool.used_bytes() == before  # given back
        assert pool.total_bytes() >= before + 4 * N


class _Rmm:
    """What the adapter uses of RMM, which test machines do not have."""

    def __init__(self, xp: Any) -> None:
        rmm, self.sizes, self.live = self, [], 0  # type: ignore[var-annotated]

        class DeviceBuffer:
            def __init__(self, *, size: int, stream: Any) -> None:
                assert stream.seen.__cuda_stream__()[0] == 0
                rmm.sizes.append(size)
                rmm.live += 1
                self.memory = xp.cuda.alloc(size)
                self.ptr = self.memory.ptr

            def __del__(self) -> None:
                rmm.live -= 1

        class Stream:
            def __init__(self, seen: Any) -> None:
                self.seen = seen

        self.DeviceBuffer = DeviceBuffer
        self.pylibrmm = types.SimpleNamespace(stream=types.SimpleNamespace(Stream=Stream))


@pytest.mark.usefixtures("restored")
def test_rmm_s_interface(cuda: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    rmm = _Rmm(cuda.xp)
    monkeypatch.setitem(sys.modules, "rmm", rmm)  # type: ignore[arg-type]
    ga.set_memory_resource("rmm")
    x = cuda.to_device(sample())
    np.testing.assert_array_equal(cuda.to_host(ga.radix_sort(x)), np.sort(sample()))
    assert max(rmm.sizes) >= 4 * N
    assert rmm.live == 0


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("step", [1, 2])
def test_running_out(cuda: Backend, step: int) -> None:
    """MemoryError, everything given back, and the output as it was, whichever piece is missing."""
    strided = cuda.to_device(np.repeat(sample(), 2))[::2]
    out = cuda.xp.full(step * N, 7, np.uint32)[::step]
    resource = counting_resource()
    ga.set_memory_resource(resource)
    ga.radix_sort(strided, out=cuda.xp.zeros(step * N, np.uint32)[::step])
    needed = len(resource.sizes)
    assert needed >= 1
    for i in range(needed):
        resource.sizes, resource.fail_at = [], i
        with pytest.raises(MemoryError, match=r"Counting failed to allocate .* bytes on cuda:0"):
            ga.radix_sort(strided, out=out)
        assert resource.live == 0
        assert (cuda.to_host(out) == 7).all()
    resource.fail_at = -1
    ga.radix_sort(strided, out=out)
    np.testing.assert_array_equal(cuda.to_host(out), np.sort(sample()))


OUT_OF_MEMORY = """
import numpy as np, cupy as cp, gpualgo as ga
from gpualgo._driver import device, driver
x = cp.arange(1 << 24, dtype=cp.uint32)[::-1].copy()
out = cp.full_like(x, 7)
api = driver.api()
properties = api.CUmemPoolProps()
properties.allocType = api.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
properties.location.type = api.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
properties.maxSize = 32 << 20
small = driver.check(api.cuMemPoolCreate(properties), "cuMemPoolCreate")
ours = device.get(0).pool
handle, ours._handle = ours._handle, small
try:
    ga.radix_sort(x, out=out)
except MemoryError as error:
    print(error)
else:
    raise SystemExit("no MemoryError")
assert (cp.asnumpy(out) == 7).all()
ours._handle = handle
ga.radix_sort(x, out=out)
assert (cp.asnumpy(out) == np.arange(1 << 24)).all()
"""


def test_a_full_gpu(cuda: Backend) -> None:
    """As if 32 MiB were all that is left; in a process of its own."""
    done = run_python(OUT_OF_MEMORY)
    assert done.returncode == 0, done.stderr
    assert "cuda:0 cannot give" in done.stdout
    assert "bytes:" in done.stdout


def test_refused(cuda: Backend) -> None:
    with pytest.raises(TypeError, match=r"^set_memory_resource: object is no MemoryResource"):
        ga.set_memory_resource(object())
    with pytest.raises(ga.NoDeviceError):
        ga.set_memory_resource("cupy", device=99)
    host = counting_resource()
    with pytest.raises(ga.NoDeviceError):
        ga.set_memory_resource(host, device=7)


def test_unknown_name() -> None:
    with pytest.raises(ValueError, match=r"unknown resource 'numba'; use 'cupy', 'torch' or 'rmm'"):
        ga.set_memory_resource("numba")
