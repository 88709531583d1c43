"""The emulated streams: what they keep in order for every seed, and what they do not for some."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator

import pytest

from emulator import captures, streams, trial, work
from emulator.codes import CAPTURE_IMPLICIT, CAPTURE_ISOLATION, CAPTURE_UNSUPPORTED, Failed
from emulator.streams import Event, Stream

SEEDS = range(30)
Log = list[str]


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    before, streams.thread.context = streams.thread.context, streams.CONTEXT
    yield
    work.finish_all()
    streams.thread.context = before


def note(log: Log, what: str) -> Callable[[], None]:
    return lambda: log.append(what)


def outcomes(queue: Callable[[Log], None]) -> set[tuple[str, ...]]:
    """Return all orders in which work ran that was queued under many seeds."""
    found = set()
    for seed in SEEDS:
        test = trial.begin("a test", seed)
        log: Log = []
        queue(log)
        test.next_launch()
        work.finish_all()
        found.add(tuple(log))
    return found


def two_streams() -> tuple[Stream, Stream]:
    return streams.create(False), streams.create(False)


def test_a_stream_keeps_its_order() -> None:
    def queue(log: Log) -> None:
        stream = streams.create(False)
        for what in "abc":
            streams.queue(stream, note(log, what))

    assert outcomes(queue) == {("a", "b", "c")}


def test_nothing_orders_two_streams() -> None:
    def queue(log: Log) -> None:
        for stream, what in zip(two_streams(), "ab", strict=True):
            streams.queue(stream, note(log, what))

    assert outcomes(queue) == {("a", "b"), ("b", "a")}


def test_an_event_orders_them() -> None:
    def queue(log: Log) -> None:
        first, second = two_streams()
        event = Event()
        streams.queue(first, note(log, "a"))
        streams.record(event, first)
        streams.queue(first, note(log, "late"))
        streams.wait(second, event)
        streams.queue(second, note(log, "b"))

    found = outcomes(queue)
    assert {each.index("a") < each.index("b") for each in found} == {True}
    assert {each.index("late") < each.index("b") for each in found} == {True, False}


@pytest.mark.parametrize("is_blocking", [True, False])
def test_the_legacy_stream(is_blocking: bool) -> None:
    def queue(log: Log) -> None:
        other = streams.create(is_blocking)
        streams.queue(other, note(log, "a"))
        streams.queue(streams.legacy, note(log, "b"))
        streams.queue(other, note(log, "c"))

    found = outcomes(queue)
    assert (found == {("a", "b", "c")}) == is_blocking


def test_each_gpu_has_a_legacy_stream() -> None:
    def queue(log: Log) -> None:
        for number, what in enumerate("ab"):
            streams.thread.context = streams.CONTEXT + number
            streams.queue(streams.find(0), note(log, what))
            streams.queue(streams.create(True), note(log, what.upper()))
        streams.thread.context = streams.CONTEXT

    found = outcomes(queue)
    assert {each.index("a") < each.index("A") for each in found} == {True}
    assert {each.index("a") < each.index("b") for each in found} == {True, False}
    assert {each.index("A") < each.index("b") for each in found} == {True, False}


def test_work_runs_late_or_at_once() -> None:
    def queue(log: Log) -> None:
        stream = streams.create(False)
        streams.queue(stream, note(log, "work"))
        log.append("the host goes on")

    assert len(outcomes(queue)) == 2


def test_who_waits_finds_it_done() -> None:
    for seed in SEEDS:
        trial.begin("a test", seed)
        log: Log = []
        stream = streams.create(False)
        streams.queue(stream, note(log, "work"))
        streams.synchronize(stream)
        assert log == ["work"]
        event = Event()
        streams.queue(stream, note(log, "more"))
        streams.record(event, stream)
        assert any(work.ask(event.work) for _ in range(20))
        assert log == ["work", "more"]


def test_a_gate_holds_its_stream_alone() -> None:
    trial.begin("a test", 0)
    is_open = threading.Event()
    log: Log = []
    held, free = two_streams()
    streams.queue(held, None, is_open.is_set)
    streams.queue(held, note(log, "behind"))
    streams.queue(free, note(log, "beside"))
    streams.synchronize(free)
    assert log == ["beside"]
    waiting = threading.Thread(target=streams.synchronize, args=(held,))
    waiting.start()
    is_open.set()
    waiting.join(10)
    assert log == ["beside", "behind"]


def test_a_capture_is_run_by_its_launches() -> None:
    trial.begin("a test", 0)
    log: Log = []
    first, second = two_streams()
    fork, join = Event(), Event()
    captures.begin(first, streams.RELAXED)
    streams.queue(first, note(log, "a"))
    streams.record(fork, first)
    streams.wait(second, fork)
    streams.queue(second, note(log, "b"))
    streams.record(join, second)
    streams.wait(first, join)
    graph = captures.end(first)
    work.finish_all()
    assert log == []
    for stream in (first, second):
        streams.queue_graph(stream, graph)
    work.finish_all()
    assert log == ["a", "b"] * 2


def test_what_a_capture_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    # A test in which the driver fails may leave the thread another mode.
    monkeypatch.setattr(streams.thread, "mode", streams.GLOBAL)
    trial.begin("a test", 0)
    first, second = two_streams()
    blocking = streams.create(True)

    def refused(code: int, call: Callable[..., object], *args: object) -> None:
        captures.begin(first, streams.GLOBAL)
        with pytest.raises(Failed) as failure:
            call(*args)
        assert failure.value.code == code
        if streams.captures:
            streams.captures[0].is_valid = True
            captures.end(first)

    recorded = Event()
    streams.record(recorded, second)
    refused(CAPTURE_UNSUPPORTED, streams.synchronize, first)
    refused(CAPTURE_UNSUPPORTED, streams.check_safe)
    refused(CAPTURE_ISOLATION, streams.wait, first, recorded)
    captures.begin(blocking, streams.RELAXED)
    with pytest.raises(Failed) as failure:
        streams.queue(streams.legacy, None)
    assert failure.value.code == CAPTURE_IMPLICIT
    with pytest.raises(Failed, match="INVALIDATED"):
        captures.end(blocking)


def test_settings_follow_from_seed_and_name() -> None:
    def drawn(name: str, seed: int) -> list[tuple[object, ...]]:
        test = trial.Trial(name, seed)
        all_settings = [test.settings(test.next_launch(), 0, 8, 256) for _ in range(5)]
        return [tuple(getattr(s, name) for name, _ in s._fields_) for s in all_settings]

    assert drawn("a", 1) == drawn("a", 1)
    for (one, a), (other, b) in itertools.combinations([("a", 1), ("a", 2), ("b", 1)], 2):
        assert drawn(one, a) != drawn(other, b)
