"""Memory on the CPU: aligned blocks, pooled scratch memory, and captured values of operators."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from gpualgo._base import forks
from gpualgo._operators import captured
from gpualgo._operators.captured import NUMBER_WORDS, Key
from gpualgo._operators.operator import Operator

# --- Memory from which compiled operators on the CPU read captured arrays and numbers.
#
# The code of an operator contains the address of one block of words, so one compilation serves all
# captured values. A call writes the addresses of its arrays and its numbers into the block. Calls
# of the same code with other values wait until it has finished.


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
    """Return an operator's state; code that contains the address of its words keeps them alive."""
    with _lock:
        state = _states.get(key)
        if state is None:
            state = _states[key] = _State()
        return state


def run_captured(op: Operator | None, run: Callable[..., Any], *arguments: Any) -> None:
    """Call run(*arguments) while compiled code reads the arrays and numbers that op captures."""
    views, numbers = ((), b"") if op is None else (op.arrays, op.words)
    if op is None or not (views or numbers):
        run(*arguments)
        return
    captured.check_on_cpu(views)
    words = captured.pack(views) if views else b""
    run_with_words(state_of(op.key), words, numbers, run, *arguments)


def run_with_words(
    state: _State, arrays: bytes, numbers: bytes, run: Callable[..., Any], *arguments: Any
) -> None:
    user = object()
    try:
        state.take(user, arrays, numbers)
        run(*arguments)
    finally:
        # Not a context manager: a signal handler may raise as `__exit__` begins.
        try:
            state.leave(user)
        except BaseException:
            state.leave(user)
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
