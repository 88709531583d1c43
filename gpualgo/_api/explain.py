"""The public function `explain`: where a call would run, why there, and what it would take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpualgo._api.describe import cuda_plan, describe
from gpualgo._cuda.launch import Launch
from gpualgo._driver import default_device
from gpualgo._driver.default_device import CPU
from gpualgo._pipeline.problem import Request


@dataclass(frozen=True)
class Explanation:
    """What a call would do, and where: what `gpualgo.explain` returns.

    Attributes
    ----------
    function : str
        The algorithm's name.
    device : str
        ``"cpu"`` or ``"cuda:0"``.
    why : str
        What has decided on the device.
    temp_storage_bytes : int or None
        What the call takes on a GPU besides its arrays, as `gpualgo.temp_storage_bytes`; 0 on the
        CPU, None for arrays of the host that travel to a GPU, where the blocks decide.
    launches : int or None
        How many kernels it launches; 0 on the CPU, None as above.
    """

    function: str
    device: str
    why: str
    temp_storage_bytes: int | None
    launches: int | None

    def __str__(self) -> str:
        text = f"{self.function} on {self.device}: {self.why}"
        if self.device == "cpu" or self.launches is None:
            return text
        kernels = f"{self.launches} kernel{'' if self.launches == 1 else 's'}"
        return f"{text}; {kernels}, {self.temp_storage_bytes} bytes of temporary storage"


def explain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Explanation:
    """Return where ``function(*args, **kwargs)`` would run, why there, and what it would take.

    Parameters
    ----------
    function : callable
        One of this package's algorithms: `gpualgo.radix_sort`, say.
    *args, **kwargs
        What it would be called with: arrays on the host or on a GPU, lazy arrays, tuples.

    Returns
    -------
    Explanation
        With `device`, `why`, `temp_storage_bytes` and `launches`; its text is one line.

    Raises
    ------
    TypeError, ValueError, CompileError
        As the call itself would raise.

    Notes
    -----
    Runs and launches nothing, and reads no element (but for a histogram without `range`). For
    arrays on a GPU the kernel is compiled, as by the call. A sort of lazy arrays makes them real
    first; what is told is of the sort. See docs/devices.md for the table of ``"auto"``.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> with ga.default_device("cpu"):
    ...     found = ga.explain(ga.radix_sort, np.zeros(1000, np.float32))
    >>> found.device
    'cpu'
    >>> print(found)
    radix_sort on cpu: gpualgo.default_device('cpu') says so
    """
    request = describe("explain", function, args, kwargs, is_rough=True)
    if request.problem.views_on_host and request.stream is not None:
        problem = request.problem.on_gpu(request.views, request.op, request.init)
        request = request._replace(problem=problem)
    problem = request.problem
    storage: int | None = 0
    launches: int | None = 0
    if not problem.views_on_host:
        if (plan := cuda_plan(request)) is not None:
            storage = plan.temp_storage_bytes
            launches = sum(isinstance(step, Launch) for step in plan.steps)
    elif problem.device != CPU:
        storage = launches = None
    device = default_device.name_of(problem.device)
    return Explanation(problem.where, device, _why(request), storage, launches)


def _why(request: Request) -> str:
    problem = request.problem
    if not problem.views_on_host:
        return "its arrays are there"
    if problem.choice is not None:
        return problem.choice.why
    if getattr(request.views[0].library, "host_device", None) is not None:
        return "an input was made with device='cpu'"
    return default_device.why()
