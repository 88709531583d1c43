"""Recording of calls instead of running them, by graphs and `prepare`."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import Any, Protocol

from gpualgo._base import forks


class Recorder(Protocol):
    is_on_cpu: bool  # a graph whose launches compute on the CPU
    is_graph: bool  # the recorded calls run later
    is_rough: bool  # placeholders may replace arrays that would have to be computed first

    def call(self, request: Any) -> Any:
        """Record a call; return its result, which may not be computed yet."""


class _Thread(threading.local):
    def __init__(self) -> None:
        self.token = object()  # identifies this thread: thread ids are reused

    is_suspended = False  # calls run as usual
    held: list[Any] | None = None  # objects kept alive by the graph that captures this thread


class _Recording:
    """A recording under way, and the thread or coroutine whose calls it records."""

    __slots__ = ("_frame", "_token", "recorder")

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._token = _thread.token
        self._frame = _innermost_pausable(sys._getframe(1))

    def is_here(self) -> bool:
        """Return whether the current call comes from within the recording's block.

        A coroutine or generator that is suspended in the block is outside of it meanwhile.
        """
        if self._frame is None:
            return self._token is _thread.token
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame is not self._frame:
            frame = frame.f_back
        return frame is not None


def _innermost_pausable(frame: FrameType | None) -> FrameType | None:
    """Return the innermost running coroutine or generator, None if there is none.

    Generators of `contextlib` context managers are skipped: they run as part of their block.
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
_CONTEXTS = ("contextlib", __name__)  # their own generators and coroutines are skipped
active = 0  # recordings under way in all threads; every call checks this first
_thread = _Thread()
_lock = forks.Lock()
_recordings: tuple[_Recording, ...] = ()  # the latest last
_held: list[Any] = []  # kept for graphs of other libraries, whose lifetime is unknown


def current() -> Recorder | None:
    """Return the recorder of the current call, None if the call runs."""
    return None if _thread.is_suspended else _innermost(is_graph=False)


def _innermost(is_graph: bool) -> Recorder | None:
    """Return the innermost recorder (or graph) of the current call, even if it is suspended."""
    for each in reversed(_recordings):
        if (each.recorder.is_graph or not is_graph) and each.is_here():
            return each.recorder
    return None


def is_in_graph() -> bool:
    """Return whether the current call is in a graph's ``with`` block, even if suspended."""
    return bool(_recordings) and _innermost(is_graph=True) is not None


def refuse_in_graph_of_cpu(where: str) -> None:
    """Raise RuntimeError in a CPU graph, for functions that compute without recordable calls."""
    graph = _innermost(is_graph=True) if _recordings else None
    if graph is not None and graph.is_on_cpu:
        raise RuntimeError(
            f"{where}: gpualgo.numpy runs immediately on the CPU, which cannot be recorded; call "
            "gpualgo's own functions, or this one outside of the graph"
        )


@contextmanager
def recording(recorder: Recorder) -> Iterator[None]:
    """Record the calls that the current thread or task makes in a block."""
    global active, _recordings
    if recorder.is_graph and is_in_graph():
        raise RuntimeError("graph: another graph is being recorded; leave its `with` block first")
    entry = _Recording(recorder)
    try:  # an interrupt may come at any place
        with _lock:
            _recordings = (*_recordings, entry)
            active = len(_recordings)
        with _temporarily(is_suspended=False):
            yield
    finally:
        end(recorder)


def end(recorder: Recorder) -> None:
    """End the recording of a recorder, if it is under way."""
    global active, _recordings
    with _lock:
        _recordings = tuple(each for each in _recordings if each.recorder is not recorder)
        active = len(_recordings)


@contextmanager
def _temporarily(**values: Any) -> Iterator[None]:
    """Set attributes of this thread's state for a block."""
    before = {name: getattr(_thread, name) for name in values}
    vars(_thread).update(values)
    try:
        yield
    finally:
        vars(_thread).update(before)


def suspended() -> AbstractContextManager[None]:
    """Let this thread's calls run instead of being recorded."""
    return _temporarily(is_suspended=True)


def capturing(held: list[Any]) -> AbstractContextManager[None]:
    """Let calls run while a CUDA graph captures them; `held` collects the objects to keep alive."""
    return _temporarily(is_suspended=True, held=held)


def is_capturing() -> bool:
    """Return whether a graph of this package captures this thread's calls."""
    return _thread.held is not None


def keep_alive(thing: Any) -> None:
    """Keep an object that a captured kernel reads: as long as the graph, or forever if it is not
    a graph of this package.
    """
    (_held if _thread.held is None else _thread.held).append(thing)
