"""What the functions of a scan on the CPU take: sizes, and places in their tables."""

from __future__ import annotations

COLUMNS = 256  # columns gone down at once
ABREAST = 4  # strips at once, as each step of one waits for its last; and tiles in a link

# Places in a kernel's table of arguments; its functions' follow at CHAIN_TAIL. A task is a link
# of a chain, and the next one to be taken is NEXT.
(AGGREGATE, FOLD, EMIT, NEXT, TASKS, CHAINS, LINKS, LINK_MAJOR) = range(8)
(FLAGS, AGGREGATES, AGGREGATE_BYTES, PREFIX_BYTES, SCRATCH_BYTES, PATIENCE) = range(8, 14)
CHAIN_TAIL = 14

# Places in the functions' own tables, for strips and for columns. After the tail come, of the outer
# dimensions, lengths, strides of x and strides of out. A link is SPAN strips, X_JUMP bytes after
# one another.
(X, OUT, INIT, LENGTH, TILE, X_STEP, OUT_STEP, OUTER) = range(8)
(IS_CUT, STRIPS, SPAN, X_JUMP, OUT_JUMP, STRIPS_TAIL) = range(8, 14)
(WIDTH, X_STRIDE, OUT_STRIDE, PACK, COLUMNS_TAIL) = range(8, 13)


def scratch_bytes(x_size: int, a_size: int) -> int:
    """Return how much scratch memory the functions need for elements of these sizes."""
    return COLUMNS * (x_size + 2 * a_size)
