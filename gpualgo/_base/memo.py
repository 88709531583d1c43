"""Memos: results by key, bounded, each made once however many threads ask.

A memo is bounded by the number of its values, which are small. Those that hold arrays, or anything
else whose size depends on a caller's data, say how much by `weigh`, and all memos of the process
together keep no more than MOST_BYTES of that.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from gpualgo._base import forks

Value = TypeVar("Value")

MOST_BYTES = 16 << 20  # of the values of all memos that weigh more than LEAST_BYTES
LEAST_BYTES = 1 << 13  # what weighs less is bounded by its number


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

    def weigh(self, value: Value, num_bytes: int) -> None:
        """Say how many bytes a value holds by now; the oldest are given up where that is too much.

        The latest to be weighed stays, whatever it weighs. A value that is not kept does not count.
        """
        if num_bytes <= LEAST_BYTES or not any(found is value for found in self.values()):
            return
        surplus = []
        with _budget_lock:
            _weighed.pop(id(value), None)
            _weighed[id(value)] = _Weighed(weakref.ref(value), num_bytes, self)
            for key, (seen, _, _) in list(_weighed.items()):
                if seen() is None:
                    del _weighed[key]
            total = sum(weighed.num_bytes for weighed in _weighed.values())
            while total > MOST_BYTES and len(_weighed) > 1:
                oldest = _weighed.pop(next(iter(_weighed)))
                total -= oldest.num_bytes
                surplus.append(oldest)
        for seen, _, memo in surplus:
            memo._give_up(seen())

    def _give_up(self, value: Value | None) -> None:
        with self._lock:
            keys = [key for key, found in self._found.items() if found is value]
            surplus = [self._found.pop(key) for key in keys]
        del surplus  # outside the lock

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


class _Weighed(NamedTuple):
    value: weakref.ref[Any]
    num_bytes: int
    memo: Memo[Any]


_memos: weakref.WeakSet[Memo[Any]] = weakref.WeakSet()
_weighed: dict[int, _Weighed] = {}  # by the value's id, the one that was weighed first at first
_budget_lock = threading.RLock()  # a finalizer may come by while it is held


@forks.in_child
def _renew_all() -> None:
    global _budget_lock
    _budget_lock = threading.RLock()
    for memo in list(_memos):
        memo._renew()
