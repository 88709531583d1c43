"""Argument tables of the kernels by key on the CPU, and sizes."""

from __future__ import annotations

from gpualgo._algorithms.select.cpu_parameters import CHUNK as CHUNK
from gpualgo._algorithms.select.cpu_parameters import PIECE as PIECE

# The argument table is that of a selection (select/cpu_parameters.py), with the inputs, comparisons
# and outputs of each field of a key, then of a value. After its records: FOLD: address of the
# function below. INIT: address of the initial value, or 0. PARTS: address of the parts' records,
# RECORD bytes each; 0 if there is one part, whose record is at STATE in scratch memory. XS, YS:
# offsets in scratch memory of the addresses of values and of results; RESULTS: of results that are
# not written to the output directly. IN_TURN: one thread processes all parts. TOTAL: where to write
# the number of runs.
(FOLD, INIT, PARTS, RECORD, STATE, XS, YS, RESULTS, KEYS, REDUCES, IN_TURN, NUM_PARTS,
 TOTAL) = range(13)  # fmt: skip
EXTRA = 13

# A part's record: numbers of runs that begin in it and before it, whether it has had an element,
# whether a run is open before it, the number of aggregates written last, and the address of the
# initial value; then the fold of its elements since its last run began, and the run open before it.
HEADS, BEFORE, HAS_VALUE, HAS_CARRY, NUM_WRITTEN, START_AT = range(6)
VALUE = 64  # bytes

# Steps of the function f(step, record, marks, xs, count, ys).
ELEMENTS, NEXT, LAST = range(3)


def value_bytes(itemsize: int) -> int:
    """Return the distance of a record's two values."""
    return -(-itemsize // 16) * 16
