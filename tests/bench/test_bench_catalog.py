"""The benchmark's rows list themselves without a GPU, and the targets are of rows that exist."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import bench
from bench import rows as catalog
from bench.peers import OURS
from bench.row import Row, Times, size_of, size_text
from bench.tables import Target, targets

ROWS = catalog.all_rows()
STARTED = catalog.all_rows(["startup"])


def test_rows_differ_and_tell_what_they_are_about() -> None:
    assert len({row.key for row in ROWS}) == len(ROWS) > 700
    assert {row.clock for row in ROWS} == {"cpu", "device", "host", "wall"}
    assert {row.algorithm for row in ROWS} == set(catalog.ALGORITHMS) - set(catalog.ON_REQUEST)


def test_rows_that_are_run_on_request() -> None:
    pytest.importorskip("distributed")
    rows = catalog.chosen(catalog.ON_REQUEST)
    assert {row.algorithm for row in rows} == set(catalog.ON_REQUEST)
    assert len({row.key for row in [*rows, *ROWS]}) == len(rows) + len(ROWS)


def test_every_target_is_of_a_row() -> None:
    keys = {row.key for row in [*ROWS, *STARTED]}
    assert [key for key in targets() if key not in keys] == []
    assert len(targets()) > 400
    assert all(0 < target.limit < 10 for target in targets().values())


def test_every_source_of_cub_is_there() -> None:
    sources = {row.calls["CUB"].cub_source for row in ROWS if "CUB" in row.calls}
    folder = Path(bench.__path__[0]) / "peers"
    assert {f"{name}.cu" for name in sources} == {path.name for path in folder.glob("*.cu")}


@pytest.mark.parametrize(
    ("choice", "is_right"),
    [
        ({"among": ("scan",)}, lambda row: row.algorithm == "scan"),
        ({"device": "cpu"}, lambda row: row.clock == "cpu"),
        ({"device": "cuda"}, lambda row: row.clock in ("device", "host", "wall")),
        ({"among": ("startup",), "device": "cuda"}, lambda row: "CPU" not in row.name),
        ({"text": "over axis 1"}, lambda row: "over axis 1" in row.name),
        ({"quick": True}, lambda row: row.quick),
        ({"sizes": (1 << 12, 1 << 21)}, lambda row: row.n in (1 << 12, 1 << 21)),
    ],
)
def test_choice(choice: dict[str, Any], is_right: object) -> None:
    assert callable(is_right)
    found = catalog.chosen(**choice)
    assert found
    assert [str(row) for row in found if not is_right(row)] == []


def test_sizes_make_each_row_once_with_its_bytes() -> None:
    found = catalog.chosen(("reduce",), sizes=(1 << 12,))
    assert len({row.key for row in found}) == len(found)
    (sums,) = [row for row in found if row.name == "reduce sum f32"]
    assert sums.bytes_moved == 4 << 12
    layouts = catalog.chosen(("layouts",), sizes=(1 << 12,))
    assert layouts == [], "rows of one size are not made of another"


@pytest.mark.parametrize(("text", "n"), [("2^20", 1 << 20), ("1000", 1000), (" 2**4 ", 16)])
def test_size(text: str, n: int) -> None:
    assert size_of(text) == n
    assert size_of(size_text(n)) == n


@pytest.mark.parametrize(
    "text", ["", "two", "2^", "0", "-3", "2^64", "2^9999999999", "2^-1", "10^30", "1.5"]
)
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        size_of(text)


def _measured(**medians: float) -> Row:
    times = {who: Times(value, value, value, 1) for who, value in medians.items()}
    row = Row("sort f32", 8, "device", bytes_moved=16e9)
    return replace(row, times=times)


def test_targets_are_ratios_to_their_peers_or_times() -> None:
    row = _measured(gpualgo=2.0, CUB=4.0, torch=1.0)
    best = Target(row.key, 0.8)
    of_cub = Target(row.key, 0.8, peers=("CUB",))
    of_none = Target(row.key, 0.8, peers=("JAX",))
    in_time = Target(row.key, 2.0, is_time=True)
    assert (best.reached(row), best.verdict(row)) == (2.0, "not met")
    assert (of_cub.reached(row), of_cub.verdict(row)) == (0.5, "met")
    assert of_none.verdict(row) == "not run"
    assert in_time.verdict(row) == "met"
    assert best.verdict(None) == "not run"
    assert row.rate() == 8.0
    assert row.rate(OURS) == 8.0
