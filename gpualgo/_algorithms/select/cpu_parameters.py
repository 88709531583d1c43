"""What the kernel of a selection on the CPU takes: sizes, and places in its table."""

from __future__ import annotations

from gpualgo._cpu.parameters import LEAF

CHUNK = 2048  # elements that are marked and moved up at once, in L1
PIECE = 32 * CHUNK  # of a task, where several threads share the elements
SLOTS = 128  # bytes for the addresses of what is read, and of an element's numbers

# The table of arguments. PLACES: the address of a word for each task: where its elements begin in
# the output, or, where COUNTS is set, how many it has. TOTAL: of all that is kept, behind which the
# rest begins, or -1 where there is none. COMPUTE, MARK: addresses of functions, or 0. What is kept
# MARK says; else, where COMPARES is set, elements of which a number differs from the one before's,
# as the records' functions say; else the number behind those that are written. MARK itself may
# compare each element with the one before (COMPARES, too). NUMBERS: a place in scratch memory for
# where elements stand, the last that is written, or 0. After TAIL come the lengths of the
# dimensions; for each array that is read what `layout.leaf` tells and its strides; for each that is
# written a record.
(LENGTH, NDIM, INPUTS, OUTPUTS, PER_TASK, PLACES, COUNTS, TOTAL, COMPUTE, COMPUTED, MARK, MARKS,
 PACKED, COMPARES, NUMBERS) = range(15)  # fmt: skip
TAIL = 15
READ = LEAF
OUT, SIZE, STRIDE, ROOM, PICK, PACK, DIFFERS = range(7)
WRITTEN = 7
