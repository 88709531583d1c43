"""What takes calls down instead of running them: graphs and `prepare`; and what graphs hold."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from gpualgo._base import forks


class Recorder(Protocol):
    """What takes down the calls of a thread."""

    is_on_cpu: bool  # a graph whose launches compute on the CPU
    is_graph: bool  # calls are recorded, to be run later
    is_rough: bool  # others may stand for arrays that would have to be computed before

    def call(self, request: Any) -> Any:
        """Take down a call; return its result, which need not be there yet."""


class _Thread(threading.local):
    recorder: Recorder | None = None  # takes down the thread's calls
    graph: Recorder | None = None  # whose `with` block the thread is in
    held: list[Any] | None = None  # by the graph whose call is being taken down


active = 0  # recordings under way in all threads: every call looks here first
_thread = _Thread()
_lock = threading.Lock()
_held: list[Any] = []  # by graphs that others record, which never tell when they die


@forks.in_child
def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()


def current() -> Recorder | None:
    """Return what takes down this thread's calls."""
    return _thread.recorder


def is_in_graph() -> bool:
    """Return whether this thread is in a graph's ``with`` block, whatever takes its calls down."""
    return _thread.graph is not None


def refuse_in_graph_of_cpu(where: str) -> None:
    """Raise RuntimeError for what computes at once, and not by calls that a CPU's graph records."""
    if _thread.graph is not None and _thread.graph.is_on_cpu:
        raise RuntimeError(
            f"{where}: gpualgo.numpy computes at once on the CPU, which cannot be recorded; call "
            "gpualgo's own functions, or this one outside of the graph"
        )


@contextmanager
def recording(recorder: Recorder) -> Iterator[None]:
    """Let a recorder take down this thread's calls."""
    global active
    before = _thread.recorder, _thread.graph
    if recorder.is_graph and before[1] is not None:
        raise RuntimeError("graph: another graph is being recorded; leave its `with` block first")
    with _lock:
        active += 1
    _thread.recorder = recorder
    if recorder.is_graph:
        _thread.graph = recorder
    try:
        yield
    finally:
        _thread.recorder, _thread.graph = before
        with _lock:
            active -= 1


@contextmanager
def suspended() -> Iterator[None]:
    """Let calls run as usual, whatever takes down this thread's."""
    before, _thread.recorder = _thread.recorder, None
    try:
        yield
    finally:
        _thread.recorder = before


@contextmanager
def capturing(held: list[Any]) -> Iterator[None]:
    """Let calls run as usual while a graph captures them; what they need to keep goes to held."""
    before, _thread.held = _thread.held, held
    try:
        with suspended():
            yield
    finally:
        _thread.held = before


def is_capturing() -> bool:
    """Return whether a graph of ours captures what this thread calls."""
    return _thread.held is not None


def keep_alive(thing: Any) -> None:
    """Keep what a captured kernel reads: as long as our graph lives, for good in another's."""
    (_held if _thread.held is None else _thread.held).append(thing)
