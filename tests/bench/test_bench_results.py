"""Results survive their file, and two runs are compared beyond noise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench import tables
from bench.peers import COPIES, OURS
from bench.row import Report, Row, Times, read

MACHINE = {"gpu": "NVIDIA H200", "cpu": "x", "cores": 2, "date": "2026-01-02", "commit": "abc"}


def steady(seconds: float, spread: float = 0.004) -> Times:
    """Return times of two rounds that lie within a share of their median."""
    low, high = seconds * (1 - spread / 2), seconds * (1 + spread / 2)
    return Times.of([[low, seconds, high], [low, seconds, high]])


def report(times: dict[str, Times], clock: str = "device", **environment: Any) -> Report:
    row = Row("reduce sum f32", 1 << 20, clock, bytes_moved=4 << 20)
    told = {**MACHINE, "versions": {"numpy": "2.0", "cupy-cuda13x": "14.0"}, **environment}
    return Report(told, (replace(row, times=times),))


def verdict(before: Report, after: Report) -> str:
    (found,) = tables.changes(before, after)
    return found.verdict


def test_times_hold_the_middle_of_samples_and_every_round() -> None:
    times = Times.of([[1.0, 2.0, 3.0, 100.0], [4.0, 5.0, 6.0, 7.0]], memory=12)
    assert times.median == 4.5
    assert times.rounds == (2.5, 5.5)
    assert times.low <= 2.5
    assert 6.0 <= times.high < 100.0
    assert (times.count, times.memory) == (8, 12)


def test_file_gives_the_same_report(tmp_path: Path) -> None:
    made = report({OURS: steady(2e-6), "CUB": steady(3e-6)})
    made = Report(made.environment, made.rows, ({"row": "", "who": "JAX", "reason": "µ"},))
    path = tmp_path / "new" / "a.json"
    made.write(path)
    assert read(path) == made
    assert path.read_text(encoding="utf-8") == str(read(path))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', '{"format": 1, "rows": []}'])
def test_other_files_are_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"other\.json holds no results of gpualgo's benchmark"):
        read(path)


@pytest.mark.parametrize(
    ("factor", "expected"),
    [(1.5, "slower"), (0.5, "faster"), (1.02, "same"), (0.99, "same"), (1.0, "same")],
)
def test_change_beyond_noise(factor: float, expected: str) -> None:
    before, after = report({OURS: steady(1e-3)}), report({OURS: steady(factor * 1e-3)})
    assert verdict(before, after) == expected


def test_wide_spreads_are_noise() -> None:
    before = report({OURS: steady(1e-3, 0.8)})
    assert verdict(before, report({OURS: steady(1.5e-3)})) == "same"
    assert verdict(before, report({OURS: steady(2e-3)})) == "slower"


def test_what_peers_share_is_the_machine() -> None:
    before = report({OURS: steady(1e-3), "CuPy": steady(2e-3), "NumPy": steady(3e-3)})
    shared = report({OURS: steady(1.5e-3), "CuPy": steady(3e-3), "NumPy": steady(3e-3)})
    ours = report({OURS: steady(1.5e-3), "CuPy": steady(2e-3), "NumPy": steady(3e-3)})
    assert verdict(before, shared) == "same"
    assert verdict(before, ours) == "slower"
    other = report({OURS: steady(1.5e-3), "CuPy": steady(3e-3)}, versions={"cupy-cuda13x": "15"})
    assert verdict(before, other) == "slower", "a peer of another version tells nothing"


def test_the_part_of_copies_is_not_the_machine() -> None:
    before = report({OURS: steady(1e-3), COPIES: steady(5e-4)})
    assert verdict(before, report({OURS: steady(2e-3), COPIES: steady(1e-3)})) == "slower"


def test_other_machines_are_compared_by_ratio() -> None:
    before = report({OURS: steady(1e-3), "CuPy": steady(2e-3)})
    alike = report({OURS: steady(3e-3), "CuPy": steady(6e-3)}, gpu="NVIDIA A100")
    worse = report({OURS: steady(5e-3), "CuPy": steady(6e-3)}, gpu="NVIDIA A100")
    alone = report({OURS: steady(5e-3)}, gpu="NVIDIA A100")
    assert [verdict(before, other) for other in (alike, worse, alone)] == ["same", "slower", "?"]
    assert "machines differ" in tables.summary(tables.changes(before, worse), before, worse)


def test_the_hosts_clock_tells_nothing_on_cores_that_others_use() -> None:
    times = [{OURS: steady(each)} for each in (1e-3, 5e-3)]
    for busy in ({"load": 1.5}, {"load": 0.1, "load_after": 3.5}):
        before, after = report(times[0], "cpu", **busy), report(times[1], "cpu")
        assert verdict(before, after) == "?"
        assert "Others used" in tables.summary(tables.changes(before, after), before, after)
        assert verdict(report(times[0], **busy), report(times[1])) == "slower", "device time"
    calm = report(times[0], "cpu", load=0.5, load_after=2.0)
    assert verdict(calm, report(times[1], "cpu")) == "slower"


def test_floors_follow_the_clock() -> None:
    before, after = ({OURS: steady(each, 0.001)} for each in (1e-3, 1.06e-3))
    assert verdict(report(before), report(after)) == "slower"
    assert verdict(report(before, "host"), report(after, "host")) == "same"
    (found,) = tables.changes(report(before, "host"), report(after, "host"), floor=0.05)
    assert found.verdict == "slower"


def test_tables_of_a_report() -> None:
    made = report({OURS: steady(2e-6), "CUB": steady(4e-6), "else": steady(5e-6)})
    (title, lines), *_ = tables.by_clock(made.rows).items()
    assert title == "Device time"
    by_name = dict(zip(*lines, strict=True))
    assert by_name["gpualgo"] == "2 µs"
    assert by_name["CUB"] == "4 µs"
    assert by_name["others"] == "else 5 µs"
    assert by_name["ratio"] == "0.50"
    assert by_name["target"] == "≤ 0.80 of CUB ✓"
    assert by_name["GB/s"] == "2097"
    assert tables.markdown(lines).count("\n") == 3


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.5, "1.5 s"), (0.0123, "12.3 ms"), (0.9996, "1 s"), (5e-8, "0.05 µs"), (4.56e-4, "456 µs")],
)
def test_time_text(seconds: float, text: str) -> None:
    assert tables.time_text(seconds) == text


def test_plots_are_drawn_and_repeat(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="it comes with the extra bench")
    from bench import plots

    small = report({OURS: steady(1e-5), "CUB": steady(2e-5)}).rows[0]
    larger = replace(small, n=1 << 22)
    copies = tuple(replace(row, algorithm="copy", name="copy f32")
                   for row in (small, larger))  # fmt: skip
    started = Row("first", 8, "start", times={OURS: steady(0.5), "CuPy": steady(2.0)})
    made = Report(report({}).environment, (small, larger, *copies, started))
    names = {path.name for path in plots.draw(made, tmp_path)}
    assert {"rate-device-reduce-sum-f32.svg", "ratios-device.svg", "start-up.svg"} <= names
    first = {name: (tmp_path / name).read_bytes() for name in names}
    plots.draw(made, tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in names} == first
