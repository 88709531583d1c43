"""What runs with a planted bug: each kernel on little data, cut as fine as its policies allow."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from record_plans import KINDS, folded, scanned
from support import Backend, affine, compose

import gpualgo as ga
from gpualgo._algorithms.histogram import joint_policy as joint
from gpualgo._algorithms.histogram import policy as histogram
from gpualgo._algorithms.radix_sort import cuda_counting
from gpualgo._algorithms.radix_sort import policy as radix_sort
from gpualgo._algorithms.reduce import policy as reduce
from gpualgo._algorithms.scan import policy as scan
from gpualgo._algorithms.scan import policy_lines as lines

Host = np.ndarray[Any, Any]
Results = Iterator[tuple[Any, Host]]  # what came, and what NumPy says
Patch = tuple[Any, str, Any]  # a module's constant, for as long as the case runs


@dataclass(frozen=True)
class Case:
    """Calls on data of a seed, and the policies that they take."""

    calls: Callable[[Backend, np.random.Generator], Results]
    patches: tuple[Patch, ...] = ()


def _numbers(rng: np.random.Generator, shape: Any, dtype: Any = np.int32) -> Host:
    return rng.integers(-1000, 1000, shape).astype(dtype)


def _reduce(shape: Any, axis: int | None, dtype: Any = np.int32, step: int = 1) -> Any:
    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        for _ in range(2):
            x = _numbers(rng, shape, dtype)
            given = gpu.to_device(x)[..., ::step]
            yield ga.reduce(given, axis=axis), x[..., ::step].sum(axis, dtype=dtype)

    return calls


def _reduce_in_order(gpu: Backend, rng: np.random.Generator) -> Results:
    for _ in range(2):
        x = affine(3000, seed=int(rng.integers(1 << 30)))
        want = x[0]
        for value in x[1:]:
            want = compose(want, value)
        yield ga.reduce(gpu.to_device(x), op=compose), np.asarray(want)


def _reduce_greatest(gpu: Backend, rng: np.random.Generator) -> Results:
    for length in (256, 200):
        x = -1 - abs(_numbers(rng, (5, length)))
        yield ga.reduce(gpu.to_device(x), op=np.maximum, axis=-1), x.max(-1)


def _reduce_records(shape: Any, axis: int | None, step: int = 1) -> Any:
    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        kind, seed = KINDS["affine"], int(rng.integers(1 << 30))
        x = tuple(leaf[..., ::step] for leaf in kind.random(shape, seed))
        given = tuple(gpu.to_device(leaf)[..., ::step] for leaf in kind.random(shape, seed))
        axes = tuple(range(x[0].ndim)) if axis is None else (axis % x[0].ndim,)
        yield from zip(
            ga.reduce(given, op=kind.fn, axis=axis), folded(kind, x, axes, None), strict=True
        )

    return calls


def _scan_records(name: str, size: int) -> Any:
    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        kind = KINDS[name]
        x = kind.random(size, int(rng.integers(1 << 30)))
        got = ga.inclusive_scan(tuple(map(gpu.to_device, x)), None, kind.fn)
        with np.errstate(over="ignore"):
            want = scanned(kind, x, 0, None, exclusive=False, reverse=False)
        yield from zip(got, want, strict=True)

    return calls


def _transform(size: int, step: int) -> Any:
    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        a, b = _numbers(rng, size), _numbers(rng, size)
        given = (gpu.to_device(x)[::step] for x in (a, b))
        yield ga.transform(operator.add, *given), a[::step] + b[::step]

    return calls


def _numbered(gpu: Backend, rng: np.random.Generator) -> Results:
    a = _numbers(rng, 2103)
    for k in (np.int64(3), np.int64(7), np.int64(11)):
        yield ga.transform(lambda x, y: x + y * k, gpu.to_device(a), gpu.to_device(a)), a + a * k  # noqa: B023


def _scan(
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


def _sort(
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


def _sort_tuples(dtypes: Any, values: Any, shape: Any) -> Any:
    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        keys = [rng.integers(-2, 2, shape).astype(dtype) for dtype in dtypes]
        order = np.lexsort(keys[::-1], axis=-1)
        moved = [rng.integers(0, 100, shape).astype(dtype) for dtype in values]
        given = (tuple(map(gpu.to_device, arrays)) for arrays in (keys, moved))
        got = ga.radix_sort(*given)
        wanted = [np.take_along_axis(x, order, -1) for x in (*keys, *moved)]
        yield from zip((*got[0], *got[1]), wanted, strict=True)

    return calls


def _histogram(
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


def _joint(shape: Any, bins: Any, step: int = 1, dtype: Any = np.float32) -> Any:
    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        for _ in range(2):
            x = (rng.standard_normal(shape) * 9).astype(dtype)
            y = rng.integers(-9, 9, shape).astype(np.int8)
            given = tuple(gpu.to_device(a)[..., ::step] for a in (x, y))
            seen = [a[..., ::step].astype(float).ravel() for a in (x, y)]
            want = np.histogramdd(seen, bins)[0].astype(np.int64)
            yield ga.histogram(given, bins), want

    return calls


def _weighted(
    size: int, bins: int, dtype: Any, spread: int, sign: int = 0, step: int = 1, apart: int = 0
) -> Any:
    """Return calls whose sums the CPU, which is another program, tells."""

    def calls(gpu: Backend, rng: np.random.Generator) -> Results:
        for _ in range(2):
            x = (rng.random(size) * bins).astype(np.float32)
            w = rng.standard_normal(size) * np.exp2(rng.integers(-spread, spread + 1, size))
            w = (abs(w) * sign if sign else w) * np.exp2(apart * np.floor(x.astype(float)))
            w = w.astype(dtype)
            with ga.default_device("cpu"):
                want = ga.histogram(x[::step], bins, (0, bins), weights=w[::step])
            given = (gpu.to_device(a)[::step] for a in (x, w))
            yield ga.histogram(next(given), bins, (0, bins), weights=next(given)), want

    return calls


def _ties(gpu: Backend, rng: np.random.Generator) -> Results:
    """Sums half way between two floats, or hardly above that."""
    places = np.repeat(np.arange(40), 3)
    ones = 1 + np.arange(40) * 2.0**-23
    less = np.tile([0, 0, 2.0**-90, 2.0**-90], 10)
    w = np.stack([ones, np.full(40, 2.0**-24), less], 1).astype(np.float32).ravel()
    with ga.default_device("cpu"):
        want = ga.histogram(places, 40, (0, 40), weights=w)
    yield ga.histogram(gpu.to_device(places), 40, (0, 40), weights=gpu.to_device(w)), want


_REDUCE = (
    (reduce, "SMALL", reduce.Policy(64, 2, 4)),
    (reduce, "MIN_BLOCKS", 3),
    (reduce, "COLUMNS", reduce.Policy(64, 2, 1)),
)
_WAVE = ((scan, "WAVES", {1 << 30: scan.WavePolicy(64, 2, 1)}),)
_TILES = (
    (scan, "WAVES", {}),
    (scan, "LARGE", scan.Policy(64, 3, 2)),
    (scan, "LARGE_WIDE", scan.Policy(64, 3, 2)),
)
_RECORD_TILES = (*_TILES, (scan, "WAVE_BYTES", 0), (scan, "STAGE_BYTES", 12 << 10))
_COLUMNS = (
    (lines, "COLUMNS_THREADS", 64),
    (lines, "ROW_BYTES", 32),
    (lines, "SEGMENT_BYTES", 16),
)
_PASSES = (
    (radix_sort, "SMALLER", {1 << 30: radix_sort.Policy(64, 4, 8, 2)}),
    (radix_sort, "SMALL_HISTOGRAM", radix_sort.HistogramPolicy(64, 2, 4, 2)),
    (radix_sort, "MAX_ROW_WARPS", 1),
    (radix_sort, "RING", 16),
)
_SMALL = histogram.Policy(64, 2, 2)
_HISTOGRAM = (
    *((histogram, name, _SMALL) for name in ("SMALL", "ROOMY", "ROOMIEST", "LARGE")),
    (histogram, "STRIDED", histogram.Policy(64, 4, 2)),
)
_JOINT = (
    *_HISTOGRAM,
    *((joint, name, _SMALL) for name in ("FLAT", "STRIDED", "STRIDED_SUMS")),
    (joint, "ROUND", histogram.Policy(64, 1, 4)),
)
_COUNTING = (
    *_HISTOGRAM,
    (radix_sort, "MAX_ROW_WARPS", 1),
    (cuda_counting, "_FEW_KEYS", {1: 0}),
)
_PACKED = (*_HISTOGRAM, (histogram, "_table", lambda *_: histogram.PACKED))
_GLOBAL = (*_HISTOGRAM, (histogram, "_table", lambda *_: histogram.GLOBAL))

CASES = {
    "reduce blocks": Case(_reduce(5375, None), _REDUCE),
    "reduce blocks int64": Case(_reduce(3001, None, np.int64), _REDUCE),
    "reduce in order": Case(_reduce_in_order, _REDUCE),
    "reduce steps": Case(_reduce(3001, None, step=2), _REDUCE),
    "reduce rows": Case(_reduce((37, 21), -1), _REDUCE),
    "reduce rows of whole vectors": Case(_reduce_greatest, _REDUCE),
    "reduce columns": Case(_reduce((241, 20), 0), _REDUCE),
    "reduce blocks of records": Case(_reduce_records(3001, None), _REDUCE),
    "reduce rows of records in steps": Case(_reduce_records((37, 42), -1, step=2), _REDUCE),
    "tiles of records": Case(_scan_records("affine", 2450), _TILES),
    "tiles of mixed records": Case(_scan_records("mixed", 1201), _RECORD_TILES),
    "transform": Case(_transform(2103, 1)),
    "transform with numbers": Case(_numbered),
    "transform steps": Case(_transform(2005, 2)),
    "wave": Case(_scan(2501), _WAVE),
    "wave int64": Case(_scan(1300, dtype=np.int64), _WAVE),
    "wave lines": Case(_scan((2, 1201), exclusive=True, init=7), _WAVE),
    "wave steps": Case(_scan(2501, step=2), _WAVE),
    "tiles": Case(_scan(4224, dtype=np.int64), _TILES),
    "tiles int32": Case(_scan(8001, reverse=True, init=3), _TILES),
    "tiles steps": Case(_scan(5001, step=2), _TILES),
    "scan short rows": Case(_scan((50, 20), times=1)),
    "scan rows": Case(_scan((9, 200), times=1)),
    "scan long rows": Case(_scan((3, 2500), times=1), ((lines, "ROWS_PER_WARP", 2),)),
    "scan long rows in reverse": Case(
        _scan((3, 2500), reverse=True, times=1), ((lines, "ROWS_PER_WARP", 2),)
    ),
    "scan columns": Case(_scan((300, 14), axis=0), _COLUMNS),
    "scan narrow columns": Case(_scan((300, 3), axis=0), _COLUMNS),
    "scan one chunk": Case(_scan((30, 16), axis=0), _COLUMNS),
    "scan walks": Case(_scan((13, 70), axis=0, times=1)),
    "sort": Case(_sort(2500, np.uint32), _PASSES),
    "sort a digit": Case(_sort(6500, np.uint32, bits=8), _PASSES),
    "sort again": Case(_sort(4600, np.uint32, bits=8, times=2), _PASSES),
    "sort pairs": Case(_sort(2500, np.uint16, values=np.int32), _PASSES),
    "sort long rows": Case(_sort((3, 1201), np.uint32, bits=8), _PASSES),
    "sort rows": Case(_sort((6, 255), np.uint16, values=np.uint32)),
    "sort block rows": Case(_sort((2, 600), np.uint16, values=np.uint32)),
    "sort small rows": Case(_sort((20, 11), np.uint8, values=np.uint32)),
    "sort tuples": Case(_sort_tuples(("int16", "float32", "int8"), ("int64", "int8"), (20, 11))),
    "sort wide tuples": Case(_sort_tuples(("float64", "int16"), ("int64", "int8"), (20, 11))),
    "counting sort": Case(_sort(5003, np.uint8, times=2), _COUNTING),
    "histogram": Case(_histogram(3001, np.float32, 12, (-200, 200)), _HISTOGRAM),
    "histogram bytes": Case(_histogram(6001, np.int8, 10, (-128, 127), scale=60), _HISTOGRAM),
    "histogram edges": Case(
        _histogram(2001, np.float32, np.array([-90, -20, -5, 0, 1, 30, 31, 200.0])), _HISTOGRAM
    ),
    "histogram packed": Case(_histogram(3001, np.float32, 12, (-200, 200)), _PACKED),
    "histogram packed constant": Case(
        _histogram(70_000, np.float32, 2, (-1, 2), scale=0, times=1),
        (*_PACKED, (histogram, "BLOCK_SAMPLES_PER_SLOT", 1 << 20)),
    ),
    "histogram global": Case(_histogram(2001, np.float32, 50, (-200, 200)), _GLOBAL),
    "histogram channels": Case(
        _histogram((900, 3), np.float32, 9, (-200, 200), axis=0), _HISTOGRAM
    ),
    "joint": Case(_joint(3001, ([-20, -3, 0, 1, 2, 20], 5)), _JOINT),
    "joint two": Case(_joint(3001, ([-20, -3, 0, 1, 2, 20], [-9, -8, 0, 1, 5])), _JOINT),
    "joint global": Case(
        _joint(3001, ([-20, -3, 0, 1, 2, 20], 5)),
        (*_JOINT, (histogram, "_table", lambda *_: histogram.GLOBAL)),
    ),
    "joint steps": Case(_joint((3, 901), ([-20, -3, 0, 1, 2, 20], 5), step=2), _JOINT),
    "weighted": Case(_weighted(3001, 5, np.float32, 4), _JOINT),
    "weighted up": Case(_weighted(3001, 2, np.float64, 20, sign=-1), _JOINT),
    "weighted widely": Case(_weighted(1501, 3, np.float64, 20, apart=300), _JOINT),
    "weighted ties": Case(_ties, _JOINT),
    "weighted integers": Case(_weighted(1501, 3, np.int64, 40), _JOINT),
    "weighted steps": Case(_weighted(3001, 5, np.complex64, 4, step=2), _JOINT),
    "weighted global": Case(
        _weighted(1501, 200, np.float64, 10), (*_JOINT, (histogram, "FEW_SLOTS", 1))
    ),
    "histogram steps": Case(_histogram(3001, np.int32, 12, (-200, 200), step=2), _HISTOGRAM),
}
