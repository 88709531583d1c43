"""Runs that were made in parts become one, and runs that differ do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.__main__ import main
from bench.peers import OURS
from bench.row import Report, Row, Times, merged, read

MACHINE = {"gpu": "NVIDIA H200", "cores": 16, "commit": "abc", "versions": {"numpy": "2.0"}}


def run(date: str, load: float, *names: str, seconds: float = 1.0, **told: Any) -> Report:
    times = {OURS: Times(seconds, seconds, seconds, 1)}
    rows = tuple(Row(name, 1 << 20, "device", times=times) for name in names)
    return Report({"date": date, "load": load, **MACHINE, **told}, rows)


def left_out(report: Report, *notes: tuple[str, str, str]) -> Report:
    made = tuple(
        {"row": f"{name}, n=2^20, device", "who": who, "reason": reason}
        for name, who, reason in notes
    )
    return Report(report.environment, report.rows, made)


def test_rows_of_both_and_the_later_of_those_twice() -> None:
    found = merged(run("1", 0.5, "a", "b"), run("2", 0.25, "b", "c", seconds=2.0))
    assert [row.name for row in found.rows] == ["a", "b", "c"]
    assert [row.times[OURS].median for row in found.rows] == [1.0, 2.0, 2.0]
    assert (found.environment["date"], found.environment["load"]) == ("1 and 2", 0.5)
    third = merged(found, run("0", 0.75, "d"))
    assert (third.environment["date"], third.environment["load"]) == ("0 and 1 and 2", 0.75)


def test_notes_are_of_the_run_that_a_row_is_of() -> None:
    first = left_out(
        run("1", 0, "a", "b"),
        ("a", "CUB", "first"), ("b", "CUB", "first"), ("c", OURS, "late"), ("d", OURS, "late"),
    )  # fmt: skip
    second = left_out(run("2", 0, "b", "c"), ("c", "JAX", "second"), ("a", OURS, "late"))
    told = {
        (note["row"][0], note["who"]): note["reason"] for note in merged(first, second).left_out
    }
    assert told == {("a", "CUB"): "first", ("d", OURS): "late", ("c", "JAX"): "second"}


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"commit": "def"}, "commit abc and def"),
        ({"gpu": "NVIDIA A100"}, "gpu NVIDIA H200 and NVIDIA A100"),
        ({"versions": {"numpy": "2.1"}}, "versions "),
        ({"quick": True}, "quick None and True"),
    ],
)
def test_runs_that_differ_are_refused(other: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        merged(run("1", 0, "a"), run("1", 0, "b", **other))


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    run("1", 0, "a").write(files[0])
    run("2", 0, "b").write(files[1])
    assert main(["--merge", *map(str, files)]) == 0
    assert [row.name for row in read(files[0]).rows] == ["a", "b"]
    assert len(read(files[1]).rows) == 1
    run("2", 0, "b", commit="def").write(files[1])
    assert main(["--merge", *map(str, files)]) == 2
    assert "commit abc and def" in capsys.readouterr().err
    assert [row.name for row in read(files[0]).rows] == ["a", "b"]
