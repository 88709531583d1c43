"""Histogram and counting sort: every kind of kernel that their plans ask for, as machine code."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import fake_driver
import numpy as np
import pytest
import sass
from sass import MAIN, Capability, needs_cuobjdump
from support import a_few, sampled

from gpualgo._algorithms.histogram import arguments
from gpualgo._algorithms.histogram.arguments import Edges
from gpualgo._algorithms.histogram.problem import Histogram
from gpualgo._algorithms.radix_sort import cuda as counting_sort
from gpualgo._arrays.view import View
from gpualgo._base import dtypes
from gpualgo._cuda import build, templates
from gpualgo._cuda.parameters import NUMBERS, Packed, Parameters
from gpualgo._cuda.plan import AT_NUMBERS
from gpualgo._pipeline import planners
from gpualgo._pipeline.problem import Call

MANY, FEW = 1 << 28, (1 << 10, 1 << 16, 1 << 20)  # samples
REALS = [name for name in dtypes.NAMES if not name.startswith("complex")]
LIBRARY = SimpleNamespace(has_producers=True)  # of arrays that nobody reads
PARAMETERS_BEGIN = 0x210  # in the constant memory of sm_90


class Launched(NamedTuple):
    spec: build.Spec
    parameter_bytes: int
    shared_bytes: int


class Taken(NamedTuple):
    grid: int
    parameters: Parameters

    def resized(self, grid: int, **fixed: Any) -> Taken:
        self.parameters.pack(**fixed)
        return self._replace(grid=grid)


class Machine:
    """A GPU that takes launches down instead of running them."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.launched: list[Launched] = []
        fake_driver.install(patch)
        self.device = fake_driver.gpu(0)
        patch.setattr(build, "kernel", lambda spec, _: spec)
        patch.setattr(build, "kernels", lambda specs, _: specs)
        patch.setattr(templates, "Launch", self.launch)

    def launch(
        self, spec: Any, grid: int, threads: int, packed: Packed, device: int, takes: Any, *,
        shared_bytes: int = 0, overlaps: bool = False, groups: int = 0,
    ) -> Taken:  # fmt: skip
        assert packed.parameters is spec.parameters
        assert packed.parameters.size <= 4096, "more than a launch takes before CUDA 12.1"
        assert 0 < grid < 1 << 31
        assert shared_bytes <= self.device.shared_limit
        numbers = {NUMBERS: AT_NUMBERS} if NUMBERS in packed.parameters.fields else {}
        packed.parameters.address_indices({**numbers, **takes})
        self.launched.append(Launched(spec, packed.parameters.size, shared_bytes))
        return Taken(grid, packed.parameters)

    def histogram(
        self, name: str, bins: Any, shape: tuple[int, ...] = (MANY,), axis: Any = None,
        ends: Any = (0.0, 100.0), step: int = 1,
    ) -> None:  # fmt: skip
        """Plan a histogram of an array in C order, all strides multiplied by step."""
        dtype = sass.dtype_of(name)
        strides = tuple(
            dtype.itemsize * step * int(np.prod(shape[i + 1 :], dtype=int))
            for i in range(len(shape))
        )
        view = View(0, shape, strides, dtype, 0, LIBRARY, False, None)
        found = arguments.even_bins(bins, *ends) if isinstance(bins, int) else Edges(bins)
        problem = Histogram(Call(0, (view,), None, None, ((found,), axis), "histogram"))
        (result,) = problem.results
        target = View(0, result.shape, problem.strides, result.dtype, 0, None, False, None)
        planners.cuda_plan(problem, [view], None, [target])

    def sort(self, name: str, num_items: int) -> None:
        dtype = sass.dtype_of(name)
        counting_sort.steps_of(0, dtype, num_items, False, (4, 5), 6)

    def check(self, folder: Path) -> None:
        """Assert that the kernels planned hold no fault, and load as widely as they can."""
        cases = []
        for launched in dict.fromkeys(self.launched):
            is_flat = re.search("flat|small|count_kernel", launched.spec.expression)
            is_strided = "strided" in launched.spec.expression
            cases.append(
                sass.Case(launched.spec, True if is_flat else False if is_strided else None)
            )
        sass.check(cases, self.device.capability, folder)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


pytestmark = pytest.mark.usefixtures("own_cache")


EDGES = np.geomspace(1, 100, 50)
NARROW, WIDE = (np.float32(0), np.float32(1)), (np.float64(0), np.float64(0.7))


@needs_cuobjdump
@pytest.mark.parametrize("name", sampled(REALS))
def test_every_dtype(name: str, machine: Machine, tmp_path: Path) -> None:
    machine.histogram(name, 50)
    machine.histogram(name, EDGES)
    machine.check(tmp_path)


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize("name", sampled(REALS))
def test_few_samples(name: str, machine: Machine, tmp_path: Path) -> None:
    for count in FEW:
        machine.histogram(name, 50, (count,))
        machine.histogram(name, EDGES, (count,))
        machine.histogram(name, 1000, (count,), ends=(np.float64(0), np.float64(1000)))
    machine.histogram(name, 256, (1 << 16,), ends=(-128, 128) if name == "int8" else (0, 256))
    for launched in machine.launched:
        assert "histogram_small_kernel" in launched.spec.expression
    machine.check(tmp_path)


@needs_cuobjdump
def test_strides(machine: Machine, tmp_path: Path) -> None:
    for name in a_few(("uint8", "float16", "float32", "int64")):
        machine.histogram(name, 50, step=3)
    machine.histogram("float32", EDGES, step=3)
    machine.check(tmp_path)


@pytest.mark.slow
@needs_cuobjdump
def test_interleaved_channels(machine: Machine, tmp_path: Path) -> None:
    for name in ("uint8", "uint16", "float32"):
        for channels in (3, 4):
            machine.histogram(name, 50, (1 << 20, channels), 0)
    machine.histogram("float16", 50, (1 << 20, 4), 0)
    machine.histogram("float64", 50, (1 << 20, 2), 0)
    machine.check(tmp_path)


TABLES = {5000: "Replicated", 65536: "Packed", 200_000: "Global"}


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize("num_bins", sampled(TABLES, [65536, 200_000]))
def test_many_bins(num_bins: int, machine: Machine, tmp_path: Path) -> None:
    machine.histogram("float32", num_bins)
    machine.histogram("int16" if num_bins < 65536 else "int32", num_bins, ends=(-32768, 900_000))
    machine.histogram("float64", num_bins, step=2)
    machine.histogram("float32", np.geomspace(1, 1e9, num_bins + 1))
    for launched in machine.launched:
        assert f"{TABLES[num_bins]}Table" in launched.spec.expression
    machine.check(tmp_path)


@pytest.mark.slow
@needs_cuobjdump
def test_edges_of_other_dtypes(machine: Machine, tmp_path: Path) -> None:
    machine.histogram("float32", 50, ends=NARROW)
    machine.histogram("float32", 50, ends=WIDE)
    machine.histogram("float16", 50, ends=NARROW)
    machine.histogram("float64", 3_000_000)
    machine.check(tmp_path)
    kinds = [launched.spec.expression.partition("Bins<")[2] for launched in machine.launched]
    starts = ["float, float, float, float", "float, float, double, double"]
    starts += ["gpualgo::float16, float, float, float", "double, double, double, double, 20"]
    assert all(kind.startswith(start) for kind, start in zip(kinds, starts, strict=True))


@needs_cuobjdump
def test_counting_sort(machine: Machine, tmp_path: Path) -> None:
    cases = [
        ("int8", MANY), ("uint8", 1 << 33), ("int16", MANY), ("uint16", 1 << 33),
        ("uint16", 1 << 16),
    ]  # fmt: skip
    for name, num_items in a_few(cases, 2):
        machine.sort(name, num_items)
    machine.check(tmp_path)


@needs_cuobjdump
@pytest.mark.parametrize("capability", sampled(sass.OTHERS, [(7, 5)]))
def test_every_architecture(capability: Capability, machine: Machine, tmp_path: Path) -> None:
    machine.device.become(capability)
    machine.histogram("uint8", 50)
    machine.histogram("float32", 50)
    machine.histogram("float32", 50, (FEW[1],))
    machine.histogram("int64", 65536, (1 << 20, 2), 0)
    machine.sort("int16", MANY)
    machine.check(tmp_path)


@needs_cuobjdump
def test_parameters_have_the_kernels_size(machine: Machine, tmp_path: Path) -> None:
    machine.histogram("uint8", 50)
    machine.histogram("uint8", 256, ends=(0, 256))
    machine.histogram("float32", 50)
    machine.histogram("float32", 50, (FEW[1],))
    machine.histogram("uint8", 50, (FEW[1],))
    machine.histogram("int64", 50, step=2)
    machine.histogram("float64", EDGES)
    machine.sort("uint8", MANY)
    for launched in machine.launched:
        code, _ = build.cubin(launched.spec, MAIN)
        path = tmp_path / "kernel.cubin"
        path.write_bytes(code)
        usage = subprocess.run(
            [str(sass.cuobjdump()), "-res-usage", str(path)],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        (constant,) = re.findall(r"CONSTANT\[0\]:(\d+)", usage)
        assert int(constant) - PARAMETERS_BEGIN == launched.parameter_bytes


def test_keys_that_are_counted() -> None:
    for name in REALS:
        dtype = sass.dtype_of(name)
        bits = 8 * dtype.itemsize
        is_short = dtypes.kind(dtype) in "biu" and bits <= 16
        assert counting_sort.applies(dtype, 0, bits, 1 << 22) == is_short
        assert not counting_sort.applies(dtype, 0, bits, 1 << 18)
        assert not counting_sort.applies(dtype, 1, bits, 1 << 22)
        assert not counting_sort.applies(dtype, 0, bits - 1, 1 << 22)
