"""Tables that were written by hand become results: figures, units, peers, whole tables."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
from support import REPOSITORY

from gpualgo._bench.results import Measured
from gpualgo._bench.support import OURS

PAGE = """# What ran

| | |
|---|---|
| date | 2026-01-02 |
| GPU | NVIDIA H200, compute capability 9.0 |
| driver | 580.1 |
| software | Python 3.12.3, NumPy 2.4.6, CuPy 14.2.0, PyTorch 2.11.0 |
| benchmark beside peers, `--quick`: the sizes with targets | 1acd9ea (below) |

## Host time of a call

| call | before | now |
|---|---:|---:|
| reduce | 9.28 | 9.02 |

#### Device time

| work | n | gpualgo | GB/s | CUB | CuPy | ratio | target |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
| reduce sum f32 (at 2a21a61, without CUB) | 2^20 | 5.44 µs | 771 | | 1.25 ms | 0.92 | ≤ 0.80 ✗ |

#### Selections

| work | 2^20 | 2^24 | 2^28 | peers at 2^28 | ratio |
| --- | ---: | ---: | ---: | --- | --- |
| top 10 f32 |  |  | 478 µs | CuPy 9.83 ms, torch, by value 5 s | 0.09 |

#### Others

| work | n | gpualgo | peers |
| --- | ---: | ---: | --- |
| argmax f32 | 2^28 | 245 µs | CuPy 251, torch 284 µs |

#### Start-up

| work | before | now |
| --- | ---: | ---: |
| a second lambda, same process | 264 ms | 160, 198, 180 ms |

## What falls short, and why
"""


@pytest.fixture(scope="module")
def importer() -> Any:
    path = REPOSITORY / "bench" / "import_markdown.py"
    spec = importlib.util.spec_from_file_location("import_markdown", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def medians(row: Measured) -> dict[str, float]:
    return {who: pytest.approx(times.median) for who, times in row.times.items()}


def test_rows_have_the_figures_of_the_cells(importer: Any) -> None:
    rows = importer.imported(PAGE).by_key
    assert medians(rows["reduce sum f32", 1 << 20, "device"]) == {OURS: 5.44e-6, "CuPy": 1.25e-3}
    assert medians(rows["top 10 f32", 1 << 28, "device"]) == {
        OURS: 478e-6, "CuPy": 9.83e-3, "torch, by value": 5.0,
    }  # fmt: skip
    assert medians(rows["argmax f32", 1 << 28, "device"]) == {
        OURS: 245e-6, "CuPy": 251e-6, "torch": 284e-6,
    }  # fmt: skip
    second = rows["a second lambda, same process", 1 << 20, "start"].times[OURS]
    assert (second.median, second.low, second.high) == pytest.approx((0.18, 0.16, 0.198))
    assert rows["reduce sum f32", 1 << 20, "device"].bytes_moved == 4 << 20
    assert len(rows) == 4


def test_head_says_where_they_are_from(importer: Any) -> None:
    told = importer.environment_of(PAGE)
    assert (told["gpu"], told["driver"], told["commit"]) == ("NVIDIA H200", "580.1", "1acd9ea")
    assert told["versions"]["cupy-cuda13x"] == "14.2.0"


def test_marked_page_has_the_same_tables_once(importer: Any) -> None:
    marked = importer.marked(PAGE, "x.json")
    assert marked.count("<!-- bench: x.json table name=") == 5
    assert importer.tables_of(marked) == importer.tables_of(PAGE)
    assert importer.marked(marked, "x.json") == marked
