"""Interrupts of the main thread during compilations."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import run_python

from gpualgo._base.memo import interrupts_delayed

PROGRAM = """
import signal, time
import numpy as np
import gpualgo as ga

class Timeout(BaseException): pass

def stop(number, frame):
    if raised is KeyboardInterrupt:
        signal.raise_signal(signal.SIGINT)
    raise Timeout

signal.signal(signal.SIGALRM, stop)
x, interrupted = np.arange(5.0), 0
for i in range(0, 24, step):
    op = eval(f"lambda a: np.sin(a) * {i}.5 + np.exp(a) * {i % 7}")
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.002 + 0.005 * i)
        ga.transform(op, x)
        time.sleep(0.2)  # until the interrupt
    except raised:
        interrupted += 1
    np.testing.assert_allclose(ga.transform(op, x), op(x))
print(interrupted)
"""


@pytest.fixture(autouse=True)
def python_s_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _interrupted(*, twice: bool = False, within: bool = False) -> list[str]:
    """Interrupt a block that delays it; return which steps were reached."""
    steps = []

    def block() -> None:
        with interrupts_delayed():
            if within:
                with interrupts_delayed():
                    signal.raise_signal(signal.SIGINT)
            else:
                signal.raise_signal(signal.SIGINT)
            steps.append("went on")
            if twice:
                signal.raise_signal(signal.SIGINT)
            steps.append("ended")
        steps.append("after it")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    return steps


def test_an_interrupt_waits_for_the_end() -> None:
    assert _interrupted() == ["went on", "ended"]
    assert _interrupted(within=True) == ["went on", "ended"]


def test_a_second_interrupt_does_not_wait() -> None:
    assert _interrupted(twice=True) == ["went on"]


def test_a_handler_that_was_left_installed() -> None:
    """As an exception at the end of a block may leave it."""
    generator = interrupts_delayed()
    generator.__enter__()
    left = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    del generator  # ends the block
    signal.signal(signal.SIGINT, left)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert _interrupted() == ["went on", "ended"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_other_handlers_miss_nothing(number: int) -> None:
    found: list[int] = []
    handler = lambda number, _: found.append(number)  # noqa: E731
    before = signal.signal(number, handler)
    try:
        with interrupts_delayed():
            for count in (0, 2, 3):  # the first one waits
                signal.raise_signal(number)
                assert len(found) == count
        assert len(found) == 3
        with interrupts_delayed():
            signal.raise_signal(number)
        assert len(found) == 4
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)


def test_no_signal_is_lost_if_a_handler_raises() -> None:
    frames: list[Any] = []
    before = signal.signal(signal.SIGTERM, lambda _, frame: frames.append(frame))

    def block() -> None:
        with interrupts_delayed():
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)

    try:
        with pytest.raises(KeyboardInterrupt):
            block()
        assert frames[0].f_code
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_delays_nothing() -> None:
    found: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: found.append(number))
    try:
        with interrupts_delayed():
            pid = os.fork()
            if pid == 0:
                signal.raise_signal(signal.SIGTERM)
                os._exit(not found)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        signal.signal(signal.SIGTERM, before)


def test_other_threads_delay_nothing() -> None:
    steps = []

    def of_a_thread() -> None:
        with interrupts_delayed():
            steps.append("a thread")

    thread = threading.Thread(target=of_a_thread)
    thread.start()
    thread.join()
    assert steps == ["a thread"]


@pytest.mark.parametrize(
    ("raised", "step", "least"), [("KeyboardInterrupt", 1, 15), ("Timeout", 4, 4)]
)
def test_compilations_go_on_after_interrupts(
    raised: str, step: int, least: int, tmp_path: Path
) -> None:
    program = PROGRAM.replace("raised", raised).replace("step", str(step))
    done = run_python(program, GPUALGO_DEVICE="cpu", GPUALGO_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= least  # Python drops those that arrive in a finalizer
