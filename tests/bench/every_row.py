"""One test for each row, small: all contenders' results are checked.

pytest tests/bench/every_row.py -k scan

Nothing is asserted of times: `python -m bench` measures them, at the rows' own sizes.
"""

from __future__ import annotations

import pytest

from bench import peers, rows, timing
from bench.row import Row

SMALL = 1 << 17  # of the rows that take a hundred thousand from the top as well
ROWS = {
    (row.name, row.clock): row if row.of_its_size or row.n <= SMALL else row.at(SMALL)
    for row in reversed(rows.all_rows())
}


@pytest.mark.parametrize("row", list(reversed(ROWS.values())), ids=str)
def test_row(row: Row) -> None:
    if row.clock != "cpu" and peers.gpu() is None:
        pytest.skip("there is no GPU, or no CuPy")
    measured = timing.run(row, rounds=1, scale=0.05)
    assert all(measured.times[who].median > 0 for who in (peers.OURS, *measured.times))
    peers.free_memory()
