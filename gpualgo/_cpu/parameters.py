"""Layouts of the tables of words that kernels of several algorithms read."""

from __future__ import annotations

# One array's numbers, which a kernel needs dense and in its own type: the address and the size of a
# number; whether they are dense already, else the packer's address (0: packed together with an
# earlier array) and the offset of the copy in scratch memory; the converter's address (0: none) and
# the offset of its result. See `layout.leaf` and `packing.fetched`.
START, SIZE, DIRECT, PACK, PACKED, CONVERT, CONVERTED, LEAF = range(8)

# One of several launches in sequence: addresses of the code and the table, and the number of tasks.
ENTRY, TABLE, TASKS, STEP = range(4)

# A launch by a built-in function: the code's address, the number of tasks, the table's length and
# address, the number of slots that each call fills, and from PLACES on the slots' indices.
LAUNCH_ENTRY, LAUNCH_TASKS, LAUNCH_WORDS, LAUNCH_TABLE, LAUNCH_NUM_SLOTS, LAUNCH_SLOTS = range(6)

# A row's fold by a built-in function: the code's address; elements in a tile, the maximum number of
# tiles, and the offset of their results in scratch memory; the table's length and address, and the
# indices in it of the initial value's address, the length, the number of tiles, source and target.
(FOLD_ENTRY, FOLD_TILE, FOLD_MOST, FOLD_PARTIALS, FOLD_WORDS, FOLD_TABLE, FOLD_INIT, FOLD_LENGTH,
 FOLD_TILES, FOLD_START, FOLD_OUT) = range(11)  # fmt: skip

# A job that threads share (direct_kernels.py). Each word that is written while the job runs has its
# own cache line; words that are only read share one.
JOB_SEQUENCE, JOB_NEXT, JOB_INSIDE, JOB_FAILED, JOB_STOPPED, JOB_ENTRY = range(0, 48, 8)
JOB_TABLE, JOB_TASKS, JOB_PIECE, JOB_MEMBERS = range(JOB_ENTRY + 1, JOB_ENTRY + 5)
JOB_WORDS = JOB_ENTRY + 8

# A copy of memory: target, source, number of bytes, and bytes in one task.
TARGET, SOURCE, SIZE_OF_ALL, PIECE, COPY_WORDS = range(5)
