"""Whose calls a graph records: those from within its block, of its thread or task alone."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import copy_context
from typing import Any

import numpy as np
import pytest
from support import Backend

import gpualgo as ga
from gpualgo._base import recording


def plus_one(a: Any) -> Any:
    return a + 1


class Calls:
    """Calls that show whether they have run, and graphs that show what they have recorded."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.x = backend.to_device(np.arange(4.0))
        ga.transform(plus_one, self.x, out=self.new())  # compiled and loaded

    def new(self) -> Any:
        return self.backend.to_device(np.zeros(4))

    def graph(self) -> Any:
        return ga.graph(self.backend.name)

    def call(self) -> Any:
        out = self.new()
        ga.transform(plus_one, self.x, out=out)
        return out

    def has_run(self, out: Any) -> bool:
        return bool(np.array_equal(self.backend.to_host(out), np.arange(4.0) + 1))

    def was_recorded(self, graph: Any, out: Any) -> bool:
        assert not self.has_run(out)
        graph.launch()
        return self.has_run(out)


@pytest.fixture
def calls(backend: Backend) -> Iterator[Calls]:
    with ga.default_device(backend.name):
        made = Calls(backend)
        yield made
    assert recording.active == 0
    assert recording.current() is None


def test_another_task_computes(calls: Calls) -> None:
    found: dict[str, Any] = {}

    async def records(entered: asyncio.Event, done: asyncio.Event) -> None:
        with calls.graph() as found["graph"]:
            entered.set()
            await done.wait()
            found["recorded"] = calls.call()

    async def both() -> None:
        entered, done = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(records(entered, done))
        await entered.wait()
        found["computed"] = calls.call()
        with calls.graph() as found["other"]:
            found["beside"] = calls.call()
        done.set()
        await task

    asyncio.run(both())
    assert calls.has_run(found["computed"])
    assert calls.was_recorded(found["graph"], found["recorded"])
    assert calls.was_recorded(found["other"], found["beside"])


def test_tasks_threads_and_callbacks_that_the_block_starts_compute(calls: Calls) -> None:
    """Their contexts are copies of the block's."""

    async def calling() -> Any:
        return calls.call()

    async def records() -> tuple[Any, Any, list[Any]]:
        others: list[Any] = []
        with calls.graph() as graph:
            asyncio.get_running_loop().call_soon(lambda: others.append(calls.call()))
            others.append(await asyncio.create_task(calling()))
            others.append(await asyncio.to_thread(calls.call))
            own = await calling()
        return graph, own, others

    graph, own, others = asyncio.run(records())
    assert len(others) == 3
    assert all(map(calls.has_run, others))
    assert calls.was_recorded(graph, own)


def test_a_thread_that_the_block_starts_computes(calls: Calls) -> None:
    found: list[Any] = []

    def work() -> None:
        found.append(calls.call())
        with calls.graph() as graph:
            out = calls.call()
        found.extend((graph, out))

    with calls.graph() as graph:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        own = calls.call()
    computed, other, recorded = found
    assert calls.has_run(computed)
    assert calls.was_recorded(other, recorded)
    assert calls.was_recorded(graph, own)


def test_who_calls_a_generator_computes(calls: Calls) -> None:
    def generator() -> Iterator[tuple[Any, Any]]:
        with calls.graph() as graph:
            out = calls.call()
            yield graph, out
            other = calls.call()
        yield graph, other

    one, two = generator(), generator()
    (first, a), (second, b) = next(one), next(two)
    assert calls.has_run(calls.call())
    assert next(one)[0] is first  # the first to be entered is left first
    assert not calls.has_run(b)
    c = next(two)[1]
    assert calls.was_recorded(first, a)
    assert calls.was_recorded(second, c)
    assert calls.has_run(b)


def test_a_generator_goes_on_in_another_thread(calls: Calls) -> None:
    def generator() -> Iterator[Any]:
        with calls.graph() as graph:
            yield None
            out = calls.call()
        yield graph, out

    made, found = generator(), list[Any]()
    copy_context().run(next, made)  # which keeps the device that the block fixes
    thread = threading.Thread(target=lambda: found.append(next(made)))
    thread.start()
    thread.join()
    assert calls.was_recorded(*found[0])


def test_a_generator_that_is_dropped_records_no_longer(calls: Calls) -> None:
    def generator() -> Iterator[None]:
        with calls.graph():
            yield

    made = generator()
    next(made)
    assert recording.active == 1
    del made
    gc.collect()
    assert calls.has_run(calls.call())


def entered_by_a_stack(graph: Any) -> Any:
    stack = contextlib.ExitStack()
    return stack.enter_context(graph), stack.close


def entered_by_hand(graph: Any) -> Any:
    return graph.__enter__(), lambda: graph.__exit__(None, None, None)


def entered_by_a_generator(graph: Any) -> Any:
    @contextlib.contextmanager
    def block() -> Iterator[Any]:
        with graph as found:
            yield found

    made = block()
    return made.__enter__(), lambda: made.__exit__(None, None, None)


@pytest.mark.parametrize("enter", [entered_by_a_stack, entered_by_hand, entered_by_a_generator])
@pytest.mark.parametrize("in_task", [False, True])
def test_however_the_block_is_entered(
    calls: Calls, enter: Callable[[Any], Any], in_task: bool
) -> None:
    def body() -> bool:
        graph, leave = enter(calls.graph())
        out = calls.call()
        leave()
        return calls.was_recorded(graph, out)

    async def task() -> bool:
        return body()

    assert asyncio.run(task()) if in_task else body()


def test_a_block_made_of_an_asynchronous_generator(calls: Calls) -> None:
    @contextlib.asynccontextmanager
    async def block() -> AsyncIterator[Any]:
        with calls.graph() as found:
            await asyncio.sleep(0)
            yield found

    async def task() -> bool:
        async with block() as graph:
            other = await asyncio.to_thread(calls.call)
            out = calls.call()
        return calls.has_run(other) and calls.was_recorded(graph, out)

    assert asyncio.run(task())


def test_graphs_do_not_nest(calls: Calls) -> None:
    with calls.graph() as graph:
        out = calls.call()
        with pytest.raises(RuntimeError, match="another graph is being recorded"), calls.graph():
            pass
    assert calls.was_recorded(graph, out)


def test_an_error_ends_the_recording(calls: Calls) -> None:
    with pytest.raises(KeyError), calls.graph() as graph:
        raise KeyError
    assert calls.has_run(calls.call())
    with pytest.raises(RuntimeError, match="not recorded yet"):
        graph.launch()


def test_a_block_records_once() -> None:
    block = ga.graph("cpu")
    with block:
        pass
    with pytest.raises(RuntimeError, match="records one graph"):
        block.__enter__()


@pytest.mark.parametrize("make", [ga.default_device, ga.graph])
def test_names_are_checked_when_called(make: Callable[[str], Any]) -> None:
    with pytest.raises(ValueError, match="unknown device 'gpu'"):
        make("gpu")


@pytest.mark.parametrize("make", [ga.default_device, ga.graph])
def test_what_is_never_entered_warns(make: Callable[[str], Any]) -> None:
    with pytest.warns(RuntimeWarning, match=f"{make.__name__}.'cpu'. has no effect") as found:
        make("cpu")
    assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with make("cpu"):
            pass
