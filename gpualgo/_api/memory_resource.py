"""The public function `set_memory_resource`: where memory on a GPU comes from."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty

_WHERE = "set_memory_resource"
_NAMES = ("cupy", "torch", "rmm")


def set_memory_resource(resource: ty.Resource, *, device: int | None = None) -> None:
    """Allocate temporary storage, and results that are a `DeviceArray`, from a memory resource.

    Parameters
    ----------
    resource : cuda.core.MemoryResource, str or None
        A resource of cuda.core; or ``"cupy"``, ``"torch"`` or ``"rmm"`` for the pool of that
        library, so that memory freed by one can be reused by the other. None is the default, this
        package's own stream-ordered pool.
    device : int, optional
        The number of the GPU; by default the resource's own device, for a name or None all devices.

    Raises
    ------
    TypeError
        `resource` is none of these.
    ValueError
        The name is unknown, the memory cannot be used by a GPU, or the resource is of another
        device.
    ImportError
        The named library is not installed.
    NoDeviceError
        The GPU of `device` or of the resource does not exist.

    Notes
    -----
    Applies to calls that begin later, in all threads. Memory is returned to the resource that it
    came from. If the resource has no memory for a call, the call raises MemoryError and writes
    nothing. The 2 MB that each stream keeps, and the storage of graphs, always come from the
    driver.

    Without a GPU a name or None is checked but has no effect, so that a program runs with and
    without one. Temporary storage on the CPU always comes from NumPy.

    See https://github.com/gpualgo/gpualgo/blob/main/docs/memory.md.

    Examples
    --------
    >>> import gpualgo as ga
    >>> ga.set_memory_resource("malloc")
    Traceback (most recent call last):
        ...
    ValueError: set_memory_resource: unknown resource 'malloc'; use 'cupy', 'torch' or 'rmm'
    """
    if isinstance(resource, str) and resource not in _NAMES:
        raise ValueError(f"{_WHERE}: unknown resource {resource!r}; use 'cupy', 'torch' or 'rmm'")
    from gpualgo._driver import device as gpu
    from gpualgo._driver import driver

    if not (resource is None or isinstance(resource, str)):
        _check(resource)
    if device is not None or not (resource is None or isinstance(resource, str)):
        driver.require_device(0 if device is None else device)
    if resource is None or isinstance(resource, str):
        if not driver.is_installed():
            _check_installed(resource)
            return
        for number in range(driver.device_count()) if device is None else (device,):
            gpu.get(number).pool.set_resource(_adapter(resource, number))
        return
    if device is not None and int(resource.device_id) != device:
        raise ValueError(
            f"{_WHERE}: the resource is of cuda:{resource.device_id}, not of cuda:{device}; "
            "make one there"
        )
    gpu.get(int(resource.device_id)).pool.set_resource(resource)


def _check_installed(name: str | None) -> None:
    """Raise ImportError, as with a GPU, unless the named library is installed."""
    if name is not None and importlib.util.find_spec(name) is None:
        raise ImportError(f"{_WHERE}: {name} is not installed; install it, or pass None", name=name)


def _adapter(name: str | None, device: int) -> Any:
    if name is None:
        return None
    from gpualgo._base.imports import loading

    with loading:
        from gpualgo._api import memory_adapters as adapters

    return adapters.ADAPTERS[name](device)


def _check(resource: Any) -> None:
    """Raise unless the resource allocates memory that a GPU can access."""
    missing = [
        name
        for name in ("allocate", "deallocate", "device_id", "is_device_accessible")
        if not hasattr(resource, name)
    ]
    if missing:
        raise TypeError(
            f"{_WHERE}: {type(resource).__name__} is no MemoryResource of cuda.core: it has no "
            f"{missing[0]}; pass such a resource, or 'cupy', 'torch' or 'rmm'"
        )
    if not resource.is_device_accessible:
        raise ValueError(f"{_WHERE}: a GPU cannot use the memory of {type(resource).__name__}")
