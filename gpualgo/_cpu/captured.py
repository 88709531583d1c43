"""Where compiled operators on the CPU find the arrays that they capture.

Code has the address of a block of words in it, so that one piece of code serves all arrays. A call
writes where its arrays lie, and other calls of the same code with arrays wait until it has run.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from gpualgo._arrays.view import View
from gpualgo._base import forks
from gpualgo._operators import captured
from gpualgo._operators.content import Key
from gpualgo._operators.operator import Operator

_NOTHING = contextlib.nullcontext()


class _State:
    """One operator's words, at an address that never changes."""

    def __init__(self) -> None:
        self.words = np.zeros(captured.STATE_WORDS, np.int64)
        self.lock = threading.RLock()  # a backend may call another one with the same operator


# Code is found by its key, and whoever runs it holds the key.
_states: weakref.WeakKeyDictionary[Key, _State] = weakref.WeakKeyDictionary()
_lock = threading.RLock()  # a finalizer may come by while it is held


def _state_of(key: Key) -> _State:
    with _lock:
        found = _states.get(key)
        if found is None:
            found = _states[key] = _State()
        return found


def words_of(key: Key) -> np.ndarray[Any, Any]:
    """Return the words of an operator's code, which has their address and has to hold them."""
    return _state_of(key).words


def bound(op: Operator) -> AbstractContextManager[None]:
    """Let compiled code read the arrays that op captures, within a ``with`` block."""
    views = op.arrays
    return _Bound(op.key, views) if views else _NOTHING


class _Bound(AbstractContextManager[None]):
    __slots__ = ("_state", "_words")

    def __init__(self, key: Key, views: tuple[View, ...]) -> None:
        captured.check_on_cpu(views)
        self._state, self._words = _state_of(key), np.frombuffer(captured.pack(views), np.int64)

    def __enter__(self) -> None:
        self._state.lock.acquire()
        self._state.words[: len(self._words)] = self._words

    def __exit__(self, *exc: object) -> None:
        self._state.lock.release()


@forks.in_child
def _after_fork() -> None:
    """Replace locks that a thread of the parent may have held."""
    global _lock
    _lock = threading.RLock()
    for state in list(_states.values()):
        state.lock = threading.RLock()
