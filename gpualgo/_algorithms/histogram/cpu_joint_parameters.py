"""What the kernels of joint and weighted histograms take: places in their tables of arguments."""

from __future__ import annotations

MOST = 1024  # samples that go through the stages at once: buffers stay in L1
SLOT_BYTES = 4 * MOST  # of scratch memory: slots of a run, then those of one dimension

# Places in the table of arguments; after TAIL come the extents of the dimensions that tell rows
# apart, those within a row, the leaves of the dimensions and that of the weights.
(DIMS, LENGTH, ROWS, SPLIT, ADD, FINISH) = range(6)
(TABLES, TARGET, ROW_BYTES, SLOTS, PLANE, OUTER, INNER, TAIL) = range(6, 14)

# A leaf: what `packing.fetched` takes, then how slots are found of it; then come its strides, of
# rows and within a row. That of weights has no STAGE.
(STAGE, STAGE_TABLE, BINS, SIZE) = range(7, 11)

# Places at the beginning of a thread's tables: between which digits it has added, and whether there
# is something that is not finite.
(LOW, HIGH, SPECIALS, HEAD) = range(4)
NO_LOW, NO_HIGH = 1 << 30, -1
IS_NAN, IS_POSITIVE, IS_NEGATIVE = 1, 2, 4  # what is not finite


def span_of(mantissa: int) -> int:
    """Return in how many digits a number of such a float may lie, at most."""
    return 3 if mantissa >= 32 else 2
