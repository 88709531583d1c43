"""A simulated GPU: calls are planned for it and computed on the CPU, and its kernels are compiled.

As the default device it takes calls on host arrays by the normal path, so they request the same
kernels as on a real GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from gpualgo._arrays.view import NumPy, View, address_of
from gpualgo._cuda import build, kept
from gpualgo._driver.default_device import CPU
from gpualgo._driver.device import Device
from gpualgo._operators.operator import Operator
from gpualgo._pipeline.problem import Array, Problem, problem_of

# By architecture: shared memory of a block in KiB, and multiprocessors of a common model. Both can
# decide which kernel is used.
MACHINES = {
    (7, 5): (64, 40), (8, 0): (163, 108), (8, 6): (99, 84), (8, 7): (163, 16), (8, 9): (99, 142),
    (9, 0): (227, 132), (10, 0): (227, 148), (12, 0): (99, 188),
}  # fmt: skip
_FIRST = 1 << 20  # above every real GPU's ordinal


class StandIn(Device):
    """A device that compiles kernels and computes calls for a GPU of some architecture."""

    def __init__(
        self, capability: tuple[int, int], pool: Executor, machine: tuple[int, int] | None = None
    ) -> None:
        """`machine`: bytes of shared memory and number of multiprocessors, if the GPU is known."""
        super().__init__(_FIRST + 10 * capability[0] + capability[1])
        shared, sms = MACHINES[capability]
        limit, sms = (shared << 10, sms) if machine is None else machine
        self.__dict__.update(
            capability=capability, num_sms=sms, shared_limit=limit, memory_bytes=1 << 37,
            may_overlap=capability >= (9, 0),
        )  # fmt: skip
        self.stand_in, self._pool = self, pool
        self.found: set[str] = set()  # keys of kernels that were cached already
        self._building: dict[str, tuple[str, Future[Any]]] = {}

    def kernel(self, spec: build.Spec) -> Any:
        """Return a placeholder for a kernel; its machine code is built in the background.

        The operator is compiled first, so the call gets its errors.
        """
        key, is_kept = build.asked(spec, self.capability)
        if key not in self._building:
            if is_kept:
                self.found.add(key)
            elif key not in self.found:
                future = self._pool.submit(build.cubin, spec, self.capability)
                self._building[key] = (spec.expression, future)
        return _Kernel(spec.expression)

    def run(
        self, problem: Problem, arrays: list[Array], results: list[Array], op: Operator | None,
        init: Any,
    ) -> None:  # fmt: skip
        """Plan a call on host arrays as on the GPU, and compute it on the CPU."""
        sources = tuple([self._device_view(NumPy.view(array)) for array in arrays])
        targets = tuple([self._device_view(NumPy.view(result)) for result in results])
        device_op = op
        if op is not None and op.arrays:
            device_op = op.with_arrays(tuple(map(self._device_view, op.arrays)))
        problem.cuda(sources, device_op, targets)
        views = tuple([NumPy.view(array) for array in arrays])
        cpu_problem = problem_of(
            type(problem), views, op, init, problem.rest, problem.where, problem.num_arguments, CPU
        )
        cpu_problem.cpu(arrays, results, cpu_problem.operator(op), cpu_problem.encode(init))

    def _device_view(self, view: View) -> View:
        address = view.ptr or address_of(view)
        return view._replace(ptr=address, device=self.ordinal, library=None, owner=None)

    def finish(self) -> tuple[set[str], list[str]]:
        """Wait for all kernels; return the keys of those that were built, and the failures."""
        failures = []
        for name, future in self._building.values():
            error = future.exception()
            if error is not None:
                failures.append(f"{name}: {error}")
        built = {key for key, (_, future) in self._building.items() if not future.exception()}
        lost = [key for key in built if kept.read(key) is None]
        if lost:
            failures.append(f"{len(lost)} kernels could not be written to the cache's folder")
        return built - set(lost), failures


class _Kernel:
    """Placeholder for a kernel that is not loaded."""

    handle = library = None

    def __init__(self, name: str) -> None:
        self.name = name

    def allow_shared(self, num_bytes: int, device: int) -> None:
        """Do nothing: the kernel is never launched."""

    def wrapped(self, submit: Callable[..., Any]) -> Callable[..., Any]:
        return submit
