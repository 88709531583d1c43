"""Every kernel once, at small sizes, with its results checked: for compute-sanitizer.

compute-sanitizer --tool memcheck --report-api-errors no python tests/sanitizer.py
compute-sanitizer --tool racecheck --report-api-errors no python tests/sanitizer.py --small

Names of functions below, such as `layouts`, leave out the others.
One file of more than 300 lines, as it is one script: a sanitizer is given it alone.

An array is allocated by itself, so that memcheck knows its ends. Without a GPU it runs on the CPU.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from support import count_gpus

import gpualgo as ga
import gpualgo.numpy as gnp

if count_gpus():
    import cupy as xp

    xp.cuda.set_allocator(None)
    to_host = xp.asnumpy
else:
    xp, to_host = np, np.asarray  # type: ignore[assignment]

IS_SMALL = "--small" in sys.argv
ONLY = [name for name in sys.argv[1:] if not name.startswith("-")]
RNG = np.random.default_rng(0)
checked = 0


def last(a: Any, b: Any) -> Any:
    return b


def same(got: Any, want: Any) -> None:
    """Count a check; stop at the first that fails."""
    global checked
    checked += 1
    np.testing.assert_array_equal(to_host(got), want, strict=isinstance(want, np.ndarray))


def rows_of(h: np.ndarray[Any, Any], bins: int) -> np.ndarray[Any, Any]:
    counts = [np.histogram(row, bins, (-100, 100))[0] for row in h.reshape(-1, h.shape[-1])]
    return np.stack(counts).reshape(*h.shape[:-1], bins)


def lines(n: int) -> None:
    """One dimension: reduction, transformation, scan, sort, histogram."""
    h = RNG.integers(-100, 100, n).astype(np.int32)
    x, bytes_, shorts = xp.asarray(h), h.astype(np.int8), (h * 300).astype(np.int16)
    same(ga.reduce(x), h.sum(dtype=np.int32))
    same(ga.reduce(x, None, last), h[-1])
    same(ga.transform(lambda a, b: a + b, x, x[::-1]), h + h[::-1])
    same(ga.inclusive_scan(x), np.cumsum(h, dtype=np.int32))
    same(ga.inclusive_scan(x, None, last, reverse=True), h)
    same(ga.exclusive_scan(x, 7, last), np.concatenate([[7], h[:-1]]).astype(np.int32))
    same(ga.inclusive_scan(xp.asarray(bytes_), dtype=np.int64), np.cumsum(h, dtype=np.int64))
    same(ga.radix_sort(x), np.sort(h))
    same(ga.argsort(x), np.argsort(h, kind="stable"))
    order = np.argsort(-h, kind="stable")
    keys, values = ga.radix_sort(x, x.astype(np.float64), descending=True)
    same(keys, h[order])
    same(values, h[order].astype(np.float64))
    same(ga.radix_sort(xp.asarray(bytes_)), np.sort(bytes_))
    same(ga.radix_sort(xp.asarray(shorts)), np.sort(shorts))
    f = RNG.random(n).astype(np.float32)
    edges = np.sort(RNG.random(99))
    for bins in (7, 256, 4096, 70_000, 200_000):
        same(ga.histogram(xp.asarray(f), bins, (0.0, 1.0)), np.histogram(f, bins, (0.0, 1.0))[0])
    same(ga.histogram(xp.asarray(f), edges), np.histogram(f, edges)[0])
    same(ga.histogram(xp.asarray(bytes_), 50, (-100, 100)), np.histogram(h, 50, (-100, 100))[0])
    if n > 1:
        same(ga.inclusive_scan(x[1:]), np.cumsum(h[1:], dtype=np.int32))
        same(ga.inclusive_scan(x[::2]), np.cumsum(h[::2], dtype=np.int32))
        same(ga.reduce(x[1:], None, last), h[-1])
        same(ga.radix_sort(x[::2]), np.sort(h[::2]))


def axes(shape: tuple[int, ...]) -> None:
    """Every axis of an array, and of its transpose."""
    h = RNG.integers(-100, 100, shape).astype(np.int32)
    x = xp.asarray(h)
    for axis in range(len(shape)):
        same(ga.reduce(x, axis=axis), h.sum(axis, dtype=np.int32))
        same(ga.reduce(x.T, None, last, axis=axis), h.T.take(-1, axis))
        same(ga.inclusive_scan(x, axis=axis), np.cumsum(h, axis, dtype=np.int32))
        same(ga.inclusive_scan(x, None, last, axis=axis, reverse=True), h)
        same(ga.inclusive_scan(x.T, axis=axis), np.cumsum(h.T, axis, dtype=np.int32))
        same(ga.radix_sort(x, axis=axis), np.sort(h, axis))
        same(ga.argsort(x, axis=axis), np.argsort(h, axis, kind="stable"))
    same(ga.histogram(x, 9, (-100, 100), axis=-1), rows_of(h, 9))


def numbers(shape: tuple[int, ...]) -> None:
    """Operators whose numbers are data, along every axis."""
    h = RNG.integers(-100, 100, shape).astype(np.int32)
    for array in (h, h.T):
        x = xp.asarray(h) if array is h else xp.asarray(h).T
        for step in (np.int32(3), np.int32(5)):
            op = lambda a, b: a + b + step  # noqa: B023, E731
            same(ga.transform(lambda a: a * step, x), array * step)  # noqa: B023
            same(ga.transform(lambda a, k: a - k, x[..., ::2], 7), array[..., ::2] - np.int32(7))
            for axis in range(len(shape)):
                sums = np.cumsum(array + step, axis, dtype=np.int32) - step
                same(ga.reduce(x, None, op, axis=axis), sums.take(-1, axis))
                same(ga.inclusive_scan(x, None, op, axis=axis), sums)


def tuples(shape: tuple[int, ...]) -> None:
    """Elements of several numbers, and extreme ones, along every axis."""
    h = RNG.integers(-100, 100, shape).astype(np.int32)
    wide = h[:1].astype(np.float64)  # is broadcast
    for turn in (False, True):
        a, b = (h.T, np.broadcast_to(wide, shape).T) if turn else (h, np.broadcast_to(wide, shape))
        x, y = (xp.asarray(h).T, xp.asarray(wide).T) if turn else (xp.asarray(h), xp.asarray(wide))
        for got, want in zip(ga.transform(lambda p: (p[1], p[0] + 1), (x, y)), (b, a + 1)):  # noqa: B905
            same(got, want)
        for axis in range(a.ndim):
            found = ga.reduce((x, y), None, _summed, axis=axis)
            same(found[0], a.sum(axis, dtype=np.int32))
            same(found[1], b.max(axis))
            found = ga.inclusive_scan((x, y), None, _summed, axis=axis, reverse=turn)
            ways = np.flip(a, axis) if turn else a
            sums = np.cumsum(ways, axis, dtype=np.int32)
            same(found[0], np.flip(sums, axis) if turn else sums)
            same(ga.argmax(x, axis), a.argmax(axis))
            same(ga.minmax(x, axis).min, a.min(axis))
        same(ga.argmin(x), a.argmin())


def _summed(p: Any, q: Any) -> Any:
    return p[0] + q[0], max(p[1], q[1])


def computed(shape: tuple[int, ...]) -> None:
    """What is computed where it is read, along every axis."""
    h = RNG.integers(-100, 100, shape).astype(np.int32)
    places = np.arange(h.size).reshape(shape)
    random = np.random.Generator(np.random.Philox(3)).random(shape)
    for turn in (False, True):
        a, at, r = (h.T, places.T, random.T) if turn else (h, places, random)
        x = xp.asarray(h).T if turn else xp.asarray(h)
        counted = ga.lazy.arange(h.size).reshape(shape)
        made = ga.lazy.asarray(x) * 2 + (counted.T if turn else counted)
        want = a * np.int32(2) + at
        same(ga.copy(made), want)
        drawn = ga.lazy.random(shape, seed=3)
        drawn = drawn.T if turn else drawn
        same(ga.transform(lambda u, v: u + v, drawn, x), r + a)
        for axis in range(a.ndim):
            same(ga.reduce(made, axis=axis), want.sum(axis))
            same(ga.reduce(made, None, last, axis=axis), want.take(-1, axis))
            same(ga.reduce(drawn + x * 0, None, max, axis=axis), r.max(axis))
            same(ga.inclusive_scan(made, axis=axis), np.cumsum(want, axis))
            same(ga.argmax(made, axis), want.argmax(axis))
        same(ga.inclusive_scan(made.reshape(-1), reverse=turn), _cumsum(want.reshape(-1), turn))


def _cumsum(a: np.ndarray[Any, Any], is_reverse: bool) -> np.ndarray[Any, Any]:
    return np.cumsum(a[::-1])[::-1] if is_reverse else np.cumsum(a)


def layouts() -> None:
    """Many short rows, inputs that are repeated or lie across, records in one piece."""
    h = RNG.integers(-100, 100, (300_000, 3)).astype(np.int32)
    x = xp.asarray(h)
    same(ga.reduce(x, axis=1), h.sum(1, dtype=np.int32))
    same(ga.transform(lambda a, b: a + b, x, x[:1]), h + h[:1])
    same(ga.transform(lambda a, b: a + b, x[:, :1], x), h + h[:, :1])
    for dtype in (np.int8, np.int32, np.complex128):
        square = h[:30_000].reshape(300, 300).astype(dtype)
        y = xp.asarray(square)
        same(ga.transform(lambda a, b: a + b, y, y.T), square + square.T)
        same(ga.transform(lambda a: a, y.T, out=y.copy()), square.T)
    for dtype, n in ((np.uint8, 3), (np.int32, 2), (np.float64, 2), (np.int16, 3)):
        fields = abs(h[:, :n]).astype(dtype)
        z = xp.asarray(fields)
        for m in (33, 5000, 300_000):
            columns = tuple(z[:m, i] for i in range(n))
            want = fields[:m]
            sums, most = ga.reduce(columns[:2] if n == 2 else columns[::2], None, _summed)
            same(sums, want[:, 0].sum(dtype=dtype))
            same(most, want[:, n - 1].max())
            into = xp.zeros_like(z[:m])
            outs = tuple(into[:, i] for i in range(n))
            ga.inclusive_scan(columns, None, lambda a, b: b, out=outs)
            same(into, want)
        wide = z[:299_520].reshape(-1, 64, n)
        sums, most = ga.reduce((wide[..., 0], wide[..., n - 1]), None, _summed, axis=0)
        same(sums, fields[:299_520].reshape(-1, 64, n)[..., 0].sum(0, dtype=dtype))
        same(most, fields[:299_520].reshape(-1, 64, n)[..., n - 1].max(0))


def tuple_sorts(n: int) -> None:
    """Sorts of tuples, packed into a word and wider."""
    first, second = RNG.integers(0, 9, n).astype(np.int32), RNG.random(n).astype(np.float32)
    third = RNG.integers(-5, 5, n)
    order = np.lexsort((-second, first))
    x, y, z = xp.asarray(first), xp.asarray(second), xp.asarray(third)
    keys, values = ga.radix_sort((x, y), (z, y), descending=(False, True))
    for got, want in zip((*keys, *values), (first, second, third, second), strict=True):
        same(got, want[order])
    order = np.lexsort((second, third, first))
    for got, want in zip(ga.radix_sort((x, z, y)), (first, third, second), strict=True):
        same(got, want[order])
    same(ga.argsort((x, z, y)), order)


def joint_histograms(n: int) -> None:
    """Histograms of several dimensions, and with weights."""
    a, b = RNG.random(n).astype(np.float32), RNG.integers(0, 7, n).astype(np.int16)
    w = RNG.integers(-8, 8, n).astype(np.float64)  # sums of which are exact
    x, y = xp.asarray(a), xp.asarray(b)
    for bins in ((4, 7), (300, 70)):
        want = np.histogramdd((a, b), bins, ((0, 1), (0, 7)))[0]
        same(ga.histogram((x, y), bins, ((0, 1), (0, 7))), want.astype(np.int64))
        want = np.histogramdd((a, b), bins, ((0, 1), (0, 7)), weights=w)[0]
        same(ga.histogram((x, y), bins, ((0, 1), (0, 7)), weights=xp.asarray(w)), want)
    for dtype in (np.int32, np.float32, np.float64):
        want = np.histogram(a, 50, (0, 1), weights=w)[0].astype(np.result_type(dtype, np.int8))
        got = ga.histogram(x, 50, (0, 1), weights=xp.asarray(w.astype(dtype)))
        same(to_host(got).astype(want.dtype), want)
    k = np.float32(0.5)
    halved = ga.lazy.transform(lambda p: p * k, x)  # a number that each block puts into its memory
    want = np.histogram(a * k, 50, (0, 1), weights=w)[0]
    same(ga.histogram(halved, 50, (0, 1), weights=xp.asarray(w)), want)
    want = np.histogramdd((a * k, b), (40, 7), ((0, 1), (0, 7)))[0]
    same(ga.histogram((halved, y), (40, 7), ((0, 1), (0, 7))), want.astype(np.int64))


def differences(n: int) -> None:
    """Of neighbours in one dimension, in rows and in columns; of numbers, pairs, and in strides."""
    for dtype in (np.int8, np.int32, np.float64):
        h = RNG.integers(-9, 9, n).astype(dtype)
        x = xp.asarray(h)
        for array, mine in ((x, h), (x[1:], h[1:]), (x[::-2], h[::-2])):
            same(ga.adjacent_difference(array), np.diff(mine, prepend=mine.dtype.type(0)))
        for columns in (3, 16):
            table = h[: n // columns * columns].reshape(-1, columns)
            for axis in (0, 1):
                zeros = np.zeros([1 if i == axis else k for i, k in enumerate(table.shape)], dtype)
                got = ga.adjacent_difference(xp.asarray(table), axis=axis)
                same(got, np.diff(table, axis=axis, prepend=zeros))
        found = ga.adjacent_difference((x, x), lambda a, b: (a[0] - b[0], b[1]))
        same(found[0], np.diff(h, prepend=dtype(0)))
        same(found[1], np.append(h[:1], h[:-1]))


def selections(n: int) -> None:
    """What is kept, the rest, runs, and what is found, of numbers, pairs and computed elements."""
    h, m = np.repeat(RNG.integers(-9, 9, n), 3)[:n].astype(np.int32), RNG.random(n) < 0.4
    x, mask, limit = xp.asarray(h), xp.asarray(m), np.int32(3)
    keep = h > limit
    for array, mine in ((x, h), (x[::2], h[::2]), (x[1:], h[1:])):
        same(ga.select(array, lambda a: a > limit), mine[mine > limit])
        kept, rest = ga.stable_partition(array, lambda a: a > limit)
        same(kept, mine[mine > limit])
        same(rest, mine[mine <= limit])
    same(ga.select(x, mask), h[m])
    same(ga.select(ga.lazy.arange(n), mask), np.flatnonzero(m))
    out, count = xp.zeros(max(n // 8, 1), np.int32), xp.zeros((), np.int64)
    ga.select(x, mask, out=out, out_count=count)
    same(count, m.sum())
    shown = min(len(out), int(m.sum()))
    same(out[:shown], h[m][:shown])
    for dtype in (np.int8, np.float64, np.complex128):
        values = RNG.integers(0, 100, n).astype(dtype)
        found = ga.select((xp.asarray(values), x), lambda p: p[1] > limit)
        same(found[0], values[keep])
        same(ga.select(xp.asarray(values), mask), values[m])
    heads = np.flatnonzero(np.append(n > 0, h[1:] != h[:-1]))
    values, lengths = ga.run_length_encode(x)
    same(values, h[heads])
    same(lengths, np.diff(np.append(heads, n)))
    same(ga.unique(x), np.unique(h))
    same(ga.count(x, lambda a: a > limit), keep.sum())
    same(ga.find(x, lambda a: a > limit), keep.argmax() if keep.any() else -1)


def segments(n: int) -> None:
    """Reduced and scanned: many of all lengths, one of all, and such as offsets on a GPU make."""
    h = RNG.integers(-9, 9, n).astype(np.int32)
    x, sums = xp.asarray(h), np.append(0, np.cumsum(h))
    many = np.sort(RNG.integers(0, n + 1, n // 20 + 2))
    every = [many, np.arange(0, n + 1, 7), np.array([0, n]), np.array([n // 3])]
    if xp is not np:
        every += [many[::-1].copy(), np.tile([-5, 2 * n], 30)]
    for offsets in every:
        given, ends = xp.asarray(offsets), np.clip(offsets, 0, n)
        want = np.where(ends[1:] > ends[:-1], sums[ends[1:]] - sums[ends[:-1]], 0)
        same(ga.segmented_reduce(x, given), want.astype(np.int32))
        pairs = ga.segmented_reduce((x, x), given, (0, 0), lambda a, b: (a[0] + b[0], a[1] + b[1]))
        same(pairs[1], want.astype(np.int32))
        first = np.arange(len(want), dtype=np.int32)
        same(ga.segmented_reduce(x, given, xp.asarray(first)), first + want.astype(np.int32))
        heads = np.zeros(n + 1, np.int64)
        heads[ends] = ends
        begins = np.maximum.accumulate(heads)[:-1]
        inside = (np.arange(n) >= ends[0]) & (np.arange(n) < ends[-1])
        want = np.where(inside, sums[1:] - sums[begins], h).astype(np.int32)
        same(ga.segmented_inclusive_scan(x, given), want)
        want = np.where(inside, sums[:-1] - sums[begins], h).astype(np.int32)
        same(ga.segmented_exclusive_scan(x, given), want)
        if (np.diff(ends) >= 0).all():  # else one start or another
            want[inside] += np.repeat(first, np.diff(ends))
            same(ga.segmented_exclusive_scan(x, given, xp.asarray(first)), want)
        places = np.where(inside, begins, np.arange(n))
        order = np.lexsort((h, places))
        same(ga.segmented_sort(x, given), h[order])
        keys, moved = ga.segmented_sort((x, x), given, values=xp.asarray(np.arange(n)))
        same(keys[1], h[order])
        same(moved, order)


def ranked(n: int) -> None:
    """The first elements of rows and those of some ranks: of short, long and many rows."""
    for dtype in (np.int8, np.int32, np.float64):
        h = RNG.integers(-100, 100, n).astype(dtype)
        x, order = xp.asarray(h), np.argsort(-h.astype(np.int64), kind="stable")
        for k in {1, min(n, 40), n // 20, n // 3}:
            values, indices = ga.top_k(x, k)
            same(indices, order[:k])
            same(values, h[order[:k]])
        same(ga.kth_value(x, [0, n // 2, n - 1]), np.sort(h)[[0, n // 2, n - 1]])
        for columns in (33, 1200):
            table = h[: n // columns * columns].reshape(-1, columns)
            if table.size:
                best = np.argsort(table, axis=1, kind="stable")[:, :7]
                same(ga.top_k(xp.asarray(table), 7, mode="smallest").indices, best)
                same(ga.kth_value(xp.asarray(table), 32), np.sort(table, axis=1)[:, 32])


def by_key(n: int) -> None:
    """Runs of keys, reduced and scanned: numbers, pairs, in steps, computed, into short outputs."""
    keys = np.repeat(RNG.integers(0, 9, n), RNG.integers(1, 40, n))[:n].astype(np.int32)
    h = RNG.integers(-1000, 1000, n).astype(np.int32)
    for k, x in ((keys, h), (keys[::2], h[::2]), (keys[1:], h[1:])):
        heads = np.flatnonzero(np.append(x.size > 0, k[1:] != k[:-1]))[: x.size]
        if not x.size:
            continue
        sums = np.add.reduceat(x, heads).astype(np.int32)
        given = xp.asarray(k), xp.asarray(x)
        found = ga.reduce_by_key(*given, consecutive=True)
        same(found.keys, k[heads])
        same(found.aggregates, sums)
        whole = np.cumsum(x, dtype=np.int32)
        lengths = np.diff(np.append(heads, x.size))
        scan = (whole - np.repeat(whole[heads] - x[heads], lengths)).astype(np.int32)
        same(ga.inclusive_scan_by_key(*given, consecutive=True), scan)
        same(ga.exclusive_scan_by_key(*given, consecutive=True), scan - x)
        pairs = ga.inclusive_scan_by_key(
            given[0], (given[1], given[1]), None, lambda a, b: (a[0] + b[0], b[1]),
            consecutive=True, eq=lambda a, b: a == b,
        )  # fmt: skip
        same(pairs[0], scan)
        same(pairs[1], x)
        out, count = (xp.zeros(1, np.int32), xp.zeros(1, np.int32)), xp.zeros((), np.int64)
        ga.reduce_by_key(*given, consecutive=True, out=out, out_count=count)
        same(count, len(heads))
        same(out[1], sums[:1])
    groups = ga.reduce_by_key(xp.asarray(keys), xp.asarray(h))
    same(groups.keys, np.unique(keys))


def by_index(n: int) -> None:
    """Few results and many, indices in any order, in runs and out of range, pairs, starts."""
    h = RNG.integers(-1000, 1000, n).astype(np.int32)
    x = xp.asarray(h)
    for size in (1, 9, 700, 9000):
        for indices in (RNG.integers(0, size, n), np.sort(RNG.integers(0, size, n))):
            want = np.bincount(indices, h, size).astype(np.int32)
            k = xp.asarray(indices.astype(np.int32))
            same(ga.reduce_by_index(k, x, size), want)
            same(ga.reduce_by_index(k, x, size, xp.asarray(want)), 2 * want)
            pairs = ga.reduce_by_index(
                k[::2], (x[::2], x[::2]), size, (0, 0), lambda a, b: (a[0] + b[0], b[1])
            )
            same(pairs[0], np.bincount(indices[::2], h[::2], size).astype(np.int32))
    if xp is not np:
        same(ga.reduce_by_index(xp.asarray(np.full(n, -1)), x, 5), np.zeros(5, np.int32))


def merges(n: int) -> None:
    """Sorts by a function, and merges of two arrays, with values."""
    h = RNG.integers(-1000, 1000, n).astype(np.int32)
    x, step = xp.asarray(h), np.int32(10)
    order = np.argsort(h // step, kind="stable")
    same(ga.merge_sort(x, less=lambda a, b: a // step < b // step), h[order])
    places = xp.asarray(np.arange(n))
    same(ga.sort(x, places, less=lambda a, b: a // step < b // step)[1], order)
    pair = RNG.random(n).astype(np.float32)
    keys = ga.merge_sort((x, xp.asarray(pair)), less=lambda a, b: a[1] < b[1])
    same(keys[0], h[np.argsort(pair, kind="stable")])
    rows = h[: n // 33 * 33].reshape(-1, 33)
    same(ga.merge_sort(xp.asarray(rows), less=lambda a, b: a < b), np.sort(rows, axis=1))
    a, b = np.sort(h), np.sort(RNG.integers(-1000, 1000, n // 3).astype(np.int32))
    merged = ga.merge(xp.asarray(a), xp.asarray(b))
    same(merged, np.sort(np.append(a, b)))


def runs(n: int) -> None:
    """Several sorted runs, which are merged: of one key and of two, with values and without."""
    x = RNG.integers(0, 50, 2 * n).astype(np.int16)
    there = ga.ShardedArray.from_shards([xp.asarray(part) for part in np.split(x, (n, n + n // 3))])
    same(ga.radix_sort(there).gather(), np.sort(x))
    same(ga.argsort(there).gather(), np.argsort(x, kind="stable"))
    same(ga.radix_sort((there, there), there)[1].gather(), np.sort(x))


def views(n: int) -> None:
    """What lies in two dimensions, in few columns, or begins anywhere."""
    for dtype in (np.int8, np.int16, np.int32, np.float64, np.complex128):
        h = RNG.integers(-9, 9, (n, 5)).astype(dtype)
        x = xp.asarray(h)
        for part in (np.s_[:, ::2], np.s_[::-2, 1:4], np.s_[::3, ::-3]):
            same(ga.reduce(x[part], dtype=dtype), h[part].sum(dtype=dtype))
            same(ga.reduce(x[part], None, last), h[part].reshape(-1)[-1])
        for columns in (1, 2, 3, 5):
            part = np.ascontiguousarray(h[:, :columns])
            same(ga.inclusive_scan(xp.asarray(part), axis=0, dtype=dtype), part.cumsum(0, dtype))
        flat, y = h.reshape(-1), x.reshape(-1)
        for begin in (1, 2, 3):
            rest, end = flat[begin:], flat[: flat.size - begin]
            same(ga.transform(lambda a, b: a - b, y[begin:], y[: y.size - begin]), rest - end)
            if begin < 3:
                same(ga.transform(lambda a: a, y[begin:], out=y.copy()[begin:]), rest)


def searches(n: int) -> None:
    """Few and many queries, by value, by a function, of pairs."""
    h, q = np.sort(RNG.integers(0, 9000, n).astype(np.int32)), RNG.integers(-5, 9005, n // 2 + 1)
    a, few = xp.asarray(h), xp.asarray(q[:5])
    for v in (q.astype(np.int32), q.astype(np.float64)):
        same(ga.searchsorted(a, xp.asarray(v)), np.searchsorted(h, v))
    same(ga.searchsorted(a, few, side="right"), np.searchsorted(h, q[:5], side="right"))
    step = np.int32(10)
    coarse = ga.searchsorted(a, few.astype(np.int32), less=lambda x, y: x // step < y // step)
    same(coarse, np.searchsorted(h // 10, q[:5] // 10))
    same(ga.searchsorted((a, a), (few, few)), np.searchsorted(h, q[:5]))
    numbers, edges = RNG.random(n).astype(np.float32), np.linspace(0, 1, 257).astype(np.float32)
    x = xp.asarray(numbers)
    for bins in (edges, edges[::-1]):
        same(gnp.digitize(x, xp.asarray(bins)), np.digitize(numbers, bins))
    same(ga.searchsorted(x[:0], x), np.zeros(n, np.int64))
    same(
        ga.searchsorted(xp.asarray(np.sort(numbers)), x), np.searchsorted(np.sort(numbers), numbers)
    )


def counted(n: int) -> None:
    """Narrow keys sorted by counting, however few."""
    from gpualgo._algorithms.radix_sort import cuda as counting_sort
    from gpualgo._algorithms.radix_sort.problem import Sort
    from gpualgo._base.memo import Memo

    before, counting_sort._FEW_KEYS = counting_sort._FEW_KEYS, {1: 0, 2: 0}
    problems, Sort.problems = Sort.problems, Memo(Sort.max_kept)
    for dtype in (np.int8, np.uint16):
        h = RNG.integers(0, 100, n).astype(dtype)
        same(ga.radix_sort(xp.asarray(h)), np.sort(h))
    counting_sort._FEW_KEYS, Sort.problems = before, problems


def many_keys(n: int) -> None:
    """Keys and values by the tiles for very many, however few."""
    from gpualgo._algorithms.radix_sort import tuning as sort_policy
    from gpualgo._algorithms.radix_sort.problem import Sort

    before = sort_policy.SMALLER, sort_policy.MIDDLE_KEYS
    sort_policy.SMALLER, sort_policy.MIDDLE_KEYS = {}, 0
    Sort.problems.clear()
    for key, value in (("u4", "u4"), ("f4", "u8"), ("i8", "u4"), ("u8", "c16"), ("f8", "i8")):
        h = RNG.integers(0, 1000, n).astype(key)
        order, moved = np.argsort(h, kind="stable"), np.arange(n).astype(value)
        keys, values = ga.radix_sort(xp.asarray(h), xp.asarray(moved))
        same(keys, h[order])
        same(values, moved[order])
        same(ga.radix_sort(xp.asarray(h)[1:]), np.sort(h[1:]))
        same(ga.argsort(xp.asarray(h)), order)
    sort_policy.SMALLER, sort_policy.MIDDLE_KEYS = before
    Sort.problems.clear()


def long_lines(n: int) -> None:
    """Scans by the kernel for long lines, however short."""
    from gpualgo._algorithms.scan import tuning as scan_policy
    from gpualgo._algorithms.scan.problem import Scan

    before, scan_policy.WAVES = scan_policy.WAVES, {}
    Scan.problems.clear()
    h = RNG.integers(-100, 100, n).astype(np.int32)
    x, pairs = xp.asarray(h), h[: n // 2 * 2].reshape(2, -1)
    same(ga.inclusive_scan(x), np.cumsum(h, dtype=np.int32))
    same(ga.inclusive_scan(x, None, last, reverse=True), h)
    same(ga.exclusive_scan(x, 7, last), np.concatenate([[7], h[:-1]]).astype(np.int32))
    same(ga.inclusive_scan(x[::2]), np.cumsum(h[::2], dtype=np.int32))
    same(ga.inclusive_scan(xp.asarray(pairs), axis=1), np.cumsum(pairs, 1, dtype=np.int32))
    step = np.int32(5)
    sums = ga.inclusive_scan(x, None, lambda a, b: a + b + step)
    same(sums, np.cumsum(h + step, dtype=np.int32) - step)
    scan_policy.WAVES = before
    Scan.problems.clear()


def surroundings(n: int) -> None:
    """Storage of just the size, page-locked memory, tables in operators, graphs, raw pointers."""
    h = RNG.integers(-100, 100, n).astype(np.int32)
    x, table = xp.asarray(h), xp.asarray(np.arange(201, dtype=np.int32) * 3)
    calls = {
        ga.reduce: h.sum(dtype=np.int32),
        ga.inclusive_scan: np.cumsum(h, dtype=np.int32),
        ga.radix_sort: np.sort(h),
    }
    for function, want in calls.items():
        plan = ga.prepare(function, x)
        storage = xp.full(plan.temp_storage_bytes, 0xA5, np.uint8)
        same(plan(x, temp_storage=storage), want)
        pinned = ga.empty_pinned(n, np.int32)
        pinned[...] = h
        same(function(pinned), want)
        with ga.graph() as g:
            result = function(x)
        g.launch()
        same(result, want)
    same(ga.transform(lambda i: table[i + 100], x), (h + 100) * 3)
    highest = ga.reduce(x, None, lambda a, b: a if table[a & 127] >= table[b & 127] else b)
    same(highest, h[np.argmax(h & 127)])
    view = ga.from_pointer(x.data.ptr, n, np.int32, owner=x)
    same(xp.asarray(ga.inclusive_scan(view)), calls[ga.inclusive_scan])


def run(checks: Callable[..., None], *args: Any) -> None:
    """Run checks, or leave them out where others are asked for by their names."""
    if not ONLY or checks.__name__ in ONLY:
        checks(*args)


for n in (1, 33, 4097, 50_000, 900_001 if IS_SMALL else 4_300_001):
    run(lines, n)
run(layouts)
run(tuples, (1 if IS_SMALL else 3, 300_001))
for shape in ((7, 5), (300, 300), (3000, 3), (3, 30_000), (40, 33, 17), (12, 70_001)):
    for checks in (axes, numbers, tuples, computed):
        run(checks, shape)
for n in (1, 33, 4097, 50_000):
    run(tuple_sorts, n)
    run(joint_histograms, n)
    run(selections, n)
    run(by_key, n)
    run(by_index, n)
    run(differences, n)
    run(segments, n)
    run(merges, n)
    run(searches, n)
for n in (1, 33, 4097, 50_000, 300_001):
    run(ranked, n)
for n in (1, 33, 4097, 50_000):
    run(views, n)
if xp is not np:
    for n in (1, 4097, 900_001):
        for checks in (counted, many_keys, long_lines, surroundings, runs):
            run(checks, n)
print("checked", checked)
