"""The array API standard's own tests fail nowhere that NumPy alone does not.

They are no package: clone https://github.com/data-apis/array-api-tests with its submodule, install
its requirements.txt, and name the folder in ARRAY_API_TESTS.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from support import REPOSITORY

SUITE = os.environ.get("ARRAY_API_TESTS")
FILES = [
    "statistical_functions", "searching_functions", "sorting_functions", "set_functions",
    "utility_functions", "operators_and_elementwise_functions",
]  # fmt: skip
# Few elements are not left to NumPy, which would test itself.
OURS = """exec('import numpy, gpualgo.numpy as gnp
from gpualgo.numpy import _function
_function.is_few = lambda size, few: False
xp = gnp.wrap(numpy)')"""


def failed(module: str, file: str) -> set[str]:
    """Return the tests of a file that fail with a module."""
    path = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "ARRAY_API_TESTS_MODULE": module, "PYTHONPATH": path}
    command = [
        sys.executable, "-m", "pytest", f"array_api_tests/test_{file}.py", "-q", "-rfE", "--tb=no",
        "-p", "no:cacheprovider", "--derandomize", "--disable-deadline", "--max-examples", "20",
    ]  # fmt: skip
    done = subprocess.run(
        command, cwd=SUITE, env=env, capture_output=True, text=True, timeout=3600, check=False
    )
    assert re.search(r"\d+ (passed|failed)", done.stdout), done.stdout + done.stderr
    return {
        line.split(" - ")[0] for line in re.findall(r"^(?:FAILED|ERROR) (.*)$", done.stdout, re.M)
    }


@pytest.mark.exhaustive
@pytest.mark.skipif(SUITE is None, reason="ARRAY_API_TESTS names no folder")
@pytest.mark.parametrize("file", FILES)
def test_suite(file: str) -> None:
    assert failed(OURS, file) <= failed("numpy", file)
