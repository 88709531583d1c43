"""Graphs on the CPU: recorded calls that each launch runs in order."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from gpualgo._api.explain import compiled_on_cpu
from gpualgo._arrays.view import View
from gpualgo._base import forks, recording
from gpualgo._base.errors import CapturesChanged, CompileError
from gpualgo._driver.default_device import CPU, name_of
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import checks, host, outputs, retry
from gpualgo._pipeline.problem import Array, Request


class _Job:
    """A recorded call: checked arguments, results, and the operator as it was when recorded."""

    def __init__(self, request: Request) -> None:
        problem, views, op, init, out, _ = request
        self._request = request
        self._operator: Operator | None = problem.operator(op)
        library = views[0].library
        self._arrays = [host.array_of(view) for view in views]
        problem.encode(init)  # checks init, even if nothing is computed
        whole: Array | None = None
        if out is None:
            self._results, whole = host.new_results(problem)
            owners = [library.from_numpy(result, self._arrays[0]) for result in self._results]
        else:
            targets = outputs.check(problem, views, init, out)
            self._results = [host.array_of(target) for target in targets]
            outs = out if type(out) is not View and isinstance(out, tuple) else (out,)
            owners = [array.owner if type(array) is View else array for array in outs]
        self._is_idle = not any(result.size for result in self._results)
        if problem.is_empty and not self._is_idle:
            problem.of_empty(self._operator, init)  # may raise
        # The out= for recording this call again, and the value that the recorded call returns.
        self.out: Any = tuple(owners) if len(owners) > 1 else owners[0]
        self.result: Any = self.out if whole is None else whole
        if type(out) is tuple:
            self.result = out  # the caller's own tuple

    def run(self) -> None:
        """Compute the results from the arrays' current elements."""
        problem, views, op = self._request.problem, self._request.views, self._request.op
        if self._is_idle:
            if problem.reads_data:  # checks the data, even if nothing is computed
                problem.for_data(views, None)
            return
        try:
            self._compute()
        except (TypeError, CompileError) as error:
            with retry.retry_with_constants(op, problem.hot, error) as is_another:
                if is_another:
                    self._respecialize()
                    self._compute()
                    return
            checks.name(error, op, problem.where, problem.op_name)
            raise

    def _compute(self) -> None:
        problem, views, _, init, _, _ = self._request
        if problem.is_empty:
            host.fill(problem, self._arrays, self._results, self._operator, init, None)
            return
        if problem.reads_data:  # offsets and indices may have changed
            problem = problem.for_data(views, None)
        host.run_on_cpu(problem, self._arrays, self._results, self._operator, init, is_new=False)

    def _respecialize(self) -> None:
        """Replace the operator by one with captured numbers compiled in as constants."""
        problem, views, op, init, _, _ = self._request
        values = b"" if self._operator is None else self._operator.words
        new_problem = problem.again(views, op, init)
        if problem.words(op) != values:
            raise RuntimeError(
                f"{problem.where}: numbers that op captures have changed since the graph was "
                "recorded, and its code needs them as constants; call the graph's update()"
            )
        self._request = self._request._replace(problem=new_problem)
        self._operator = new_problem.operator(op)


class Recording:
    """A context manager that records calls, with the interface of `cuda_graph.Recording`."""

    def __init__(self, device: int) -> None:
        self.jobs: list[_Job] = []

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        pass

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
            while True:
                request = compiled_on_cpu(request)
                try:
                    job = _Job(request)
                    break
                except CapturesChanged:
                    problem, views, op, init, _, _ = request
                    request = request._replace(problem=problem.again(views, op, init))
        self.jobs.append(job)
        return job.result, job.out

    def finish(self, calls: Sequence[Any], views: Sequence[View]) -> Executable:
        return Executable(self)


class Executable:
    """Jobs that run in order; launches from several threads run one after the other."""

    def __init__(self, recorded: Recording) -> None:
        self._jobs = recorded.jobs
        self.renew()
        _all.add(self)

    def renew(self) -> None:
        """Create a new lock: in a forked child no launch is running."""
        self._lock = threading.Lock()

    def launch(self, stream: Any) -> None:
        """Run all calls; return when they are done."""
        checks.no_stream(stream, "Graph.launch")
        with self._lock, recording.suspended():
            for job in self._jobs:
                job.run()

    def replace(self, recorded: Recording, calls: Sequence[Any], views: Sequence[View]) -> None:
        """Take over another recording of the same calls, after a running launch has finished."""
        with self._lock:
            self._jobs = recorded.jobs


_all: weakref.WeakSet[Executable] = weakref.WeakSet()


@forks.in_child
def _renew() -> None:
    for executable in list(_all):
        executable.renew()
