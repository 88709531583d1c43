"""The public function `explain`: where a call would run, why there, and what it would take."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from gpualgo._algorithms import ALGORITHMS
from gpualgo._arrays.view import View, placeholder
from gpualgo._base import recording, records
from gpualgo._base.errors import CapturesChanged, CompileError, shown
from gpualgo._cuda import build
from gpualgo._cuda.plan import Clear, Launch, Plan, arg_map
from gpualgo._driver import default_device
from gpualgo._driver import device as gpu
from gpualgo._driver.default_device import CPU
from gpualgo._operators.operator import retried
from gpualgo._pipeline import checks, host, outputs, planners
from gpualgo._pipeline.decide import plan_for
from gpualgo._pipeline.problem import Problem, Request

Made = TypeVar("Made")

# --- The result of `gpualgo.explain`: plain attributes and a readable text.


class Touched(NamedTuple):
    """An array or temporary storage that a step uses."""

    name: str
    num_bytes: int


@dataclass(frozen=True)
class Step:
    """A step of a call: the launch of a kernel, a memset, or a routine on the CPU.

    Attributes that are unknown, or do not apply to this kind of step, are None.

    Attributes
    ----------
    name : str
        The name of a GPU kernel; on the CPU what the routine computes ("reduce", "packed sort"), or
        the name of a NumPy function such as ``"numpy.sort"``.
    expression : str
        For a GPU kernel its policy as C++ template arguments; else empty.
    is_compiled : bool
        Whether it is a kernel of this package; False for a NumPy function or a memset.
    grid, block : int or None
        The number of blocks, and of threads per block.
    registers, shared_bytes, local_bytes : int or None
        For a GPU kernel, read from its machine code: registers per thread, shared memory per block
        (static plus dynamic), and stack and spilled registers per thread in bytes.
    tile, tasks, threads : int or None
        On the CPU: elements per task, the number of tasks, and the most threads that share them.
        The actual number of threads depends on timing.
    memory : tuple of Touched
        On a GPU: the arrays and temporary storage that the step uses.
    """

    name: str
    expression: str = ""
    is_compiled: bool = True
    grid: int | None = None
    block: int | None = None
    registers: int | None = None
    shared_bytes: int | None = None
    local_bytes: int | None = None
    tile: int | None = None
    tasks: int | None = None
    threads: int | None = None
    memory: tuple[Touched, ...] = ()

    @property
    def num_bytes(self) -> int:
        """Total bytes of `memory`; each array is counted once, as a whole."""
        return sum(each.num_bytes for each in self.memory)

    def __str__(self) -> str:
        parts = [self.expression or self.name]
        if self.grid is not None:
            parts.append(f"{self.grid} x {self.block} threads")
        if self.registers is not None:
            parts.append(f"{self.registers} registers")
        if self.shared_bytes is not None:
            parts.append(f"{self.shared_bytes} bytes of shared memory")
        if self.local_bytes:
            parts.append(f"{self.local_bytes} bytes of stack or spilled registers per thread")
        if self.tasks is not None:
            parts.append("compiled" if self.is_compiled else "NumPy function")
            parts.append(f"{_count(self.tasks, 'task')} of {_count(self.tile or 0, 'element')}")
            most = "at most " if self.threads != 1 else ""
            parts.append(f"{most}{_count(self.threads or 1, 'thread')}")
        if self.memory:
            parts.append(" + ".join(f"{each.name} {each.num_bytes}" for each in self.memory))
        return ", ".join(parts)


@dataclass(frozen=True)
class Explanation:
    """What a call would do, and where; returned by `gpualgo.explain`.

    Attributes
    ----------
    function : str
        The name of the algorithm.
    device : str
        ``"cpu"`` or ``"cuda:0"``.
    why : str
        Why this device was chosen.
    temp_storage_bytes : int or None
        GPU memory that the call needs in addition to its arrays, as `gpualgo.temp_storage_bytes`; 0
        on the CPU. None for host arrays that are copied to a GPU, where it depends on the blocks.
    launches : int or None
        The number of kernel launches; 0 on the CPU, None as above.
    steps : tuple of Step
        The steps in order; empty if no element is read, and for host arrays copied to a GPU.
    bytes_read, bytes_written : int
        Bytes of the inputs and of the results, each counted once: the least that any algorithm must
        move. A result of unknown length counts with its greatest length.
    bandwidth : float or None
        Peak bandwidth of the GPU's memory in bytes per second, from its clock and bus width; None
        on the CPU, and if the driver does not report them.
    """

    function: str
    device: str
    why: str
    temp_storage_bytes: int | None
    launches: int | None
    steps: tuple[Step, ...] = ()
    bytes_read: int = 0
    bytes_written: int = 0
    bandwidth: float | None = None

    @property
    def backend(self) -> str:
        """``"cpu"`` or ``"cuda"``."""
        return self.device.partition(":")[0]

    @property
    def bytes_moved(self) -> int:
        """Bytes of all arrays that the steps use, each counted as a whole: an upper bound."""
        return sum(step.num_bytes for step in self.steps)

    @property
    def expected_seconds(self) -> float | None:
        """`bytes_moved` at the GPU's `bandwidth`; None on the CPU, and if either is unknown.

        Launches (2 to 4 µs each) and the operator's work are not included; data in the GPU's cache
        is faster.
        """
        if not self.bandwidth or not self.bytes_moved:
            return None
        return self.bytes_moved / self.bandwidth

    def __str__(self) -> str:
        text = f"{self.function} on {self.device}: {self.why}"
        if self.backend != "cpu" and self.launches is not None:
            kernels = _count(self.launches, "kernel")
            text = f"{text}; {kernels}, {self.temp_storage_bytes} bytes of temporary storage"
        lines = [text, f"  reads {self.bytes_read} bytes, writes {self.bytes_written}"]
        lines += [f"  {i}. {step}" for i, step in enumerate(self.steps, 1)]
        seconds = self.expected_seconds
        if seconds is not None and self.bandwidth is not None:
            lines.append(
                f"  {1e6 * seconds:.1f} us for {self.bytes_moved} bytes at "
                f"{self.bandwidth / 1e9:.0f} GB/s, plus the launches"
            )
        return "\n".join(lines)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


# --- The steps of a call for `explain`, without running it: of a GPU plan, or on the CPU.


def _bytes_of(view: View) -> int:
    if records.is_position(view.dtype):
        return 0
    extents = [n for n, step in zip(view.shape, view.strides, strict=True) if step or not n]
    return math.prod(extents) * view.dtype.itemsize


def of_plan(plan: Plan, request: Request) -> tuple[Step, ...]:
    problem = request.problem
    arrays = dict(_named(plan, problem, request.views))
    steps = []
    for step in plan.steps:
        if isinstance(step, Clear):
            memory = (Touched(arrays[step.slot].name, step.num_bytes),)
            steps.append(Step("memset", is_compiled=False, memory=memory))
        else:
            steps.append(_of_launch(step, plan.device.ordinal, arrays))
    return tuple(steps)


def _named(plan: Plan, problem: Problem, views: Sequence[View]) -> Iterator[tuple[int, Touched]]:
    """Yield the name and size of the memory at each slot of a plan's addresses."""
    slots = arg_map(len(views), len(problem.results))
    for i, view in enumerate(views):
        name = problem.inputs[i] if i < len(problem.inputs) else f"input {i}"
        yield slots.sources[i], Touched(name, _bytes_of(view))
    for i, (name, result) in enumerate(
        zip(outputs.names_of(problem), problem.results, strict=True)
    ):
        size = math.prod(result.shape) * result.dtype.itemsize
        yield slots.targets[i], Touched(name, size)
    for i, piece in enumerate(plan.pieces):
        yield slots.piece(i), Touched(f"temporary {i}", piece.num_bytes)


def _of_launch(launch: Launch, device: int, arrays: dict[int, Touched]) -> Step:
    kernel = launch.kernel
    expression = build.expression_of(kernel.name)
    name = expression.partition("<")[0].rpartition("::")[2]
    used = kernel.resources(device)
    memory = tuple(arrays[slot] for slot in dict.fromkeys(launch.slots) if slot in arrays)
    shared = launch.shared_bytes if used is None else used.shared_bytes + launch.shared_bytes
    return Step(
        name, expression, grid=launch.grid, block=launch.threads,
        registers=None if used is None else used.registers, shared_bytes=shared,
        local_bytes=None if used is None else used.local_bytes, memory=memory,
    )  # fmt: skip


def on_cpu(request: Request) -> tuple[Step, ...]:
    """Return the steps of a problem of host arrays on the CPU."""
    problem, views, op, init, out, _ = request
    arrays, results, _ = host.operands(problem, views, init, out)
    if problem.is_empty or not any(result.size for result in results):
        return ()
    problem.encode(init)  # checks it
    routines = planners.cpu_plan(problem, arrays, results, problem.operator(op)).routines
    return tuple(
        Step(each.name, is_compiled=each.is_compiled, tile=each.tile, tasks=each.tasks,
             threads=each.threads)
        for each in routines
    )  # fmt: skip


# --- Captures a call as a checked `Request` without running it, for `prepare` and others.


class _Describer:
    is_graph = is_on_cpu = False

    def __init__(self, is_rough: bool) -> None:
        self.is_rough = is_rough

    def call(self, request: Request) -> Request:
        return request


def describe(
    where: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
    is_rough: bool = False,
) -> Request:  # fmt: skip
    """Return a call as a request with checked arguments; nothing is run.

    `is_rough`: lazy arrays need not be materialized; other arrays may stand in for them.
    """
    if function not in ALGORITHMS:
        name = getattr(function, "__name__", None) or shown(function)
        if str(getattr(function, "__module__", "")).startswith("gpualgo."):
            raise TypeError(
                f"{where}: {name} decides from its arguments which algorithms it calls; pass an "
                "algorithm such as gpualgo.reduce or gpualgo.radix_sort"
            )
        raise TypeError(f"{where}: function must be an algorithm of gpualgo, got {name}")
    with recording.recording(_Describer(is_rough)):
        request: Request = function(*args, **kwargs)
    return request


def checked_on_cpu(request: Request) -> Request:
    """Raise the errors that a call on the CPU raises before it runs; return the request.

    The operator is compiled. Values are not checked, such as falling offsets or too short outputs.
    """
    problem, views, _, init, out, stream = request
    if problem.device != CPU:
        return request
    checks.no_stream(stream, problem.where)
    if out is not None:
        outputs.check(problem, views, init, out)
    return compiled_on_cpu(request)


def respecializing(make: Callable[[Request], Made]) -> Callable[[Request], Made]:
    """Let a function of a call compile captured numbers in as constants, if the operator needs it.

    Its errors name the call and its operator.
    """

    def made(request: Request) -> Made:
        try:
            return make(request)
        except (CapturesChanged, TypeError, CompileError) as error:
            problem, op = request.problem, request.op
            checks.name(error, op, problem.where, problem.op_name)
            return retried(error, op, problem.op_key, lambda: made(request.respecialized()))

    return made


@respecializing
def compiled_on_cpu(request: Request) -> Request:
    """Compile the operator of a call on the CPU; return the request to use from then on.

    It is a different request if the operator needs captured numbers as constants.
    """
    problem = request.problem
    acc = problem.acc  # set for folds; other operators were compiled when the problem was made
    if problem.device != CPU or problem.is_empty or acc is None or problem.num_arguments != 2:
        return request
    operator = problem.operator(request.op)
    if operator is not None and not operator.is_known:
        from gpualgo._cpu.kernels import compile_operator

        compile_operator(operator, (acc, acc), acc)
    return request


@respecializing
def cuda_plan(request: Request) -> Plan | None:
    """Return the plan of a call on device arrays; None if nothing is launched."""
    problem, views, op, init, out, _ = request
    if problem.views_on_host or problem.is_empty:
        return None
    if out is not None:
        targets = outputs.check(problem, views, init, out)
    else:
        library = views[0].library
        targets = tuple(
            placeholder(result.shape, result.dtype, problem.device)._replace(
                strides=result.strides(), library=library
            )
            for result in problem.results
        )
    if all(0 in target.shape for target in targets):
        return None
    return plan_for(problem, views, op, targets, is_new=out is None)


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
    `range`. The kernels are compiled, as by the call; for host arrays that are copied to a GPU
    only the operator is. If a sort has lazy inputs, the explanation does not include the step that
    materializes them. If the steps of a segmented sort or a selection by rank on the CPU depend on
    the elements, the usual steps are given.

    See https://github.com/gpualgo/gpualgo/blob/main/docs/devices.md for the table of ``"auto"``.

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
            steps = of_plan(plan, request)
    elif problem.device != CPU:
        storage = launches = None
    else:
        steps = on_cpu(request)
    written = sum(math.prod(each.shape) * each.dtype.itemsize for each in problem.results)
    bandwidth = None if problem.device == CPU else gpu.get(problem.device).memory_bandwidth
    return Explanation(
        problem.where, default_device.name_of(problem.device), _why(request), storage, launches,
        steps, sum(map(_bytes_of, request.views)), written, bandwidth,
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
