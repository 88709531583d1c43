"""Ctrl-C may come anywhere: no recording, no lock and no pause outlives the block that it ends."""

from __future__ import annotations

import gc
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from support import a_few

import gpualgo as ga
from gpualgo._base import forks, imports, recording
from gpualgo._base.memo import paused
from gpualgo._cpu.memory import _State
from gpualgo._driver import default_device

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
WAIT = 30  # seconds; what takes longer hangs
X = np.arange(1000.0)


class Interrupt(BaseException):
    """Stands for KeyboardInterrupt."""


def is_interrupted(call: Callable[[], Any], place: int) -> bool:
    """Make a call, interrupted where Python handles its n-th signal; False if it ends before."""
    count = 0

    def look(_: types.FrameType, event: str, __: Any) -> None:
        nonlocal count
        if event in ("call", "c_return"):  # as CPython does
            count += 1
            if count == place:
                sys.setprofile(None)
                raise Interrupt

    try:
        sys.setprofile(look)
        call()
    except Interrupt:
        return True
    finally:
        sys.setprofile(None)
    return False


def places_of(call: Callable[[], Any], step: int = 1) -> Iterator[int]:
    """Yield after each interrupt of a call, until it is not reached."""
    place = 1
    while is_interrupted(call, place):
        yield place
        place += step


def in_another_thread(call: Callable[[], Any]) -> None:
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(WAIT)
    assert not thread.is_alive()


@pytest.mark.filterwarnings("ignore:.* has no effect outside a `with`")
def test_calls_after_a_graph_that_was_interrupted_run() -> None:
    def record() -> None:
        with ga.graph("cpu") as g:
            y = ga.transform(np.sqrt, X)
        g.launch()
        np.testing.assert_array_equal(y, np.sqrt(X))

    record()
    seen = 0
    for place in places_of(record, a_few([1, 2, 3])[0] * 3):
        assert not recording.active, place
        default_device.chosen.set(())  # it may outlive an interrupt, as any setting does
        seen += 1
        if not seen % 20:
            np.testing.assert_array_equal(ga.transform(np.negative, X), -X)
    assert seen > 10


def enter() -> None:
    with imports.loading(), paused():
        pass


def test_locks_are_free_and_garbage_is_collected() -> None:
    enter()
    seen = 0
    for _ in places_of(enter):
        assert gc.isenabled()
        in_another_thread(enter)
        seen += 1
    assert seen > 10


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no such timer")
def test_signals_leave_no_lock_held() -> None:
    lock, seen = forks.Lock(), 0

    def interrupt(*_: Any) -> None:
        nonlocal seen
        seen += 1
        raise Interrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        while seen < 300:
            try:
                signal.setitimer(signal.ITIMER_REAL, 2e-4)
                for _ in range(10**6):
                    with lock:
                        pass
            except Interrupt:
                assert not lock._is_owned()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_parts_of_a_package_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """An import that was interrupted leaves modules, with which the next one would fail."""
    monkeypatch.setattr(imports, "_IN_PARTS", ("parts", "whole"))
    for name in ("parts.one", "parts.one.two", "partsand", "whole", "whole.one"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    with imports.loading():
        left = {name for name in sys.modules if name.startswith(("parts", "whole"))}
    assert left == {"partsand", "whole", "whole.one"}


def test_a_signal_handler_cannot_change_what_the_call_reads() -> None:
    state, users = _State(), [object() for _ in range(4)]
    numbers = [np.float64(k).tobytes() for k in range(2)]
    state.take(users[0], b"", numbers[0])
    with pytest.raises(
        RuntimeError, match=r"^op is called by a signal handler or a finalizer with"
    ):
        state.take(users[1], b"", numbers[1])
    state.take(users[2], b"", numbers[0])  # equal ones are shared
    other = threading.Thread(target=state.take, args=(users[3], b"", numbers[1]))
    other.start()  # waits
    state.leave(users[2])
    assert state._numbers == numbers[0]
    state.leave(users[0])
    other.join(WAIT)
    assert state._numbers == numbers[1]
    assert set(state._users) == {users[3]}
