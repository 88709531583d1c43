"""The public function `temp_storage_bytes`: the GPU memory of a call besides its arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gpualgo._api.explain import checked_on_cpu, cuda_plan, describe
from gpualgo._arrays import ordering
from gpualgo._arrays.view import View
from gpualgo._driver import workspace
from gpualgo._driver.default_device import CPU


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
        with workspace.supplied(workspace.Given(low, high - low)):
            yield
    finally:
        if streams:
            ordering.keep(handle, streams, (storage,))
