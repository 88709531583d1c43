"""What happens to an operator, and how transforms, differences, finds and extremes go."""

from __future__ import annotations

from itertools import accumulate, pairwise

from svg import Picture


def linking() -> Picture:
    p = Picture("linking", 760, 230, "A kernel and a lambda, compiled apart and linked into one")
    p.box(20, 20, 220, 50, "lambda a, b: a + b", "your operator", colour="a")
    p.box(20, 140, 220, 50, "reduce.cuh", "the algorithm, CUDA C++", colour="b")
    p.arrow(242, 45, 300, 45)
    p.arrow(242, 165, 300, 165)
    p.box(302, 20, 170, 50, "numba", "for these dtypes", colour="p")
    p.box(302, 140, 170, 50, "NVRTC", "kept on disk", colour="p")
    p.arrow(474, 50, 540, 92)
    p.arrow(474, 160, 540, 118)
    p.box(542, 76, 190, 58, "one kernel,", "the operator inlined", colour="d")
    p.text(542, 158, "linked by nvJitLink", kind="small")
    p.text(
        20, 220, "On a CPU numba and LLVM do the same with kernels that it compiles.", kind="small"
    )
    return p


def transform() -> Picture:
    p = Picture(
        "transform",
        760,
        250,
        "Separate expressions pass over memory again and again; one lambda once",
    )
    p.text(20, 28, "x * 2 + 1, step by step", kind="strong")
    for k, (name, colour) in enumerate((("x", "a"), ("x * 2", "p"), ("result", "d"))):
        p.box(20 + k * 130, 44, 90, 120, name, colour=colour)
        if k < 2:
            p.arrow(112 + k * 130, 104, 148 + k * 130, 104)
    p.lines(20, 190, "two kernels, an array between:", "4 n elements cross the bus")
    p.line((400, 20), (400, 220), kind="dash")
    p.text(430, 28, "transform(lambda a: a * 2 + 1, x)", kind="strong")
    p.box(430, 44, 90, 120, "x", colour="a")
    p.arrow(522, 104, 618, 104)
    p.text(570, 94, "a * 2 + 1", kind="code", anchor="middle")
    p.box(620, 44, 90, 120, "result", colour="d")
    p.lines(430, 190, "one kernel, the value between in a register:", "2 n elements cross the bus")
    return p


def adjacent_difference() -> Picture:
    p = Picture("adjacent_difference", 760, 180, "Each element and the one before it")
    x = [3, 1, 4, 1, 5, 9]
    y = [x[0], *(b - a for a, b in pairwise(x))]
    cell = 56
    p.cells(20, 30, x, "a", cell)
    p.cells(20, 112, y, "dbbbbb", cell)
    for k in range(6):
        p.arrow(20 + (k + 0.5) * cell, 60, 20 + (k + 0.5) * cell, 110)
        if k:
            p.arrow(20 + (k - 0.4) * cell, 60, 20 + (k + 0.4) * cell, 110, kind="dash")
    p.lines(390, 48, "x: a thread loads 16 bytes of neighbours")
    p.lines(390, 130, "y[0] = x[0], y[i] = op(x[i], x[i-1])")
    p.text(
        20,
        168,
        "The element before a thread's own is in a line of cache that was loaded anyway.",
        kind="small",
    )
    return p


def rolling() -> Picture:
    p = Picture("rolling", 760, 240, "A window: a suffix of a block and a prefix of the next")
    blocks, cell = [[3, 1, 4], [1, 5, 9], [2, 6, 5]], 56
    rows = [
        [x for block in blocks for x in block],
        [x for block in blocks for x in [*accumulate(block[::-1])][::-1]],
        [x for block in blocks for x in accumulate(block)],
    ]
    for y, row in zip((30, 90, 150), rows, strict=True):
        p.cells(20, y, row, "aaabbbccc", cell)
    for k in (1, 2):
        p.line((20 + 3 * k * cell, 20), (20 + 3 * k * cell, 190), kind="dash")
    p.arrow(20 + 1.5 * cell, 118, 20 + 2.9 * cell, 206)
    p.arrow(20 + 3.5 * cell, 178, 20 + 3.1 * cell, 206)
    p.box(20 + 2 * cell, 206, 2 * cell, 30, "y[1] = 5 + 1")
    p.lines(540, 48, "x, in blocks of three")
    p.lines(540, 108, "suffixes: a scan from the right")
    p.lines(540, 168, "prefixes: a scan from the left")
    p.lines(540, 226, "each window: one more call of op")
    return p


def find() -> Picture:
    p = Picture(
        "find", 760, 230, "Finding and counting: reductions of marks that are never in memory"
    )
    x = [1, 5, 7, 2, 8, 3]
    p.cells(20, 30, x, "pbbpbp")
    p.lines(260, 48, "x, read once; marked where the predicate is true")
    p.cells(20, 78, ["-", 1, 2, "-", 4, "-"], "a")
    p.cells(20, 116, [0, 1, 1, 0, 1, 0], "c")
    p.lines(260, 96, "find: the place of each that is marked")
    p.lines(260, 134, "count: the marks themselves")
    p.box(20, 170, 180, 34, "find: the least, 1", colour="a")
    p.box(220, 170, 180, 34, "count: their sum, 3", colour="c")
    p.lines(420, 192, "one reduction, one launch")
    return p


def extremes() -> Picture:
    p = Picture("extremes", 760, 250, "argmax: pairs of a value and its place")
    x = [3, 9, 4, 9]
    cell = 80
    p.cells(20, 30, [f"{v}, {k}" for k, v in enumerate(x)], "a", cell)
    p.lines(380, 48, "a value, and its place, which is counted and not read")
    for k, winner in enumerate(("9, 1", "9, 3")):
        for side in (0, 1):
            p.arrow(20 + (2 * k + side + 0.5) * cell, 60, 20 + (2 * k + 1) * cell, 98)
        p.cells(20 + (2 * k + 0.5) * cell, 100, [winner], "b", cell)
        p.arrow(20 + (2 * k + 1) * cell, 130, 20 + 2 * cell, 168)
    p.cells(20 + 1.5 * cell, 170, ["9, 1"], "c", cell)
    p.lines(
        380, 118, "the greater one wins, of equal ones the first;", "NaN comes before all numbers"
    )
    p.lines(380, 188, "argmax is 1")
    p.text(
        20,
        236,
        "It does not matter how pairs are grouped: the result is the same everywhere.",
        kind="small",
    )
    return p


ALL = [linking, transform, adjacent_difference, rolling, find, extremes]
