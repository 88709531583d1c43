"""What the kernels by key on the CPU take: sizes, and places in their tables."""

from __future__ import annotations

from gpualgo._algorithms.select.cpu_parameters import CHUNK as CHUNK
from gpualgo._algorithms.select.cpu_parameters import PIECE as PIECE

# A table of arguments is one of a selection (select/cpu_parameters.py), which tells what is read,
# compared and written, for each number of a key, then of a value; behind its records:
# FOLD: the address of the function below; INIT: of the start value, or 0. PARTS: of the parts'
# records, RECORD bytes each; 0 where one part is all, whose record is at STATE in scratch memory.
# XS, YS: places there of the addresses of values and results, RESULTS of results that are not
# written where they belong. IN_TURN: one thread goes through all parts. TOTAL: where to write how
# many runs there are.
(FOLD, INIT, PARTS, RECORD, STATE, XS, YS, RESULTS, KEYS, REDUCES, IN_TURN, NUM_PARTS,
 TOTAL) = range(13)  # fmt: skip
EXTRA = 13

# A part's record: how many runs begin in it and before it, whether it has had an element, whether a
# run is open before it, how many aggregates were made at last, and where the start value is; then
# the fold of its elements from where its last run begins, and the run that is open before it.
HEADS, BEFORE, HAS_VALUE, HAS_CARRY, MADE, START_AT = range(6)
VALUE = 64  # bytes

# What the function does: f(step, record, marks, xs, count, ys).
ELEMENTS, NEXT, LAST = range(3)


def value_bytes(itemsize: int) -> int:
    """Return how far a record's two values lie apart."""
    return -(-itemsize // 16) * 16
