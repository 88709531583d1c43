"""Streams and events: which work comes before which; captures.py takes work down instead.

The order is the driver's: work of a stream follows that stream's earlier work; the legacy default
stream and the blocking ones wait for each other; an event stands for what its stream had queued.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

from emulator import work
from emulator.codes import (
    CAPTURE_IMPLICIT,
    CAPTURE_INVALIDATED,
    CAPTURE_ISOLATION,
    CAPTURE_UNSUPPORTED,
    INVALID_CONTEXT,
    INVALID_HANDLE,
    Failed,
)  # fmt: skip
from emulator.graphs import Graph, Node
from emulator.machine import lock
from emulator.work import Work

GLOBAL, THREAD_LOCAL, RELAXED = range(3)  # modes of a capture
CONTEXT = 0xC0  # the primary context of the first GPU; those of others follow
Run = Callable[[], None]


class Capture:
    """Work of one stream, and of those that join it, that is taken down and not run."""

    def __init__(self, origin: Stream, mode: int) -> None:
        self.graph = Graph()
        self.origin, self.mode, self.thread = origin, mode, threading.get_ident()
        self.is_valid = True


class Stream:
    """A queue; `last` is what it did last, `leaf` the same within a capture."""

    def __init__(self, handle: int, is_blocking: bool) -> None:
        self.handle, self.is_blocking = handle, is_blocking
        self.context = thread.context or CONTEXT
        self.identity = next(_identities)
        self.last: Work | None = None
        self.capture: Capture | None = None
        self.leaves: list[Node] = []


class Event:
    """What a stream had queued when the event was recorded."""

    def __init__(self) -> None:
        self.work: Work | None = None
        self.capture: Capture | None = None
        self.leaves: list[Node] = []


class Thread(threading.local):
    """What CUDA keeps for each thread of the host."""

    context = 0
    mode = GLOBAL
    default: Stream | None = None


thread = Thread()
_identities = itertools.count(1)
legacy = Stream(0, True)
_legacies = {CONTEXT: legacy}  # each context has one
_streams: dict[int, Stream] = {}
_free_handles: list[int] = []
_next_handle = itertools.count(0x51000, 0x10)
captures: list[Capture] = []


def need_context() -> None:
    """Fail in a thread that has no context."""
    if not thread.context:
        raise Failed(INVALID_CONTEXT)


def device() -> int:
    """Return the GPU of the thread's context; the first one without any."""
    return (thread.context or CONTEXT) - CONTEXT


def find(handle: int) -> Stream:
    """Return the stream of a handle."""
    handle = int(handle)
    if handle in (0, 1):
        return _legacy_of(thread.context or CONTEXT)
    if handle == 2:
        if thread.default is None:
            thread.default = Stream(2, True)
            _defaults.append(thread.default)
        return thread.default
    if handle not in _streams:
        raise Failed(INVALID_HANDLE)
    return _streams[handle]


def _legacy_of(context: int) -> Stream:
    """Return the legacy stream of a context."""
    if context not in _legacies:
        _legacies[context] = Stream(0, True)
        _legacies[context].context = context
    return _legacies[context]


def is_legacy(stream: Stream) -> bool:
    return stream in _legacies.values()


def known() -> list[Stream]:
    """Return all streams but the legacy ones."""
    return [*_streams.values(), *_defaults]


def renew() -> None:
    """Let streams pass for new ones: what is kept for one may be as a failed kernel left it."""
    with lock:
        for each in (*_legacies.values(), *known()):
            each.identity = next(_identities)


_defaults: list[Stream] = []  # of threads


def create(is_blocking: bool) -> Stream:
    """Return a new stream; its handle may have been that of one that is no more."""
    with lock:
        handle = _free_handles.pop() if _free_handles else next(_next_handle)
        made = _streams[handle] = Stream(handle, is_blocking)
        return made


def destroy(handle: int) -> None:
    """Forget a stream; what it has queued still runs."""
    with lock:
        found = find(handle)
        if found.capture is not None:
            found.capture.is_valid = False
        del _streams[found.handle]
        _free_handles.append(found.handle)
        if found.is_blocking and found.last is not None and not found.last.is_done:
            _ended.append(found)


_ended: list[Stream] = []  # blocking ones with work left


def _blocking() -> list[Stream]:
    _ended[:] = [each for each in _ended if each.last is not None and not each.last.is_done]
    return [each for each in (*known(), *_ended) if each.is_blocking]


def queue(stream: Stream, run: Run | None, is_open: Callable[[], bool] | None = None) -> None:
    """Queue work on a stream, or take it down."""
    with lock:
        capture = stream.capture
        if capture is not None:
            need_valid(capture)
            stream.leaves = [capture.graph.add(run, stream.leaves)]
            return
        _leave_captures_alone(stream)
        _enter(stream, work.Work(run, _before(stream), is_open))


def _enter(stream: Stream, made: Work) -> None:
    stream.last = made  # before anything may run, as what runs may queue more
    work.enter(made)


def queue_graph(stream: Stream, graph: Graph) -> None:
    """Queue all work of a graph, or take it down as a part of another."""
    with lock:
        if stream.capture is not None:
            need_valid(stream.capture)
            stream.leaves = stream.capture.graph.include(graph, stream.leaves)
            return
        queue(stream, None)
        start = stream.last
        end = graph.queue(start)
        # Some of it may have run already, and let go of memory, which the stream then frees.
        between, stream.last = stream.last, end
        if between is not start:
            _enter(stream, work.Work(None, [end, between]))


def _leave_captures_alone(stream: Stream) -> None:
    """Fail where the legacy default stream would wait for work that is taken down."""
    if is_legacy(stream) and any(each.origin.is_blocking for each in captures):
        for each in captures:
            if each.origin.is_blocking:
                each.is_valid = False
        raise Failed(CAPTURE_IMPLICIT)


def check_safe() -> None:
    """Fail, and spoil captures, where a call could wait for what is taken down."""
    if thread.mode == RELAXED:
        return
    me = threading.get_ident()
    spoilt = [
        each for each in captures
        if (each.mode == GLOBAL and thread.mode == GLOBAL)
        or (each.mode != RELAXED and each.thread == me)
    ]  # fmt: skip
    for each in spoilt:
        each.is_valid = False
    if spoilt:
        raise Failed(CAPTURE_UNSUPPORTED)


def need_valid(capture: Capture) -> None:
    """Fail where a capture has been spoilt."""
    if not capture.is_valid:
        raise Failed(CAPTURE_INVALIDATED)


def record(event: Event, stream: Stream) -> None:
    """Let an event stand for what a stream has queued so far."""
    with lock:
        if stream.capture is not None:
            event.capture, event.leaves, event.work = stream.capture, list(stream.leaves), None
            return
        queue(stream, None)
        event.capture, event.leaves, event.work = None, [], stream.last


def wait(stream: Stream, event: Event) -> None:
    """Let a stream wait for an event."""
    with lock:
        capture = event.capture
        if capture is not None:
            need_valid(capture)
            if stream.capture not in (None, capture):
                raise Failed(CAPTURE_ISOLATION)
            if stream.capture is None:
                stream.capture, stream.leaves = capture, []
            stream.leaves = [*stream.leaves, *event.leaves]
            return
        if stream.capture is not None:
            if event.work is not None:
                raise Failed(CAPTURE_ISOLATION)
            return
        if event.work is not None and not event.work.is_done:
            _leave_captures_alone(stream)
            _enter(stream, work.Work(None, _before(stream, event.work)))


def synchronize(stream: Stream) -> None:
    """Return when a stream has run what it has queued so far."""
    if stream.capture is not None:
        stream.capture.is_valid = False
        raise Failed(CAPTURE_UNSUPPORTED)
    check_safe()
    if is_legacy(stream):
        with lock:
            queue(stream, None)  # it waits for blocking streams, too
    work.finish(stream.last)


def is_done(stream: Stream) -> bool:
    """Return whether a stream has run all that it has queued; asking may get it on."""
    if stream.capture is not None:
        stream.capture.is_valid = False
        raise Failed(CAPTURE_UNSUPPORTED)
    answers = [work.ask(each) for each in _before(stream)]  # each gets some work on
    return all(answers)


def queue_aside(stream: Stream, run: Run) -> None:
    """Queue what is no call of the driver's: it spoils no capture and is taken down in none."""
    with lock:
        made = work.Work(run, _before(stream))
        if stream.capture is None:
            _enter(stream, made)
        else:
            work.enter(made)


def _before(stream: Stream, *others: Work | None) -> list[Work | None]:
    """Return what work that a stream gets now has to wait for."""
    if is_legacy(stream):
        ended = (each.last for each in _blocking() if each.context == stream.context)
        return [stream.last, *ended, *others]
    first = [_legacy_of(stream.context).last] if stream.is_blocking else []
    return [stream.last, *first, *others]
