"""`gpualgo.explain`: what is told of a call is what the call does, and nothing is run for it."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import fake_driver
import numpy as np
import pytest
from contract.case import Case
from contract.cases import CASES
from fake_driver import FakeArray
from support import Backend

import gpualgo as ga
from gpualgo._api.explain import describe
from gpualgo._base import threads
from gpualgo._cpu import kernels
from gpualgo._driver import driver
from gpualgo._pipeline import host

SORTED_BY_DATA = ("segmented_sort",)  # elements may decide for pairs


def _asked(monkeypatch: pytest.MonkeyPatch) -> set[Any]:
    """Return the first part of the keys of the CPU's kernels that are asked for from now on."""
    found: set[Any] = set()
    made = kernels._kernels.made

    def noted(key: Any, make: Any) -> Any:
        found.add(key[0] if isinstance(key[0], str) else key[0][0])
        return made(key, make)

    monkeypatch.setattr(kernels, "_kernels", SimpleNamespace(made=noted))
    return found


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_told_of_the_cpu_is_what_runs(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    with ga.default_device("cpu"), np.errstate(all="ignore"):
        call = case.on(Backend("cpu", np))
        args, options = call.arguments(case.samples())
        asked = _asked(monkeypatch)
        told = ga.explain(case.function, *args, **options)
        request = describe("a test", case.function, args, options)
        problem, views, op, init, *_ = request
        _, results, _ = host.operands(problem, views, init, None)
        assert told.bytes_written == sum(x.nbytes for x in results)
        if problem.is_empty or not any(x.size for x in results):
            assert told.steps == ()
            return
        arrays = [host.array_of(view) for view in views]
        host.run_on_cpu(problem, arrays, results, problem.operator(op), problem.encode(init), True)
    compiled = {step.name for step in told.steps if step.is_compiled}
    if case.name in SORTED_BY_DATA:
        assert compiled & asked
    else:
        assert compiled <= asked, (compiled, asked)
    if told.steps and not compiled and case.name not in ("top_k", "kth_value"):
        # What settles zeros behind NumPy's sort, and how a short row's is called.
        assert asked <= {"radix_sort", "direct"}
    for step in told.steps:
        assert step.tile is not None
        assert step.tasks is not None
        assert step.threads is not None
        assert step.threads <= min(step.tasks, threads.num_threads())
        assert step.is_compiled or hasattr(np, step.name.removeprefix("numpy."))


def test_numpys_own_routines_are_named() -> None:
    x = np.arange(1 << 16, dtype=np.int32)
    with ga.default_device("cpu"):
        assert [s.name for s in ga.explain(ga.reduce, x, None, max).steps] == ["numpy.maximum"]
        assert [s.name for s in ga.explain(ga.argmin, x).steps] == ["numpy.argmin"]
        ours = ga.explain(ga.reduce, x, None, lambda a, b: a + b)
    assert [(s.name, s.is_compiled) for s in ours.steps] == [("reduce", True)]
    assert "compiled" in str(ours)
    assert ours.expected_seconds is None


def test_large_work_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "num_threads", lambda: 8)
    small, large = np.zeros(1000), np.broadcast_to(np.zeros(1), (1 << 26,))
    with ga.default_device("cpu"):
        (few,), (many,) = (ga.explain(ga.inclusive_scan, x).steps for x in (small, large))
    assert few.threads == 1
    assert many.threads == 8
    assert many.tasks is not None
    assert many.tile is not None
    assert many.tasks * many.tile >= 1 << 26


def test_broadcast_bytes_are_read_once() -> None:
    with ga.default_device("cpu"):
        found = ga.explain(ga.transform, lambda a, b: a + b, np.zeros((100, 1)), np.zeros((1, 50)))
    assert (found.bytes_read, found.bytes_written) == (8 * 150, 8 * 5000)


def _run_nothing(*_: Any) -> Any:
    raise AssertionError("something is run")


@pytest.fixture
def plain_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    made = fake_driver.install(monkeypatch)
    fake_driver.stub_kernels(monkeypatch)
    fake_driver.register_arrays(monkeypatch)
    made.on_launch = _run_nothing


def test_a_plan_on_a_gpu_is_told(plain_gpu: None) -> None:
    x = FakeArray((1 << 20,), np.float32)
    found = ga.explain(ga.inclusive_scan, x, None, lambda a, b: a + b)
    assert (found.backend, found.device) == ("cuda", "cuda:0")
    assert (found.bytes_read, found.bytes_written) == (4 << 20, 4 << 20)
    launched = [step for step in found.steps if step.grid is not None]
    assert len(launched) == found.launches
    (scan,) = (step for step in launched if "scan" in step.name)
    assert scan.expression.startswith(f"gpualgo::{scan.name}<")
    assert scan.registers == 40
    assert (scan.grid, scan.block) > (0, 0)
    assert {"x", "out"} <= {each.name for each in scan.memory}
    assert scan.num_bytes >= 8 << 20
    assert found.expected_seconds == found.bytes_moved / 3.2e12
    text = str(found)
    assert all(part in text for part in (scan.expression, "40 registers", "3200 GB/s", "x 4194304"))


def test_a_sort_moves_its_keys_by_every_pass(plain_gpu: None) -> None:
    n = 1 << 22
    found = ga.explain(ga.radix_sort, FakeArray((n,), np.uint32))
    passes = [s for s in found.steps if {"out"} & {m.name for m in s.memory}]
    assert len(passes) >= 2
    assert found.bytes_moved >= 8 * n * len(passes) // 2
    assert found.temp_storage_bytes == ga.temp_storage_bytes(
        ga.radix_sort, FakeArray((n,), np.uint32)
    )


def test_no_elements_no_steps(plain_gpu: None) -> None:
    found = ga.explain(ga.reduce, FakeArray((0,), np.float32), 1.0)
    assert (found.steps, found.launches, found.expected_seconds) == ((), 0, None)


def test_a_driver_that_tells_no_bandwidth(plain_gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_driver.gpu(0).__dict__["memory_bandwidth"] = None
    monkeypatch.setattr(driver.Kernel, "resources", lambda *_: None)
    found = ga.explain(ga.reduce, FakeArray((1000,), np.float32))
    assert found.expected_seconds is None
    assert [step.registers for step in found.steps] == [None] * len(found.steps)
    assert "GB/s" not in str(found)


def test_on_the_gpu_at_hand(cuda: Backend) -> None:
    """Each kernel is told with what its machine code takes, and the call launches so many."""
    x = cuda.to_device(np.arange(5000, dtype=np.int32))
    for function in (ga.reduce, ga.inclusive_scan, ga.radix_sort, ga.argmin):
        found = ga.explain(function, x)
        assert found.launches == sum(step.grid is not None for step in found.steps) > 0
        for step in found.steps:
            if step.grid is not None:
                assert step.expression.startswith("gpualgo::")
                assert step.registers is None or 0 < step.registers < 256
        assert found.bytes_read == 20000
        assert found.bytes_moved >= found.bytes_read + found.bytes_written


@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_input_and_result_is_at_some_step(case: Case, cuda: Backend) -> None:
    args, options = case.on(cuda).arguments(case.arrays(cuda))
    told = ga.explain(case.function, *args, **options)
    request = describe("a test", case.function, args, options)
    if not told.launches:
        assert [step.name for step in told.steps if step.is_compiled] == []
        return
    given = {each.name for step in told.steps for each in step.memory}
    inputs = request.problem.inputs
    read = {inputs[i] for i, view in enumerate(request.views) if view.dtype.itemsize}
    if not case.reads_last_alone:
        assert read <= given
    assert any(name.startswith("out") for name in given)
    assert told.launches == sum(step.grid is not None for step in told.steps)
    assert all(step.num_bytes for step in told.steps)


def test_captured_arrays(cuda: Backend) -> None:
    table = cuda.to_device(np.arange(8, dtype=np.int32))
    x = cuda.to_device(np.arange(5000, dtype=np.int32))
    found = ga.explain(ga.transform, lambda a: table[a & 7], x)
    (step,) = found.steps
    assert step.num_bytes == math.prod(x.shape) * 8
    assert step.registers is None or step.registers > 0


def _unknown(a: Any, b: Any) -> Any:
    return open(a)


@pytest.mark.parametrize("tool", [ga.explain, ga.temp_storage_bytes, ga.prepare])
@pytest.mark.parametrize(
    ("given", "options"),
    [
        ((None, _unknown), {}),
        ((None, lambda a, b: (a, b)), {}),
        ((None, lambda a: a), {}),
        ((), {"axis": 5}),
        ((), {"nonsense": 1}),
        ((), {"out": np.zeros(3)}),
        ((), {"out": 3}),
        ((), {"stream": 0}),
    ],
)
def test_refuses_what_the_call_refuses(
    tool: Any, given: tuple[Any, ...], options: dict[str, Any]
) -> None:
    x = np.arange(10.0)
    with ga.default_device("cpu"):
        with pytest.raises((TypeError, ValueError, ga.CompileError)) as of_call:
            ga.reduce(x, *given, **options)
        with pytest.raises((TypeError, ValueError, ga.CompileError)) as of_tool:
            tool(ga.reduce, x, *given, **options)
    if tool is ga.prepare and options.keys() & {"out", "stream"}:
        assert "is an argument of the plan's calls; pass it to them" in str(of_tool.value)
    else:
        assert (of_tool.type, str(of_tool.value)) == (of_call.type, str(of_call.value))


def test_what_makes_several_calls_is_told() -> None:
    with pytest.raises(TypeError, match="explain: unique decides from its arguments"):
        ga.explain(ga.unique, np.arange(3))
    for tool in (ga.explain, ga.temp_storage_bytes, ga.prepare):
        with pytest.raises(TypeError, match="function must be an algorithm of gpualgo, got sorted"):
            tool(sorted, [1])
