"""Argument table slots of the kernels of joint and weighted histograms."""

from __future__ import annotations

MOST = 1024  # samples per call of a stage; buffers stay in L1
SLOT_BYTES = 4 * MOST  # of scratch memory: slots of a run, then those of one dimension

# The table of arguments. After TAIL follow the samples' dimensions, the extents between rows, those
# within a row, and READS fields: each as `packing.fetched` takes it, then its strides between and
# within rows; weights are last. PLACES: offset in scratch memory of the addresses of a run's
# numbers. COMPUTE: 0, or the function that computes samples from them, to COMPUTED.
(DIMS, LENGTH, ROWS, SPLIT, ADD, FINISH) = range(6)
(TABLES, TARGET, ROW_BYTES, SLOTS, PLANE, OUTER, INNER) = range(6, 13)
(READS, PLACES, COMPUTE, COMPUTED, TAIL) = range(13, 18)

# One of DIMS dimensions, which follow TAIL: the stage that finds its slots.
(STAGE, STAGE_TABLE, BINS, STAGE_SIZE) = range(4)

# Head of a thread's tables: the lowest and highest digit that it has added to, and whether there is
# a non-finite weight.
(LOW, HIGH, SPECIALS, HEAD) = range(4)
NO_LOW, NO_HIGH = 1 << 30, -1
IS_NAN, IS_POSITIVE, IS_NEGATIVE = 1, 2, 4  # kinds of non-finite weights


def span_of(mantissa: int) -> int:
    """Return the maximum number of digits that a number of such a float spans."""
    return 3 if mantissa >= 32 else 2
