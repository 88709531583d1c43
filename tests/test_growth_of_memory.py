"""A process that calls what it has not called before grows by a stated number of KiB a call.

`--exhaustive` walks over every algorithm and every name of NumPy's; each push takes a sample.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import count_gpus

TESTS = Path(__file__).parent

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

MOST = {
    "cpu": {"lengths": 32, "tables": 8, "edges": 32, "names": 32, "operators": 448},
    "cuda": {"lengths": 32, "tables": 32, "edges": 32, "names": 32, "operators": 640},
}
"""KiB of each new call, once the budget of docs/memory.md is full: see `growth.KINDS`."""

SAMPLE = {
    "lengths": ("histogram: many bins", "reduce_by_key: rows"),
    "edges": ("edges",),
    "operators": ("transform",),
}


DEVICES = ["cpu", "cuda"] if count_gpus() else ["cpu"]


@pytest.mark.parametrize("kind", SAMPLE)
@pytest.mark.parametrize("device", DEVICES)
def test_new_calls_keep_little(device: str, kind: str, tmp_path: Path) -> None:
    _check(device, kind, SAMPLE[kind], tmp_path)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", MOST["cpu"])
@pytest.mark.parametrize("device", DEVICES)
def test_all_new_calls_keep_little(device: str, kind: str, tmp_path: Path) -> None:
    _check(device, kind, (), tmp_path)


def _check(device: str, kind: str, names: tuple[str, ...], tmp_path: Path) -> None:
    places = (str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH"))
    path = os.pathsep.join(filter(None, places))
    env = {**os.environ, "PYTHONPATH": path}
    if kind == "operators":  # which are to be compiled
        env["GPUALGO_CACHE_DIR"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, str(TESTS / "growth.py"), device, kind, *names],
        env=env, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = dict(map(json.loads, done.stdout.splitlines()))
    assert len(found) >= (len(names) or 8), done.stderr
    too_much = {name: round(kib) for name, kib in found.items() if kib > MOST[device][kind]}
    assert not too_much
