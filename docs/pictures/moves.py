"""How selections, runs, sorts, merges and searches go."""

from __future__ import annotations

from svg import CELL, Picture


def select() -> Picture:
    p = Picture("select", 760, 290, "A selection: marks, places, a dense result")
    x = [3, -1, 4, -1, 5, -9, 2, 6]
    marks = [int(v > 0) for v in x]
    for tile in range(2):
        left = 20 + tile * (4 * CELL + 60)
        part, kept = x[4 * tile : 4 * tile + 4], marks[4 * tile : 4 * tile + 4]
        p.text(left, 26, f"tile {tile}", kind="small")
        p.cells(left, 36, part, "".join("b" if m else "p" for m in kept))
        p.cells(left, 74, kept, "a")
        p.arrow(left + 2 * CELL, 104, left + 2 * CELL, 130)
        p.box(left + 8, 132, 4 * CELL - 16, 30, f"keeps {sum(kept)}", colour="c")
        places = [tile * 2 + sum(kept[:k]) for k in range(4)]
        for k in range(4):
            if kept[k]:
                p.arrow(left + 2 * CELL, 164, 20 + (places[k] + 2.7) * CELL, 216)
    p.arrow(166, 147, 222, 147)
    p.text(194, 140, "2", kind="code", anchor="middle")
    p.lines(400, 50, "x")
    p.lines(400, 90, "what the predicate says")
    p.lines(
        400, 142, "counts, published; the look-back tells each tile", "how many are kept before it"
    )
    p.cells(20 + 2.2 * CELL, 218, [v for v in x if v > 0], "b")
    p.lines(
        400,
        232,
        "moved up in shared memory, written in one piece:",
        "x is read once, what is kept written once",
    )
    p.text(
        20,
        276,
        "stable_partition writes the others behind them, in their order, too.",
        kind="small",
    )
    return p


def runs() -> Picture:
    p = Picture("runs", 760, 230, "Runs of equal elements")
    x = [5, 5, 7, 7, 7, 5, 2, 2]
    p.cells(20, 30, x, "aacccabb")
    p.lines(320, 48, "x, read once")
    heads = [1, 0, 1, 0, 0, 1, 1, 0]
    p.cells(20, 72, heads, "p")
    p.lines(320, 90, "differs from the one before: a run begins")
    for place, k in ((0, 0), (2, 1), (5, 2), (6, 3)):
        p.arrow(20 + (place + 0.5) * CELL, 102, 20 + (k + 2.5) * CELL, 138)
    p.cells(20 + 2 * CELL, 140, [5, 7, 5, 2], "acab")
    p.lines(320, 158, "values: the first of each run")
    p.cells(20 + 2 * CELL, 176, [2, 3, 1, 2], "p")
    p.lines(320, 194, "lengths: from one beginning to the next")
    return p


def radix_sort() -> Picture:
    p = Picture("radix_sort", 760, 320, "A radix sort by the lowest digit first")
    rows = [[31, 12, 30, 11, 22], [30, 31, 11, 12, 22], [11, 12, 22, 30, 31]]
    cell, left = 52, 20
    colours = {3: "a", 1: "b", 2: "c"}
    for k, row in enumerate(rows):
        y = 30 + k * 110
        p.cells(left, y, row, "".join(colours[v // 10] for v in row), cell)
        if k:
            above = rows[k - 1]
            for place, v in enumerate(row):
                start = left + (above.index(v) + 0.5) * cell
                p.arrow(start, y - 80, left + (place + 0.5) * cell, y - 2)
    p.lines(320, 48, "keys; one reading counts the digits of all passes")
    p.lines(
        320,
        92,
        "pass 0: the low digit; equal digits keep their order",
        "(31 before 11, 12 before 22)",
    )
    p.lines(
        320,
        202,
        "pass 1: the next digit; because passes are stable,",
        "the low digits stay in order within it",
    )
    p.lines(320, 268, "sorted")
    p.text(
        left,
        308,
        "Digits have 8 bits. A pass in which all keys have one digit is skipped, on the GPU.",
        kind="small",
    )
    return p


def _draw_path(p: Picture, a: list[int], b: list[int], x: float, y: float) -> None:
    points, i, j = [(x, y)], 0, 0
    while i < 4 or j < 4:
        if j == 4 or (i < 4 and a[i] <= b[j]):
            i += 1
        else:
            j += 1
        points.append((x + j * CELL, y + i * CELL))
    p.line(*points, kind="way")
    for d in (3, 6):
        far, near = min(d, 4), max(d - 4, 0)
        p.line((x + far * CELL, y + near * CELL), (x + near * CELL, y + far * CELL), kind="dash")


def merge_sort() -> Picture:
    p = Picture(
        "merge_sort", 760, 340, "Merge path: two sorted runs, cut where diagonals cross the path"
    )
    a, b = [1, 3, 5, 7], [2, 3, 6, 8]
    left, top = 80, 70
    p.text(left, top - 34, "b, sorted", kind="small")
    p.cells(left, top - 28, b, "c", height=24)
    p.text(20, top - 8, "a, sorted", kind="small")
    for i, v in enumerate(a):
        p.cells(left - 36, top + i * CELL + 4, [v], "a", cell=32, height=26)
        p.cells(left, top + i * CELL, [""] * 4, "p", height=CELL)
    _draw_path(p, a, b, left, top)
    p.lines(
        300,
        60,
        "Down: the next of a. Right: the next of b.",
        "Of equal ones a's comes first, so the merge is stable.",
    )
    p.lines(
        300,
        116,
        "Each dashed diagonal cuts the result into pieces of one size.",
        "A binary search along it finds where the path crosses:",
        "so each block knows its part of a and of b by itself.",
    )
    merged = sorted(a + b)
    p.cells(300, 190, merged, "bbbdddpp")
    p.lines(300, 242, "block 0", kind="small")
    p.lines(300 + 3 * CELL, 242, "block 1")
    p.lines(300 + 6 * CELL, 242, "block 2")
    p.text(
        20,
        300,
        "merge_sort sorts tiles on the chip, then merges pairs of runs until one is left.",
        kind="small",
    )
    return p


def searchsorted() -> Picture:
    p = Picture(
        "searchsorted", 760, 320, "A search goes down a tree of samples, then loads from memory"
    )
    a = [1, 3, 3, 7, 9, 12, 14]
    level = {0: [7], 1: [3, 12], 2: [1, 3, 9, 14]}
    left = 30
    spots: dict[tuple[int, int], tuple[float, float]] = {}
    for depth, values in level.items():
        step = 420 / len(values)
        for k, v in enumerate(values):
            x, y = left + step * (k + 0.5), 30 + 70 * depth
            spots[depth, k] = (x, y)
            taken = (depth, k) in {(0, 0), (1, 1), (2, 2)}
            p.cells(x - 17, y, [v], "c" if taken else "p")
    for (depth, k), (x, y) in spots.items():
        if depth < 2:
            for child in (2 * k, 2 * k + 1):
                to = spots[depth + 1, child]
                taken = (depth, k, child) in {(0, 0, 1), (1, 1, 2)}
                p.arrow(x, y + 29, to[0], to[1] - 2, kind="way" if taken else "")
    for k, step in enumerate(
        ("v = 10: 7 < 10, go right", "10 <= 12, go left", "9 < 10: behind it")
    ):
        p.lines(490, 48 + 68 * k, step)
    p.arrow(spots[2, 2][0] + 17, 184, 30 + 5.5 * CELL + 60, 236, kind="way")
    p.cells(90, 240, a, "aaaaaca")
    p.lines(360, 258, "a, sorted; the answer is 5")
    p.text(
        30,
        304,
        "The first steps are in shared memory; the last few load from a. No step has a branch.",
        kind="small",
    )
    return p


def top_k() -> Picture:
    p = Picture(
        "top_k",
        760,
        320,
        "top_k: a sample bounds the result, one reading keeps what may belong to it",
    )
    x = [4, 9, 1, 7, 3, 8, 2, 9, 5, 0, 6, 3, 8, 1, 2, 4]
    p.cells(20, 30, x, "".join("c" if k % 4 == 1 else "p" for k in range(16)))
    p.lines(590, 40, "a sample of", "fixed places")
    p.arrow(292, 60, 292, 92)
    p.box(172, 94, 240, 32, "bound: the top 3 are at least 7", colour="c")
    p.arrow(292, 128, 292, 156)
    p.cells(20, 158, x, "".join("b" if v >= 7 else "p" for v in x))
    p.lines(590, 168, "x, read once")
    for place, k in ((1, 0), (3, 1), (5, 2), (7, 3), (12, 4)):
        p.arrow(20 + (place + 0.5) * CELL, 188, 208 + (k + 0.5) * CELL, 224)
    p.cells(208, 226, [9, 7, 8, 9, 8], "b")
    p.lines(400, 244, "what is kept, with its places: a few thousandths of x")
    p.cells(208, 274, [9, 9, 8], "d")
    p.lines(400, 292, "chosen and sorted on the chip; of equal ones the first")
    return p


ALL = [select, runs, radix_sort, merge_sort, searchsorted, top_k]
