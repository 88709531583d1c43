"""Where compiled operators on the CPU find the arrays and numbers that they capture.

Code has the address of a block of words in it, so that one piece of code serves all of them. A call
writes where its arrays lie and what its numbers are, and calls of the same code with others wait
until it has run.
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
from gpualgo._operators.numbers import NUMBER_WORDS
from gpualgo._operators.operator import Operator

_NOTHING = contextlib.nullcontext()


class _State:
    """One operator's words, at an address that never changes: of its arrays, then its numbers."""

    def __init__(self) -> None:
        self.words = np.zeros(captured.STATE_WORDS + NUMBER_WORDS, np.int64)
        self._bytes = memoryview(self.words.data).cast("B")
        self.renew()

    def renew(self) -> None:
        """Forget who uses the words: threads that a forked child does not have."""
        self._lock = threading.RLock()  # a finalizer may come by while it is held
        self._changed = threading.Condition(self._lock)
        self._arrays = self._numbers = b""
        self._users: set[object] = set()

    def take(self, user: object, arrays: bytes, numbers: bytes) -> None:
        """Write words once no call reads others; calls that read the same run side by side."""
        with self._lock:
            while self._arrays != arrays or self._numbers != numbers:
                if self._users:
                    self._changed.wait()
                    continue
                self._arrays, self._numbers = arrays, numbers
                self._bytes[: len(arrays)] = arrays
                self._bytes[_AT_NUMBERS : _AT_NUMBERS + len(numbers)] = numbers
            self._users.add(user)

    def leave(self, user: object) -> None:
        """End a call; once more, or without a take, does no harm.

        A signal's handler may raise on the way in and out of both: callers that do not know how far
        they came leave again, or the next call with other words would wait for ever.
        """
        with self._lock:
            self._users.discard(user)
            if not self._users:
                self._changed.notify_all()


_AT_NUMBERS = 8 * captured.STATE_WORDS


# Code is found by its key, and whoever runs it holds the key.
_states: weakref.WeakKeyDictionary[Key, _State] = weakref.WeakKeyDictionary()
_lock = threading.RLock()  # a finalizer may come by while it is held


def state_of(key: Key) -> _State:
    """Return the words that an operator's code reads."""
    with _lock:
        found = _states.get(key)
        if found is None:
            found = _states[key] = _State()
        return found


def words_of(key: Key) -> np.ndarray[Any, Any]:
    """Return the words of an operator's code, which has their address and has to hold them."""
    return state_of(key).words


def bound(op: Operator) -> AbstractContextManager[None]:
    """Let compiled code read the arrays and numbers that op captures, within a ``with`` block."""
    views, numbers = op.arrays, op.words
    return _Bound(op.key, views, numbers) if views or numbers else _NOTHING


class _Bound(AbstractContextManager[None]):
    __slots__ = ("_state", "_words")

    def __init__(self, key: Key, views: tuple[View, ...], numbers: bytes) -> None:
        captured.check_on_cpu(views)
        self._state = state_of(key)
        self._words = captured.pack(views) if views else b"", numbers

    def __enter__(self) -> None:
        try:
            self._state.take(self, *self._words)
        except BaseException:
            self._state.leave(self)
            raise

    def __exit__(self, *exc: object) -> None:
        try:
            self._state.leave(self)
        except BaseException:
            self._state.leave(self)
            raise


@forks.in_child
def _after_fork() -> None:
    """Replace locks that a thread of the parent may have held."""
    global _lock
    _lock = threading.RLock()
    for state in list(_states.values()):
        state.renew()
