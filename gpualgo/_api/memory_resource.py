"""The public function `set_memory_resource`: where memory on a GPU comes from."""

from __future__ import annotations

import importlib.util
import weakref
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

# --- The pools of CuPy, torch and RMM, with what calls use of a cuda.core MemoryResource.


class _Buffer:
    """Memory of a library, freed once nothing refers to the buffer."""

    def __init__(self, handle: int, owner: Any = None) -> None:
        self.handle, self.owner = handle, owner

    def close(self, stream: Any) -> None:
        """Do nothing: the caller drops the buffer."""


class CuPyResource:
    """CuPy's current allocator."""

    def __init__(self, device: int) -> None:
        import cupy

        self._cupy, self._device = cupy, device

    def allocate(self, size: int, *, stream: Any) -> _Buffer:
        from gpualgo._arrays.frameworks import _cupy_stream

        handle = int(stream.__cuda_stream__()[1])
        with (
            self._cupy.cuda.Device(self._device),
            _cupy_stream(self._cupy, handle, self._device),
        ):
            memory = self._cupy.cuda.alloc(size)
        return _Buffer(memory.ptr, memory)


class TorchResource:
    """Torch's caching allocator."""

    def __init__(self, device: int) -> None:
        import torch

        self._torch, self._device = torch, device

    def allocate(self, size: int, *, stream: Any) -> _Buffer:
        handle = int(stream.__cuda_stream__()[1])
        pointer = int(self._torch.cuda.caching_allocator_alloc(size, self._device, handle))
        buffer = _Buffer(pointer)
        free = weakref.finalize(buffer, self._torch.cuda.caching_allocator_delete, pointer)
        free.atexit = False
        return buffer


class RMMResource:
    """RMM's current resource of the device."""

    def __init__(self, device: int) -> None:
        import rmm  # type: ignore[import-not-found]

        self._rmm = rmm

    def allocate(self, size: int, *, stream: Any) -> _Buffer:
        memory = self._rmm.DeviceBuffer(size=size, stream=self._rmm.pylibrmm.stream.Stream(stream))
        return _Buffer(int(memory.ptr), memory)


_ADAPTERS: dict[str, Callable[[int], Any]] = {
    "cupy": CuPyResource,
    "torch": TorchResource,
    "rmm": RMMResource,
}


# --- The public function.


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
    name = resource if isinstance(resource, str) else None
    if name is not None and name not in _ADAPTERS:
        raise ValueError(f"{_WHERE}: unknown resource {resource!r}; use 'cupy', 'torch' or 'rmm'")
    from gpualgo._driver import driver

    if resource is not None and not isinstance(resource, str):
        _check(resource)
        own = int(resource.device_id)
        driver.require_device(own if device is None else device)
        if device is not None and own != device:
            raise ValueError(
                f"{_WHERE}: the resource is of cuda:{own}, not of cuda:{device}; make one there"
            )
        gpu.get(own).pool.set_resource(resource)
        return
    if device is not None:
        driver.require_device(device)
    if driver.is_installed():
        for number in range(driver.device_count()) if device is None else (device,):
            gpu.get(number).pool.set_resource(None if name is None else _ADAPTERS[name](number))
    elif name is not None and importlib.util.find_spec(name) is None:  # as with a GPU
        raise ImportError(f"{_WHERE}: {name} is not installed; install it, or pass None", name=name)


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
