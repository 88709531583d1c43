"""The public function `explain`: where a call would run, why there, and what it would take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpualgo._api import explain_steps as told
from gpualgo._api.describe import checked_on_cpu, cuda_plan, describe
from gpualgo._api.explanation import Explanation as Explanation
from gpualgo._api.explanation import Step
from gpualgo._cuda.launch import Launch
from gpualgo._driver import default_device
from gpualgo._driver import device as gpu
from gpualgo._driver.default_device import CPU
from gpualgo._pipeline.problem import Request


def explain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Explanation:
    """Return where ``function(*args, **kwargs)`` would run, why there, and what it would launch.

    Parameters
    ----------
    function : callable
        An algorithm of this package, such as `gpualgo.radix_sort`.
    *args, **kwargs
        The arguments of the call: arrays on the host or on a GPU, lazy arrays, tuples.

    Returns
    -------
    Explanation
        Its attributes are `device`, `why`, `backend`, `temp_storage_bytes`, `launches`,
        `bytes_read`, `bytes_written`, on a GPU `bandwidth` and `expected_seconds`, and `steps`: the
        kernels with their policy, registers, shared memory, grid and block; on the CPU the routines
        with their tile and threads. `print` shows all of it.

    Raises
    ------
    TypeError, ValueError, CompileError
        As the call itself would raise, except for errors that depend on elements, such as
        decreasing offsets.

    Notes
    -----
    Launches nothing, and reads no elements, except offsets and the samples of a histogram without
    `range`. For arrays on a GPU the kernels are compiled, as by the call; for host arrays only the
    operator is. If a sort has lazy inputs, the explanation does not include the step that
    materializes them. If the steps of a segmented sort or a selection by rank on the CPU depend on
    the elements, the usual steps are given.

    See https://github.com/gpualgo/gpualgo/blob/main/docs/devices.md for the table of ``"auto"``.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> with ga.default_device("cpu"):
    ...     found = ga.explain(ga.radix_sort, np.zeros(1000, np.float32))
    >>> found.device
    'cpu'
    >>> found.bytes_read, found.bytes_written
    (4000, 4000)
    >>> print(found)
    radix_sort on cpu: chosen by gpualgo.default_device('cpu')
      reads 4000 bytes, writes 4000
      1. ...1 task of 1000 elements, 1 thread
    """
    request = describe("explain", function, args, kwargs, is_rough=True)
    if request.problem.views_on_host and request.stream is not None:
        problem = request.problem.on_gpu(request.views, request.op, request.init)
        request = request._replace(problem=problem)
    request = checked_on_cpu(request)
    problem = request.problem
    storage: int | None = 0
    launches: int | None = 0
    steps: tuple[Step, ...] = ()
    if not problem.views_on_host:
        if (plan := cuda_plan(request)) is not None:
            storage = plan.temp_storage_bytes
            launches = sum(isinstance(step, Launch) for step in plan.steps)
            steps = told.of_plan(plan, request)
    elif problem.device != CPU:
        storage = launches = None
    else:
        steps = told.on_cpu(request)
    bandwidth = None if problem.device == CPU else gpu.get(problem.device).memory_bandwidth
    return Explanation(
        problem.where, default_device.name_of(problem.device), _why(request), storage, launches,
        steps, told.read_by(request.views), told.written_by(problem), bandwidth,
    )  # fmt: skip


def _why(request: Request) -> str:
    problem = request.problem
    if not problem.views_on_host:
        return "the arrays are on this device"
    if problem.choice is not None:
        return problem.choice.why
    if getattr(request.views[0].library, "host_device", None) is not None:
        return "an input was made with device='cpu'"
    return default_device.why()
