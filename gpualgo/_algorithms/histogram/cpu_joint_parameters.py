"""What the kernels of joint and weighted histograms take: places in their tables of arguments."""

from __future__ import annotations

MOST = 1024  # samples that go through the stages at once: buffers stay in L1
SLOT_BYTES = 4 * MOST  # of scratch memory: slots of a run, then those of one dimension

# Places in the table of arguments; after TAIL come the samples' dimensions, the extents of those
# that tell rows apart, of those within a row, and the READS leaves: each as `packing.fetched` takes
# it, then its strides, of rows and within a row. That of weights is the last. PLACES is where in
# scratch memory the addresses of a run's numbers are; COMPUTE, if it is not 0, makes those of
# samples of them, in memory at COMPUTED.
(DIMS, LENGTH, ROWS, SPLIT, ADD, FINISH) = range(6)
(TABLES, TARGET, ROW_BYTES, SLOTS, PLANE, OUTER, INNER) = range(6, 13)
(READS, PLACES, COMPUTE, COMPUTED, TAIL) = range(13, 18)

# A dimension: how slots are found in it. DIMS of these follow TAIL.
(STAGE, STAGE_TABLE, BINS, STAGE_SIZE) = range(4)

# Places at the beginning of a thread's tables: between which digits it has added, and whether there
# is something that is not finite.
(LOW, HIGH, SPECIALS, HEAD) = range(4)
NO_LOW, NO_HIGH = 1 << 30, -1
IS_NAN, IS_POSITIVE, IS_NEGATIVE = 1, 2, 4  # what is not finite


def span_of(mantissa: int) -> int:
    """Return in how many digits a number of such a float may lie, at most."""
    return 3 if mantissa >= 32 else 2
