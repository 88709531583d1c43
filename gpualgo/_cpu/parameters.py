"""Places in a table that kernels of several algorithms read."""

from __future__ import annotations

# Numbers that a kernel needs one after another, in the type that it computes with: where they lie
# and how large one is; whether they lie so already, else who packs them, and where in scratch
# memory (PACK 0: a number before them has brought them along); who converts them, if anyone does,
# and where to. See `layout.leaf` and `packing.fetched`.
START, SIZE, DIRECT, PACK, PACKED, CONVERT, CONVERTED, LEAF = range(8)

# Launches that follow one another: of each the code's address, its table's, and how many tasks.
ENTRY, TABLE, TASKS, STEP = range(4)

# What a function that launches has of its kernel: the code's address, how many tasks, how many
# words its table has and where that is, how many of them each call brings, and from PLACES on where
# these are.
LAUNCH_ENTRY, LAUNCH_TASKS, LAUNCH_WORDS, LAUNCH_TABLE, LAUNCH_BRINGS, LAUNCH_PLACES = range(6)

# What a function that folds a row has of its kernel: the code's address; how many elements are a
# tile, how many tiles a row has at most, and where in scratch memory there is room for what they
# leave; the table, and where in it the address of a first element, the length, the number of tiles,
# the source and the target are.
(FOLD_ENTRY, FOLD_TILE, FOLD_MOST, FOLD_PARTIALS, FOLD_WORDS, FOLD_TABLE, FOLD_INIT, FOLD_LENGTH,
 FOLD_TILES, FOLD_START, FOLD_OUT) = range(11)  # fmt: skip

# A job that threads share (team_kernels.py): words that are written while it runs lie in a cache
# line of their own each, those that are only read together.
JOB_SEQUENCE, JOB_NEXT, JOB_INSIDE, JOB_FAILED, JOB_STOPPED, JOB_ENTRY = range(0, 48, 8)
JOB_TABLE, JOB_TASKS, JOB_PIECE, JOB_MEMBERS = range(JOB_ENTRY + 1, JOB_ENTRY + 5)
JOB_WORDS = JOB_ENTRY + 8

# A copy of memory: where to, from where, how many bytes, and how many of them are a task.
TARGET, SOURCE, SIZE_OF_ALL, PIECE, COPY_WORDS = range(5)
