"""Results that are made once, however many threads ask."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Once:
    """Results by key; each is made by the first thread to ask, and the others wait."""

    def __init__(self) -> None:
        self._done: dict[Any, Any] = {}
        self._locks: dict[Any, threading.Lock] = {}
        self._guard = threading.Lock()

    def get(self, key: Any, make: Callable[[], Any]) -> Any:
        if key in self._done:
            return self._done[key]
        with self._guard:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self._done:
                self._done[key] = make()
            self._locks.pop(key, None)
        return self._done[key]


class Memo:
    """Results by key, the oldest of too many forgotten."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._found: dict[Any, Any] = {}

    def get(self, key: Any) -> Any:
        """Return what is known of a key, None for a new or an unhashable one."""
        try:
            return self._found.get(key)
        except TypeError:
            return None

    def add(self, key: Any, value: Any) -> None:
        """Keep a value; under an unhashable key it is not kept."""
        try:
            hash(key)
        except TypeError:
            return
        while len(self._found) >= self._limit:
            self._found.pop(next(iter(self._found), None), None)
        self._found[key] = value
