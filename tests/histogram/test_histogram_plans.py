"""Plans of `histogram`, queued on a driver that notes: what kernels are given, and what is kept."""

from __future__ import annotations

import ctypes
import gc
import struct
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

import fake_driver
import numpy as np
import pytest

from gpualgo._algorithms.histogram import arguments, cuda
from gpualgo._algorithms.histogram.arguments import Edges
from gpualgo._algorithms.histogram.problem import Histogram
from gpualgo._arrays.view import NumPy, View
from gpualgo._base import recording
from gpualgo._base.strides import dense_strides
from gpualgo._cuda import build, templates
from gpualgo._cuda.plan import TICKETS, Clear, Launch, Plan
from gpualgo._driver import device as pools
from gpualgo._pipeline import decide, planners
from gpualgo._pipeline.problem import NO_INIT, Call

SOURCE, TARGET, WORKSPACE, OWN = 0x1000_0000, 0x2000_0000, 0x3000_0000, 0x4000_0000
STREAM, TABLE = 7, 0x5000_0000
EVEN = (50, 0.0, 100.0)
Fields: TypeAlias = dict[str, Any]
WRITE, JOIN, ADD = range(3)  # HistogramResult


class Library:
    """Of device arrays."""

    name, has_producers = "stub", True


class Gpu(fake_driver.FakeDriver):
    """An H200 that notes what launches are given."""

    CUstream = int
    CUlaunchConfig = SimpleNamespace
    launched: list[tuple[int, ...]]

    def cuLaunchKernelEx(self, config: Any, kernel: Any, address: int, _: int) -> tuple[int]:
        at = ctypes.c_void_p.from_address(address).value
        assert at is not None
        assert config.hStream == STREAM
        # The head, and from the tail: bytes of a joint counter, HistogramResult.
        self.launched.append(struct.unpack("<4Q2q", ctypes.string_at(at, 48)))
        self.calls.append(("cuLaunchKernelEx",))
        return (0,)

    def cuMemsetD8Async(self, address: int, value: int, count: int, stream: int) -> tuple[int]:
        self.calls.append(("cuMemsetD8Async", address, value, count, stream))
        return (0,)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    monkeypatch.setattr(fake_driver, "FakeDriver", Gpu)
    made: Any = fake_driver.install(monkeypatch)
    made.launched = []
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
    shape: tuple[int, ...], bins: Any = EVEN, axis: Any = None, dtype: Any = None,
    strides: tuple[int, ...] | None = None,
) -> tuple[Histogram, View]:  # fmt: skip
    """Return the problem of float32 samples, and their view."""
    samples = np.dtype(np.float32)
    found = dense_strides(shape, samples.itemsize) if strides is None else strides
    view = View(SOURCE, shape, found, samples, 0, Library, False, None)
    given = bins if isinstance(bins, Edges) else arguments.even_bins(*bins)
    return Histogram(Call(0, (view,), None, None, ((given,), axis, dtype), "histogram")), view


def target_of(
    problem: Histogram, strides: tuple[int, ...] | None = None, library: Any = Library
) -> View:
    ((shape, dtype, *_),) = problem.results
    found = problem.strides if strides is None else strides
    return View(TARGET, shape, found, dtype, 0, library, False, None)


def plan_of(problem: Histogram, view: View, target: View) -> Plan:
    return planners.cuda_plan(problem, [view], None, [target])


def queue(plan: Plan) -> None:
    plan.queue(STREAM, (*NO_INIT, b"", SOURCE, TARGET))


class Case(NamedTuple):
    """A histogram, and what its kernel is to be given."""

    result: int
    problem: dict[str, Any]
    counters: int = 0
    tickets: int = 0
    start: int = 0  # from the first sample on
    strides: tuple[int, ...] | None = None  # of the result
    library: Any = Library  # of the result
    cleared: tuple[int, int] | None = None  # address and bytes
    counter_bytes: int = 8


_KEPT: Fields = {"counters": WORKSPACE + 4096, "tickets": WORKSPACE}
_OWN: Fields = {"counters": OWN + 256, "tickets": OWN, "cleared": (OWN, 256 + 200_000 * 8)}
MANY: Fields = {"shape": (1 << 24,), "bins": (200_000, 0.0, 1e6)}
LARGE: Fields = {"shape": (1 << 26,)}
FULL, FULLER = (7680, 0.0, 100.0), (7681, 0.0, 100.0)
EDGES = Edges(np.geomspace(1, 100, 50))
# fmt: off
CASES = {
    "write rows": Case(WRITE, {"shape": (3000, 10_000), "axis": 1}),
    "join in the kept tickets": Case(JOIN, {"shape": (1 << 24,)}, **_KEPT),
    "as many counters as are kept": Case(JOIN, {**LARGE, "bins": FULL}, **_KEPT),
    "one counter more": Case(
        ADD, {**LARGE, "bins": FULLER}, counters=TARGET, cleared=(TARGET, 7681 * 8)),
    "add to rows": Case(ADD, MANY, counters=TARGET, cleared=(TARGET, 200_000 * 8)),
    "add to narrow rows": Case(
        ADD, {**MANY, "dtype": np.int32}, counters=TARGET, cleared=(TARGET, 200_000 * 4),
        counter_bytes=4),
    "too narrow for atomics": Case(JOIN, {**MANY, "shape": (4096,), "dtype": np.int16}, **_OWN),
    "strided result": Case(JOIN, MANY, **_OWN, strides=(16,)),
    "many rows into a strided result": Case(
        JOIN, {"shape": (100, 1 << 20), "axis": 1, "bins": (2000, 0.0, 1.0)}, counters=OWN + 512,
        tickets=OWN, cleared=(OWN, 512 + 100 * 2000 * 8), strides=(2000 * 16, 16)),
    "result on the host": Case(JOIN, MANY, **_OWN, library=NumPy),
    "negative strides": Case(
        JOIN, {"shape": (1000, 3000), "strides": (-12000, -4)}, **_KEPT,
        start=999 * -12000 + 2999 * -4),
    "negative strides of kept rows": Case(
        WRITE, {"shape": (3000, 10_000), "strides": (-40_000, -4), "axis": 1},
        start=9999 * -4),
    "edges": Case(JOIN, {"shape": (1 << 24,), "bins": EDGES}, **_KEPT),
}
# fmt: on


@pytest.mark.parametrize("name", CASES)
def test_what_kernels_are_given(name: str, gpu: Gpu) -> None:
    case = CASES[name]
    problem, view = problem_for(**case.problem)
    plan = plan_of(problem, view, target_of(problem, case.strides, case.library))
    queue(plan)
    want = (SOURCE + case.start, TARGET, case.counters, case.tickets)
    assert gpu.launched == [(*want, case.counter_bytes, case.result)]
    cleared = [] if case.cleared is None else [("cuMemsetD8Async", case.cleared[0], 0,
                                               case.cleared[1], STREAM)]  # fmt: skip
    assert gpu.named("cuMemsetD8Async", "cuLaunchKernelEx") == [*cleared, ("cuLaunchKernelEx",)]
    own = case.cleared[1] if case.cleared is not None and case.result == JOIN else 0
    kept = 4096 + 8 * problem.num_bins if case.tickets == WORKSPACE else 0
    assert plan.temp_storage_bytes == own + kept <= max(own, pools.TICKET_BYTES)


@pytest.mark.parametrize("name", CASES)
def test_plans_are_whole(name: str, gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    taken: list[Any] = []
    pieces: list[Any] = []

    def launch(*args: Any, **kwargs: Any) -> Launch:
        packed = args[3]
        taken.append((packed.parameters.head, *packed.parameters.address_indices(args[5])))
        return Launch(*args, **kwargs)

    def plan(*args: Any, **kwargs: Any) -> Plan:
        pieces.extend(args[2])
        return Plan(*args, **kwargs)

    monkeypatch.setattr(templates, "Launch", launch)
    monkeypatch.setattr(cuda, "Plan", plan)
    problem, view = problem_for(**case.problem)
    made = plan_of(problem, view, target_of(problem, case.strides, case.library))
    ((head, takes, offsets),) = taken
    num_fields = len(head.unpack(bytes(head.size)))
    assert len(takes) == len(offsets) == num_fields
    num_places = 5 + 2 + len(pieces)  # the start, numbers, two arrays
    assert all(0 <= place < num_places for place in takes)
    assert all(step.slot in takes for step in made.steps if isinstance(step, Clear))
    for piece in pieces:
        assert piece.is_zeroed
        assert piece.workspace_offset in (None, TICKETS)
        assert piece.fits == (piece.workspace_offset is not None)


def test_joint_counters_of_a_capture_are_its_own(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_driver.gpu(0), "kept_workspace", lambda _: 0)
    problem, view = problem_for((1 << 24,))
    queue(plan_of(problem, view, target_of(problem)))
    assert gpu.launched == [(SOURCE, TARGET, OWN + 4096, OWN, 8, JOIN)]
    size = 4096 + 50 * 8
    assert gpu.named("cuMemsetD8Async") == [("cuMemsetD8Async", OWN, 0, size, STREAM)]


def test_few_samples_are_joined_in_words_of_the_tickets(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, view = problem_for((1 << 16,))
    plan = plan_of(problem, view, target_of(problem, (-16,)))
    queue(plan)
    size = plan.temp_storage_bytes
    assert gpu.launched[0][:4] == (SOURCE, TARGET, WORKSPACE, (1 << 64) - 16)
    assert size in [50 * 4 * copies for copies in range(1, 9)]
    monkeypatch.setattr(fake_driver.gpu(0), "kept_workspace", lambda _: 0)
    queue(plan)
    assert gpu.launched[1][:3] == (SOURCE, TARGET, OWN)
    assert gpu.named("cuMemsetD8Async") == [("cuMemsetD8Async", OWN, 0, size, STREAM)]


def test_one_block_needs_no_storage(gpu: Gpu) -> None:
    problem, view = problem_for((1000,), strides=(-4,))
    plan = plan_of(problem, view, target_of(problem))
    queue(plan)
    assert gpu.launched[0][:3] == (SOURCE - 999 * 4, TARGET, 0)
    assert plan.temp_storage_bytes == 0


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
    problem, view = problem_for((100,), Edges(np.geomspace(1, 100, 50)))
    with pytest.raises(RuntimeError, match="no kernel"):
        plan_of(problem, view, target_of(problem))
    del problem
    gc.collect()
    assert gpu.named("discard") == [("discard", TABLE, 0)]


def test_even_bins_hold_nothing(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "keep_alive", lambda _: pytest.fail("nothing is to be held"))
    gpu.capturing.add(STREAM)
    problem, view = problem_for((1 << 24,))
    queue(plan_of(problem, view, target_of(problem)))
    assert len(gpu.launched) == 1


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
