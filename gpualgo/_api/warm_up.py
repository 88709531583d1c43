"""Fills the disk cache in advance, for the CPU and for GPUs that need not be present."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field

from gpualgo._api.recipes import Recipe
from gpualgo._api.stand_in import MACHINES, StandIn
from gpualgo._base import disk_cache
from gpualgo._base.errors import CompileError
from gpualgo._driver import default_device, device, driver
from gpualgo._driver.default_device import CPU

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
