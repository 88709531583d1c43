"""Plans of `histogram`, queued on a driver that does nothing: how long tables of edges live."""

from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import Any

import fake_driver
import numpy as np
import pytest

from gpualgo._algorithms.histogram import arguments, cuda
from gpualgo._algorithms.histogram.arguments import Edges
from gpualgo._algorithms.histogram.problem import Histogram
from gpualgo._arrays.view import View
from gpualgo._base import recording
from gpualgo._cuda import build, templates
from gpualgo._cuda.plan import Plan
from gpualgo._pipeline import decide, planners
from gpualgo._pipeline.problem import NO_INIT, Call

SOURCE, TARGET, WORKSPACE, OWN = 0x1000_0000, 0x2000_0000, 0x3000_0000, 0x4000_0000
STREAM, TABLE = 7, 0x5000_0000
EVEN = (50, 0.0, 100.0)


class Library:
    """Of device arrays."""

    name, has_producers = "stub", True


class Gpu(fake_driver.FakeDriver):
    """An H200 whose launches do nothing."""

    CUstream = int
    CUlaunchConfig = SimpleNamespace

    def cuLaunchKernelEx(self, *_: Any) -> tuple[int]:
        return (0,)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    monkeypatch.setattr(fake_driver, "FakeDriver", Gpu)
    made: Any = fake_driver.install(monkeypatch)
    kernel = SimpleNamespace(
        name="kernel", handle=1, allow_shared=lambda *_: None, wrapped=lambda submit: submit
    )
    monkeypatch.setattr(build, "kernel", lambda spec, device: kernel)
    device = fake_driver.gpu(0)
    monkeypatch.setattr(device, "kept_workspace", lambda _: WORKSPACE)
    monkeypatch.setattr(device, "allocate", lambda *_: OWN)
    monkeypatch.setattr(device, "free", lambda *_: None)
    monkeypatch.setattr(cuda, "_upload", lambda data, device: TABLE)
    monkeypatch.setattr(cuda, "_discard", lambda *args: made.calls.append(("discard", *args)))
    found: Gpu = made
    return found


def problem_for(
    shape: tuple[int, ...], bins: Any = EVEN, strides: tuple[int, ...] = (4,)
) -> tuple[Histogram, View]:
    """Return the problem of float32 samples, and their view."""
    view = View(SOURCE, shape, strides, np.dtype(np.float32), 0, Library, False, None)
    given = bins if isinstance(bins, Edges) else arguments.even_bins(*bins)
    return Histogram(Call(0, (view,), None, None, ((given,), None, None), "histogram")), view


def target_of(problem: Histogram) -> View:
    ((shape, dtype, *_),) = problem.results
    return View(TARGET, shape, problem.strides, dtype, 0, Library, False, None)


def plan_of(problem: Histogram, view: View, target: View) -> Plan:
    return planners.cuda_plan(problem, [view], None, [target])


def queue(plan: Plan) -> None:
    plan.queue(STREAM, (*NO_INIT, b"", SOURCE, TARGET))


def test_a_table_of_edges_lives_as_long_as_its_problem_and_plans(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[Any] = []
    monkeypatch.setattr(recording, "keep_alive", held.append)
    problem, view = problem_for((1 << 24,), Edges(np.geomspace(1, 100, 50)))
    plan: Any = plan_of(problem, view, target_of(problem))
    queue(plan)
    assert not held
    gpu.capturing.add(STREAM)
    queue(plan)
    assert held == [plan]
    held.clear()
    assert not gpu.named("discard")
    del problem
    gc.collect()
    assert not gpu.named("discard")
    del plan
    gc.collect()
    assert gpu.named("discard") == [("discard", TABLE, 0)]


def test_a_table_goes_though_its_plan_fails(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("no kernel")

    monkeypatch.setattr(templates, "Launch", fail)
    problem, view = problem_for((100,), Edges(np.geomspace(1, 100, 50)), (-4,))
    with pytest.raises(RuntimeError, match="no kernel"):
        plan_of(problem, view, target_of(problem))
    del problem
    gc.collect()
    assert gpu.named("discard") == [("discard", TABLE, 0)]


def test_copies_and_arrays_in_place_have_plans_of_their_own(gpu: Gpu) -> None:
    """A stepped array of the host is seen as it is where it is page-locked, else without gaps."""
    problem, view = problem_for((1 << 20,), strides=(12,))
    problem.views_on_host, problem.num_arguments = True, 0  # takes no operator
    out = target_of(problem)
    plans = [
        decide.plan_for(problem, (found,), None, (out,), is_new=False)
        for found in (view, view._replace(strides=(4,)), view)
    ]
    assert plans[0] is plans[2] is not plans[1]
