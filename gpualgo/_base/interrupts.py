"""Interrupts (Ctrl-C) during a compilation wait for its end.

numba keeps generators of what it has yet to register. An exception within one ends it, and no later
function of the process can be compiled.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def delayed() -> Iterator[None]:
    """Handle SIGINT after the block; a second one at once, for blocks that take too long."""
    handler = signal.getsignal(signal.SIGINT)
    # Only the main thread runs signal handlers, and only it may set them.
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    caught: list[tuple[int, Any]] = []

    def note(number: int, frame: Any) -> None:
        caught.append((number, frame))
        if len(caught) > 1:
            handler(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is note:  # the block may have set another one
            signal.signal(signal.SIGINT, handler)
        if len(caught) == 1:
            handler(*caught[0])
