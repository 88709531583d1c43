"""Where compiled operators on the CPU find the arrays that they capture.

Code has the address of a block of words in it, so that one piece of code serves all arrays. A call
writes where its arrays lie, and other calls of the same code with arrays wait until it has run.
"""

from __future__ import annotations

import contextlib
import os
import threading
from contextlib import AbstractContextManager

import numpy as np

from gpualgo._arrays.view import View
from gpualgo._operators import captured
from gpualgo._operators.operator import Operator

_NOTHING = contextlib.nullcontext()


class _State:
    """One operator's words, at an address that never changes."""

    def __init__(self) -> None:
        self.words = np.zeros(captured.STATE_WORDS, np.int64)
        self.lock = threading.RLock()  # a backend may call another one with the same operator


_states: dict[int, _State] = {}  # never given up: compiled code has the addresses


def _state_of(key: int) -> _State:
    return _states.get(key) or _states.setdefault(key, _State())


def address_of(key: int) -> int:
    """Return the address of the words of an operator's code."""
    return int(_state_of(key).words.ctypes.data)


def bound(op: Operator) -> AbstractContextManager[None]:
    """Let compiled code read the arrays that op captures, within a ``with`` block."""
    views = op.arrays
    return _Bound(op.key, views) if views else _NOTHING


class _Bound(AbstractContextManager[None]):
    __slots__ = ("_state", "_words")

    def __init__(self, key: int, views: tuple[View, ...]) -> None:
        captured.check_on_cpu(views)
        self._state, self._words = _state_of(key), np.frombuffer(captured.pack(views), np.int64)

    def __enter__(self) -> None:
        self._state.lock.acquire()
        self._state.words[: len(self._words)] = self._words

    def __exit__(self, *exc: object) -> None:
        self._state.lock.release()


def _after_fork() -> None:
    """Replace locks that a thread of the parent may have held."""
    for state in _states.values():
        state.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
