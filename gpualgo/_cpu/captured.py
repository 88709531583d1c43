"""Memory from which compiled operators on the CPU read captured arrays and numbers.

The code of an operator contains the address of one block of words, so one compilation serves all
captured values. A call writes the addresses of its arrays and its numbers into the block. Calls of
the same code with other values wait until it has finished.
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
from gpualgo._operators.captured import NUMBER_WORDS, Key
from gpualgo._operators.operator import Operator

NO_CAPTURES = contextlib.nullcontext()


class _State:
    """Captured words of one operator, at a fixed address: first its arrays, then its numbers."""

    def __init__(self) -> None:
        self.words = np.zeros(captured.STATE_WORDS + NUMBER_WORDS, np.int64)
        self._bytes = memoryview(self.words.data).cast("B")
        self.renew()

    def renew(self) -> None:
        """Reset the lock and the users: a forked child lacks the parent's threads."""
        self._lock = threading.RLock()  # reentrant: a finalizer may run while it is held
        self._changed = threading.Condition(self._lock)
        self._arrays = self._numbers = b""
        self._users: set[object] = set()

    def take(self, user: object, arrays: bytes, numbers: bytes) -> None:
        """Write the words once no running call uses others; equal words are shared."""
        with self._lock:
            while self._arrays != arrays or self._numbers != numbers:
                if self._users:
                    self._changed.wait()
                    continue
                self._arrays, self._numbers = arrays, numbers
                self._bytes[: len(arrays)] = arrays
                self._bytes[_NUMBERS_OFFSET : _NUMBERS_OFFSET + len(numbers)] = numbers
            self._users.add(user)

    def leave(self, user: object) -> None:
        """End a call; has no effect if it has ended or never began.

        A signal handler may raise inside `take` and `leave`. The caller then calls `leave` again;
        otherwise the next call with other words would wait forever.
        """
        with self._lock:
            self._users.discard(user)
            if not self._users:
                self._changed.notify_all()


_NUMBERS_OFFSET = 8 * captured.STATE_WORDS


# Weak keys: whoever runs an operator's code holds the key.
_states: weakref.WeakKeyDictionary[Key, _State] = weakref.WeakKeyDictionary()
_lock = threading.RLock()  # reentrant: a finalizer may run while it is held


def state_of(key: Key) -> _State:
    with _lock:
        state = _states.get(key)
        if state is None:
            state = _states[key] = _State()
        return state


def captured_words(key: Key) -> np.ndarray[Any, Any]:
    """Return the words whose address an operator's code contains; the code must keep them alive."""
    return state_of(key).words


def captures_bound(op: Operator) -> AbstractContextManager[None]:
    """Return a context in which compiled code reads the arrays and numbers that op captures."""
    views, numbers = op.arrays, op.words
    return _Bound(op.key, views, numbers) if views or numbers else NO_CAPTURES


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
