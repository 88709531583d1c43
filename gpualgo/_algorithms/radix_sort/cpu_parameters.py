"""What the kernels of the radix sort on the CPU take: sizes, and places in their tables."""

from __future__ import annotations

BLOCK = 256  # keys whose codes are made at once; they stay in L1
CODES_BYTES = 8 * BLOCK

# The table of arguments. VALUES 0: a key's position is its value. OUT_KEYS 0: only values are
# wanted. COUNTS holds a number for each part and bucket, SURVEY two words for each part. ENTRY is
# the kernel that `invoke` runs.
KEYS, VALUES, OUT_KEYS, OUT_VALUES, LENGTH, PARTS, COUNTS, SURVEY, SHIFT, BUCKETS = range(10)
ENTRY, CODES, KEY_BYTES, FLIP, INFINITY, USED, SIZE = range(10, 17)

LINE = 64  # bytes that go to memory at once

SHORT = 128  # keys up to which each is compared with all others
ROW_BITS = 8  # of a digit

# Rows have beyond that table: addresses of kernels; the size of values; for keys, values
# and their outputs in turn, the function that packs what is not dense, or 0, and the stride along
# the row. Then lengths of the outer dimensions, and their strides in each array.
FIND, COUNT, PLACE, MOVE, TAKE, VALUE_BYTES, PACKS = range(SIZE, SIZE + 7)
STEPS, NDIM, HEAD = PACKS + 4, PACKS + 8, PACKS + 9

# Scratch memory of a thread: a table of its own, addresses of the row, counts, what the survey
# finds, what kernels need; then two buffers for keys and two for values.
ROW = 8 * SIZE
ROW_COUNTS = ROW + 32
ROW_SURVEY = ROW_COUNTS + (8 << ROW_BITS)
ROW_WORK = ROW_SURVEY + 16
BUFFERS = (ROW_WORK + CODES_BYTES + (8 << ROW_BITS) + 63) // 64 * 64


def scratch_bytes(buckets: int) -> int:
    """Return how much scratch memory the kernel takes."""
    return (2 * LINE + 8) * buckets + CODES_BYTES
