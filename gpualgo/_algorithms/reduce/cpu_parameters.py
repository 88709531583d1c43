"""What the two kernels of a reduction on the CPU take: sizes, and places in their table."""

from __future__ import annotations

TILE = 4096  # elements folded at once; the buffers of a tile stay in L1/L2
COLUMNS = 2048  # columns folded at once
ROWS = 512  # rows folded one after another into a block's partials

# Places in a kernel's table of arguments; after TAIL come, of the kept dimensions, lengths, strides
# of x and strides of out, then, of the reduced dimensions, lengths and strides of x.
(X, OUT, INIT, PACK, LENGTH, WIDTH, COUNT, TILES, TILE_STRIDE) = range(9)
(TILE_MAJOR, DIRECT, CAST, KEPT, REDUCED, X_SIZE, X_STRIDE, OUT_STRIDE, TAIL) = range(9, 18)


def scratch_bytes(column: bool, x_size: int, a_size: int) -> int:
    """Return how much scratch memory a kernel needs for elements and sums of these sizes."""
    if column:
        return COLUMNS * (4 * x_size + 5 * a_size) + 64
    return TILE * x_size + (TILE + TILE // 2 + TILE // 4 + 32) * a_size
