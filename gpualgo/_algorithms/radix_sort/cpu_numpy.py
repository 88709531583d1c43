"""Sorts and stable orders by NumPy, where they are faster than the digit sort; with its bits.

Keys without values are sorted by one thread per row, or in runs of a long row, which are merged.
Random keys, one core of a Zen 4 whose NumPy was limited to AVX2, ms by digits / by NumPy:

    keys                2^12           2^14           2^16           2^20           2^22
    int32, uint32   0.05 / 0.02    0.11 / 0.06    0.36 / 0.23     8.7 / 5.8      60 / 32
    float32         0.06 / 0.02    0.12 / 0.06    0.41 / 0.26     8.1 / 6.3      58 / 33
    int64, uint64   0.07 / 0.03    0.20 / 0.11    0.73 / 0.45    31.4 / 11.7    138 / 64
    float64         0.08 / 0.03    0.22 / 0.10    0.82 / 0.41    40.8 / 10.8    135 / 51

Narrower keys are counted or take one or two passes: with AVX2, NumPy sorts 2^16 int16 keys in 3 ms,
the digit sort in 0.3 ms. With AVX-512 of 16-bit lanes NumPy is faster while a core has few keys.
Zen 5, two cores, µs by digits / by NumPy: 2^10 6 / 1.2, 2^14 30 / 15, 2^16 112 / 61, 2^19 970 /
690, 2^20 1600 / 1650; a Xeon, sixteen cores: 2^17 1030 / 420, 2^18 1310 / 880, 2^19 1950 / 1940,
2^20 2900 / 4100. Without SIMD NumPy takes 1.4 to 4 times as long as digits from 2^12 keys on.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from math import prod
from typing import Any

import numpy as np

from gpualgo._base import threads
from gpualgo._cpu.kernels import Kernel, cpuinfo, get_kernel, named, status_function
from gpualgo._cpu.launch import Launch, run_tasks
from gpualgo._cpu.memory import address
from gpualgo._cpu.plan import Make, Plan, compiled, of_numpy

Array = np.ndarray[Any, Any]
Dtype = np.dtype[Any]

# --- Which keys NumPy sorts faster. Both sorts give the same result on any number of threads.

_SHORT = 512  # up to this many keys, NumPy sorts a row faster with any SIMD
_DTYPES = frozenset(map(np.dtype, ("i4", "u4", "f4", "i8", "u8", "f8")))
_NARROW = frozenset(map(np.dtype, ("i2", "u2")))
# Longest rows of 16-bit integers for NumPy: with one thread, and with several that share digits.
_NARROW_ALONE, _NARROW_SHARED = 1 << 20, 1 << 19
CHECK_SORTED_KEYS = 1 << 15  # from this many keys on, rows are first checked for being sorted

# From SHARED_BYTES on, threads share a row, each sorting runs of at least _RUN_BYTES: waking 16
# threads takes as long as one thread sorts 2 MB.
SHARED_BYTES, _RUN_BYTES = 1 << 23, 1 << 21


def is_by_numpy(dtype: Dtype, length: int) -> bool:
    """Return whether NumPy's sort is faster for rows of `length` keys of a dtype."""
    if dtype in _NARROW:
        most = _NARROW_ALONE if threads.num_threads() == 1 else _NARROW_SHARED
        return length <= (most if is_vectorised() else _SHORT) and _has_narrow_vectors()
    return dtype in _DTYPES and (is_vectorised() or (length <= _SHORT and _has_vectors()[0]))


def has_vectors_for(dtype: Dtype) -> bool:
    """Return whether NumPy sorts a few thousand keys of a dtype with SIMD of any kind."""
    return dtype in _DTYPES and _has_vectors()[0]


def num_runs(num_bytes: int, num_threads: int) -> int:
    """Return the number of runs, a power of two, that a row is sorted in before merging."""
    if num_bytes < SHARED_BYTES:
        return 1
    return 1 << min(num_threads, num_bytes // _RUN_BYTES).bit_length() - 1


@cache
def is_vectorised() -> bool:
    """Return whether NumPy sorts numbers of 4 and 8 bytes at full speed with AVX2 or AVX-512.

    On Zen 4 NumPy's AVX-512 sort of long rows is slower than scalar code: a compressed store takes
    more than 100 cycles there. Short rows need none. Two cores, 2^21 keys in rows of 64, 512 and
    2048, ms by digits / by NumPy: float32 15 / 2.5, 14 / 1.7, 10 / 9.5; int64 12 / 2.7, 19 / 10.
    """
    has_avx2, has_avx512 = _has_vectors()
    return has_avx2 and not (has_avx512 and _is_zen4())


def _features() -> dict[str, bool]:
    """Return the CPU features that NumPy uses, by its names for them."""
    try:
        return dict(import_module("numpy._core._multiarray_umath").__cpu_features__)
    except (ImportError, AttributeError):
        return {}


@cache
def _has_narrow_vectors() -> bool:
    """Return whether NumPy sorts 16-bit integers with AVX-512 (VBMI2)."""
    return bool(_features().get("AVX512_ICL"))


@cache
def _has_vectors() -> tuple[bool, bool]:
    features = _features()
    has_avx512 = bool(features.get("X86_V4", features.get("AVX512_SKX")))
    return bool(features.get("X86_V3", features.get("AVX2"))), has_avx512


def _is_zen4() -> bool:
    """Return whether the processor is of AMD's family 25; with AVX-512 it is Zen 4."""
    fields = cpuinfo()
    if not fields:  # not Linux: use the processor name
        text = platform.processor()
        return "AuthenticAMD" in text and "Family 25" in text
    return fields.get("vendor_id") == "AuthenticAMD" and fields.get("cpu family") == "25"


# --- Sorts of keys without values.

_PIECE_KEYS = 1 << 14  # merged by one task
_BLOCK_BYTES = 1 << 22  # of rows with gaps that are copied at once


def plan_of(keys: Array, out: Array, descending: bool) -> Plan:
    """Return the plan that sorts rows of keys into `out`, which may be the same array.

    Zeros and NaNs keep their input order, as all equal keys do.
    """
    length, sort = keys.shape[-1], sort_of(keys.dtype, descending)
    num_rows, cores, work = keys.size // max(1, length), threads.num_threads(), 8 * keys.nbytes
    runs = 1 if 1 < num_rows >= cores else num_runs(length * keys.itemsize, cores)
    routines = [of_numpy("sort", keys.size, num_rows * runs, work)]
    if runs > 1:
        routines.append(compiled("radix_sort", keys.size, -(-length // runs), work))
    if not all(x.flags.c_contiguous and x.flags.aligned for x in (keys, out)):
        return Plan(lambda xs, outs, _: sort.copies(xs[0], outs[0]), routines)
    if keys.ndim > 1:
        return Plan(lambda xs, outs, _: sort.rows(xs[0], outs[0]), routines)
    if length >= CHECK_SORTED_KEYS:
        return Plan(lambda xs, outs, _: sort.row(xs[0], outs[0]), routines)
    new_row = sort.short_rows(out.shape, out.dtype)
    return Plan(lambda xs, outs, _: np.copyto(outs[0], new_row(xs, 0)), routines, sort.short_rows)


@cache
def sort_of(dtype: Dtype, descending: bool) -> SortByNumPy:
    return SortByNumPy(dtype, descending)


class SortByNumPy:
    """The sort of rows of a dtype. In descending order, negated or inverted keys are sorted."""

    def __init__(self, dtype: Dtype, descending: bool) -> None:
        self.flip: np.ufunc | None = None
        if descending:
            self.flip = np.negative if dtype.kind == "f" else np.invert
        self._is_ordered = dtype.kind, dtype.itemsize, int(descending)
        self._mend: Kernel | None = None
        if dtype.kind == "f":  # zeros and NaNs are restored
            self._mend = kernel("mend", dtype.itemsize, int(descending))

    def _mend_rows(self, keys: Array, out: Array, length: int, num_rows: int) -> None:
        if self._mend is not None:
            table = np.array((address(keys), address(out), length), np.int64)
            status_function(self._mend)(address(table), 0, 0, num_rows)

    def short_rows(self, shape: tuple[int, ...], dtype: Dtype, _: bool = False) -> Make:
        """Return f([keys], _): a new sorted row of this shape. It checks not if they are sorted."""
        flip, mend = self.flip, None
        if self._mend is not None:
            mend = Launch(self._mend, np.array((0, 0, *shape), np.int64), (0, 1), 0, 1, 0).at_once

        def make(arrays: Sequence[Array], _: int) -> Array:
            keys = arrays[0]
            # Equal dtypes may have other names or metadata.
            out = keys.copy() if keys.dtype is dtype else keys.astype(dtype)
            if flip is None:
                out.sort()
            else:
                self._sort_into(out, out)
            if mend is not None:
                mend(0, keys, out)
            return out

        return make

    def row(self, keys: Array, out: Array) -> None:
        """Sort a contiguous row into `out`, which may be the same row."""
        is_same, length = address(keys) == address(out), len(keys)
        if length >= CHECK_SORTED_KEYS:
            find = kernel("ordered", *self._is_ordered)
            if not status_function(find)(address(keys), 0, length, 0):
                if not is_same:
                    np.copyto(out, keys)
                return
        source = keys
        if is_same and self._mend is not None:
            source = np.empty_like(keys)
            copy_rows(source, keys, 64 * keys.nbytes if keys.nbytes >= SHARED_BYTES else 0)
        runs = num_runs(out.nbytes, threads.num_threads())
        if runs > 1:
            self._sort_runs(source, out, runs)
        else:
            self._sort_into(source, out)
        self._mend_rows(source, out, length, 1)

    def rows(self, keys: Array, out: Array) -> None:
        """Sort C-contiguous rows along the last axis into `out`, which may be the same array."""
        *outer, length = keys.shape
        num_rows = prod(outer)
        keys, out = keys.reshape(num_rows, length), out.reshape(num_rows, length)
        is_short = length * keys.itemsize < SHARED_BYTES
        if num_rows == 1 or not (is_short or num_rows >= threads.num_threads()):
            for row, target in zip(keys, out, strict=True):
                self.row(row, target)
            return
        is_same = address(keys) == address(out)

        def body(first: int, last: int) -> None:
            source, target = keys[first:last], out[first:last]
            if is_same and self._mend is not None:
                source = source.copy()
            self._sort_into(source, target)
            self._mend_rows(source, target, length, last - first)

        threads.run(body, num_rows, 8 * keys.nbytes)

    def copies(self, keys: Array, out: Array) -> None:
        """Sort rows with any strides: blocks of rows are copied, sorted and written."""
        if keys.ndim == 1:
            keys, out = keys[None], out[None]
        rows, targets = _longest_first(keys, out)
        step = max(1, _BLOCK_BYTES * len(rows) // max(1, keys.nbytes))
        for i in range(0, len(rows), step):
            part = rows[i : i + step]
            block, result = (np.empty(part.shape, keys.dtype) for _ in range(2))
            copy_rows(block, part, 4 * part.nbytes)
            self.rows(block, result)
            copy_rows(targets[i : i + step], result, 4 * part.nbytes)

    def _sort_into(self, source: Array, target: Array) -> None:
        """Sort rows by one thread; zeros and NaNs in any order."""
        if self.flip is not None:
            self.flip(source, target)
        elif source is not target:
            np.copyto(target, source)
        target.sort()
        if self.flip is not None:
            self.flip(target, target)

    def _sort_runs(self, source: Array, out: Array, runs: int) -> None:
        """Sort a row in runs, one thread per run, and merge them on all cores."""
        length, rounds, flip = len(out), runs.bit_length() - 1, self.flip
        buffers = [out, np.empty(length, out.dtype)]
        current = rounds % 2
        run_keys = -(-length // runs)

        def body(first: int, last: int) -> None:
            for run in range(first, last):
                part = slice(run * run_keys, (run + 1) * run_keys)
                target = buffers[current][part]
                if flip is not None:
                    flip(source[part], target)
                else:
                    np.copyto(target, source[part])
                target.sort()

        threads.run(body, runs, 64 * out.nbytes)
        while run_keys < length:
            merge(buffers[current], buffers[1 - current], run_keys)
            current, run_keys = 1 - current, 2 * run_keys
        if flip is not None:

            def restore(first: int, last: int) -> None:
                flip(out[first:last], out[first:last])

            threads.run(restore, length, 64 * out.nbytes)


def merge(source: Array, target: Array, run: int) -> None:
    """Merge neighbouring ascending runs of so many keys; the last one may be shorter."""
    length, pairs = len(source), -(-len(source) // (2 * run))
    pieces = max(1, min(2 * run, length) // _PIECE_KEYS)
    numbers = address(source), 0, address(source), 0, address(target), 0
    table = np.array([*numbers, length, run, run, run, pairs, pieces], np.int64)
    code = named("merge_sort", "merge_kernel", None, source.dtype, (False,), 0)
    run_tasks(get_kernel(*code), table, pairs * pieces, 64 * source.nbytes)


def _longest_first(*arrays: Array) -> list[Array]:
    """Return rows with the longest of the outer axes first."""
    longest = int(np.argmax(arrays[0].shape[:-1]))
    return [np.moveaxis(array, longest, 0) for array in arrays] if longest else [*arrays]


def copy_rows(target: Array, source: Array, work: int) -> None:
    """Copy rows, or the elements of a row, on all cores."""

    def part(first: int, last: int) -> None:
        target[first:last] = source[first:last]

    threads.run(part, len(target), work)


def kernel(name: str, *options: int | str) -> Kernel:
    return get_kernel(*named("radix_sort", f"{name}_kernel", *options))


# --- Stable orders: NumPy counts integers of one and two bytes. It merges other keys run by run
# (timsort), so nearly sorted keys cost little more than a copy. The number of merge levels is
# estimated from a sample. Three keys at equal distances (1, 2, 4, …) "turn" if they rise and then
# fall, or fall and then rise; each distance stands for one level. In random keys two thirds turn at
# all distances; in ten rising rows, only distances that reach from one row into another do.

_MOST_ROWS = 16  # sampled
_STEP_KEYS = 1 << 13
_DIGIT_SORT_COST = 100  # estimated merge levels from which the digit sort is faster

COUNTED_DTYPES = frozenset(map(np.dtype, ("?", "i1", "u1", "i2", "u2")))

# Longest rows of other keys whose stable order NumPy finds at least as fast: it merges few keys
# faster than a kernel is called. A Xeon, whole calls, µs by digits / NumPy: 2^10 float64 21 / 15,
# 2^12 77 / 178.
_ORDER_KEYS = {
    **dict.fromkeys(map(np.dtype, ("i4", "u4", "f4")), 1 << 8),
    **dict.fromkeys(map(np.dtype, ("i8", "u8", "f8")), 1 << 10),
}


def is_ordered_by_numpy(keys: Array, descending: bool) -> bool:
    """Return whether NumPy orders all keys of this layout: narrow ones, a short ascending row."""
    if keys.dtype in COUNTED_DTYPES:
        return True
    if descending or keys.ndim != 1 or len(keys) > _ORDER_KEYS.get(keys.dtype, 0):
        return False
    return keys.flags.c_contiguous and keys.flags.aligned


def has_few_runs(keys: Array, descending: bool) -> Callable[[Array], bool]:
    """Return f(rows of this layout): whether a merge sort of runs is faster than digits."""
    if keys.dtype not in _DTYPES:
        return lambda keys: False
    levels = kernel("levels", keys.dtype.kind, keys.dtype.itemsize, int(descending))
    estimate = status_function(levels)
    (*outer, length), (*strides, stride) = keys.shape, keys.strides
    count = prod(outer)
    picked = min(count, _MOST_ROWS, 1 + (keys.size >> 12))
    offsets = [
        sum(np.multiply(np.unravel_index(i * count // picked, outer), strides).tolist())
        for i in range(picked)
    ]
    limit = _DIGIT_SORT_COST * picked

    def is_cheap(keys: Array, held: Any = levels) -> bool:  # functions know its address only
        start = address(keys)
        return bool(sum([estimate(start + shift, stride, length, 0) for shift in offsets]) < limit)

    return is_cheap


def reversed_keys(keys: Array, room: Array | None = None) -> Array:
    """Return keys whose ascending order is the descending order of `keys`; NaNs stay NaNs.

    They are written to the memory of `room` if they fit there.
    """
    negate = np.negative if keys.dtype.kind == "f" else np.invert
    if room is None or not room.flags.c_contiguous or room.nbytes < keys.nbytes:
        return np.asarray(negate(keys))
    negated = room.reshape(-1).view(keys.dtype)[: keys.size].reshape(keys.shape)
    return np.asarray(negate(keys, out=negated))


def order_of(descending: bool) -> Make:
    """Return f([row], _): the stable order of a row."""
    if descending:
        return lambda arrays, _: reversed_keys(arrays[0]).argsort(kind="stable")
    return lambda arrays, _: arrays[0].argsort(kind="stable")


def order(keys: Array, out: Array, descending: bool) -> None:
    """Write the stable order of rows of keys to out: NumPy's argsort, rows on threads."""
    if keys.ndim == 1:
        indices = (reversed_keys(keys, out) if descending else keys).argsort(kind="stable")
        copy_rows(out, indices, 2 * out.nbytes)
        return
    rows, targets = _longest_first(keys, out)
    step = max(1, _STEP_KEYS * len(rows) // keys.size)  # few keys: their order stays in cache

    def body(first: int, last: int) -> None:
        for i in range(first, last, step):
            part = slice(i, min(i + step, last))
            block = reversed_keys(rows[part]) if descending else rows[part]
            targets[part] = block.argsort(axis=-1, kind="stable")

    # Merges of runs read keys about twice; counting narrow keys, or reversing keys, takes longer.
    reads = 2 if keys.dtype in _DTYPES and not descending else 8
    threads.run(body, len(rows), reads * keys.nbytes)
