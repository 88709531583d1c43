"""Memory on the CPU: aligned blocks, pooled scratch memory, and captured values of operators."""

from __future__ import annotations

import contextlib
import ctypes
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

# --- Memory from which compiled operators on the CPU read captured arrays and numbers.
#
# The code of an operator contains the address of one block of words, so one compilation serves all
# captured values. A call writes the addresses of its arrays and its numbers into the block. Calls
# of the same code with other values wait until it has finished.

NO_CAPTURES = contextlib.nullcontext()


class _State:
    """Captured words of one operator, at a fixed address: first its arrays, then its numbers."""

    def __init__(self) -> None:
        self.words = np.zeros(captured.STATE_WORDS + NUMBER_WORDS, np.int64)
        self._bytes = memoryview(self.words.data).cast("B")
        self.renew()

    def renew(self) -> None:
        """Reset the lock and the users: a forked child lacks the parent's threads."""
        self._lock = forks.Lock()
        self._changed = threading.Condition(self._lock)
        self._arrays: bytes | None = b""
        self._numbers: bytes | None = b""
        self._users: dict[object, int] = {}  # with their threads

    def take(self, user: object, arrays: bytes, numbers: bytes) -> None:
        """Write the words once no running call uses others; equal words are shared.

        A signal handler or finalizer of this thread cannot wait for the call that it interrupts.
        """
        thread, users = threading.get_ident(), self._users
        with self._lock:
            users[user] = thread  # from here on no other call changes the words
            while self._arrays != arrays or self._numbers != numbers:
                if len(users) == 1:
                    self._arrays = self._numbers = None
                    self._bytes[: len(arrays)] = arrays
                    self._bytes[_NUMBERS_OFFSET : _NUMBERS_OFFSET + len(numbers)] = numbers
                    self._arrays, self._numbers = arrays, numbers
                    return
                del users[user]
                if thread in users.values():
                    raise RuntimeError(_INTERRUPTS)
                self._changed.wait(0.1)  # a signal handler may have let others leave before
                users[user] = thread

    def leave(self, user: object) -> None:
        """End a call; has no effect if it has ended or never began.

        A signal handler may raise inside `take` and `leave`. The caller then calls `leave` again;
        otherwise the next call with other words would wait forever.
        """
        with self._lock:
            self._users.pop(user, None)
            if not self._users:
                self._changed.notify_all()


_NUMBERS_OFFSET = 8 * captured.STATE_WORDS
_INTERRUPTS = (
    "op is called by a signal handler or a finalizer with other captured values than the call that "
    "it interrupts; call another function there, or call it after the interrupted call"
)


# Weak keys: whoever runs an operator's code holds the key.
_states: weakref.WeakKeyDictionary[Key, _State] = weakref.WeakKeyDictionary()
_lock = forks.Lock()


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
    for state in list(_states.values()):
        state.renew()


# --- Address of a NumPy array's memory, read directly from the array object.

Array = np.ndarray[Any, Any]

# An array object begins with the object header, whose last word is the class, followed by the data
# pointer. NumPy's ABI fixes this layout for compiled extensions.
OFFSET = object.__basicsize__
_word_at = ctypes.c_ssize_t.from_address


def address(array: Array) -> int:
    """Return the address of an array's first element, five times as fast as NumPy reports it."""
    return _word_at(id(array) + OFFSET).value


MEMORY_BYTES = 1 << 17  # size of pooled scratch memory


class Memory:
    """A block aligned to a cache line, and its address."""

    __slots__ = ("address", "array", "num_bytes", "words")

    def __init__(self, num_bytes: int) -> None:
        self.num_bytes = num_bytes
        self.array = np.empty(num_bytes + 64, np.uint8)
        start = -address(self.array) % 64
        self.address = address(self.array) + start
        self.words = self.array[start:][: num_bytes // 8 * 8].data.cast("q")


FREE: list[Memory] = []  # unused blocks of MEMORY_BYTES


def take_scratch(num_bytes: int) -> Memory:
    if num_bytes <= MEMORY_BYTES:
        try:
            return FREE.pop()
        except IndexError:
            pass
    return Memory(max(num_bytes, MEMORY_BYTES))


def return_scratch(memory: Memory) -> None:
    if memory.num_bytes == MEMORY_BYTES:
        FREE.append(memory)
