"""stream= -> the integer handle of a CUDA stream, and what it has to wait for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gpualgo._arrays.view import View
from gpualgo._driver import lifetime
from gpualgo._driver.streams import LAST_DEFAULT, check_device, handle_of, wait_for


def handle_for(
    stream: Any, view: View, where: str, *others: View | None, outs: tuple[View | None, ...] = ()
) -> int | None:
    """Return the handle of stream= for device arrays, None if it was not given.

    What the work runs on first waits for the producer streams of arrays known by protocol.
    """
    from gpualgo._driver import driver

    handle = None
    if stream is not None:
        handle = stream if type(stream) is int and stream >= 0 else handle_of(stream, where)
        if handle > LAST_DEFAULT and not driver.is_simple:
            check_device(handle, view.device, where)
    if view.library.has_producers:
        if handle is not None and type(stream) is not int:
            handle = _Handle(handle)
            handle.stream = stream
        _join(handle, view, where, others, outs)
    return handle


class _Handle(int):
    """A handle that holds its stream: what is made on it is freed on it."""

    stream: Any


def _join(
    handle: int | None, view: View, where: str, others: Iterable[View | None],
    outs: Iterable[View | None],
) -> None:  # fmt: skip
    own = view.library.producer_stream
    written = {out.library.producer_stream for out in outs if out is not None}
    if handle is None and written - {own}:
        raise ValueError(
            f"{where}: out is used on stream {max(written - {own}):#x} and the input on "
            f"{own:#x}; pass stream= to say where to run"
        )
    read = {other.library.producer_stream for other in others if other is not None}
    for earlier in {own} | read | written:
        wait_for(own if handle is None else handle, earlier, view.device)


def keep(handle: int, view: View, *others: Any, outs: tuple[View | None, ...] = ()) -> None:
    """See to it that arrays (themselves, or their views) outlive what is queued on the stream.

    What is done next with outputs on their producer streams comes after it.
    """
    from gpualgo._driver import driver
    from gpualgo._driver.lifetime import Memory

    for out in outs:
        if (
            out is not None
            and out.library.producer_stream != handle
            and not driver.is_capturing(handle)
        ):
            wait_for(out.library.producer_stream, handle, out.device)
    foreign = []
    for x in (view, *others):
        array = x.owner if isinstance(x, View) else x
        owner = getattr(array, "owner", None)
        if type(owner) is Memory:
            owner.use_on(int(handle))
        elif isinstance(x, View) and x.library.producer_stream != handle:
            foreign.append(array)
    if foreign:
        lifetime.keep_until_done(int(handle), view.device, *foreign)
