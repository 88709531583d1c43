"""A random walk over all functions: what a first call finds decides nothing for later ones."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest
import support
from contract.state import numpys, play, templates
from contract.state.play import Fault, play as played
from contract.state.program import Program, Step, drawn, shrunk
from support import Backend

import gpualgo as ga

PROGRAM = "GPUALGO_STATE_PROGRAM"  # what test_one_program plays
SECONDS = "GPUALGO_STATE_SECONDS"  # how long the exhaustive walk takes, 3600 by default
SEED = "GPUALGO_STATE_SEED"

ALL = [(t, i) for group in play.templates().values() for i, t in enumerate(group)]


def program_of(text: str) -> Program:
    found = eval(text, {"Program": Program, "Step": Step})  # noqa: S307
    assert isinstance(found, Program)
    return found


def fails_alone(program: Program, backend: str) -> bool:
    """Return whether a program fails in a process of its own."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--backend", backend,
               f"{__file__}::test_one_program"]  # fmt: skip
    run = subprocess.run(
        command, env={**os.environ, PROGRAM: repr(program)}, capture_output=True, check=False,
        cwd=support.REPOSITORY,
    )  # fmt: skip
    return b"Fault" in run.stdout


def report(program: Program, fault: Fault, backend: str) -> str:
    if fails_alone(program, backend):
        program = shrunk(program, lambda smaller: fails_alone(smaller, backend))
        told = "the same again"
    else:
        told = "it fails after the programs before it alone"
    return (
        f"{fault}\n\n{program}\n\n{told}:\n    {PROGRAM}={str(program)!r} pytest --backend "
        f"{backend} tests/contract/test_state.py::test_one_program"
    )


def walk(backend: Backend, seed: int, *, deep: bool, each: int, until: float) -> list[str]:
    """Play so many programs of each template; return what was found, one of each function."""
    has_device = backend.xp is not np
    name = "emulated" if support.is_emulated else backend.name
    sizes = (0, 1, 7, 40, 40, 300) if support.is_emulated else (0, 1, 7, 40, 40, 300, 5000)
    found: dict[str, str] = {}
    for number in itertools.count() if deep else range(each):
        for template, i in ALL:
            if time.monotonic() > until:
                return list(found.values())
            if template.name in found:
                continue
            rng = random.Random(f"{seed} {number} {template.name} {i}")
            program = drawn(
                rng, template, i, sizes=sizes if deep else (40,), deep=deep, has_device=has_device
            )
            try:
                played(program, backend)
            except Fault as fault:
                found[template.name] = report(program, fault, name)
                print(found[template.name], flush=True)
    return list(found.values())


def test_each_name_has_a_template() -> None:
    names = {t.name for t, _ in ALL}
    missing = [n for n in numpys.NAMES if f"numpy.{n}" not in names]
    own = set(ga.__all__) - templates.CALLED_AS_STEPS - templates.NOT_CALLED
    assert (missing, own - names) == ([], set())


def test_walk(backend: Backend) -> None:
    found = walk(backend, 1, deep=False, each=1, until=float("inf"))
    assert not found, "\n\n".join(found)


@pytest.mark.exhaustive
def test_long_walk(backend: Backend) -> None:
    seed = int(os.environ.get(SEED) or time.time())
    seconds = float(os.environ.get(SECONDS) or 3600)
    print(f"{SEED}={seed}")
    found = walk(backend, seed, deep=True, each=0, until=time.monotonic() + seconds)
    print(f"{sum(play.calls.values())} calls of {len(play.calls)} functions")
    assert not found, "\n\n".join(found)


@pytest.mark.skipif(PROGRAM not in os.environ, reason=f"{PROGRAM} names no program")
def test_one_program(backend: Backend) -> None:
    played(program_of(os.environ[PROGRAM]), backend)
