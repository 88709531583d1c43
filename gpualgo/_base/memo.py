"""Bounded caches that compute each value once, even if several threads request it.

A memo is bounded by its number of values. Values whose size depends on the caller's data, such as
arrays, register it with `weigh`; all memos of the process together keep at most MOST_BYTES of them.
"""

from __future__ import annotations

import gc
import signal
import sys
import weakref
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Generic, NamedTuple, TypeVar

from gpualgo._base import forks

Value = TypeVar("Value")

MOST_BYTES = 16 << 20  # total of the registered values of all memos
LEAST_BYTES = 1 << 13  # smaller values are not registered


class Memo(Generic[Value]):
    """A thread-safe cache of at most `limit` values; evicts the oldest.

    Values are never None. Unhashable keys are not cached.
    """

    __slots__ = ("__weakref__", "_lock", "_making", "_values", "limit", "look")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._values: dict[Hashable, Value] = {}
        # `get` for hashable keys (others raise TypeError), without the cost of a Python call.
        self.look: Callable[[Any], Value | None] = self._values.get
        # A lock for each value that is being computed; the threads that need it keep it alive.
        self._making: weakref.WeakValueDictionary[Hashable, forks.Lock] = (
            weakref.WeakValueDictionary()
        )
        self._lock = forks.Lock()

    def get(self, key: Any) -> Value | None:
        try:
            return self._values.get(key)
        except TypeError:
            return None

    def add(self, key: Any, value: Value) -> Value:
        """Store a value, replacing an earlier one of its key; return it."""
        try:
            hash(key)
        except TypeError:
            return value
        with self._lock:
            surplus = [self._values.pop(key, None)]  # released outside the lock
            while self._values and len(self._values) >= self.limit:
                surplus.append(self._values.pop(next(iter(self._values))))
            self._values[key] = value
        return value

    def weigh(self, value: Value, num_bytes: int) -> None:
        """Register the current size of a value in this memo; evict the oldest beyond the budget.

        The value itself stays, even if it alone exceeds the budget.
        """
        if num_bytes <= LEAST_BYTES or not any(stored is value for stored in self.values()):
            return
        surplus = []
        with _budget_lock:
            _weighed.pop(id(value), None)
            _weighed[id(value)] = _Weighed(weakref.ref(value), num_bytes, self)
            for key, (reference, _, _) in list(_weighed.items()):
                if reference() is None:
                    del _weighed[key]
            total = sum(weighed.num_bytes for weighed in _weighed.values())
            while total > MOST_BYTES and len(_weighed) > 1:
                oldest = _weighed.pop(next(iter(_weighed)))
                total -= oldest.num_bytes
                surplus.append(oldest)
        for reference, _, memo in surplus:
            memo._evict(reference())

    def _evict(self, value: Value | None) -> None:
        with self._lock:
            keys = [key for key, stored in self._values.items() if stored is value]
            surplus = [self._values.pop(key) for key in keys]
        del surplus  # outside the lock

    def made(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value of a key; the first thread computes it, the others wait.

        An exception propagates and is not cached: the next thread tries again. `make` may request
        other keys, of this memo and of others.
        """
        value = self.get(key)
        if value is not None:
            return value
        try:
            with self._lock:
                making = self._making.setdefault(key, forks.Lock())
        except TypeError:  # the key is not hashable
            return make()
        with making:  # reentrant: numba compiles recursively
            value = self._values.get(key)
            return self.add(key, make()) if value is None else value

    def clear(self) -> None:
        with self._lock:
            surplus = dict(self._values)
            self._values.clear()
        del surplus  # outside the lock

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Hashable]:
        """Iterate over a copy of the keys, oldest first."""
        with self._lock:
            return iter(list(self._values))

    def values(self) -> list[Value]:
        """Return a copy of the values, oldest first."""
        with self._lock:
            return list(self._values.values())


class _Weighed(NamedTuple):
    value: weakref.ref[Any]
    num_bytes: int
    memo: Memo[Any]


_weighed: dict[int, _Weighed] = {}  # by the value's id, the oldest first
_budget_lock = forks.Lock()


# --- Pauses Python's garbage collector while a compiler is loaded or runs.
#
# numba creates some hundred thousand long-lived objects. Repeated collections, which scan all of
# them, would take a sixth of the time of loading numba and compiling a first operator.


_pauses: set[int] = set()  # ids of the pauses under way
_pause_lock = forks.Lock()
_was_enabled = False  # before the first of them


class _Pause:
    def end(self) -> None:
        global _was_enabled
        with _pause_lock:
            _pauses.discard(id(self))
            if not _pauses and _was_enabled:
                gc.enable()
                _was_enabled = False

    __del__ = end  # again: an interrupt may have ended it


@contextmanager
def paused() -> Iterator[None]:
    """Pause collection in a block, and until the blocks of other threads have ended.

    Interrupts of the block are delayed.
    """
    global _was_enabled
    pause = _Pause()
    try:
        with _pause_lock:
            if not _pauses:
                _was_enabled = gc.isenabled()
            _pauses.add(id(pause))
            gc.disable()
        with interrupts_delayed():
            yield
    finally:
        pause.end()


# Signals such as Ctrl-C wait for the end of a compilation: numba keeps generators of what it has
# yet to register. An exception within one ends it; no later function of the process is compiled.


class _Block:
    """Is alive while a block runs; in a forked child it is over."""

    is_over = False


class _Handler:
    """Keeps the first signal in a block; at the next one it calls the handler `before` for both.

    An exception at the end of a block, of another signal's handler, may leave this one installed.
    """

    def __init__(self, block: _Block, before: Callable[[int, Any], Any]) -> None:
        self._block, self.before = weakref.ref(block), before
        self.has_kept = self.is_due = False

    @property
    def is_over(self) -> bool:
        block = self._block()
        return block is None or block.is_over

    def __call__(self, number: int, frame: Any) -> None:
        if not (self.has_kept or self.is_over):
            self.has_kept = self.is_due = True
            return
        is_due, self.is_due = self.is_due, False
        if is_due:
            self.before(number, frame)
        self.before(number, frame)


# Signals whose handlers often raise. To set a handler undoes what C code has set for a signal, such
# as faulthandler.register, so others are left alone.
_DELAYED = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGALRM", "SIGHUP")
    if hasattr(signal, name)
]
_blocks: weakref.WeakSet[_Block] = weakref.WeakSet()


@contextmanager
def interrupts_delayed() -> Iterator[None]:
    """Call Python's handlers of signals after the block; of a second signal at once.

    Those of a block around this one are left alone.
    """
    block, handlers = _Block(), dict[int, _Handler]()
    _blocks.add(block)
    with suppress(ValueError):  # not in the main thread, which alone runs handlers
        for number in _DELAYED:
            found: Any = signal.getsignal(number)
            own = found if isinstance(found, _Handler) else None
            if own is None or own.is_over:
                before = found if own is None else own.before
                if callable(before):
                    handler = _Handler(block, before)
                    signal.signal(number, handler)
                    handlers[number] = handler
    try:
        yield
    finally:
        with ExitStack() as due:  # calls all, even if one raises
            for number, handler in reversed(handlers.items()):
                current: Any = signal.getsignal(number)
                if current is handler:
                    signal.signal(number, handler.before)
                if handler.is_due:
                    due.callback(handler.before, number, sys._getframe())


@forks.in_child
def _end_pauses() -> None:
    """Resume collection: threads of the parent may have paused it."""
    _pauses.clear()
    _Pause().end()
    for block in list(_blocks):
        block.is_over = True
