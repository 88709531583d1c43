"""Runs a case on kernels of a folder, under seeds, and tells what the emulated GPU said."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from support import Backend

from emulator import streams, trial, work
from emulator.planted import WRONG, Bug
from emulator.planted.cases import CASES, Case
from gpualgo._algorithms.merge_sort import cuda
from gpualgo._cuda import build
from gpualgo._pipeline.problem import Problem


class Verdict(NamedTuple):
    """What was found first, if anything."""

    kind: str  # of the report, or WRONG; empty: nothing
    seed: int
    told: str


def plant(bug: Bug, folder: Path) -> Path:
    """Return a copy of cuda_src that has the bug."""
    target = folder / "cuda_src"
    shutil.copytree(build.source_folder(), target)
    header = target / bug.file
    header.write_text(bug.planted(header.read_text()))
    return target


def first_verdict(gpu: Backend, name: str, seeds: Sequence[int]) -> Verdict:
    """Run a case under seeds up to the first that shows something."""
    with patched(CASES[name]):
        for seed in seeds:
            found = _verdict(gpu, CASES[name], name, seed)
            if found.kind:
                return found
    return Verdict("", seeds[-1], "")


def _verdict(gpu: Backend, case: Case, name: str, seed: int) -> Verdict:
    test = trial.begin(name, seed)
    wrong = ""
    try:
        for got, want in case.calls(gpu, np.random.default_rng(seed)):
            if not np.array_equal(gpu.to_host(got), want):
                wrong = f"{np.sum(gpu.to_host(got) != want)} of {want.size} elements"
                break
        work.finish_all()
    except (RuntimeError, AssertionError, pytest.skip.Exception):
        if not test.has_ended:
            raise
    if test.capped:
        return Verdict("TOO LONG", seed, test.capped)
    if test.failures:
        report = test.failures[0].partition("\n")[2]
        kind = re.match(r"[A-Z]+( [A-Z]+)*", report)
        assert kind is not None, report
        return Verdict(kind[0], seed, report)
    return Verdict(WRONG if wrong else "", seed, wrong)


@contextlib.contextmanager
def patched(case: Case) -> Iterator[None]:
    """Take a case's policies, and whatever is in the folder of sources now."""
    with pytest.MonkeyPatch.context() as patch:
        for module, constant, value in case.patches:
            patch.setattr(module, constant, value)
        _forget()
        try:
            yield
        finally:
            trial.begin("what a planted bug has left", 0)
            _forget()


def _forget() -> None:
    """Give up all kernels, plans and workspaces."""
    kinds: list[type[Problem]] = [Problem]
    while kinds:
        below = kinds.pop().__subclasses__()
        for kind in below:
            kind.problems.clear()
        kinds += below
    cuda._plans.clear()
    build._kernels.clear()
    build._images.clear()
    streams.renew()
