"""Queued work and who may run it when: late, and in any order that streams and events allow.

Work runs when somebody waits for it, when somebody asks whether it has run, or by chance when more
is queued. So what lacks a wait between two streams reads too early or too late for some seed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from emulator import trial
from emulator.machine import lock

MOST_QUEUED = 300  # beyond it the oldest runs
A_MOMENT = 0.0005  # seconds between two looks at a closed gate


class Work:
    """Something that a stream does, and what has to be done before."""

    __slots__ = ("is_done", "is_open", "needs", "run")

    def __init__(
        self, run: Callable[[], None] | None, needs: Iterable[Work | None],
        is_open: Callable[[], bool] | None = None,
    ) -> None:  # fmt: skip
        self.run, self.is_open = run, is_open
        self.is_done = False
        self.needs = [each for each in needs if each is not None and not each.is_done]

    @property
    def is_ready(self) -> bool:
        """Whether it can run now."""
        self.needs = [each for each in self.needs if not each.is_done]
        return not self.needs and (self.is_open is None or self.is_open())


_queued: dict[Work, None] = {}  # in the order in which it came


def enter(made: Work) -> None:
    """Queue work; some of what is queued may run now."""
    with lock:
        _queued[made] = None
        if trial.current.phase.is_eager:
            _run_any()
        while len(_queued) > MOST_QUEUED and _run_any():
            pass


def finish(wanted: Work | None) -> None:
    """Return when some work is done; other work may run before it."""
    while wanted is not None and not wanted.is_done:
        with lock:
            moved = _step(wanted)
        if not moved:
            time.sleep(A_MOMENT)  # a gate is closed; its patience ends


def finish_all() -> None:
    """Return when all that is queued is done."""
    while _queued:
        with lock:
            moved = _run_any()
        if not moved:
            time.sleep(A_MOMENT)


def ask(wanted: Work | None) -> bool:
    """Return whether some work is done; asking may get it on."""
    if wanted is None or wanted.is_done:
        return True
    with lock:
        if trial.current.is_answered():
            _step(wanted)
        return wanted.is_done


def _step(wanted: Work) -> bool:
    """Run one piece of work that leads to another; return whether there was any."""
    if trial.current.phase.detours and _run_any():
        return True
    seen: set[Work] = set()
    ahead = [wanted]
    while ahead:
        found = ahead.pop()
        if found in seen or found.is_done:
            continue
        seen.add(found)
        if found.is_ready:
            _run(found)
            return True
        ahead += found.needs if trial.current.phase.is_newest_first else reversed(found.needs)
    return False


def _run_any() -> bool:
    newest_first = trial.current.phase.is_newest_first
    for each in reversed(_queued) if newest_first else _queued:
        if each.is_ready:
            _run(each)
            return True
    return False


def _run(work: Work) -> None:
    _queued.pop(work, None)
    run, work.run = work.run, None  # what it holds may go
    try:
        if run is not None:
            run()
    finally:
        work.is_done = True
        work.needs = []
