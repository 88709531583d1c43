"""Chooses the stream of a call and orders it with the streams of its arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gpualgo._arrays.view import View
from gpualgo._driver import driver
from gpualgo._driver import streams as lifetime
from gpualgo._driver.streams import LAST_DEFAULT, Memory, check_device, handle_of, wait_for


def handle_for(stream: Any, first: View, where: str, streams: Iterable[int] | None = None) -> int:
    """Return the handle of the stream on which a call on device arrays runs.

    It is stream=, else the stream of the first array's library. It waits for `streams` (see
    `streams_of`), by default for that of the first array. Raises RuntimeError if one of them is
    being captured and the call's stream is not: waiting would add the call's stream to that
    capture.
    """
    handle: int
    if stream is None:
        handle = first.library.stream(first.device)
    else:
        handle = stream if type(stream) is int and stream >= 0 else handle_of(stream, where)
        if handle > LAST_DEFAULT and not driver.is_simple:
            check_device(handle, first.device, where)
        if first.library.has_producers and type(stream) is not int:
            handle = _Handle(handle)
            handle.stream = stream
    wait_for_streams(
        handle, streams_of((first,)) if streams is None else streams, first.device, where
    )
    return handle


def wait_for_streams(handle: int, streams: Iterable[int], device: int, where: str) -> None:
    for earlier in streams:
        if driver.is_capturing(earlier) and not driver.is_capturing(handle):
            raise RuntimeError(
                f"{where}: the stream of an array's library is being captured, and the call runs "
                "on another one; pass stream=, the captured one, or end the capture first"
            )
        wait_for(handle, earlier, device)


class _Handle(int):
    """A handle that keeps its stream alive: memory allocated on it is also freed on it."""

    stream: Any


def streams_of(views: Sequence[View]) -> set[int]:
    """Return the streams that a call synchronizes with: those of its arrays' libraries.

    Empty if all arrays are of one library with a current stream: there the caller controls order.
    """
    libraries, first = {view.library for view in views}, views[0]
    if len(libraries) == 1 and not first.library.has_producers:
        return set()
    return {library.stream(first.device) for library in libraries}


def keep(handle: int, streams: Iterable[int], views: Sequence[View]) -> None:
    """Keep arrays alive until the stream's work has run, and let `streams` wait for it.

    So later work on an array's own stream sees the results and does not overwrite inputs too early.
    """
    device = views[0].device
    if not driver.is_capturing(handle):
        for stream in streams:
            wait_for(stream, handle, device)
    foreign = []
    for view in views:
        array = view.owner
        owner = getattr(array, "owner", None)
        if type(owner) is Memory:
            owner.use_on(int(handle))
        elif array is not None and view.library.stream(device) != handle:
            foreign.append(array)
    if foreign:
        lifetime.keep_until_done(int(handle), device, *foreign)
