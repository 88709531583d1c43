"""What takes calls down instead of running them: graphs and `prepare`; and what graphs hold."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol

from gpualgo._base import forks


class Recorder(Protocol):
    """What takes down the calls of a block."""

    is_on_cpu: bool  # a graph whose launches compute on the CPU
    is_graph: bool  # calls are recorded, to be run later
    is_rough: bool  # others may stand for arrays that would have to be computed before

    def call(self, request: Any) -> Any:
        """Take down a call; return its result, which need not be there yet."""


class _Thread(threading.local):
    def __init__(self) -> None:
        self.token = object()  # of this thread alone: numbers of threads are used again

    is_suspended = False  # calls run as usual
    held: list[Any] | None = None  # by the graph whose call is being taken down


class _Recording:
    """A recording under way, and whose calls it takes down."""

    __slots__ = ("_frame", "_token", "recorder")

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._token = _thread.token
        self._frame = _pausable(sys._getframe(1))

    def is_here(self) -> bool:
        """Return whether this call comes from within the recording's block.

        A coroutine or generator that is paused in its block has left it for that time.
        """
        if self._frame is None:
            return self._token is _thread.token
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame is not self._frame:
            frame = frame.f_back
        return frame is not None


def _pausable(frame: FrameType | None) -> FrameType | None:
    """Return the innermost coroutine or generator that runs and may be paused; None: there is none.

    A generator that `contextlib` makes a context manager of stands for the block that enters it.
    """
    while frame is not None:
        flags, caller = frame.f_code.co_flags, frame.f_back
        is_own = frame.f_globals.get("__name__") in _CONTEXTS
        is_manager = caller is not None and caller.f_globals.get("__name__") == "contextlib"
        if flags & _PAUSABLE and not (is_own or is_manager):
            return frame
        frame = caller
    return None


_PAUSABLE = 0x20 | 0x80 | 0x200  # inspect's CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR
_CONTEXTS = ("contextlib", __name__)  # whose own generators and coroutines stand for their caller
active = 0  # recordings under way in all threads: every call looks here first
_thread = _Thread()
_lock = threading.Lock()
_recordings: tuple[_Recording, ...] = ()  # the latest last
_held: list[Any] = []  # by graphs that others record, which never tell when they die


@forks.in_child
def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()


def current() -> Recorder | None:
    """Return what takes down this call; None: it runs."""
    return None if _thread.is_suspended else _innermost(is_graph=False)


def _innermost(is_graph: bool) -> Recorder | None:
    """Return what records here, whether or not it is suspended: the graph alone, if asked for."""
    for each in reversed(_recordings):
        if (each.recorder.is_graph or not is_graph) and each.is_here():
            return each.recorder
    return None


def is_in_graph() -> bool:
    """Return whether this call is in a graph's ``with`` block, whatever takes it down."""
    return bool(_recordings) and _innermost(is_graph=True) is not None


def refuse_in_graph_of_cpu(where: str) -> None:
    """Raise RuntimeError for what computes at once, and not by calls that a CPU's graph records."""
    graph = _innermost(is_graph=True) if _recordings else None
    if graph is not None and graph.is_on_cpu:
        raise RuntimeError(
            f"{where}: gpualgo.numpy computes at once on the CPU, which cannot be recorded; call "
            "gpualgo's own functions, or this one outside of the graph"
        )


@contextmanager
def recording(recorder: Recorder) -> Iterator[None]:
    """Let a recorder take down the calls of a block: of the thread or task that enters it."""
    global active, _recordings
    if recorder.is_graph and is_in_graph():
        raise RuntimeError("graph: another graph is being recorded; leave its `with` block first")
    here = _Recording(recorder)
    with _lock:
        active += 1
        _recordings = (*_recordings, here)
    before, _thread.is_suspended = _thread.is_suspended, False
    try:
        yield
    finally:
        _thread.is_suspended = before
        with _lock:
            _recordings = tuple(each for each in _recordings if each is not here)
            active -= 1


@contextmanager
def suspended() -> Iterator[None]:
    """Let calls run as usual, whatever takes down this thread's."""
    before, _thread.is_suspended = _thread.is_suspended, True
    try:
        yield
    finally:
        _thread.is_suspended = before


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
