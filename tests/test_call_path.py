"""What ``reduce(x, 0.0, lambda a, b: a + b)`` runs of the package: files, functions, frames.

Each number is a ceiling, measured by Python 3.11. It is lowered when a change makes the number
smaller, and never raised. Later Pythons run comprehensions without a frame: less is counted.
"""

from __future__ import annotations

import json
import os
from typing import Any

import call_path
import fake_driver
import numpy as np
import pytest
from fake_driver import FakeArray
from support import run_python

import gpualgo as ga
from gpualgo._base import loaded

# files: files of the package whose code runs. calls: calls of the package's Python functions, and
# generators that go on; all: those of any Python functions. depth: frames of the package on the
# stack. opened: sources of the package that are read for their hash; asked: os.stat of its files.
CEILINGS = {
    "first call of a process, nothing on disk": {
        "files": 50, "calls": 2740, "depth": 29, "opened": 80, "asked": 60,
    },
    "first call of a process, kernels on disk": {
        "files": 34, "calls": 801, "depth": 20, "opened": 80, "asked": 22,
    },
    "warm call": {"files": 3, "calls": 3, "depth": 3, "all": 3},
    "warm call on a GPU": {"files": 9, "calls": 9, "depth": 3},
    "warm call of a plan on a GPU": {"files": 3, "calls": 3, "depth": 2},
}  # fmt: skip

Path = dict[str, int]


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the paths of a process's calls on the CPU, and of a second one with its cache."""
    cache = str(tmp_path_factory.mktemp("cache"))
    tests = str(call_path.__file__).rpartition("call_path")[0]
    code = f"import sys; sys.path.insert(0, {tests!r}); import call_path; call_path.main()"
    found = []
    for _ in range(2):
        done = run_python(code, GPUALGO_CACHE_DIR=cache, GPUALGO_DEVICE="cpu", PYTHONHASHSEED="0")
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    return {
        "first call of a process, nothing on disk": found[0]["first"],
        "first call of a process, kernels on disk": found[1]["first"],
        "warm call": found[1]["warm"],
    }


def test_path_on_the_cpu(paths: dict[str, Path]) -> None:
    for name, path in paths.items():  # in one test, since a run of a sample takes one case of each
        _check(name, path)


@pytest.mark.parametrize("name", [name for name in CEILINGS if "GPU" in name])
def test_path_on_a_gpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_driver.install(monkeypatch)
    fake_driver.stub_kernels(monkeypatch)
    fake_driver.register_arrays(monkeypatch)
    x, out = FakeArray((1_000,), np.float32), FakeArray((), np.float32)
    if "plan" in name:
        plan = ga.prepare(ga.reduce, x, 0.0, lambda a, b: a + b)

        def call() -> Any:
            return plan(x, out=out)
    else:

        def call() -> Any:
            return ga.reduce(x, 0.0, lambda a, b: a + b)

    for _ in range(20):
        call()
    _check(name, call_path.path_of(call))


def _check(name: str, found: Path) -> None:
    above = {key: found[key] for key, most in CEILINGS[name].items() if found[key] > most}
    assert not above, f"{name}: {above} is above the ceiling, {CEILINGS[name]}"


def test_calls_are_counted() -> None:
    status = os.stat(__file__)

    def twice() -> None:
        for _ in range(2):
            loaded.is_newer(status)

    nothing = {"files": 0, "calls": 0, "depth": 0, "all": 0}
    assert call_path.path_of(lambda: None) == nothing
    assert call_path.path_of(twice) == {"files": 1, "calls": 2, "depth": 1, "all": 2}
