"""Queries the driver about addresses: device, allocation, page-locking."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from gpualgo._driver import device as gpu
from gpualgo._driver import driver


class Allocation(NamedTuple):
    """The allocation that contains an address."""

    start: int
    size: int
    device: int
    ptr: int  # the address as kernels see it


def find(pointer: int) -> Allocation | None:
    """Return the allocation that contains an address; None if no GPU can use it."""
    driver.require_device(0)
    driver.check_process()
    device = _ordinal(pointer)
    if device is None:
        return None
    if device < 0:  # managed memory need not have a device
        if not _attribute("IS_MANAGED", pointer):
            return None
        device = 0
    with gpu.get(device).current():
        mapped = _attribute("DEVICE_POINTER", pointer)
        start, size = _attribute("RANGE_START_ADDR", pointer), _attribute("RANGE_SIZE", pointer)
        if start is None or not size:
            status, start, size = driver.api().cuMemGetAddressRange(pointer)
            if status:
                return None
    return None if mapped is None else Allocation(int(start), int(size), device, int(mapped))


def place(address: int, low: int, high: int, where: str) -> tuple[int, int]:
    """Return an array's device and device pointer; raise if it leaves its allocation.

    `low` and `high` are the bounds of its bytes, relative to `address`.
    """
    allocation = find(address) if address else None
    if low == high:  # the array is empty
        return (0, address) if allocation is None else (allocation.device, allocation.ptr)
    if allocation is None:
        raise ValueError(
            f"{where}: {address:#x} is not the address of memory that a GPU can use; pass that of "
            "device, managed or page-locked memory that is still allocated"
        )
    before, after = address - allocation.start, allocation.start + allocation.size - address
    if before + low < 0 or high > after:
        raise ValueError(
            f"{where}: the array takes the bytes from {low} to {high} around {address:#x}, but "
            f"its allocation only has those from {-before} to {after}; pass a smaller shape"
        )
    return allocation.device, allocation.ptr


def device_of(pointer: int) -> int:
    """Return the device of an address."""
    if not pointer:
        return 0
    driver.require_device(0)
    ordinal = _ordinal(pointer)
    if ordinal is None:
        raise ValueError(
            f"address {pointer:#x} is not memory that a GPU knows; pass a device array"
        )
    return max(ordinal, 0)


def is_pageable(address: int, size: int) -> bool:
    """Return whether host memory is pageable at both ends."""
    return not any(_attribute("MEMORY_TYPE", end) for end in (address, address + size - 1))


def is_known(address: int) -> bool:
    """Return whether the driver knows a host address, so that it is not pageable."""
    status, kind = driver.api().cuPointerGetAttribute(_memory_type(), address)
    return not status and bool(kind)


def is_page_locked(address: int, size: int) -> bool:
    """Return whether host memory of at least one byte is page-locked from end to end."""
    kind = _attribute("MEMORY_TYPE", address)
    if not kind or int(kind) != 1:  # CU_MEMORYTYPE_HOST
        return False
    start, length = _attribute("RANGE_START_ADDR", address), _attribute("RANGE_SIZE", address)
    return bool(start and length) and address + size <= int(start) + int(length)


def is_open(address: int) -> bool:
    """Return whether memory was allocated by cuMemAlloc, which all peer GPUs can access."""
    return bool(_attribute("IS_LEGACY_CUDA_IPC_CAPABLE", address))


def pool_of(address: int) -> int | None:
    """Return the handle of the memory pool of an address; None if it has none."""
    handle = _attribute("MEMPOOL_HANDLE", address)
    return int(handle) or None if handle is not None else None


def _ordinal(pointer: int) -> int | None:
    """Return the device of an address; negative if it has none, None if no GPU knows it."""
    ordinal = _attribute("DEVICE_ORDINAL", pointer)
    if ordinal is None or driver.is_simple:
        return None if ordinal is None else int(ordinal)
    # The driver API of cuda.bindings up to 13.3 returns 0 for every device.
    status, attributes = driver.bindings("runtime").cudaPointerGetAttributes(pointer)
    return None if status else int(attributes.device)


@cache
def _memory_type() -> Any:
    return driver.api().CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE


def _attribute(name: str, pointer: int) -> Any:
    """Return a pointer attribute; None if the driver reports none."""
    api = driver.api()
    attribute = getattr(api.CUpointer_attribute, f"CU_POINTER_ATTRIBUTE_{name}")
    status, value = api.cuPointerGetAttribute(attribute, pointer)
    return None if status else value
