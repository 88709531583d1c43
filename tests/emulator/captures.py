"""Captures: what a stream gets is taken down as a graph, and not run."""

from __future__ import annotations

from emulator.codes import (
    CAPTURE_IMPLICIT,
    CAPTURE_INVALIDATED,
    CAPTURE_UNSUPPORTED,
    INVALID_VALUE,
    Failed,
)  # fmt: skip
from emulator.graphs import Graph
from emulator.machine import lock
from emulator.streams import (
    GLOBAL,
    RELAXED,
    THREAD_LOCAL,
    Capture,
    Stream,
    captures,
    is_legacy,
    known,
    need_valid,
)  # fmt: skip

_MODES = {
    "CU_STREAM_CAPTURE_MODE_GLOBAL": GLOBAL,
    "CU_STREAM_CAPTURE_MODE_THREAD_LOCAL": THREAD_LOCAL,
    "CU_STREAM_CAPTURE_MODE_RELAXED": RELAXED,
}


def begin(stream: Stream, mode: str | int) -> None:
    """Take down what the stream gets from here on."""
    with lock:
        if is_legacy(stream) or stream.capture is not None:
            raise Failed(CAPTURE_UNSUPPORTED if is_legacy(stream) else INVALID_VALUE)
        number = _MODES[mode] if isinstance(mode, str) else int(mode)
        stream.capture = Capture(stream, number)
        stream.leaves = []
        captures.append(stream.capture)


def end(stream: Stream) -> Graph:
    """Return what was taken down."""
    with lock:
        capture = stream.capture
        if capture is None:
            raise Failed(INVALID_VALUE)
        captures.remove(capture)
        leaves = list(stream.leaves)
        for each in known():
            if each.capture is capture:
                each.capture, each.leaves = None, []
        need_valid(capture)
        if not capture.graph.is_behind(leaves):
            raise Failed(CAPTURE_INVALIDATED)  # a stream that joined was not joined again
        return capture.graph


def status(stream: Stream) -> int:
    """Return 0 for a stream whose work runs, 1 for one that is captured, 2 if that is spoilt."""
    if stream.capture is not None:
        return 1 if stream.capture.is_valid else 2
    if is_legacy(stream) and any(each.origin.is_blocking for each in captures):
        raise Failed(CAPTURE_IMPLICIT)
    return 0
