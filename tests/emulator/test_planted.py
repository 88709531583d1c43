"""The tester is tested: bugs that are planted in the kernels are caught."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from support import REPOSITORY, Backend

from emulator.planted import BUGS, WRONG, Bug, first_of_each, sample
from emulator.planted.cases import CASES
from emulator.planted.run import first_verdict, plant
from gpualgo._cuda import build


def _params() -> Iterator[ParameterSet]:
    """Give one bug of each header and report, some of them slow; all where they are asked for."""
    few = sample()
    more = first_of_each(lambda bug: (bug.file, bug.shows[0])).values()
    for bug in BUGS:
        if not bug.missed:
            mark = pytest.mark.slow if bug in more else pytest.mark.exhaustive
            yield pytest.param(bug, id=bug.name, marks=[] if bug in few else [mark])


MISSED = [pytest.param(bug, id=bug.name) for bug in BUGS if bug.missed]


@pytest.fixture
def planted(
    emulated_alone: None,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Bug:
    """Put a bug into a copy of the kernels, which those that are compiled now come from."""
    bug: Bug = request.param
    folder = plant(bug, tmp_path)
    monkeypatch.setattr(build, "source_folder", lambda: folder)
    monkeypatch.setenv("GPUALGO_EMULATOR_CACHE", str(tmp_path))  # they are never used again
    return bug


@pytest.mark.parametrize("planted", list(_params()), indirect=True)
def test_a_planted_bug_is_caught(cuda: Backend, planted: Bug) -> None:
    found = first_verdict(cuda, planted.case, range(1, planted.seeds + 1))
    # A wrong result that follows from what nobody wrote is told of before the result is seen, as is
    # a read from where such a value points to.
    also = ("UNINITIALISED", "OUT OF BOUNDS") if WRONG in planted.shows else ()
    assert found.kind in planted.shows + also, found.told


@pytest.mark.parametrize("planted", MISSED, indirect=True)
def test_what_is_not_caught_is_known(cuda: Backend, planted: Bug) -> None:
    found = first_verdict(cuda, planted.case, range(1, planted.seeds + 1))
    assert not found.kind, f"it is caught, as {found.kind}: mend the table, {found.told}"


def test_each_bug_has_a_name_of_its_own() -> None:
    assert len({bug.name for bug in BUGS}) == len(BUGS)
    assert all(bug.case in CASES for bug in BUGS)
    assert all(bool(bug.missed) != bool(bug.shows) for bug in BUGS)


def test_each_bug_has_one_place() -> None:
    texts = {bug.file: (build.source_folder() / bug.file).read_text() for bug in BUGS}
    assert all(bug.planted(texts[bug.file]) != texts[bug.file] for bug in BUGS)


def test_what_is_not_caught_is_documented() -> None:
    page = (REPOSITORY / "docs" / "testing.md").read_text()
    assert not [
        bug.name for bug in BUGS if bug.missed and f"| {bug.name} | {bug.missed} |" not in page
    ]
