"""Memos: results by key, bounded, each made once however many threads ask."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, TypeVar

from gpualgo._base import forks

Value = TypeVar("Value")


class _Turn:
    """The making of one value: whoever holds the lock makes it, the others wait for it."""

    __slots__ = ("lock", "waiting")

    def __init__(self) -> None:
        self.lock = threading.RLock()  # numba compiles recursively
        self.waiting = 0


class Memo(Generic[Value]):
    """The latest `limit` results by key; the oldest is given up for a new one.

    Values are never None. A key that cannot be hashed is never found and never kept.
    """

    __slots__ = ("__weakref__", "_found", "_lock", "_turns", "limit", "look")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._found: dict[Hashable, Value] = {}
        # As `get`, for keys that can be hashed (else TypeError): the dict's own look-up.
        self.look: Callable[[Any], Value | None] = self._found.get
        self._turns: dict[Hashable, _Turn] = {}
        self._lock = threading.RLock()  # a finalizer may come by while it is held
        _memos.add(self)

    def get(self, key: Any) -> Value | None:
        """Return the value of a key, None where there is none: one look into a dict."""
        try:
            return self._found.get(key)
        except TypeError:
            return None

    def add(self, key: Any, value: Value) -> Value:
        """Keep a value, in place of an earlier one of its key; return it."""
        try:
            hash(key)
        except TypeError:
            return value
        surplus = []  # let go outside the lock
        with self._lock:
            surplus.append(self._found.pop(key, None))
            while self._found and len(self._found) >= self.limit:
                surplus.append(self._found.pop(next(iter(self._found))))
            self._found[key] = value
        return value

    def made(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value of a key, made by the first thread to ask; the others wait for it.

        An exception is the caller's, and not kept: the next thread tries again. `make` may ask
        for other keys, of this memo and of others.
        """
        found = self.get(key)
        if found is not None:
            return found
        turn = self._begin(key)
        if turn is None:
            return make()
        try:
            with turn.lock:
                found = self._found.get(key)
                return self.add(key, make()) if found is None else found
        finally:
            self._end(key, turn)

    def _begin(self, key: Hashable) -> _Turn | None:
        """Return the turn in which a key's value is made, None for a key that is never kept."""
        with self._lock:
            try:
                turn = self._turns.setdefault(key, _Turn())
            except TypeError:
                return None
            turn.waiting += 1
            return turn

    def _end(self, key: Hashable, turn: _Turn) -> None:
        with self._lock:
            turn.waiting -= 1
            if not turn.waiting and self._turns.get(key) is turn:
                del self._turns[key]

    def clear(self) -> None:
        """Give all values up."""
        with self._lock:
            surplus = dict(self._found)
            self._found.clear()
        del surplus  # outside the lock

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[Hashable]:
        """The keys as they are now, oldest first."""
        with self._lock:
            return iter(list(self._found))

    def values(self) -> list[Value]:
        """The values as they are now, oldest first."""
        with self._lock:
            return list(self._found.values())

    def _renew(self) -> None:
        """Forget the locks and turns of threads that a forked child does not have."""
        self._lock, self._turns = threading.RLock(), {}


_memos: weakref.WeakSet[Memo[Any]] = weakref.WeakSet()


@forks.in_child
def _renew_all() -> None:
    for memo in list(_memos):
        memo._renew()
