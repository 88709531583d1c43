"""What may go wrong around a run: files that are none, places, Ctrl-C, words that mean nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench import plots, tables, timing
from bench.__main__ import main
from bench.peers import OURS
from bench.row import Report, Row, Times, read

COPY = ["copy", "--device", "cpu", "--quick", "--peers", "none"]


def _file(path: Path) -> dict[str, Any]:
    times = {OURS: Times(1e-3, 1e-3, 1e-3, 5, (1e-3,))}
    told = {"versions": {"numpy": "2"}, "cores": 2, "load": None}
    rows = (Row("copy f32", 1024, "cpu", times=times),)
    Report(told, rows, ({"row": "", "who": "JAX", "reason": "absent"},)).write(path)
    return dict(json.loads(path.read_text()))


def _row(found: dict[str, Any]) -> Any:
    return found["rows"][0]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda found: found.update(environment=[]),
        lambda found: found.update(environment={}),
        lambda found: found["environment"].update(load="much"),
        lambda found: found.update(rows=["a"]),
        lambda found: found.update(left_out=["a"]),
        lambda found: found.update(left_out=[{"row": ""}]),
        lambda found: found["rows"].append(found["rows"][0]),
        lambda found: _row(found).update(clock="moon"),
        lambda found: _row(found).update(n=-5),
        lambda found: _row(found).update(n="5"),
        lambda found: _row(found).update(times=[1]),
        lambda found: _row(found).update(times={OURS: 1}),
        lambda found: _row(found)["times"][OURS].update(median=0.0),
        lambda found: _row(found)["times"][OURS].update(median=float("nan")),
        lambda found: _row(found)["times"][OURS].update(median="1"),
        lambda found: _row(found)["times"][OURS].update(rounds=["1"]),
        lambda found: _row(found)["times"][OURS].update(rounds=3),
        lambda found: _row(found)["times"][OURS].update(new=1),
        lambda found: _row(found)["times"][OURS].pop("low"),
    ],
)
def test_spoiled_files_are_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spoil: Callable[[dict[str, Any]], Any]
) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    found = _file(good)
    spoil(found)
    bad.write_text(json.dumps(found))
    for line in (["--show", bad], ["--compare", good, bad], ["--merge", good, bad]):
        assert main([*map(str, line)]) == 2
        assert "bad.json holds no results of gpualgo's benchmark: " in capsys.readouterr().err
    assert main(["--compare", str(good), str(good)]) == 0


def test_a_file_stays_whole_where_writing_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.json"
    _file(path)
    before = path.read_text()

    def full(self: Path, text: str, encoding: str) -> int:
        raise OSError("no space")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="no space"):
        Report({"versions": {}}, ()).write(path)
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]


def test_what_was_measured_before_ctrl_c_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real, begun = timing.run, []

    def run(row: Row, rounds: int, scale: float) -> Row:
        begun.append(row)
        if len(begun) == 2:
            raise KeyboardInterrupt
        return real(row, 1, 0.001)

    monkeypatch.setattr(timing, "run", run)
    path = tmp_path / "a.json"
    line = [*COPY, "--sizes", "2^4,2^5,2^6", "--json", str(path)]
    assert main(line) == 130
    report = read(path)
    assert [row.n for row in report.rows] == [16]
    assert {note["reason"] for note in report.left_out} == {"not measured: the run was interrupted"}
    assert len([note for note in report.left_out if note["row"].startswith("copy")]) == 2
    assert "left out: copy f32, n=2^6, cpu" in capsys.readouterr().err


def test_places_are_tried_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(*given: Any) -> Any:
        raise AssertionError("nothing is to be measured")

    monkeypatch.setattr(timing, "measure", measured)
    file = tmp_path / "file"
    file.touch()
    for line, told in (
        (["--json", str(tmp_path)], "cannot be written"),
        (["--json", str(file / "a.json")], "File exists"),
        (["--plots", str(file)], "File exists"),
    ):
        assert main([*COPY, *line]) == 2
        assert told in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ValueError, match=r"pip install 'gpualgo\[bench\]'"):
        plots.check(tmp_path / "plots")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (["--sizes", ","], "invalid sizes value: ','"),
        (["--peers", "Foo"], "invalid libraries value: 'Foo'"),
        (["--show", "a", "--merge", "a", "b"], "not allowed with argument"),
    ],
)
def test_words_that_mean_nothing(
    line: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main([*line])
    assert left.value.code == 2
    assert told in capsys.readouterr().err


def test_an_algorithm_named_twice_runs_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["copy", "copy", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(set(lines)) > 0


def test_terminals_get_aligned_columns_and_coloured_verdicts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    tables.show(
        "A title", [["work", "time", ""], ["a row", "123.5 ms", "not met"], ["b", "1 s", "met"]]
    )
    head, _, first, second = (
        line for line in capsys.readouterr().out.splitlines() if line.startswith("|")
    )
    assert first == "| a row | 123.5 ms | \x1b[31mnot met\x1b[0m |"
    assert second == "| b     |      1 s |     \x1b[32mmet\x1b[0m |"
    assert head == "| work  |     time |         |"
