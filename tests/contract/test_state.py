"""A random walk over all functions: what a first call finds decides nothing for later ones."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import support
from contract.state import numpys, play, templates
from contract.state.play import Fault
from contract.state.program import Program, Step, drawn, shrunk
from contract.state.templates import Template
from support import Backend

import gpualgo as ga

PROGRAM = "GPUALGO_STATE_PROGRAM"  # what test_one_program plays
SECONDS = "GPUALGO_STATE_SECONDS"  # how long the exhaustive walk takes, 3600 by default
SEED = "GPUALGO_STATE_SEED"

# What each run of the tests walks over: the others take minutes, most of them to compile.
EACH_TIME = (
    "transform", "copy", "inclusive_scan", "argsort", "reduce", "radix_sort",
    "numpy.round", "numpy.divmod",
)  # fmt: skip

ALL = [(t, i) for group in play.templates().values() for i, t in enumerate(group)]


def program_of(text: str) -> Program:
    found = eval(text, {"Program": Program, "Step": Step})
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


def report(program: Program, before: tuple[Step, ...], fault: Fault, backend: str) -> str:
    """Return what a fault is, by the smallest program that a process of its own fails by.

    `before`: steps of the programs before it that are like it.
    """
    if not fails_alone(program, backend):
        program = replace(program, steps=(*before, *program.steps))
    if fails_alone(program, backend):
        program = shrunk(program, lambda smaller: fails_alone(smaller, backend))
        told = "the same again"
    else:
        told = "it fails after all programs before it alone"
    return (
        f"{fault}\n\n{program}\n\n{told}:\n    {PROGRAM}={str(program)!r} pytest --backend "
        f"{backend} tests/contract/test_state.py::test_one_program"
    )


def walk(backend: Backend, seed: int, each: Iterable[tuple[int, Template, int]], **how: Any) -> Any:
    """Play a program of each template; return the reports of those that fail, one a function."""
    found: dict[str, tuple[Program, tuple[Step, ...], Fault]] = {}
    played: dict[Program, tuple[Step, ...]] = {}  # steps, by the program that they are of
    for number, template, i in each:
        if template.name in found:
            continue
        rng = random.Random(f"{seed} {number} {template.name} {i}")
        program = drawn(rng, template, i, has_device=backend.xp is not np, **how)
        kind = replace(program, steps=())
        before = played.get(kind, ())
        played[kind] = (*before, *program.steps)
        try:
            play.play(program, backend)
        except Fault as fault:
            print(fault, program, sep="\n", flush=True)
            found[template.name] = program, before, fault
        except Exception as error:  # the GPU's context may be lost: no later call would run
            raise Fault(f"{error!r} in\n{program}") from error
    name = "emulated" if support.is_emulated else backend.name
    return [report(*each, name) for each in found.values()]


def until(end: float) -> Iterator[tuple[int, Template, int]]:
    """Give all templates again and again."""
    for number in itertools.count():
        for template, i in ALL:
            if time.monotonic() > end:
                return
            yield number, template, i


def test_each_name_has_a_template() -> None:
    names = {t.name for t, _ in ALL}
    missing = [n for n in numpys.NAMES if f"numpy.{n}" not in names]
    own = set(ga.__all__) - templates.CALLED_AS_STEPS - templates.NOT_CALLED
    assert (missing, own - names) == ([], set())


def test_walk(backend: Backend) -> None:
    names = EACH_TIME[: support.scaled(None, emulated=5)]
    some = [(number, t, i) for t, i in ALL if t.name in names and not i for number in range(4)]
    found = walk(backend, 1, some, sizes=(40,), deep=False)
    assert not found, "\n\n".join(found)


@pytest.mark.exhaustive
def test_long_walk(backend: Backend) -> None:
    seed = int(os.environ.get(SEED) or time.time())
    end = time.monotonic() + float(os.environ.get(SECONDS) or 3600)
    print(f"{SEED}={seed}")
    sizes = support.scaled((0, 1, 7, 40, 40, 300, 5000), emulated=(0, 1, 7, 40, 40, 300))
    found = walk(backend, seed, until(end), sizes=sizes, deep=True)
    print(f"{sum(play.calls.values())} calls of {len(play.calls)} functions")
    assert not found, "\n\n".join(found)


@pytest.mark.skipif(PROGRAM not in os.environ, reason=f"{PROGRAM} names no program")
def test_one_program(backend: Backend) -> None:
    play.play(program_of(os.environ[PROGRAM]), backend)
