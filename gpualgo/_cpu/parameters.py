"""Layouts of the tables of words that kernels of several algorithms read."""

from __future__ import annotations

# One array's numbers, which a kernel needs dense and in its own type: the address and the size of a
# number; whether they are dense already, else the packer's address (0: packed together with an
# earlier array) and the offset of the copy in scratch memory; the converter's address (0: none) and
# the offset of its result. See `layout.leaf` and `packing.fetched`.
START, SIZE, DIRECT, PACK, PACKED, CONVERT, CONVERTED, LEAF = range(8)

# Launches by a built-in function, on one table after the other in one block of words: the block's
# length and address, the numbers of slots that each call fills, of slots for addresses in scratch
# memory, and of launches. From LAUNCH_SLOTS on: the indices of the former slots; pairs of an index
# and an offset in scratch memory; for each launch the code's address, its table's index in the
# block, and its number of tasks.
(LAUNCH_WORDS, LAUNCH_TABLE, LAUNCH_NUM_SLOTS, LAUNCH_NUM_INNER, LAUNCH_NUM_STEPS,
 LAUNCH_SLOTS) = range(6)  # fmt: skip

# A job that threads share (direct_kernels.py). Each word that is written while the job runs has its
# own cache line; words that are only read share one.
JOB_SEQUENCE, JOB_NEXT, JOB_INSIDE, JOB_FAILED, JOB_STOPPED, JOB_ENTRY = range(0, 48, 8)
JOB_TABLE, JOB_TASKS, JOB_PIECE, JOB_MEMBERS = range(JOB_ENTRY + 1, JOB_ENTRY + 5)
JOB_WORDS = JOB_ENTRY + 8

# A copy of memory: target, source, number of bytes, and bytes in one task.
TARGET, SOURCE, SIZE_OF_ALL, PIECE, COPY_WORDS = range(5)
