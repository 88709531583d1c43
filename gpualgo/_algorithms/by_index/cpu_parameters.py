"""What the kernels of a reduction by index on the CPU are told: slots of a table of words."""

from __future__ import annotations

SHARE = 1 << 16  # elements of a task, at least; and four for each index
MOST_SHARES = 16
# Where a start is given and there are so few tasks, elements are folded into the results, by one:
# 2^20 float64 sums by 2^20 indices take 1.7 ms, with tables 8.9, by 2^16 1.3 and on two cores 2.5.
DIRECT_SHARES = 4
JOINED = 1 << 12  # indices of a task that joins tables

# Elements, of a task, tasks, results; whether there is a start, where, and how many elements behind
# it that of the next result is (0: it begins all); where indices, tables and their marks lie.
(NUM_ITEMS, SHARE_ITEMS, NUM_SHARES, SIZE, IS_START, START, START_STEP, INDICES, VALUES, MARKS,
 X) = range(11)  # fmt: skip
# Then an address of each of the element's numbers, and of each of the results'.
