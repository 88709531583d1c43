"""The cases of planted bugs pass where none is planted, under the seeds that show the bugs."""

from __future__ import annotations

import pytest
from support import Backend

from emulator.planted import BUGS, sample
from emulator.planted.cases import CASES
from emulator.planted.run import first_verdict

pytestmark = pytest.mark.usefixtures("emulated_alone")


SAMPLE = {bug.case for bug in sample()}
NAMES = [pytest.param(name, marks=[] if name in SAMPLE else [pytest.mark.slow]) for name in CASES]


@pytest.mark.parametrize("name", NAMES)
def test_the_kernels_without_bugs_pass(cuda: Backend, name: str) -> None:
    seeds = max((bug.seeds for bug in BUGS if bug.case == name), default=3)
    found = first_verdict(cuda, name, range(1, seeds + 1))
    assert not found.kind, found.told
