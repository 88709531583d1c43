"""The public function `temp_storage_bytes`: what a call takes on a GPU besides its arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpualgo._api.describe import cuda_plan, describe


def temp_storage_bytes(function: Callable[..., Any], *args: Any, **kwargs: Any) -> int:
    """Return how many bytes of temporary storage ``function(*args, **kwargs)`` takes on a GPU.

    Parameters
    ----------
    function : callable
        One of this package's algorithms: `gpualgo.radix_sort`, say.
    *args, **kwargs
        What it would be called with. The arrays are on a GPU; nothing is read or written.

    Returns
    -------
    int
        Bytes: what a plan of `gpualgo.prepare` needs as ``temp_storage``. Those that a stream keeps
        for all its calls are counted as well. The formula is on the page of each algorithm.

    Raises
    ------
    TypeError
        `function` is no algorithm of this package, an array is not on a GPU, or the call itself
        would be a TypeError.
    ValueError
        The call itself would be a ValueError.

    Notes
    -----
    Compiles the kernel, as the call would. Launches nothing.

    Examples
    --------
    >>> import gpualgo as ga
    >>> ga.temp_storage_bytes(sorted, [1])
    Traceback (most recent call last):
        ...
    TypeError: temp_storage_bytes: function must be an algorithm of gpualgo, got sorted
    """
    request = describe("temp_storage_bytes", function, args, kwargs)
    if request.problem.views_on_host:
        raise TypeError(
            f"temp_storage_bytes: an array of {function.__name__} is on the CPU; "
            "pass arrays that are on a GPU"
        )
    plan = cuda_plan(request)
    return 0 if plan is None else plan.temp_storage_bytes
