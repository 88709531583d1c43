"""Fills the disk cache in advance, for the CPU and for GPUs that need not be present."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpualgo._algorithms.reduce.tuning import flat, row_items, rows_spec, tile_rows
from gpualgo._api.prepare import Recipe
from gpualgo._arrays.view import NumPy, View, address_of
from gpualgo._base import disk_cache
from gpualgo._base.errors import CompileError
from gpualgo._cuda import build, compilers
from gpualgo._cuda.build import Spec, compile_for_operator
from gpualgo._cuda.operator import compile_operator
from gpualgo._driver import default_device, device, driver
from gpualgo._driver.default_device import CPU
from gpualgo._driver.device import Device
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import host, planners
from gpualgo._pipeline.problem import Array, Problem, problem_of

# --- A simulated GPU: calls are planned for it and computed on the CPU, and its kernels are
# compiled.
#
# As the default device it takes calls on host arrays by the normal path, so they request the same
# kernels as on a real GPU.

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
        planners.cuda_plan(problem, sources, device_op, targets)
        views = tuple([NumPy.view(array) for array in arrays])
        cpu_problem = problem_of(
            type(problem),
            views,
            op,
            init,
            problem.params,
            problem.where,
            problem.num_arguments,
            CPU,
        )
        start = cpu_problem.encode(init)
        host.run_on_cpu(cpu_problem, arrays, results, cpu_problem.operator(op), start, False)

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
        lost = [key for key in built if build.read(key) is None]
        if lost:
            failures.append(f"{len(lost)} kernels could not be written to the cache's folder")
        return built - set(lost), failures


class _Kernel:
    handle = library = None

    def __init__(self, name: str) -> None:
        self.name = name

    def allow_shared(self, num_bytes: int, device: int) -> None:
        """Do nothing: the kernel is never launched."""

    def wrapped(self, submit: Callable[..., Any]) -> Callable[..., Any]:
        return submit


Capability = tuple[int, int]


@dataclass
class Report:
    device: str
    compiled: int = 0
    found: int = 0
    refused: list[str] = field(default_factory=list)  # operators on dtypes that they do not support
    failures: list[str] = field(default_factory=list)


class _ObservedDevice(default_device.Fixed):
    """The default device of all calls; records whether a call has read it."""

    is_asked = False

    def __enter__(self) -> _ObservedDevice:  # type: ignore[override]
        super().__enter__()
        return self

    @property
    def number(self) -> int:
        self.is_asked = True
        return self._number

    @number.setter
    def number(self, number: int) -> None:
        self._number = number


def capability_of(arch: str) -> Capability:
    for capability in MACHINES:
        if arch == f"sm_{capability[0]}{capability[1]}":
            return capability
    names = ", ".join(f"sm_{major}{minor}" for major, minor in MACHINES)
    raise ValueError(f"warmup: unknown architecture {arch!r}; use {names}")


def present() -> dict[Capability, tuple[int, int]]:
    """Return shared memory and multiprocessors of the GPUs in this machine, by architecture."""
    count = driver.device_count() if driver.is_installed() else 0
    gpus = [device.get(number) for number in range(count)]
    return {gpu.capability: (gpu.shared_limit, gpu.num_sms) for gpu in gpus}


def warm_up(
    recipes: Sequence[Recipe], capabilities: Sequence[Capability], jobs: int,
    machines: dict[Capability, tuple[int, int]], tell: Callable[[Report], None],
) -> list[Report]:  # fmt: skip
    """Compile what the calls need, on the CPU and for GPUs of these architectures; return reports.

    `machines`: properties of known GPUs. `tell` is called with each report when it is finished.
    """
    reports = []
    with ThreadPoolExecutor(jobs) as pool:
        for each in (None, *capabilities):
            report = _on_cpu(recipes) if each is None else _on_gpu(recipes, each, pool, machines)
            tell(report)
            reports.append(report)
    return reports


def _on_cpu(recipes: Sequence[Recipe]) -> Report:
    report = Report("cpu")
    with disk_cache.watched() as seen, _ObservedDevice(CPU, "warmup runs on it") as observed:
        _make(recipes, report, observed)
    written = {key for key in seen.written if key.startswith(disk_cache.FOR_CPU)}
    read = {key for key in seen.read if key.startswith(disk_cache.FOR_CPU)}
    report.compiled, report.found = len(written), len(read - written)
    report.failures += seen.lost
    return report


def _on_gpu(
    recipes: Sequence[Recipe], capability: Capability, pool: Executor,
    machines: dict[Capability, tuple[int, int]],
) -> Report:  # fmt: skip
    report = Report(f"sm_{capability[0]}{capability[1]}")
    gpu = StandIn(capability, pool, machines.get(capability))
    with device.put(gpu), _ObservedDevice(gpu.ordinal, "warmup stands in for a GPU") as observed:
        _make(recipes, report, observed)
    built, failures = gpu.finish()
    report.compiled, report.found = len(built), len(gpu.found)
    report.failures += failures
    return report


def _make(recipes: Sequence[Recipe], report: Report, observed: _ObservedDevice) -> None:
    """Make all calls; collect refused operators and failures."""
    done, refused = set(), {}
    for recipe in recipes:
        try:
            observed.is_asked = False
            recipe.calls()
            if not observed.is_asked:
                report.failures.append(
                    f"{recipe.name}: it calls nothing of gpualgo's; name an operator, or a "
                    "function without arguments that makes calls"
                )
            done.add(recipe.name.partition(" of ")[0])
        except (TypeError, CompileError) as error:
            if recipe.is_tried:
                refused[recipe.name] = str(error)
            else:
                report.failures.append(f"{recipe.name}: {error}")
        except (Exception, SystemExit) as error:  # continue with the other recipes
            report.failures.append(f"{recipe.name}: {type(error).__name__}: {error}")
    report.refused += refused
    for name, message in refused.items():
        operator = name.partition(" of ")[0]
        if operator not in done:  # refused for all dtypes
            report.failures.append(f"{name}: {message}")


# --- The self-test of `gpualgo doctor`: compiles and links, bypassing the caches.


def self_test(arch: str = "sm_90") -> dict[str, Any]:
    """Compile a kernel and an operator and link them, bypassing the caches; needs no GPU."""
    digits = arch.removeprefix("sm_")
    capability = int(digits[:-1]), int(digits[-1])
    start = time.perf_counter()
    spec = probe_spec()
    assert spec.op is not None
    operator = compile_operator(spec.op, spec.arg_dtypes, spec.result_dtype, capability)
    kernel_ir, _ = compile_for_operator(spec, capability, False)
    code = compilers.linked((kernel_ir, operator.ltoir), arch, spec.expression)
    return {"seconds": time.perf_counter() - start, "cubin_bytes": len(code), "arch": arch}


def probe_spec() -> Spec:
    dtype = np.dtype(np.float32)
    op = Operator(lambda a, b: a * 0.5 + b)
    return rows_spec(
        op, dtype, dtype, flat(dtype, row_items(dtype)), tile_rows(op, 1, 1 << 20, dtype)
    )
