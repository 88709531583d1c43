"""Calls that planted bugs run: on data of a seed, with what NumPy or another backend says."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
from record_plans import KINDS, folded, scanned
from support import Backend, affine, compose

import gpualgo as ga

Host = np.ndarray[Any, Any]
Results = Iterator[tuple[Any, Host]]  # what came, and what NumPy says
N = 9001  # elements of segments


def _numbers(rng: np.random.Generator, shape: Any, dtype: Any = np.int32) -> Host:
    return rng.integers(-1000, 1000, shape).astype(dtype)


def reductions(shape: Any, axis: int | None, dtype: Any = np.int32, step: int = 1) -> Any:
    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        for _ in range(2):
            x = _numbers(rng, shape, dtype)
            given = gpu.to_device(x)[..., ::step]
            yield ga.reduce(given, axis=axis), x[..., ::step].sum(axis, dtype=dtype)

    return calls


def reductions_in_order(gpu: Backend, rng: np.random.Generator) -> Results:
    for _ in range(2):
        x = affine(3000, seed=int(rng.integers(1 << 30)))
        want = x[0]
        for value in x[1:]:
            want = compose(want, value)
        yield ga.reduce(gpu.to_device(x), op=compose), np.asarray(want)


def greatest(gpu: Backend, rng: np.random.Generator) -> Results:
    for length in (256, 200):
        x = -1 - abs(_numbers(rng, (5, length)))
        yield ga.reduce(gpu.to_device(x), op=np.maximum, axis=-1), x.max(-1)


def reductions_of_records(shape: Any, axis: int | None, step: int = 1) -> Any:
    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        kind, seed = KINDS["affine"], int(rng.integers(1 << 30))
        x = tuple(leaf[..., ::step] for leaf in kind.random(shape, seed))
        given = tuple(gpu.to_device(leaf)[..., ::step] for leaf in kind.random(shape, seed))
        axes = tuple(range(x[0].ndim)) if axis is None else (axis % x[0].ndim,)
        yield from zip(
            ga.reduce(given, op=kind.fn, axis=axis), folded(kind, x, axes, None), strict=True
        )

    return calls


def scans_of_records(name: str, size: int, step: int = 1) -> Any:
    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        kind = KINDS[name]
        x = kind.random(size * step, int(rng.integers(1 << 30)))
        given = tuple(gpu.to_device(leaf)[::step] for leaf in x)
        got = ga.inclusive_scan(given, None, kind.fn)
        with np.errstate(over="ignore"):
            rest = tuple(leaf[::step] for leaf in x)
            want = scanned(kind, rest, 0, None, exclusive=False, reverse=False)
        yield from zip(got, want, strict=True)

    return calls


def of_pairs(function: Any, size: int) -> Any:
    """Of the columns of one array, into those of another one where the function fills arrays."""

    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        h = rng.integers(0, 1000, (size, 2)).astype(np.int32)
        x, y = gpu.to_device(h), gpu.to_device(np.zeros_like(h))
        pair, out = (x[:, 0], x[:, 1]), (y[:, 0], y[:, 1])
        if function is ga.transform:
            function(lambda p: (p[1] + 1, p[0]), pair, out=out)
            yield from ((y[:, 0], h[:, 1] + 1), (y[:, 1], h[:, 0]))
        elif function is ga.inclusive_scan:
            function(pair, None, _sum_and_most, out=out)
            yield y[:, 0], np.cumsum(h[:, 0], dtype=np.int32)
            yield y[:, 1], np.maximum.accumulate(h[:, 1])
        else:
            total, most = function(pair, None, _sum_and_most)
            yield from ((total, h[:, 0].sum(dtype=np.int32)), (most, h[:, 1].max()))

    return calls


def _sum_and_most(p: Any, q: Any) -> Any:
    return p[0] + q[0], max(p[1], q[1])


def sums_of_two(size: int, step: int) -> Any:
    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        a, b = _numbers(rng, size), _numbers(rng, size)
        given = (gpu.to_device(x)[::step] for x in (a, b))
        yield ga.transform(operator.add, *given), a[::step] + b[::step]

    return calls


def sums_beside(shape: tuple[int, int], is_turned: bool) -> Any:
    """Of an array and one whose rows are its columns, or all its first."""

    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        a, b = _numbers(rng, shape), _numbers(rng, shape)
        other = gpu.to_device(np.ascontiguousarray(b.T)).T if is_turned else gpu.to_device(b[:1])
        got = ga.transform(operator.add, gpu.to_device(a), other)
        yield got, a + (b if is_turned else b[:1])

    return calls


def windows(gpu: Backend, rng: np.random.Generator) -> Results:
    """Functions that are composed show each mistake of order."""
    x = affine(1500, seed=int(rng.integers(1 << 30)))
    for window in (2, 21):
        want = x[: len(x) - window + 1].copy()
        for k in range(1, window):
            want = compose(want, x[k : k + len(want)])
        yield ga.rolling(gpu.to_device(x), window, compose), want


def with_numbers(gpu: Backend, rng: np.random.Generator) -> Results:
    a = _numbers(rng, 2103)
    for k in (np.int64(3), np.int64(7), np.int64(11)):
        yield ga.transform(lambda x, y: x + y * k, gpu.to_device(a), gpu.to_device(a)), a + a * k  # noqa: B023


def scans(
    shape: Any, axis: int = -1, dtype: Any = np.int32, *, exclusive: bool = False,
    reverse: bool = False, step: int = 1, init: int | None = None, times: int = 2,
) -> Any:  # fmt: skip
    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        for _ in range(times):
            x = _numbers(rng, shape, dtype)
            given = gpu.to_device(x)[..., ::step]
            seen = np.flip(x[..., ::step], axis) if reverse else x[..., ::step]
            want = np.cumsum(seen, axis=axis, dtype=dtype) + dtype(init or 0)
            if exclusive:
                want = want - seen
            want = np.flip(want, axis) if reverse else want
            function = ga.exclusive_scan if exclusive else ga.inclusive_scan
            yield function(given, init, axis=axis, reverse=reverse), want

    return calls


def sorts(
    shape: Any, dtype: Any, *, values: Any = None, bits: int | None = None, times: int = 1
) -> Any:
    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        for _ in range(times):
            info = np.iinfo(dtype)
            x = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
            mask = np.array(-1).astype(dtype) if bits is None else dtype((1 << bits) - 1)
            order = np.argsort(x & mask, axis=-1, kind="stable")
            keys = np.take_along_axis(x, order, -1)
            if values is None:
                yield ga.radix_sort(gpu.to_device(x), end_bit=bits), keys
                continue
            carried = rng.integers(0, 100, shape).astype(values)
            got = ga.radix_sort(gpu.to_device(x), gpu.to_device(carried), end_bit=bits)
            yield got[0], keys
            yield got[1], np.take_along_axis(carried, order, -1)

    return calls


def sorts_of_tuples(dtypes: Any, values: Any, shape: Any) -> Any:
    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        keys = [rng.integers(-2, 2, shape).astype(dtype) for dtype in dtypes]
        order = np.lexsort(keys[::-1], axis=-1)
        moved = [rng.integers(0, 100, shape).astype(dtype) for dtype in values]
        given = (tuple(map(gpu.to_device, arrays)) for arrays in (keys, moved))
        got = ga.radix_sort(*given)
        wanted = [np.take_along_axis(x, order, -1) for x in (*keys, *moved)]
        yield from zip((*got[0], *got[1]), wanted, strict=True)

    return calls


def _coarse(a: Any, b: Any) -> Any:
    return a // 16 < b // 16


def merge_sorts(shape: Any, *, values: Any = np.int16) -> Any:
    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        x = rng.integers(-400, 400, shape).astype(np.int32)
        order = np.argsort(x // 16, axis=-1, kind="stable")
        if values is None:
            got = ga.merge_sort(gpu.to_device(x), less=_coarse)
            yield got, np.take_along_axis(x, order, -1)
            return
        carried = rng.integers(0, 1000, shape).astype(values)
        got = ga.merge_sort(gpu.to_device(x), gpu.to_device(carried), less=_coarse)
        yield got[0], np.take_along_axis(x, order, -1)
        yield got[1], np.take_along_axis(carried, order, -1)

    return calls


def merged_runs(size: int, count: int) -> Any:
    """Runs of several shards, merged with the positions of their keys."""

    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        x = _numbers(rng, size)
        shards = [gpu.to_device(part) for part in np.array_split(x, count)]
        got = ga.argsort(ga.ShardedArray.from_shards(shards))
        yield got.gather(), np.argsort(x, kind="stable")

    return calls


def merges(first: int, second: int) -> Any:
    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        runs = [rng.integers(-400, 400, n).astype(np.int32) for n in (first, second)]
        a, b = (x[np.argsort(x // 16, kind="stable")] for x in runs)
        whole = np.concatenate([a, b])
        want = whole[np.argsort(whole // 16, kind="stable")]
        yield ga.merge(gpu.to_device(a), gpu.to_device(b), less=_coarse), want

    return calls


def histograms(
    shape: Any, dtype: Any, bins: Any, span: Any = None, axis: int | None = None, step: int = 1,
    scale: float = 100, times: int = 2,
) -> Any:  # fmt: skip
    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        for _ in range(times):
            x = (rng.standard_normal(shape) * scale).astype(dtype)
            given = gpu.to_device(x)[..., ::step]
            seen = x[..., ::step]
            if axis is None:
                want = np.histogram(seen, bins, span)[0]
            else:
                columns = np.moveaxis(seen, axis, 0).reshape(seen.shape[axis], -1).T
                want = np.stack([np.histogram(column, bins, span)[0] for column in columns])
            yield ga.histogram(given, bins, span, axis=axis), want

    return calls


def joint_histograms(shape: Any, bins: Any, step: int = 1, dtype: Any = np.float32) -> Any:
    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        for _ in range(2):
            x = (rng.standard_normal(shape) * 9).astype(dtype)
            y = rng.integers(-9, 9, shape).astype(np.int8)
            given = tuple(gpu.to_device(a)[..., ::step] for a in (x, y))
            seen = [a[..., ::step].astype(float).ravel() for a in (x, y)]
            want = np.histogramdd(seen, bins)[0].astype(np.int64)
            yield ga.histogram(given, bins), want

    return calls


def weighted(size: int, bins: Any, dtype: Any, step: int = 1) -> Any:
    """Return calls whose sums are exact in any order; some samples are in no bin."""

    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        most = bins if isinstance(bins, int) else bins[-1]
        span = (1, bins) if isinstance(bins, int) else None
        for _ in range(2):
            x = (rng.random(size) * most).astype(np.float32)
            w = rng.integers(-99, 100, size).astype(dtype)
            with ga.default_device("cpu"):
                want = ga.histogram(x[::step], bins, span, weights=w[::step])
            given = (gpu.to_device(a)[::step] for a in (x, w))
            yield ga.histogram(next(given), bins, span, weights=next(given)), want

    return calls


def selections(size: int, has_rest: bool) -> Any:
    """Into an output that is too short by one, or with the rest behind what is kept."""

    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        for limit in (0, 900):
            x = _numbers(rng, size)
            given, keep = gpu.to_device(x), x > limit
            if has_rest:
                out = gpu.to_device(np.zeros_like(x))
                found = ga.stable_partition(given, lambda a, limit=limit: a > limit, out=out)
                yield from zip(found, (x[keep], x[~keep]), strict=True)
                continue
            size_out = max(int(keep.sum()) - 1, 0)
            out, count = (
                gpu.to_device(np.zeros(size_out, x.dtype)),
                gpu.to_device(np.zeros((), int)),
            )
            ga.select(given, lambda a, limit=limit: a > limit, out=out, out_count=count)
            yield count, np.array(keep.sum())
            yield out, x[keep][:-1]

    return calls


def differences(shape: tuple[int, ...], axis: int) -> Any:
    """Return calls on lines of an axis."""

    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        x = rng.integers(-1000, 1000, shape).astype(np.int32)
        zeros = np.zeros([1 if i == axis else n for i, n in enumerate(shape)], np.int32)
        yield ga.adjacent_difference(gpu.to_device(x), axis=axis), np.diff(x, 1, axis, zeros)

    return calls


def searches(length: int, count: int) -> Any:
    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        a = np.sort(rng.integers(0, 3 * length, length)).astype(np.int32)
        v = rng.integers(-5, 3 * length + 5, count).astype(np.int32)
        yield ga.searchsorted(gpu.to_device(a), gpu.to_device(v)), np.searchsorted(a, v)

    return calls


def close_searches(gpu: Backend, rng: np.random.Generator) -> Results:
    """Tiles of 1024 queries that span about 10 elements, 100, all or again 10, twice."""
    a = np.sort(rng.integers(0, 3000, 1003)).astype(np.int32)
    ends = [(900, 930), (1000, 1300), (0, 3000), (1500, 1530)]
    v = np.concatenate([np.sort(rng.integers(*span, 1024)) for span in ends * 2])
    v[-500], v[3500] = 40, 2900  # in the middle of narrow tiles
    v = v.astype(np.int32)
    yield ga.searchsorted(gpu.to_device(a), gpu.to_device(v)), np.searchsorted(a, v)


def reductions_by_index(
    gpu: Backend, rng: np.random.Generator, n: int = 3000, size: int = 45
) -> Results:
    """Return functions that are composed, of indices of which some are out of range."""
    for spread, is_sorted in ((size, False), (3, False), (size, True)):
        x = affine(n, seed=int(rng.integers(1 << 30)))
        indices = np.where(rng.random(n) < 0.02, 99_999, rng.integers(-1, spread + 1, n))
        indices = np.sort(indices) if is_sorted else indices
        start = np.uint64(1 << 32)
        want = np.full(size, start, np.uint64)
        for k, element in zip(indices.tolist(), x, strict=True):
            if 0 <= k < size:
                want[k] = compose(want[k], element)
        given: Any = gpu.to_device(indices.astype(np.int32)), gpu.to_device(x), size, start
        yield ga.reduce_by_index(*given, compose), want


def reductions_in_buckets(gpu: Backend, rng: np.random.Generator) -> Results:
    return reductions_by_index(gpu, rng, 6000, 250)


def _arrays(rng: np.random.Generator, size: int, runs: int) -> tuple[Any, Any, Any]:
    """Return keys in so many runs, numbers, and where runs begin."""
    starts = np.sort(rng.choice(np.arange(1, size), runs - 1, replace=False))
    starts = np.append([0], starts)
    keys = np.repeat(np.arange(runs) % 7, np.diff(np.append(starts, size))).astype(np.int32)
    return keys, rng.integers(-1000, 1000, size).astype(np.int32), starts


def reductions_by_key(gpu: Backend, rng: np.random.Generator) -> Results:
    """Into outputs that are too short by one."""
    for runs in (9, 3000):
        keys, x, starts = _arrays(rng, 10_003, runs)
        outs = tuple(gpu.to_device(np.zeros(runs - 1, np.int32)) for _ in range(2))
        count = gpu.to_device(np.zeros((), int))
        ga.reduce_by_key(
            gpu.to_device(keys), gpu.to_device(x), consecutive=True, out=outs, out_count=count
        )
        yield count, np.array(runs)
        yield outs[0], keys[starts][:-1]
        yield outs[1], np.add.reduceat(x, starts)[:-1].astype(np.int32)
        found = ga.reduce_by_key(gpu.to_device(keys), gpu.to_device(x), consecutive=True)
        yield found.aggregates, np.add.reduceat(x, starts).astype(np.int32)


def reductions_of_close_keys(gpu: Backend, rng: np.random.Generator) -> Results:
    """Of keys that just fit a table, or do not, into outputs that are too short by one."""
    for greatest in (12, 1020, 1021, 90_000):
        keys = rng.integers(-3, greatest, 2500, endpoint=True).astype(np.int32)
        keys[[700, 1500]] = -3, greatest
        x = rng.integers(-1000, 1000, keys.size).astype(np.int32)
        names, groups = np.unique(keys, return_inverse=True)
        sums = np.zeros(names.size, np.int32)
        np.add.at(sums, groups, x)
        outs = tuple(gpu.to_device(np.zeros(names.size - 1, np.int32)) for _ in range(2))
        count = gpu.to_device(np.zeros((), int))
        ga.reduce_by_key(gpu.to_device(keys), gpu.to_device(x), out=outs, out_count=count)
        yield count, np.array(names.size)
        yield outs[0], names[:-1]
        yield outs[1], sums[:-1]


def scans_by_key(*all_runs: int) -> Any:
    """Return calls on so many runs, one after the other."""

    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        for runs in all_runs:
            keys, x, starts = _arrays(rng, 10_003, runs)
            whole = np.cumsum(x, dtype=np.int32)
            lengths = np.diff(np.append(starts, x.size))
            want = whole - np.repeat(whole[starts] - x[starts], lengths)
            given = gpu.to_device(keys), gpu.to_device(x)
            yield ga.inclusive_scan_by_key(*given, consecutive=True), want.astype(np.int32)

    return calls


def scans_of_pairs(gpu: Backend, rng: np.random.Generator) -> Results:
    """One run of pairs, whose states are two words."""
    keys, x, _ = _arrays(rng, 20_003, 1)
    given = gpu.to_device(x), gpu.to_device(x)
    found = ga.inclusive_scan_by_key(
        gpu.to_device(keys), given, None, lambda a, b: (a[0] + b[0], a[1] + b[1]), consecutive=True
    )
    for mine in found:
        yield mine, np.cumsum(x, dtype=np.int32)


N = 9001


def _offsets(kind: str) -> Any:
    if kind == "overlap":
        return np.array([0, N] * 20 + [5])
    if kind == "any":
        return np.array([2 * N, 3, N // 2, 5 * N])
    if kind == "end":
        return np.array([0, N - 40, N])
    return np.array([7, 8, 8, 40, 45, 80, 200, 8200, 8201, 8300, *range(8301, 8900, 5), N - 3])


def reductions_of_segments(kind: str) -> Any:
    """Return calls of functions that are composed, so that all mistakes of order show."""

    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        offsets = _offsets(kind)
        for is_turned in (False, True):
            offsets = N - offsets[::-1] if is_turned else offsets
            x = affine(N, seed=int(rng.integers(1 << 30)))
            ends = np.clip(offsets, 0, N)
            want = []
            for begin, end in itertools.pairwise(ends):
                total = np.uint64(1 << 32)
                for value in x[begin:end]:
                    total = compose(total, value)
                want.append(total)
            start = np.uint64(1 << 32)
            given = gpu.to_device(x), gpu.to_device(offsets)
            yield ga.segmented_reduce(*given, start, compose), np.array(want, np.uint64)

    return calls


def scans_of_segments(has_row_init: bool) -> Any:
    """Return calls of an inclusive scan, or of an exclusive one from starts."""

    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        for first in (7, 5):
            offsets = first - 7 + np.array([7, 8, 8, 40, 41, 41, 41, 41, 8300, N - 3])
            x, starts = affine(N, seed=int(rng.integers(1 << 30))), affine(9, seed=1)
            want = x.copy()
            for start, (begin, end) in zip(starts, itertools.pairwise(offsets), strict=True):
                for i in range(begin, end):
                    if has_row_init:
                        want[i] = start if i == begin else compose(want[i - 1], x[i - 1])
                    elif i > begin:
                        want[i] = compose(want[i - 1], x[i])
            given = gpu.to_device(x), gpu.to_device(offsets)
            if has_row_init:
                result = ga.segmented_exclusive_scan(*given, gpu.to_device(starts), compose)
            else:
                result = ga.segmented_inclusive_scan(*given, None, compose)
            yield result, want

    return calls


def sorts_of_segments(*, in_place: bool = False, has_nan: bool = False) -> Any:
    """Return sorts of pairs, in which many keys are equal, from segments of all lengths."""

    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        few = np.sort(rng.integers(2500, N - 9, 700))
        offsets = np.array([3, 4, 4, 21, 60, 2400, *few, N - 7])
        x = rng.integers(0, 9, N).astype(np.float32)
        if has_nan:
            x[rng.integers(0, N, N // 5)] = np.nan
        places = np.arange(N, dtype=np.int32)
        want = places.copy()
        for begin, end in itertools.pairwise(offsets):
            want[begin:end] = begin + np.argsort(x[begin:end], kind="stable")
        given, ends = (gpu.to_device(x), gpu.to_device(places)), gpu.to_device(offsets)
        out = given if in_place else None
        got = ga.segmented_sort(given[0], ends, values=given[1], out=out)
        if not has_nan:
            yield got[0], x[want]
        yield got[1], want

    return calls


def firsts(shape: tuple[int, ...], k: int, spread: int = 300) -> Any:
    """Return calls for the first elements of rows."""

    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        for _ in range(2):
            x = rng.integers(-spread, spread + 1, shape).astype(np.int32)
            want = np.argsort(~x, axis=-1, kind="stable")[..., :k]
            values, indices = ga.top_k(gpu.to_device(x), k)
            yield indices, want
            yield values, np.take_along_axis(x, want, -1)

    return calls


def firsts_of_a_few_lanes(gpu: Backend, rng: np.random.Generator) -> Results:
    """Return rows whose first elements stand 32 apart."""
    x = rng.integers(0, 100, (9, 1000)).astype(np.int32)
    x[:, 3::32] += 1000
    x[:, 7::32] += 1000
    want = np.argsort(~x, axis=-1, kind="stable")[..., :12]
    yield ga.top_k(gpu.to_device(x), 12).indices, want


def ranks(shape: tuple[int, ...], k: Any, spread: int = 300, times: int = 1) -> Any:
    """Return calls for the elements of some ranks in each row."""

    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        for _ in range(times):
            x = rng.integers(-spread, spread + 1, shape).astype(np.int32)
            yield ga.kth_value(gpu.to_device(x), k), np.moveaxis(np.sort(x)[..., k], -1, 0)

    return calls
