"""The public function `graph`: calls recorded once, launched many times."""

from __future__ import annotations

import contextlib
import copy
import weakref
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from gpualgo._api.explain import compiled_on_cpu, respecializing
from gpualgo._arrays import ordering
from gpualgo._arrays.view import View, address_of, as_bytes_view, overlap, view_of
from gpualgo._base import forks, log, recording
from gpualgo._base.errors import CompileError
from gpualgo._cpu.plan import Plan
from gpualgo._driver import default_device, driver, streams
from gpualgo._driver import device as gpu
from gpualgo._driver.default_device import AUTO, CPU, WithBlock, name_of
from gpualgo._operators.operator import Operator, as_operator
from gpualgo._pipeline import checks, host, inputs, planners
from gpualgo._pipeline.problem import Request
from gpualgo._pipeline.run import run

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty


# --- CUDA graphs through cuda.core: recording, temporary storage, launches.

_MIN_CHUNK_BYTES = 1 << 20


class Arena:
    """A graph's temporary storage. Its calls run one by one and all reuse it from the front."""

    def __init__(self, device: int) -> None:
        self.device = device
        self._chunks: list[tuple[int, int]] = []  # address and size of each
        self._chunk = self._used = 0  # position of the current call
        weakref.finalize(self, _free_chunks, self._chunks, device).atexit = False

    def restart(self) -> None:
        """Let the next call reuse the storage of the last one."""
        self._chunk = self._used = 0

    def take(self, size: int, device: int) -> int:
        size = gpu.aligned(size)
        while self._chunk < len(self._chunks):
            address, capacity = self._chunks[self._chunk]
            if self._used + size <= capacity:
                self._used += size
                return address + self._used - size
            self._chunk, self._used = self._chunk + 1, 0
        capacity = max(size, _MIN_CHUNK_BYTES)
        with gpu.get(self.device).outside_capture():
            # cuMemAlloc, not stream-ordered: the graph may be launched on any stream.
            result = driver.api().cuMemAlloc(capacity)
            address = int(driver.check(result, f"allocating {capacity} bytes for a graph"))
        self._chunks.append((address, capacity))
        self._used = size
        return address


def _free_chunks(chunks: list[tuple[int, int]], device: int) -> None:
    with contextlib.suppress(RuntimeError), gpu.get(device).outside_capture():  # a forked child
        for address, _ in chunks:
            driver.api().cuMemFree(address)


class CudaRecording:
    """Records calls by stream capture, and launches them as a CUDA graph."""

    def __init__(self, device: int) -> None:
        self.device = device
        self.arena = Arena(device)
        self.held: list[Any] = [self.arena]
        self.builder: Any = None
        self._stream = 0

    def __enter__(self) -> CudaRecording:
        with gpu.get(self.device).current():
            device = driver.core().Device(self.device)
            device.set_current()
            self.builder = device.create_graph_builder()
            # Relaxed mode allows this thread to allocate on other streams meanwhile.
            self.builder.begin_building(mode="relaxed")
            self._stream = int(self.builder.stream.handle)
        return self

    def record(self, request: Request) -> tuple[Any, Any]:
        """Record a call; return its result twice: it is also the out= for recording it again."""
        self.arena.restart()
        problem, views, op, init, out, _ = request
        with recording.capturing(self.held), gpu.supplied(self.arena):
            result = run(problem, views, op, init, out, self._stream, True)
        return result, result

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        with gpu.get(self.device).current():
            if kind is None:
                self.builder.end_building()
                return
            with contextlib.suppress(Exception):  # the first error is more informative
                self.builder.end_building()
            with contextlib.suppress(Exception):
                self.builder.close()

    def finish(self, calls: Sequence[Any], views: Sequence[View]) -> None:
        """Instantiate the graph, which holds all memory that it uses."""
        self._set_views(views)
        with gpu.get(self.device).current():
            self._graph = self.builder.complete()
            self._ran = driver.new_event()
        # The graph, arguments and results, and the operators' and kernels' own memory.
        self._all_held = [self._graph, self.builder, list(calls), self.held]
        weakref.finalize(self, _release, self._ran, self._all_held).atexit = False

    def _set_views(self, views: Sequence[View]) -> None:
        self._has_host_arrays = any(view.device == CPU for view in views)
        libraries = dict.fromkeys(view.library for view in views if view.device != CPU)
        self._library: Any = next(iter(libraries), None)
        is_joined = len(libraries) > 1 or any(library.has_producers for library in libraries)
        self._libraries = tuple(libraries) if is_joined else ()  # launches join their streams

    @log.each(lambda *_: "graph")
    def launch(self, stream: Any) -> None:
        """Queue the graph on a stream, by default that of the first device array's library.

        If arrays are of several libraries or known by protocol, the launch waits for the streams of
        all of them, and they wait for it.
        """
        if stream is not None:
            handle = streams.handle_of(stream, "Graph.launch")
        else:
            handle = 0 if self._library is None else self._library.stream(self.device)
        if driver.is_capturing(handle):
            raise RuntimeError(
                "Graph.launch: the stream is being captured, and CUDA captures no launch of a "
                "graph; make the graph's calls while it captures"
            )
        joined = [library.stream(self.device) for library in self._libraries]
        ordering.wait_for_streams(handle, joined, self.device, "Graph.launch")
        with gpu.get(self.device).current():
            self._graph.launch(gpu.core_stream(handle))
            for later in joined if driver.is_free(handle) else ():
                streams.wait_for(later, handle, self.device)
            driver.record(handle, self._ran)
            if stream is None and self._has_host_arrays:
                driver.synchronize(handle)

    def replace(self, recorded: CudaRecording, calls: Sequence[Any], views: Sequence[View]) -> None:
        """Take over another recording of the same calls; running launches are not disturbed."""
        self._set_views(views)
        with gpu.get(self.device).current():
            # The old arrays are released once no launch uses them.
            driver.check(driver.api().cuEventSynchronize(self._ran), "cuEventSynchronize")
            try:
                self._graph.update(recorded.builder)
            except Exception:  # the update is refused if kernels differ, as for another alignment
                self._graph = recorded.builder.complete()
        self.arena, self.builder, self.held = recorded.arena, recorded.builder, recorded.held
        self._all_held[:] = [self._graph, self.builder, list(calls), self.held]


def _release(ran: Any, held: list[Any]) -> None:
    """Keep what a graph has held until its last launch has finished."""
    with contextlib.suppress(RuntimeError):  # a forked child
        streams.keep_until_event(id(held), ran, held)


class Graph:
    """Recorded calls that are launched together, as often as needed; returned by `gpualgo.graph`.

    It keeps every array, operator and temporary storage that it uses alive: as long as it exists,
    and then until its last launch has run.
    """

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a graph cannot be pickled or copied; record the calls again")

    def __init__(self, device: int) -> None:
        self._device, self.is_on_cpu = device, device == CPU
        self._calls: list[Request] = []
        self._recording = _new_recording(device)
        self._failure: BaseException | None = None
        self._is_finished = False

    is_graph, is_rough = True, False

    def call(self, request: Request) -> Any:
        """Record a call and return its result; called by the pipeline, not by users."""
        if request.stream is not None:
            raise ValueError(
                f"{request.problem.where}: stream= cannot be given while a graph is recorded; "
                "pass it to the graph's launch"
            )
        try:
            result, out = self._recording.record(request)
        except BaseException as error:  # part of the call may be recorded already
            self._failure = error
            raise
        self._calls.append(request._replace(out=out))
        return result

    def launch(self, stream: ty.Stream | None = None) -> None:
        """Run the recorded calls in order.

        Parameters
        ----------
        stream : stream, optional
            The CUDA stream to run on. By default the current stream of the first array's library;
            if NumPy arrays in page-locked memory take part, the call then waits for the results.
            Not for a graph of the CPU, whose launch returns when all is done.

        Raises
        ------
        RuntimeError
            The recording is not finished, or it failed; or the stream is being captured.
        ValueError
            A stream is given for a graph of the CPU; or, on the CPU, offsets or indices are
            invalid.
        """
        self._finished("launch").launch(stream)

    def update(self, *pairs: tuple[ty.AnyArray, ty.AnyArray]) -> None:
        """Replace arrays: each pair is an array that the graph uses, and its successor.

        All calls are checked and recorded again, so a successor may differ in strides and
        alignment. Results that the graph allocated can be replaced too. Operators are read again as
        well: a call without pairs updates only the numbers that they capture.

        Parameters
        ----------
        *pairs : tuple of two arrays
            ``(old, new)`` with equal shape, dtype, library and device.

        Raises
        ------
        TypeError
            An argument is not a pair of arrays.
        ValueError
            The graph does not use an old array, or uses a part of it or another view of it that is
            not in a pair; an operator captures one, or a lazy array gathers from one; or a
            successor differs from it. The graph is then unchanged.
        """
        executable = self._finished("update")
        if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
            raise TypeError(
                "Graph.update: takes pairs, each a tuple of an old array and its successor"
            )
        views = _views(self._calls)
        known = set(map(_array_id, views))
        leaves = [leaf for pair in pairs for leaf in _fields(*pair, known)]
        successors = dict(self._successor(old, new) for old, new in leaves)
        others = [view for view in views if _array_id(view) not in successors]
        for old, _ in leaves:
            a = as_bytes_view(old, "Graph.update: old")
            if any(overlap(a, view) for view in others):
                raise ValueError(
                    "Graph.update: the graph also uses a part of an old array, or another view of "
                    "it, which would stay; pass a pair for each of them"
                )
        recorded = _new_recording(self._device)
        calls = []
        with recorded:
            for request in self._calls:
                new_request = _with_arrays(request, successors)
                try:
                    recorded.record(new_request)
                except TypeError as error:  # the arrays have the same dtypes
                    why = "a value that op captures has another type now: record a new graph"
                    error.args = (f"Graph.update: {error}; {why}",)
                    raise
                calls.append(new_request)
        executable.replace(recorded, calls, _touched(calls))
        self._calls = calls

    def _finished(self, what: str) -> Any:
        if not self._is_finished:
            raise RuntimeError(
                f"Graph.{what}: the graph is not recorded yet, or its recording failed; "
                "leave its `with` block first"
            )
        return self._recording

    def _finish(self) -> None:
        if self._failure is not None:
            raise RuntimeError(
                f"graph: a call failed while it was recorded ({self._failure}); "
                "leave it out, or let the error end the `with` block"
            ) from self._failure
        self._recording.finish(self._calls, _touched(self._calls))
        self._is_finished = True

    def _successor(self, old: Any, new: Any) -> tuple[_ArrayId, Any]:
        """Return the identity of an array of the graph and its checked replacement."""
        a, b = as_bytes_view(old, "Graph.update: old"), as_bytes_view(new, "Graph.update: new")
        old_id = _array_id(a)
        if any(overlap(a, view) for view in _captured(self._calls)):
            raise ValueError(
                "Graph.update: an operator of the graph, or a lazy array that gathers, reads an "
                "old array, and would go on to; write new elements into that array, or record a "
                "new graph"
            )
        if all(_array_id(view) != old_id for view in _views(self._calls)):
            raise ValueError(
                "Graph.update: the graph does not touch an old array; pass an array that was "
                "an argument or a result of one of its calls"
            )
        if (a.shape, a.dtype, a.library, a.device) != (b.shape, b.dtype, b.library, b.device):
            raise ValueError(
                f"Graph.update: an array of shape {b.shape} and dtype {b.dtype} cannot take the "
                f"place of one of shape {a.shape} and dtype {a.dtype}; pass an array of the same "
                "shape, dtype, library and device"
            )
        return old_id, new


def _new_recording(device: int) -> Any:
    return Recording() if device == CPU else CudaRecording(device)


# Identifies an array by its memory: protocols create a new object for each access.
_ArrayId: TypeAlias = tuple[int, int, tuple[int, ...], tuple[int, ...], np.dtype[Any]]


def _array_id(view: View) -> _ArrayId:
    address = 0 if 0 in view.shape else address_of(view)  # protocols report 0 for no elements
    return view.device, address, view.shape, view.strides, view.dtype


def _fields(old: Any, new: Any, known: set[_ArrayId]) -> Iterator[tuple[Any, Any]]:
    """Yield a pair of arrays, or of the fields that the graph knows a structured array by."""
    names, others = (getattr(getattr(x, "dtype", None), "names", None) for x in (old, new))
    is_known = names is None or _array_id(as_bytes_view(old, "Graph.update: old")) in known
    if is_known or names != others:
        yield old, new
        return
    for name in names or ():
        yield from _fields(old[name], new[name], known)


def _output_with(successors: dict[_ArrayId, Any], old: Any) -> Any:
    if isinstance(old, tuple):
        return tuple(_output_with(successors, item) for item in old)
    return successors.get(_array_id(as_bytes_view(old, "graph: an array")), old)


def _with_arrays(request: Request, successors: dict[_ArrayId, Any]) -> Request:
    def view(old: View) -> View:
        new = successors.get(_array_id(inputs.whole(old)))
        if new is None:
            return old
        return inputs.broadcast_to(view_of(new, "Graph.update: new"), old.shape)

    problem, views, op, init, out, stream = request
    views = tuple(view(old) for old in views)
    init = view(init) if type(init) is View else init
    out = _output_with(successors, out)
    return Request(problem.respecialized(views, op, init), views, op, init, out, stream)


def _views(calls: list[Request]) -> list[View]:
    """Return views of all arrays that the calls read or write."""
    views: list[View] = []
    for request in calls:
        views += map(inputs.whole, request.views)
        if type(request.init) is View:
            views.append(request.init)
        outs = request.out if isinstance(request.out, tuple) else (request.out,)
        views += (as_bytes_view(out, "graph: an array") for out in outs)
    return views


def _captured(calls: list[Request]) -> list[View]:
    """Return views of the arrays that the calls' operators capture by now."""
    return [
        view
        for problem, _, op, _, _, _ in calls
        if problem.num_arguments
        for view in as_operator(op, problem.where, problem.num_arguments).arrays
    ]


def _touched(calls: list[Request]) -> list[View]:
    """Return views of the calls' arrays and of the device arrays that their operators capture."""
    return _views(calls) + [view for view in _captured(calls) if view.device != CPU]


class _Block(WithBlock):
    """The `with` block in which calls are recorded."""

    def __init__(self, device: str | None, number: int) -> None:
        super().__init__(f"gpualgo.graph({'' if device is None else repr(device)})")
        self._number = number

    def __enter__(self) -> Graph:
        if self.is_entered:
            raise RuntimeError("graph: a block records one graph; call gpualgo.graph again")
        self.is_entered = True
        number, graph = self._number, Graph(self._number)
        # Host arrays stay on the graph's device: "auto" must not choose within the block.
        is_placed = default_device.current() == AUTO or number == CPU
        why = f"recorded in a graph on {'the CPU' if number == CPU else 'a GPU'}"
        device = [default_device.Fixed(number, why)] * is_placed
        self._stack, self._graph = contextlib.ExitStack(), graph
        try:
            for context in (graph._recording, recording.recording(graph), *device):
                self._stack.enter_context(context)
            return graph
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise

    def __exit__(self, *error: Any) -> None:
        try:
            self._stack.__exit__(*error)
        finally:  # an interrupt may come where no context knows of the recording
            recording.end(self._graph)
        if error[0] is None:
            self._graph._finish()


def graph(device: ty.Device | None = None) -> _Block:
    """Record the calls of a ``with`` block, to be launched together; on a GPU as a CUDA graph.

    Parameters
    ----------
    device : str, optional
        ``"cuda:1"`` or ``"cpu"``, for example: where the arrays are. By default the default device;
        if that is ``"auto"``, the first GPU, or the CPU if there is none.

    Yields
    ------
    Graph
        To be launched after the block. Nothing runs within the block: results of calls are arrays
        that every launch writes.

    Raises
    ------
    NoDeviceError
        The named GPU does not exist.
    RuntimeError
        A call must read a result before it continues, such as the range of a histogram's samples or
        the length of a result; or, on a GPU, it reads or writes pageable host memory.
    ValueError
        A call in a graph of the CPU would run on a GPU.

    Notes
    -----
    Arrays are on the GPU, or NumPy arrays in page-locked memory (`gpualgo.empty_pinned`); on the
    CPU any host arrays. Results without dimensions are arrays, for NumPy too. The graph has its own
    temporary storage: as much as the call that needs most.

    Only calls of this package in the block are recorded, not the work of other libraries. Other
    threads and tasks, even if started in the block, and the caller of a generator that yields in
    the block are not recorded: their calls run as usual.

    See https://github.com/gpualgo/gpualgo/blob/main/docs/memory.md.

    >>> x = np.arange(5.0)
    >>> with ga.graph("cpu") as g:
    ...     y = ga.inclusive_scan(x)
    ...     total = ga.reduce(y)
    >>> g.launch()
    >>> float(total)
    20.0
    >>> x[...] = 1
    >>> g.launch()
    >>> float(total)
    15.0
    """
    number = (
        default_device.of_streams() if device is None else default_device.parse(device, "graph")
    )
    return _Block(device, number)


# --- Graphs on the CPU: recorded calls that each launch runs in order.


class _Job:
    """A recorded call: checked arguments, results, and the operator as it was when recorded."""

    def __init__(self, request: Request) -> None:
        problem, views, op, init, out, _ = request
        self._request = request
        # As a number: it may be an array that the caller changes.
        self._init = init if type(init) is View else copy.deepcopy(init)
        self._operator: Operator | None = problem.operator(op)
        library = views[0].library
        problem.encode(init)  # checks init, even if nothing is computed
        self._arrays, self._results, new = host.operands(problem, views, init, out)
        if out is None:
            owners = [library.from_numpy(result, self._arrays[0]) for result in self._results]
        else:
            outs = out if type(out) is not View and isinstance(out, tuple) else (out,)
            owners = [array.owner if type(array) is View else array for array in outs]
        self._is_idle = not any(result.size for result in self._results)
        self._plan: Plan | None = None
        if problem.is_empty and not self._is_idle:
            problem.of_empty(self._operator, init)  # may raise
        elif not (self._is_idle or problem.reads_data):
            self._plan = planners.cpu_plan(problem, self._arrays, self._results, self._operator)
        # The out= for recording this call again, and the value that the recorded call returns.
        self.out: Any = tuple(owners) if len(owners) > 1 else owners[0]
        self.result: Any = self.out if problem.structure is None or not new else new[0]
        if type(out) is tuple:
            self.result = out  # the caller's own tuple

    def run(self) -> None:
        """Compute the results from the arrays' current elements."""
        problem, views, op, _, _, _ = self._request
        init = self._init
        try:
            if problem.reads_data:  # offsets and indices may have changed; checks them
                problem = problem.for_data(views, None)
            if self._is_idle:
                return
            if problem.is_empty:
                host.fill(problem, self._arrays, self._results, self._operator, init, None)
            elif self._plan is None:
                start = problem.encode(init)
                host.run_on_cpu(problem, self._arrays, self._results, self._operator, start, False)
            else:
                start = problem.encode(init)
                host.run_plan(self._plan, self._arrays, self._results, self._operator, start)
        except (TypeError, CompileError) as error:
            checks.name(error, op, problem.where, problem.op_name)
            raise


@respecializing
def _recorded(request: Request) -> _Job:
    """Return the job of a call; its operator is compiled."""
    return _Job(compiled_on_cpu(request))


class Recording(contextlib.nullcontext[None]):
    """Records calls and runs them; has the interface of `CudaRecording`."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[_Job] = []
        self._lock = forks.Lock()  # launches from several threads run one after the other

    def record(self, request: Request) -> tuple[Any, Any]:
        """Record a call; return its result and the out= for recording it again."""
        problem = request.problem
        if not problem.views_on_host or problem.device != CPU:
            device = name_of(problem.device)
            raise ValueError(
                f"{problem.where}: it would run on {device} but the graph is on the CPU; record it "
                f"in gpualgo.graph({device!r})"
            )
        with recording.suspended():
            job = _recorded(request)
        self.jobs.append(job)
        return job.result, job.out

    def finish(self, calls: Sequence[Any], views: Sequence[View]) -> None:
        """Do nothing: jobs are ready to run."""

    def launch(self, stream: Any) -> None:
        """Run all calls; return when they are done."""
        checks.no_stream(stream, "Graph.launch")
        with self._lock, recording.suspended():
            for job in self.jobs:
                job.run()

    def replace(self, recorded: Recording, calls: Sequence[Any], views: Sequence[View]) -> None:
        """Take over another recording of the same calls, after a running launch has finished."""
        with self._lock:
            self.jobs = recorded.jobs
