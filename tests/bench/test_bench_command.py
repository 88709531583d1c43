"""`python -m bench` from its command line to its file, on the CPU; contenders that are wrong."""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import environment, peers, rows, timing
from bench.__main__ import main
from bench.peers import OURS
from bench.row import Row, read

TWO = ["copy", "radix_sort", "--device", "cpu", "--sizes", "2^10", "--quick"]


def test_run_is_printed_kept_and_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.json"
    assert main([*TWO, "--peers", "NumPy", "--rows", "f32", "--json", str(file)]) == 0
    out = capsys.readouterr().out
    assert "| copy f32 | 2^10 |" in out
    assert "CPU backend" in out
    report = read(file)
    assert {row.n for row in report.rows} == {1024}
    assert {who for row in report.rows for who in row.times} == {OURS, "NumPy"}
    assert all(row.times[OURS].count > 0 for row in report.rows)
    assert {"date", "commit", "cpu", "cores", "gpu", "versions"} <= set(report.environment)
    assert main(["--compare", str(file), str(file)]) == 0
    assert "0 slower, 0 faster" in capsys.readouterr().out
    assert main(["--show", str(file)]) == 0
    assert capsys.readouterr().out == out


def test_slower_run_is_an_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    assert main([*TWO, "--rows", "copy", "--peers", "none", "--json", str(files[0])]) == 0
    told = json.loads(files[0].read_text())
    told["environment"].update(load=0.0, load_after=0.0)  # else nothing could be told
    (row,) = told["rows"]
    ours = row["times"][OURS]
    ours.update(low=ours["median"], high=ours["median"])
    files[0].write_text(json.dumps(told))
    ours.update({name: 10 * ours[name] for name in ("median", "low", "high")})
    files[1].write_text(json.dumps(told))
    capsys.readouterr()
    assert main(["--compare", *map(str, files)]) == 1
    assert "| copy f32 | 2^10 | cpu |" in capsys.readouterr().out
    assert main(["--compare", *map(str, reversed(files))]) == 0


def test_results_go_to_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert main([*TWO, "--rows", "copy"]) == 0
    folder = tmp_path / "gpualgo" / "bench"
    (file,) = folder.glob("*.json")
    assert read(file).rows
    assert main([*TWO, "--rows", "copy", "--no-write"]) == 0
    assert len(list(folder.iterdir())) == 1


def test_targets_say_what_was_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["reduce", "--targets", "--rows", "2^28", "--no-write", "--seconds", "0"]
    assert main([*line, "--device", "cpu"]) == 2  # no row of the CPU is so large
    if peers.gpu() is None:
        capsys.readouterr()
        assert main(line) == 0
        lines = capsys.readouterr().out.splitlines()
        found = [line for line in lines if line.startswith("| reduce sum f32 | 2^28 | device")]
        assert len(found) == 1
        assert found[0].endswith("| ≤ 1.00 | not run |")


def test_list_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scan", "--list", "--rows", "cumsum"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert all("cumsum" in line for line in lines)
    assert main(["startup", "--list"]) == 0
    assert "CPU: a second lambda" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (["no_such_algorithm"], "no algorithm is called no_such_algorithm; there are copy, "),
        (["--rows", "no such row"], "no row matches these options; "),
        (["top_k", "--rows", "f64"], "no row matches these options; "),
        (["--show", "nosuch.json"], "No such file or directory: 'nosuch.json'"),
        (["--compare", "no.json", "no.json"], "no.json"),
    ],
)
def test_mistakes_are_told(line: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*line]) == 2
    assert told in capsys.readouterr().err


def _row(**results: Any) -> Row:
    def result(value: Any, *library: Any) -> Any:  # which NumPy's and CuPy's functions take
        if isinstance(value, Exception):
            raise value
        return np.asarray(value, np.float32)

    calls = {who: functools.partial(result, value) for who, value in results.items()}
    return Row(
        "a row f32", 2, "cpu", calls=calls, expected=lambda: np.asarray([1, 2], np.float32),
        tolerance=1e-6,
    )  # fmt: skip


@pytest.mark.parametrize("wrong", [[1, 3], [np.nan, 2], [1, np.inf], ValueError("no")])
def test_peers_that_are_wrong_are_left_out_by_name(wrong: Any) -> None:
    row = _row(gpualgo=[1, 2], right=[1, 2], wrong=wrong)
    measured = timing.run(row, 1, 0.001)
    assert set(measured.times) == {OURS, "right"}
    (note,) = peers.taken_notes()
    assert note["who"] == "wrong"


@pytest.mark.parametrize("wrong", [[1, 3], [np.nan, 2], ValueError("no")])
def test_our_wrong_result_fails_the_run(wrong: Any) -> None:
    both, measured = [_row(gpualgo=wrong, right=[1, 2]), _row(gpualgo=[1, 2])], []
    assert timing.run_all(both, measured, 1, 0.001) == 1
    assert len(measured) == 1, "the other rows are measured"
    assert peers.taken_notes()[0]["reason"].startswith("FAILED")


def test_new_processes_are_timed_a_peer_that_fails_is_left_out() -> None:
    def fails(repeat: int) -> float:
        raise RuntimeError("no such module")

    calls = {OURS: lambda repeat: 1.0 + repeat, "NumPy": fails}
    measured = timing.run(Row("first f32", 2, "start", calls=calls), 3)
    assert {who: times.rounds for who, times in measured.times.items()} == {OURS: (2.0,)}
    assert [note["who"] for note in peers.taken_notes()] == ["NumPy"]
    with pytest.raises(RuntimeError, match="no such module"):
        timing.run(Row("first f32", 2, "start", calls={OURS: fails}), 3)


def test_peers_are_chosen_and_what_is_no_library_stays() -> None:
    row = _row(**{"gpualgo": [1, 2], "CuPy": [1, 2], "NumPy": [1, 2], "a copy": [1, 2]})
    peers.want(["numpy"])
    assert set(timing.run(row, 1, 0.001).times) == {OURS, "NumPy", "a copy"}


def test_sharded_arrays_are_compared_with_one_array() -> None:
    asked = rows.chosen(("scaling",), "argsort, float32, 4 GPUs", device="cpu")
    (row,) = (replace(each, n=1000) for each in asked)
    assert set(timing.run(row, 1, 0.001).times) == {OURS}
    wrong = {OURS: lambda x: row.calls[OURS](x).gather()[::-1]}
    with pytest.raises(AssertionError, match="off by inf"):
        timing.run(replace(row, calls=wrong), 1, 0.001)


def test_dtype_counts_unless_it_may_differ() -> None:
    calls, expected = {OURS: lambda: np.arange(2)}, np.arange(2.0)
    with pytest.raises(AssertionError, match="off by inf"):
        timing.checked(_row(), calls, expected)
    timing.checked(replace(_row(), any_dtype=True), calls, expected)


def test_memory_of_a_call_holds_its_result() -> None:
    calls = {OURS: lambda: np.ones(1 << 16, np.float32) * 2}
    row = Row("a row f32", 2, "cpu", calls=calls, expected=lambda: np.full(1 << 16, 2, np.float32))
    measured = timing.run(row, 1, 0.001)
    assert measured.times[OURS].memory is not None
    assert 2 * (4 << 16) <= measured.times[OURS].memory < 3 * (4 << 16)


def test_environment_names_machine_and_software() -> None:
    told = environment.describe("a commit")
    assert told["commit"] == "a commit"
    assert told["cores"] >= 1
    assert {"python", "gpualgo", "numpy"} <= set(told["versions"])
    assert environment.version_of("NumPy", told) == np.__version__
    assert environment.version_of("unknown", told) is None
    assert "a commit" in environment.title(told)
