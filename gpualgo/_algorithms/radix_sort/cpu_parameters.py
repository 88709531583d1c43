"""Argument table slots and sizes of the CPU kernels of the radix sort and around NumPy's sort."""

from __future__ import annotations

BLOCK = 256  # keys converted to codes at once; they stay in L1
CODES_BYTES = 8 * BLOCK

# The table of arguments. VALUES 0: a key's position is its value. OUT_KEYS 0: only values are
# written. COUNTS holds a number for each part and bucket, SURVEY two words for each part. ENTRY is
# the kernel that `invoke` runs.
KEYS, VALUES, OUT_KEYS, OUT_VALUES, LENGTH, PARTS, COUNTS, SURVEY, SHIFT, BUCKETS = range(10)
ENTRY, CODES, KEY_BYTES, FLIP, INFINITY, USED, SIZE = range(10, 17)

LINE = 64  # bytes written to memory at once

SHORT = 128  # up to this many keys, each is compared with all others
ROW_BITS = 8  # digit width

# Rows append to that table: addresses of kernels; the size of values; for keys, values and their
# outputs in turn, the function that packs a strided row (0 if dense), and the stride along the row.
# Then the lengths of the outer dimensions and their strides in each array.
FIND, COUNT, PLACE, MOVE, TAKE, VALUE_BYTES, PACKS = range(SIZE, SIZE + 7)
STEPS, NDIM, HEAD = PACKS + 4, PACKS + 8, PACKS + 9

# Scratch memory of a thread: its own table, addresses of the row, counts, the survey's result, work
# space of the kernels; then two buffers for keys and two for values.
ROW = 8 * SIZE
ROW_COUNTS = ROW + 32
ROW_SURVEY = ROW_COUNTS + (8 << ROW_BITS)
ROW_WORK = ROW_SURVEY + 16
BUFFERS = (ROW_WORK + CODES_BYTES + (8 << ROW_BITS) + 63) // 64 * 64


def scratch_bytes(buckets: int) -> int:
    """Return the kernel's scratch memory size."""
    return (2 * LINE + 8) * buckets + CODES_BYTES


# --- A merge of runs. SOURCE: address of the runs; SORTED: address of the merged keys.

SOURCE, SORTED, NUM_KEYS, RUNS, PIECES = range(5)

LANES = 4  # of a piece, merged in an interleaved loop
MERGE_BYTES = 8 * 3 * (LANES + 1)  # of scratch memory
