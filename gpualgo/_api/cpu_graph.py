"""Graphs of the CPU: calls taken down with all that they were decided to be, run by each launch."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from gpualgo._api.describe import compiled_on_cpu
from gpualgo._arrays.view import View
from gpualgo._base import forks, recording
from gpualgo._base.errors import CapturesChanged, CompileError
from gpualgo._driver.default_device import CPU, name_of
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import checks, host, outputs, refusals, settled
from gpualgo._pipeline.problem import Array, Request


class _Job:
    """A call whose arguments are checked: its arrays, its results, its operator as it was."""

    def __init__(self, request: Request) -> None:
        problem, views, op, init, out, _ = request
        self._request = request
        self._operator: Operator | None = problem.operator(op)
        library = views[0].library
        self._arrays = [host.array_of(view) for view in views]
        problem.encode(init)  # which checks it, though there may be nothing to compute
        whole: Array | None = None
        if out is None:
            self._results, whole = host.new_results(problem)
            found = [library.from_numpy(result, self._arrays[0]) for result in self._results]
        else:
            targets = outputs.check(problem, views, init, out)
            self._results = [host.array_of(target) for target in targets]
            given = out if type(out) is not View and isinstance(out, tuple) else (out,)
            found = [one.owner if type(one) is View else one for one in given]
        self._is_idle = not any(result.size for result in self._results)
        if problem.is_empty and not self._is_idle:
            problem.of_empty(self._operator, init)  # which may be refused
        # What a call with these results for out= is given, and what the recorded call returns.
        self.out: Any = tuple(found) if len(found) > 1 else found[0]
        self.result: Any = self.out if whole is None else whole
        if type(out) is tuple:
            self.result = out  # the caller's own

    def run(self) -> None:
        """Compute the results from what the arrays hold now."""
        problem, views, op = self._request.problem, self._request.views, self._request.op
        if self._is_idle:
            if problem.reads_data:  # though there may be nothing to compute
                problem.for_data(views, None)
            return
        try:
            self._compute()
        except (TypeError, CompileError) as error:
            with settled.retried(op, problem.hot, error) as is_another:
                if is_another:
                    self._look_again()
                    self._compute()
                    return
            refusals.name(error, op, problem.where, problem.op_name)
            raise

    def _compute(self) -> None:
        problem, views, _, init, _, _ = self._request
        if problem.is_empty:
            host.fill(problem, self._arrays, self._results, self._operator, init, None)
            return
        if problem.reads_data:  # offsets and indices may be others by now
            problem = problem.for_data(views, None)
        problem.cpu(self._arrays, self._results, self._operator, problem.encode(init))

    def _look_again(self) -> None:
        """Take the operator with numbers compiled in that were data until now."""
        problem, views, op, init, _, _ = self._request
        before = b"" if self._operator is None else self._operator.words
        found = problem.again(views, op, init)
        if problem.words(op) != before:
            raise RuntimeError(
                f"{problem.where}: numbers that op captures have changed since the graph was "
                "recorded, and its code needs them as constants; call the graph's update()"
            )
        self._request = self._request._replace(problem=found)
        self._operator = found.operator(op)


class Recording:
    """Calls taken down one after the other: a context manager, as that of a GPU is."""

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
        """Take a call down; return its result, and what a call that writes there has as `out`."""
        problem = request.problem
        if not problem.views_on_host or problem.device != CPU:
            place = name_of(problem.device)
            raise ValueError(
                f"{problem.where}: it would run on {place} and the graph is the CPU's; record it "
                f"in gpualgo.graph({place!r})"
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
        """Return what can be launched."""
        return Executable(self)


class Executable:
    """Jobs that run in order; launches by several threads come one after the other."""

    def __init__(self, recorded: Recording) -> None:
        self._jobs = recorded.jobs
        self.renew()
        _all.add(self)

    def renew(self) -> None:
        """Take a new lock: of a fork's child nobody launches."""
        self._lock = threading.Lock()

    def launch(self, stream: Any) -> None:
        """Run all calls, and return when they are done."""
        checks.no_stream(stream, "Graph.launch")
        with self._lock, recording.suspended():
            for job in self._jobs:
                job.run()

    def replace(self, recorded: Recording, calls: Sequence[Any], views: Sequence[View]) -> None:
        """Become another recording of the same calls, once no launch runs."""
        with self._lock:
            self._jobs = recorded.jobs


_all: weakref.WeakSet[Executable] = weakref.WeakSet()


@forks.in_child
def _renew() -> None:
    for executable in list(_all):
        executable.renew()
