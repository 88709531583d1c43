"""Calls that a signal's handler cuts short leave nothing behind that later calls wait for."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import gpualgo as ga
from gpualgo._cpu import captured

X = np.arange(5.0)


class _Lock:
    """A lock; raises as a signal's handler would, once, after it has been let go so many times."""

    def __init__(self, lock: Any) -> None:
        self.lock, self.left = lock, 0

    def __enter__(self) -> None:
        self.lock.acquire()

    def __exit__(self, *exc: object) -> None:
        self.lock.release()
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def _scaled(k: float, out: Any = None) -> Any:
    with ga.default_device("cpu"):
        return ga.transform(lambda a: a * k, X, out=out)


@pytest.mark.parametrize("out", [None, np.empty(5)], ids=["warm", "out"])
def test_numbers_that_a_call_has_taken(monkeypatch: pytest.MonkeyPatch, out: Any) -> None:
    for k in (2.0, 3.0):
        _scaled(k, out)
    locks = []
    for state in list(captured._states.values()):
        locks.append(_Lock(state._lock))
        monkeypatch.setattr(state, "_lock", locks[-1])
    for when in (1, 2):  # taken, left
        for lock in locks:
            lock.left = when
        with pytest.raises(KeyboardInterrupt):
            _scaled(4.0 + when, out)
        for lock in locks:
            lock.left = 0
        other = threading.Thread(target=_scaled, args=(1.5,), daemon=True)  # with other numbers
        other.start()
        other.join(20)
        assert not other.is_alive(), "it waits for ever"
        np.testing.assert_array_equal(_scaled(1.5), X * 1.5)
