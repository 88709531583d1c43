"""How reductions, scans, segments, keys and histograms go."""

from __future__ import annotations

from itertools import accumulate

from svg import CELL, Picture

X = [[3, 1, 4, 1], [5, 9, 2, 6], [5, 3, 5, 8], [9, 7, 9, 3]]
LEFT, GAP = 20, 14
WIDTH = 4 * CELL + GAP


def _tiles(p: Picture, y: float, rows: list[list[int]], colours: str = "aaaa") -> None:
    for k, row in enumerate(rows):
        p.cells(LEFT + k * WIDTH, y, row, colours[k])


def _middle(k: int) -> float:
    return LEFT + k * WIDTH + 2 * CELL


def reduce() -> Picture:
    p = Picture("reduce", 760, 300, "A reduction: tiles, partials, one result")
    _tiles(p, 20, X)
    p.lines(640, 30, "x, read once,", "16 bytes a load")
    sums = [sum(row) for row in X]
    for k, total in enumerate(sums):
        p.arrow(_middle(k), 52, _middle(k), 84)
        p.text(_middle(k) + 8, 74, "fold", kind="small")
        p.box(_middle(k) - 52, 86, 104, 34, f"block {k}: {total}", colour="b")
        p.arrow(_middle(k), 122, LEFT + 220 + k * CELL + CELL / 2, 168)
    p.lines(640, 100, "elements stay", "in their order")
    p.cells(LEFT + 220, 170, sums, "b")
    p.lines(640, 180, "a place for each", "partial")
    p.arrow(LEFT + 220 + 2 * CELL, 200, LEFT + 220 + 2 * CELL, 238)
    p.text(
        LEFT + 220 + 2 * CELL + 10,
        223,
        "the last block to finish folds them by index",
        kind="small",
    )
    p.cells(LEFT + 220 + 1.5 * CELL, 240, [sum(sums)], "c")
    p.text(
        LEFT, 288, "Which block is last depends on timing; what it computes does not.", kind="small"
    )
    return p


def scan() -> Picture:
    p = Picture("scan", 760, 356, "A scan in one pass: aggregates, look-back, prefixes")
    _tiles(p, 20, X)
    p.lines(640, 30, "each tile is read", "once, and stays", "on the chip")
    sums = [sum(row) for row in X]
    before = [0, *accumulate(sums[:-1])]
    for k, total in enumerate(sums):
        p.arrow(_middle(k), 50, _middle(k), 86)
        p.box(_middle(k) - 52, 88, 104, 32, f"sum {total}", colour="b")
        p.arrow(_middle(k), 122, _middle(k), 176)
        p.box(_middle(k) - 52, 178, 104, 32, f"before: {before[k]}", colour="c")
        p.arrow(_middle(k), 212, _middle(k), 258)
        if k:
            p.arrow(_middle(k - 1) + 30, 122, _middle(k) - 34, 176, kind="dash")
            p.arrow(_middle(k - 1) + 53, 194, _middle(k) - 54, 194)
    p.lines(640, 98, "published", "at once")
    p.lines(640, 184, "look back: folded", "from left to right")
    done = [[before[k] + v for v in accumulate(row)] for k, row in enumerate(X)]
    _tiles(p, 260, done, "dddd")
    p.lines(640, 272, "y, written", "once")
    p.text(
        LEFT,
        314,
        "2 n elements cross the memory bus, as in a copy. A prefix has the same bits",
        kind="small",
    )
    p.text(LEFT, 331, "whichever block computes it, and whenever.", kind="small")
    return p


def segments() -> Picture:
    p = Picture("segments", 760, 300, "Segments between offsets, and who folds them")
    values = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3]
    p.cells(LEFT, 40, values, "aabcccccccccccdd")
    p.text(LEFT, 30, "x", kind="code")
    for place, name in ((0, "0"), (2, "2"), (3, "3 3"), (14, "14"), (16, "16")):
        p.line((LEFT + place * CELL, 36), (LEFT + place * CELL, 84))
        p.text(LEFT + place * CELL, 100, name, kind="code", anchor="middle")
    p.text(LEFT + 16 * CELL + 24, 100, "offsets", kind="small")
    p.cells(LEFT + 8 * CELL - 17, 142, [4, 4, 0, 60, 12], "abpcd", height=30)
    p.text(LEFT + 14 * CELL, 162, "a result each; of none the identity", kind="small")
    for place, k in ((1, 0), (2.5, 1), (8.5, 3), (15, 4)):
        p.arrow(LEFT + place * CELL, 106, LEFT + (8 + k) * CELL, 140)
    p.box(LEFT, 206, 210, 44, "short: a lane of a warp", "for each 32 elements", colour="a")
    p.box(LEFT + 230, 206, 210, 44, "longer: the 32 lanes", "of a warp together", colour="b")
    p.box(
        LEFT + 460,
        206,
        240,
        44,
        "long: chunks, which all warps",
        "take in turn, joined by index",
        colour="c",
    )
    p.text(
        LEFT,
        284,
        "One giant segment among millions of tiny ones costs what its elements cost.",
        kind="small",
    )
    return p


def by_key() -> Picture:
    p = Picture("by_key", 760, 290, "Reductions by key: runs of neighbours, or groups after a sort")
    keys, values = [7, 5, 7, 7, 5], [1, 2, 3, 4, 5]
    p.text(20, 26, "keys, in any order", kind="strong")
    p.cells(20, 40, keys, "cacca")
    p.cells(20, 70, values, "cacca")
    p.arrow(105, 102, 105, 134)
    p.lines(116, 122, "stable radix sort")
    p.cells(20, 138, [5, 5, 7, 7, 7], "aaccc")
    p.cells(20, 168, [2, 5, 1, 3, 4], "aaccc")
    p.arrow(105, 200, 105, 232)
    p.lines(116, 220, "one pass over runs")
    p.cells(70, 236, ["5: 7", "7: 8"], "ac", 70)
    p.text(300, 26, "consecutive=True", kind="strong")
    p.cells(300, 40, keys, "cadda")
    p.cells(300, 70, values, "cadda")
    p.arrow(385, 102, 385, 232)
    p.lines(396, 160, "one pass over runs:", "no sort")
    p.cells(300, 236, ["7: 1", "5: 2", "7: 7", "5: 5"], "cada", 50)
    p.text(545, 26, "reduce_by_index", kind="strong")
    p.cells(545, 40, [2, 0, 2, 2], "caccc")
    p.cells(545, 70, [1, 2, 3, 4], "caccc")
    p.arrow(613, 102, 613, 232)
    p.lines(624, 150, "a table for each", "warp, joined", "in their order")
    p.cells(545, 236, [2, 0, 8, 0], "apcp")
    p.lines(545, 282, "places 0 to size - 1")
    return p


def histogram() -> Picture:
    p = Picture("histogram", 760, 330, "A histogram: private counters, joint counters, result")
    p.text(20, 26, "x: n samples, read once", kind="small")
    p.cells(20, 36, [2, 0, 3, 3, 1, 3, 0, 2, 3, 1, 1, 3], "b")
    counts = [[1, 0, 1, 2], [1, 1, 1, 1], [0, 2, 0, 2]]
    for k, table in enumerate(counts):
        left = 20 + k * 4 * CELL + 8 * k
        p.arrow(20 + k * 4 * CELL + 2 * CELL, 66, left + 2 * CELL, 106)
        p.cells(left, 128, table, "a")
        p.text(left, 122, f"block {k}", kind="small")
        p.arrow(left + 2 * CELL, 158, 228 + (k - 1) * 20, 206)
    p.lines(
        470,
        128,
        "private counters in shared memory:",
        "replicas, 8, 16 or 32 bits wide,",
        "as bins ask for",
    )
    p.cells(160, 208, [2, 3, 2, 5], "c")
    p.lines(470, 214, "added once for each block;", "integers, so their order does not matter")
    p.arrow(228, 238, 228, 272)
    p.cells(160, 274, [2, 3, 2, 5], "d")
    p.lines(470, 284, "written by the last block")
    return p


ALL = [reduce, scan, segments, by_key, histogram]
