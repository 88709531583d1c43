"""What is recorded into graphs: the hook of the public functions, and what graphs hold."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol


class Recorder(Protocol):
    """What takes down calls instead of running them: a graph, or who wants to know what they do."""

    is_graph: bool  # calls run later, as often as the graph is launched

    def call(self, request: Any) -> Any:
        """Take down a call; return its result, which need not be there yet."""


class _Thread(threading.local):
    recorder: Recorder | None = None  # takes down the thread's calls
    held: list[Any] | None = None  # by the graph whose call is being taken down


active = 0  # recordings under way in all threads: public functions look here first
_thread = _Thread()
_lock = threading.Lock()
_held: list[Any] = []  # by graphs that others record, which never tell when they die


def current() -> Recorder | None:
    """Return what takes down this thread's calls."""
    return _thread.recorder


@contextmanager
def recording(recorder: Recorder) -> Iterator[None]:
    """Let a recorder take down this thread's calls."""
    global active
    if _thread.recorder is not None:
        raise RuntimeError("graph: another graph is being recorded; leave its `with` block first")
    with _lock:
        active += 1
    _thread.recorder = recorder
    try:
        yield
    finally:
        _thread.recorder = None
        with _lock:
            active -= 1


@contextmanager
def suspended() -> Iterator[None]:
    """Let this thread's calls run though a recorder takes down others."""
    before, _thread.recorder = _thread.recorder, None
    try:
        yield
    finally:
        _thread.recorder = before


@contextmanager
def taking_down(held: list[Any]) -> Iterator[None]:
    """Let calls run as usual while a graph records them; what they need to keep goes to held."""
    before = _thread.recorder, _thread.held
    _thread.recorder, _thread.held = None, held
    try:
        yield
    finally:
        _thread.recorder, _thread.held = before


def is_taking_down() -> bool:
    """Return whether a graph of ours records what this thread calls."""
    return _thread.held is not None


def hold(thing: Any) -> None:
    """Keep what a captured kernel reads: as long as our graph lives, for good in another's."""
    (_held if _thread.held is None else _thread.held).append(thing)
