"""One test under one seed: every choice that the emulator makes in it follows from the two."""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from typing import NamedTuple

import pytest

from emulator.control import Settings

CAPPED = "capped: "  # how the reason of such a test begins

QUICK_THREADS = 2048
MAX_STEPS = 2_000_000  # switches of a launch: more would take too long
blocks_in_any_order = False  # else they begin in the order of their indices, as on GPUs so far


class Phase(NamedTuple):
    """How streams go on from one launch to the next."""

    is_eager: bool  # some work runs as soon as more is queued; else when somebody waits
    is_newest_first: bool
    detours: bool  # work that nobody waits for runs before what somebody does
    asks: int  # how often one asks whether work is done until some runs


class Trial:
    """What is drawn for one test, and what it did wrong.

    Whatever is drawn follows from the number of the launch: not from what a process has kept from
    earlier tests, nor from when garbage is collected.
    """

    def __init__(self, name: str, seed: int) -> None:
        self.name, self.seed = name, seed
        self.failures: list[str] = []
        self.capped = ""  # why it takes more than it may
        self.num_launches = self.num_asked = 0
        self.phase = self._drawn_phase()

    def next_launch(self) -> int:
        """Return the number of a launch that is queued now."""
        self.num_launches += 1
        self.phase = self._drawn_phase()
        return self.num_launches

    def _drawn_phase(self) -> Phase:
        drawn = self._random("phase", self.num_launches)
        return Phase(
            is_eager=drawn.random() < 0.4, is_newest_first=drawn.random() < 0.5,
            detours=drawn.random() < 0.3, asks=drawn.choice([1, 2, 5]),
        )  # fmt: skip

    def _random(self, *what: object) -> random.Random:
        return random.Random(" ".join(map(str, (self.seed, self.name, *what))))

    def is_answered(self) -> bool:
        """Return whether this question after queued work lets some of it run."""
        self.num_asked += 1
        return self.num_asked % self.phase.asks == 0

    def settings(
        self, number: int, run: int, grid: int, threads: int, is_cooperative: bool = False
    ) -> Settings:
        """Return how a launch is scheduled; those of graphs run several times."""
        drawn = self._random("launch", number, run)
        resident = [1, 2, 3, 8, 64, 0]  # blocks at once; 0: all
        if drawn.random() < 0.9:  # many threads take long
            resident = [n for n in resident if (n or grid) * threads <= QUICK_THREADS] or [1]
        return Settings(
            seed=drawn.getrandbits(62),
            order=drawn.choice([0, 0, 1, 2, 3]),
            residency=0 if is_cooperative else drawn.choice(resident),
            blocks_any_order=blocks_in_any_order or is_cooperative,
            races=1,
            preempt=drawn.choice([0.0, 0.0, 0.001, 0.02]),
            weak=drawn.choice([0, 1, 2]),
            max_steps=MAX_STEPS,
            uninitialised=2,
        )

    def check(self) -> None:
        """End a test that takes more than it may; it is counted as capped."""
        if self.capped:
            pytest.skip(CAPPED + self.capped)

    def fail(self, report: str) -> None:
        """Remember what went wrong, whoever catches the error that it causes."""
        if not self.has_ended:
            self.failures.append(report)

    @property
    def has_ended(self) -> bool:
        """Whether kernels run no more: what one has left undone would mislead the next."""
        return bool(self.failures or self.capped)


current = Trial("no test", 0)


def begin(name: str, seed: int) -> Trial:
    """Start a test; what the one before has drawn is of no account."""
    global current
    current = Trial(name, seed)
    return current


class Figures:
    """What a process has done, for the summary."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def add(self, what: str, start: float) -> None:
        """Count something that began at a time of `time.perf_counter`."""
        self.counts[what] += 1
        self.seconds[what] += time.perf_counter() - start


figures = Figures()
