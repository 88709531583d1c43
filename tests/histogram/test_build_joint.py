"""Joint and weighted histograms: every kind of kernel that their plans ask for, as machine code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fake_driver
import numpy as np
import pytest
import sass
from sass import Capability, needs_cuobjdump
from support import sampled
from test_build_histogram import EDGES, LIBRARY, REALS, Machine

import gpualgo as ga
from gpualgo._algorithms.histogram import arguments
from gpualgo._algorithms.histogram.arguments import Edges
from gpualgo._algorithms.histogram.problem import Histogram, HistogramParams, WeightedHistogram
from gpualgo._api.explain import describe
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import View
from gpualgo._base import dtypes
from gpualgo._base.strides import dense_strides
from gpualgo._pipeline import planners
from gpualgo._pipeline.problem import Call

MANY = 1 << 28  # samples

pytestmark = pytest.mark.usefixtures("own_cache")


class JointMachine(Machine):
    """The same for tuples and weights."""

    def plan(
        self, names: list[str], bins: Any, weights: Any = None, shape: tuple[int, ...] = (MANY,),
        axis: Any = None, step: int = 1,
    ) -> None:  # fmt: skip
        """Plan a histogram of arrays in C order, all strides multiplied by step."""

        def view(name: str) -> View:
            dtype = sass.dtype_of(name)
            strides = tuple(step * s for s in dense_strides(shape, dtype.itemsize))
            return View(0, shape, strides, dtype, 0, LIBRARY, False, None)

        views = [view(name) for name in names]
        kind: Any = None
        if isinstance(weights, str):
            views, kind = [*views, view(weights)], View
        elif weights is not None:
            kind = np.dtype(type(weights))
        found = tuple(
            arguments.even_bins(one, 0.0, 100.0) if isinstance(one, int) else Edges(one)
            for one in bins
        )
        rest = HistogramParams(found, axis, None, Form(tuple, (None,) * len(names)), kind)
        histogram = WeightedHistogram if kind is View else Histogram
        problem = histogram(Call(0, tuple(views), None, weights, rest, "histogram"))
        (result,) = problem.results
        target = View(0, result.shape, problem.strides, result.dtype, 0, None, False, None)
        planners.cuda_plan(problem, views, None, [target])

    def check_all(self, folder: Path, *, may_spill: bool = False) -> None:
        """Assert that the kernels planned hold no fault."""
        made = dict.fromkeys(launched.spec for launched in self.launched)
        # Sorts and segments have tests of their own.
        specs = [spec for spec in made if spec.header.startswith("histogram/")]
        codes = sass.read_all(specs, self.device.capability, folder)
        for spec, code in zip(specs, codes, strict=True):
            found = list(sass.Case(spec, None).faults(code))
            found = [fault for fault in found if not (may_spill and "spill" in fault)]
            assert not found, f"{spec.expression}: {found}"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> JointMachine:
    fake_driver.register_arrays(monkeypatch)
    return JointMachine(monkeypatch)


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize("name", sampled(REALS, ["bool", "bfloat16", "float64"]))
def test_counts_of_every_dtype(name: str, machine: JointMachine, tmp_path: Path) -> None:
    machine.plan([name, "float32"], [32, 32])
    machine.plan([name, name], [EDGES, 20])
    machine.plan([name, "float32"], [1000, 1000], step=2)
    machine.check_all(tmp_path)


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize("name", sampled(dtypes.NAMES, ["int8", "float16", "complex128"]))
def test_weights_of_every_dtype(name: str, machine: JointMachine, tmp_path: Path) -> None:
    machine.plan(["float32"], [100], name)
    machine.plan(["float64"], [EDGES], name, step=3)
    machine.check_all(tmp_path)


@needs_cuobjdump
def test_many_dimensions(machine: JointMachine, tmp_path: Path) -> None:
    machine.plan(["float32"] * 3, [10, EDGES, 10])
    machine.plan(["float32", "uint8", "int64"], [10, 10, 10], "float64")
    machine.plan(["float32"] * 8, [3] * 8)
    machine.plan(["float32"] * 8, [3] * 8, "float32", step=2)
    machine.check_all(tmp_path, may_spill=True)


@pytest.mark.slow
@needs_cuobjdump
def test_many_bins_and_rows(machine: JointMachine, tmp_path: Path) -> None:
    machine.plan(["float32", "float32"], [200, 300])  # 16 bits a counter
    machine.plan(["float32", "float32"], [3000, 3000])
    machine.plan(["float32", "float32"], [3000, 3000], "float32")
    machine.plan(["float32", "float32"], [10, 10], shape=(1 << 20, 100), axis=1)
    machine.plan(["float32"], [10], "float64", shape=(1 << 20, 100), axis=0)
    machine.plan(["float32"], [10], 0.5)
    machine.check_all(tmp_path)


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize("capability", sampled(sass.OTHERS, [(7, 5)]))
def test_every_architecture(capability: Capability, machine: JointMachine, tmp_path: Path) -> None:
    machine.device.become(capability)
    machine.plan(["float32", "float32"], [32, 32])
    machine.plan(["float32", "float32"], [1024, 1024])
    machine.plan(["float32", "uint8"], [EDGES, 10], "float32")
    machine.plan(["float32"], [100], "float64")
    machine.plan(["float32"], [100], "int32", step=2)
    machine.check_all(tmp_path)


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize("weights", [None, "float32"])
def test_computed_samples(weights: str | None, machine: JointMachine, tmp_path: Path) -> None:
    """What computes samples is inlined, with numbers that it captures, and nothing spills."""
    factor, shape = 2.5, (1 << 20,)
    x, counted = fake_driver.FakeArray(shape, np.float32), ga.lazy.arange(shape[0])
    random = ga.lazy.random(shape=shape, seed=1, dtype=np.float32, device="cuda:0")
    for made, bins, ends in (
        (ga.lazy.asarray(x) * factor + counted, 50, (0.0, 1.0)),
        (ga.lazy.transform(lambda a, i: (a - i, i * factor), x, counted), 20,
         ((0.0, 1.0), (0.0, 9.0))),
        (random, 5000, (0.0, 1.0)),
        (counted[::3] * ga.lazy.asarray(x)[::3], 50, (0.0, 1.0)),
    ):  # fmt: skip
        each = None if weights is None else fake_driver.FakeArray(made.shape, weights)
        request = describe("test", ga.histogram, (made, bins, ends), {"weights": each})
        problem = request.problem
        (result,) = problem.results
        target = View(0, result.shape, problem.strides, result.dtype, 0, None, False, None)
        planners.cuda_plan(problem, request.views, request.op, [target])
    machine.check_all(tmp_path)
