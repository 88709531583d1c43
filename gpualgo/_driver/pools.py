"""Where device memory comes from: a pool of our own on each device, or the caller's resource."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

from gpualgo._driver import driver
from gpualgo._driver.driver import check
from gpualgo._driver.streams import core_stream

KEPT_SHARE = 4  # a quarter of the device's memory stays in its pool when it is not in use

_resources: dict[int, Any] = {}  # by device: cuda.core MemoryResources set by the caller
_lent: dict[int, Any] = {}  # what they lent, by address
_lock = threading.Lock()


def set_resource(device: int, resource: Any) -> None:
    """Take a device's memory from a cuda.core MemoryResource from now on; None: from our pool."""
    if resource is None:
        _resources.pop(device, None)
    else:
        _resources[device] = resource


def allocate(size: int, stream: int, device: int) -> int:
    """Return the address of size bytes on a device, usable in the order of a stream.

    What a capture records belongs to its graph, whichever resource is set: memory given back to a
    resource could be lent to others while the graph still uses it.
    """
    if driver.is_capturing(stream):
        return _from_graph(size, stream, device)
    resource = _resources.get(device) if _resources else None
    if resource is None:
        return _from_pool(size, stream, device)
    try:
        with driver.current_device(device):
            buffer = resource.allocate(size, stream=core_stream(stream))
    except Exception as error:
        raise MemoryError(
            f"{type(resource).__name__} failed to allocate {size} bytes on cuda:{device}: {error}"
        ) from error
    address = int(buffer.handle)
    _lent[address] = buffer
    return address


def free(address: int, stream: int) -> None:
    """Return memory once the stream's earlier work is done."""
    buffer = _lent.pop(address, None) if _lent else None
    if buffer is None:
        check(driver.api().cuMemFreeAsync(address, stream), "cuMemFreeAsync")
    else:
        buffer.close(core_stream(stream))


@cache
def array_stream(device: int) -> int:
    """Return a stream of our own on which memory of results is taken and given back.

    Theirs may be gone by then: an array known by protocol names its stream, and does not hold it.
    """
    with driver.outside_capture(device):
        return int(check(driver.api().cuStreamCreate(1), "cuStreamCreate"))


@cache
def _pool(device: int) -> Any:
    """Return our pool. The device's default one gives all memory back whenever anybody waits."""
    api = driver.api()
    properties = api.CUmemPoolProps()
    properties.allocType = api.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = api.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.location.id = device
    pool = check(api.cuMemPoolCreate(properties), "cuMemPoolCreate")
    threshold = api.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
    total = check(api.cuDeviceTotalMem(device), "cuDeviceTotalMem")
    kept = api.cuuint64_t(total // KEPT_SHARE)
    check(api.cuMemPoolSetAttribute(pool, threshold, kept), "cuMemPoolSetAttribute")
    return pool


def _from_graph(size: int, stream: int, device: int) -> int:
    """Record an allocation: its memory is the graph's, of no pool."""
    with driver.current_device(device):
        result = driver.api().cuMemAllocAsync(size, stream)
    return int(check(result, f"allocating {size} bytes in a graph on cuda:{device}"))


def _from_pool(size: int, stream: int, device: int) -> int:
    api = driver.api()
    with driver.outside_capture(device):  # of whatever other threads record
        with _lock:  # `cache` would let two threads make a pool each
            pool = _pool(device)
        result = api.cuMemAllocFromPoolAsync(size, pool, stream)
        if result[0] == api.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            # What earlier calls have freed is ours only once they have run.
            api.cuStreamSynchronize(stream)
            api.cuMemPoolTrimTo(pool, 0)
            result = api.cuMemAllocFromPoolAsync(size, pool, stream)
        if result[0] == api.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            status, *sizes = api.cuMemGetInfo()
            free_bytes, total = sizes if status == 0 else ("?", "?")
            raise MemoryError(
                f"cuda:{device} cannot give {size} bytes: {free_bytes} of {total} are free; "
                "delete arrays, or empty the pools of CuPy and torch (free_all_blocks, empty_cache)"
            )
    return int(check(result, f"allocating {size} bytes on cuda:{device}"))
