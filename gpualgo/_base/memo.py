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
