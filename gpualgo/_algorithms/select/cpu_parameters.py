"""Argument table of the selection kernels on the CPU, and sizes."""

from __future__ import annotations

from gpualgo._cpu.parameters import LEAF

CHUNK = 2048  # elements that are marked and compacted at once, in L1
PIECE = 32 * CHUNK  # elements per task if several threads share them
SLOTS = 128  # bytes for the addresses of inputs and of an element's fields

# The argument table. PLACES: address of one word per task: the output index of its first element
# or, if COUNTS is set, its number of elements. TOTAL: number of all kept elements, after which the
# rest begins, or -1 without a rest. COMPUTE, MARK: addresses of functions, or 0. MARK decides which
# elements are kept. Without it: if COMPARES is set, elements of which a field differs from the
# previous element's, by the functions of the output records; else those marked by the input after
# the written ones. With COMPARES, MARK itself compares each element with the previous one. NUMBERS:
# offset in scratch memory of the elements' indices, the last output, or 0. After TAIL come the
# lengths of the dimensions; for each input the entries of `layout.leaf` and its strides; for each
# output a record.
(
    LENGTH,
    NDIM,
    INPUTS,
    OUTPUTS,
    PER_TASK,
    TASK_OFFSETS,
    COUNTS,
    TOTAL,
    COMPUTE,
    COMPUTED,
    MARK,
    MARKS,
    PACKED,
    COMPARES,
    NUMBERS,
) = range(15)
TAIL = 15
READ = LEAF
OUT, SIZE, STRIDE, CAPACITY, PICK, PACK, DIFFERS = range(7)
WRITTEN = 7
