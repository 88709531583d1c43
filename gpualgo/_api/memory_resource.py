"""The public function `set_memory_resource`: where memory on a GPU comes from."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gpualgo._api.explain import checked_on_cpu, cuda_plan, describe
from gpualgo._arrays import ordering
from gpualgo._arrays.view import View
from gpualgo._driver import device as gpu
from gpualgo._driver.default_device import CPU

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

    with loading():
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


# --- The public function `temp_storage_bytes`: the GPU memory of a call besides its arrays.


def temp_storage_bytes(function: Callable[..., Any], *args: Any, **kwargs: Any) -> int:
    """Return how many bytes of temporary storage ``function(*args, **kwargs)`` needs on a GPU.

    Parameters
    ----------
    function : callable
        An algorithm of this package, such as `gpualgo.radix_sort`.
    *args, **kwargs
        The arguments of the call. Arrays are on a GPU, or host arrays that are processed on the
        CPU; they are neither read nor written.

    Returns
    -------
    int
        The size of ``temp_storage`` that a plan of `gpualgo.prepare` needs, including the bytes
        that a stream keeps for all its calls. The page of each algorithm has the formula. 0 on the
        CPU, whose kernels allocate temporary storage with NumPy.

    Raises
    ------
    TypeError
        `function` is not an algorithm of this package; host arrays would be copied to a GPU, where
        the size depends on the blocks; or the call itself would raise a TypeError.
    ValueError
        The call itself would raise a ValueError.

    Notes
    -----
    Compiles the kernels for a GPU, as the call would, and on the CPU the operator. Launches
    nothing. Errors that depend on elements, such as decreasing offsets, are not raised.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> with ga.default_device("cpu"):
    ...     ga.temp_storage_bytes(ga.radix_sort, np.zeros(1000))
    0
    >>> ga.temp_storage_bytes(sorted, [1])
    Traceback (most recent call last):
        ...
    TypeError: temp_storage_bytes: function must be an algorithm of gpualgo, got sorted
    """
    request = describe("temp_storage_bytes", function, args, kwargs)
    if request.problem.views_on_host and request.problem.device != CPU:
        raise TypeError(
            f"temp_storage_bytes: the arrays of {function.__name__} would be copied to a GPU; "
            "pass arrays on it, or choose the CPU by default_device"
        )
    plan = cuda_plan(checked_on_cpu(request))
    return 0 if plan is None else plan.temp_storage_bytes


@contextmanager
def lent(
    storage: View, low: int, high: int, first: View, stream: Any, where: str
) -> Iterator[None]:
    """Let a call use an array as temporary storage, ordered with the array's own stream."""
    streams = ordering.streams_of((first, storage))
    handle = ordering.handle_for(stream, first, where, streams)
    try:
        with gpu.supplied(gpu.Given(low, high - low)):
            yield
    finally:
        if streams:
            ordering.keep(handle, streams, (storage,))
