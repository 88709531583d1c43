"""One test for each row, small: all contenders' results are checked, and their times printed.

pytest bench/ -k scan

Nothing is asserted of times: `python -m bench` measures them, at the rows' own sizes.
"""

from __future__ import annotations

import pytest

from bench import catalog, peers, timing
from bench.conftest import TIMES
from bench.peers import OURS
from bench.row import Row
from bench.timing import Effort

SMALL = 1 << 17  # of the rows that take a hundred thousand from the top as well


def small_rows() -> list[Row]:
    found: dict[tuple[str, str], Row] = {}
    for row in catalog.all_rows():
        small = row if row.of_its_size or row.n <= SMALL else row.at(SMALL)
        found.setdefault((row.name, row.clock), small)
    return list(found.values())


@pytest.mark.parametrize("row", small_rows(), ids=str)
def test_row(row: Row) -> None:
    if row.clock != "cpu" and peers.gpu() is None:
        pytest.skip("there is no GPU, or no CuPy")
    measured = timing.run(row, Effort(rounds=1, scale=0.05))
    TIMES.append(measured)
    assert all(measured.times[who].median > 0 for who in (OURS, *measured.times))
    peers.free_memory()
