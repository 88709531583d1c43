"""Code of a test in a process of its own, which gets the emulated GPU as well."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Any

import pytest
import support

from emulator import trial, work
from emulator.trial import CAPPED

_plain = support.run_python


def install() -> None:
    """Let `support.run_python` start processes that have the emulated GPU."""
    support.run_python = run_python
    path = [str(support.REPOSITORY / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(path)


def run_python(code: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter that has the emulated GPU, under the test's seed."""
    test = trial.current
    wrapped = f"from emulator import process\nprocess.run({code!r}, {test.name!r}, {test.seed})"
    done = _plain(wrapped, **options)
    found = re.search(rf"^{CAPPED}(.*)", done.stderr, re.M)
    if found is not None:
        pytest.skip(CAPPED + found[1])
    return done


def run(code: str, name: str, seed: int) -> None:
    """Run code; end with what its kernels did wrong, or why they take more than they may."""
    from emulator.install import install

    install()
    test = trial.begin(name, seed)
    try:
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
        work.finish_all()
    except pytest.skip.Exception:
        assert test.capped
    if test.failures or test.capped:
        sys.exit("\n\n".join(test.failures) or CAPPED + test.capped)
