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

TESTS = Path(__file__).parent

MOST = {"lengths": 32, "tables": 8, "edges": 32, "names": 32, "operators": 256}
"""KiB of each new call, once the budget of docs/memory.md is full: see `growth.KINDS`."""

SAMPLE = {
    "lengths": ("reduce: rows", "histogram: many bins", "reduce_by_key: rows"),
    "tables": ("reduce_by_key",),
    "edges": ("edges",),
    "names": ("gnp.cumsum", "gnp.unique"),
    "operators": ("transform",),
}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    "is_all", [False, pytest.param(True, marks=pytest.mark.exhaustive)], ids=["some", "all"]
)
@pytest.mark.parametrize("kind", MOST)
def test_new_calls_keep_little(kind: str, is_all: bool, tmp_path: Path) -> None:
    names = () if is_all else SAMPLE[kind]
    path = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
    env = {**os.environ, "PYTHONPATH": path}
    if kind == "operators":  # which are to be compiled
        env["GPUALGO_CACHE_DIR"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, str(TESTS / "growth.py"), kind, *names],
        env=env, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = dict(map(json.loads, done.stdout.splitlines()))
    assert len(found) >= max(len(names), 8 * is_all), done.stderr
    too_much = {name: round(kib) for name, kib in found.items() if kib > MOST[kind]}
    assert not too_much
