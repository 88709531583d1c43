"""What stands between a warm call and its launch: the frames of the package on the stack."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_driver
import numpy as np
import pytest
from contract.case import TABLE, Call, Case
from contract.cases import CASES
from fake_driver import FakeArray, FakeDriver

import gpualgo as ga
from gpualgo._algorithms import ALGORITHMS
from gpualgo._api.explain import describe

PACKAGE = str(Path(ga.__file__).parent)
MAX_FRAMES = 3  # the public function, the pipeline, the plan


# Functions of one body.
SHARED = (
    "inclusive_scan", "exclusive_scan", "argmin", "argmax", "find", "count", "segmented_reduce",
    "segmented_inclusive_scan", "segmented_exclusive_scan",
)  # fmt: skip
PUT_TOGETHER = ("minmax", "top_k")  # results of a plan or in out=


def _is_plain(case: Case) -> bool:
    """Return whether it is one call, of which no fake compiler has to tell what results are."""
    return (
        (case.operator is None or case.function is ga.transform)
        and not any(map(callable, case.options.values()))
        and not (case.is_tuple or case.is_lazy or "weights" in case.last_are)
        and (case.can_be_recorded or case.has_dynamic_length)
        and all(0 not in shape for shape, _ in case.inputs)
    )


PLAIN = [case for case in CASES if _is_plain(case)]
PLANS = [case for case in PLAIN if not case.puts_together]
# Others take temporary storage of a pool.
WITHOUT_STORAGE = [
    case
    for case in PLAIN
    if case.options.get("axis") != 0 and "init" not in case.last_are
    if case.about != "in any order"
]


class Warm:
    """A case on arrays that stay: the function's call, and a plan's."""

    def __init__(self, case: Case) -> None:
        call = Call(case, FakeArray(TABLE.shape, TABLE.dtype))
        arrays = [FakeArray(*each) for each in case.inputs]
        args, options = call.arguments(arrays)
        results = describe("a test", case.function, args, options).problem.results
        outs = [FakeArray(result.shape, result.dtype) for result in results]
        count = {"out_count": outs.pop()} if case.has_dynamic_length else {}
        out = {"out": outs[0] if len(outs) == 1 else tuple(outs), **count}
        # Without out= who waits for a count is decided on the way.
        self.outs = [out] if count else [{}, out]
        self.call = lambda given: case.function(*args, **options, **given)
        plan = None if case.puts_together else ga.prepare(case.function, *args, **options)
        self.plan: Any = plan and (lambda: plan(*arrays, **out))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    made = fake_driver.install(monkeypatch)
    fake_driver.stub_kernels(monkeypatch)
    fake_driver.register_arrays(monkeypatch)
    return made


def _frames(fake: FakeDriver, call: Callable[[], Any]) -> list[list[str]]:
    """Return the package's functions on the stack at each launch of a warm call, inmost first."""
    seen: list[list[str]] = []

    def look() -> None:
        frame, found = sys._getframe(), []
        while frame is not None:
            if frame.f_code.co_filename.startswith(PACKAGE):
                found.append(f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}")
            frame = frame.f_back  # type: ignore[assignment]
        seen.append(found)

    for _ in range(3):  # plans remember their arrays at the second
        call()
    fake.on_launch = look
    call()
    fake.on_launch = lambda: None
    assert seen, "nothing was launched"
    return seen


@pytest.mark.parametrize("case", PLAIN, ids=str)
def test_a_warm_call_is_near_its_launch(case: Case, fake: FakeDriver) -> None:
    warm = Warm(case)
    for given in warm.outs:
        frames = max(_frames(fake, lambda given=given: warm.call(given)), key=len)  # type: ignore[misc]
        more = 2 * case.has_dynamic_length + (case.name in SHARED)
        more += bool(given) and case.name in PUT_TOGETHER
        assert len(frames) <= MAX_FRAMES + more, frames


@pytest.mark.parametrize("case", PLANS, ids=str)
def test_a_plan_is_near_its_launch(case: Case, fake: FakeDriver) -> None:
    frames = max(_frames(fake, Warm(case).plan), key=len)
    more = 2 * case.has_dynamic_length + (case.name in PUT_TOGETHER)
    assert len(frames) <= MAX_FRAMES + more, frames


def test_every_algorithm_is_here() -> None:
    assert {case.function for case in WITHOUT_STORAGE} == set(ALGORITHMS)
    assert {case.function for case in PLANS} == set(ALGORITHMS) - {ga.find, ga.count}


@pytest.mark.parametrize("case", WITHOUT_STORAGE, ids=str)
def test_a_warm_call_allocates_and_compiles_nothing(case: Case, fake: FakeDriver) -> None:
    warm = Warm(case)
    for given in warm.outs:
        warm.call(given)
        fake.calls.clear()
        warm.call(given)
        launches = len(fake.named("cuLaunchKernel", "cuLaunchKernelEx"))
        assert launches >= 1
        assert len(fake.calls) == launches, fake.calls


def test_warm_calls_check_each_output_of_several(fake: FakeDriver) -> None:
    def scan(*outs: Any) -> None:
        pairs = ga.inclusive_scan((x, y), None, lambda p, q: (p[0] + q[0], p[1] + q[1]), out=outs)
        assert pairs is outs

    def part(of: FakeArray, begin: int) -> FakeArray:
        found = FakeArray((64,), np.float32)
        found.data.ptr = of.data.ptr + 4 * begin
        return found

    x, y, a, b = (FakeArray((64,), np.float32) for _ in range(4))
    for _ in range(3):
        scan(a, b)
        scan(x, y)
    for outs in ((y, x), (part(x, 4), b), (a, part(x, 4)), (a, a), (a, part(a, 32))):
        with pytest.raises(ValueError, match=r"overlaps|share memory"):
            scan(*outs)
    with pytest.raises(TypeError, match="must be an array"):
        ga.inclusive_scan(x, out=(a,))
