"""What runs with a planted bug: each kernel on little data, cut as fine as its policies allow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from support import Backend

import gpualgo as ga
from emulator.planted.calls import (
    Results,
    close_searches,
    differences,
    firsts,
    firsts_of_a_few_lanes,
    greatest,
    histograms,
    joint_histograms,
    merge_sorts,
    merged_runs,
    merges,
    of_pairs,
    ranks,
    reductions,
    reductions_by_index,
    reductions_by_key,
    reductions_in_buckets,
    reductions_in_order,
    reductions_of_close_keys,
    reductions_of_records,
    reductions_of_segments,
    scans,
    scans_by_key,
    scans_of_pairs,
    scans_of_records,
    scans_of_segments,
    searches,
    selections,
    sorts,
    sorts_of_segments,
    sorts_of_tuples,
    sums_beside,
    sums_of_two,
    weighted,
    windows,
    with_numbers,
)
from gpualgo._algorithms.by_index import cuda as by_index
from gpualgo._algorithms.by_index import tuning as indexed
from gpualgo._algorithms.by_key import cuda as by_key
from gpualgo._algorithms.histogram import tuning as histogram
from gpualgo._algorithms.merge_sort import tuning as merge_sort
from gpualgo._algorithms.radix_sort import cuda, cuda_passes
from gpualgo._algorithms.radix_sort import tuning as radix_sort
from gpualgo._algorithms.reduce import tuning as reduce
from gpualgo._algorithms.scan import tuning as scan
from gpualgo._algorithms.searchsorted import cuda as searchsorted
from gpualgo._algorithms.segmented_sort import cuda as segment_policy
from gpualgo._algorithms.segments import cuda as segments
from gpualgo._algorithms.select import cuda as select
from gpualgo._algorithms.top_k import tuning as top_k

Patch = tuple[Any, str, Any]  # a module's constant, for as long as the case runs


@dataclass(frozen=True)
class Case:
    """Calls on data of a seed, and the policies that they take."""

    calls: Callable[[Backend, np.random.Generator], Results]
    patches: tuple[Patch, ...] = ()


_LARGE = ((segments, "ONE_LAUNCH_ITEMS", -1),)
_REDUCE = (
    (reduce, "SMALL_POLICIES", {}),
    (reduce, "SMALLEST", reduce.Policy(64, 2, 4)),
    (reduce, "MOST_BLOCKS", 5),
    (reduce, "COLUMNS", reduce.Policy(64, 2, 1)),
)
_FEW = ((reduce, "SMALL_POLICIES", {1 << 30: reduce.Small(64, 2, 100)}),)
_FEWER = ((reduce, "SMALL_POLICIES", {1 << 30: reduce.Small(32, 2, 0)}),)
_MANY = (
    (reduce, "SMALL_POLICIES", {1 << 30: reduce.Small(64, 1, 100)}),
    (reduce, "SMALL_MOST_BLOCKS", 65),
)
_WAVE = ((scan, "WAVES", {1 << 30: scan.WavePolicy(64, 2, 1)}),)
_TILES = (
    (scan, "WAVES", {}),
    (scan, "LARGE", scan.Policy(64, 3, 2)),
    (scan, "LARGE_WIDE", scan.Policy(64, 3, 2)),
)
_RECORD_TILES = (*_TILES, (scan, "WAVE_BYTES", 0), (scan, "STAGE_BYTES", 12 << 10))
_COLUMNS = (
    (scan, "COLUMNS_THREADS", 64),
    (scan, "ROW_BYTES", 32),
    (scan, "FEW_ROW_BYTES", 32),
    (scan, "SEGMENT_BYTES", 16),
)
_SHORT_SEGMENTS = (*_COLUMNS[:-1], (scan, "SEGMENT_BYTES", 12))
_SELECT = (
    (select, "BLOCK_THREADS", 64),
    (select, "TUNED", {1: (64, 32, 24)}),
    (select, "BLOCKS_PER_SM", 1),
)
_LONG = (
    *((top_k, "LONG_ROW", 2000), (top_k, "MOST_SORTED", 64), (top_k, "FILTER_THREADS", 64)),
    *((top_k, "MOST_IN_PARTS", 0), (top_k, "LEAST_SELECTED", 0), (top_k, "SHORT_ROW", 1024)),
)
_BLOCKS = ((top_k, "SHORT_ROW", 1024), (top_k, "MOST_IN_PARTS", 0))
_PARTS = ((top_k, "SHORT_ROW", 1100), (top_k, "LEAST_PART", 256))
_RANKS = (top_k, "RANKS_SHARE", 200), (top_k, "RANKS_THREADS", 64)
_LISTS = (*_LONG, *_RANKS)
_SHARED_ROWS = (
    *_RANKS,
    *((top_k, "LEAST_SHARED", 1000), (top_k, "SHORT_ROW", 1024)),
    *((top_k, "MOST_IN_PARTS", 0), (top_k, "RANKS_BLOCKS", 8)),
)
_NO_ROOM = (*_LONG, (top_k, "sample_of", lambda *_: top_k.Sample(8, -1, 40, 100)))
_MANY_SHARES = ((indexed, "SHARE_ITEMS", 64), (indexed, "FEW_TABLES", 3), (indexed, "GROUP", 4))
_BUCKETS = (
    (indexed, "TABLE_BYTES", 32 * 16),
    *((indexed, name, 32) for name in ("SHARE_ITEMS", "SHARE_UNIT")),
    *((indexed, name, 1) for name in ("SHARE_PER_INDEX", "ENOUGH_SHARES", "JOIN_BLOCKS")),
)
_BY_KEY = (
    (by_key, "BLOCK_THREADS", 64),
    (by_key, "THREAD_BYTES", 32),
    (by_key, "SM_THREADS", {1 << 30: 64}),
)
_MANY_BLOCKS = (*_BY_KEY[:2], (by_key, "SM_THREADS", {1 << 30: 64 * 32}))  # which look far back
_PASSES = (
    (radix_sort, "SMALLER", {1 << 30: radix_sort.Policy(64, 4, 8, 2)}),
    (radix_sort, "SMALL_HISTOGRAM", radix_sort.HistogramPolicy(64, 2, 4, 2)),
    (radix_sort, "MAX_ROW_WARPS", 1),
    (radix_sort, "RING", 16),
)
_BEHIND = (
    (radix_sort, "SMALLER", {1 << 30: radix_sort.Policy(64, 4, 8, 2, True, True)}),
    *_PASSES[1:],
)
_JOINED = (
    (radix_sort, "SMALLER", {1 << 30: radix_sort.Policy(64, 4, 8, 2, True, joins=True)}),
    *_PASSES[1:],
)
_MERGES = (
    (merge_sort, "LARGE", {128: merge_sort.Policy(64, 3)}),
    (merge_sort, "SMALLER", {}),
    (merge_sort, "MAX_GRID", 2),
    (cuda_passes, "KEPT_BYTES", 0),  # of storage each byte counts
)
_RUNS = (
    *_MERGES,
    (merge_sort, "CUT_SAMPLES", 128),
    (merge_sort, "CUT_THREADS", 64),
)
_TILE_OF_SEGMENTS = segment_policy.Policy(64, 4, 1, 32, 2, 1)
_SEGMENTS = (
    (segment_policy, "SHORT", {(128, True): _TILE_OF_SEGMENTS}),
    (segment_policy, "SPAN_THREADS", 64),
    (cuda_passes, "KEPT_BYTES", 0),
)
_SMALL = histogram.Policy(64, 2, 2)
_HISTOGRAM = (
    (histogram, "SMALL_MOST_BYTES", 0),
    (histogram, "SMALL", {}),
    *((histogram, name, _SMALL) for name in ("SMALL_OF_MANY", "ROOMY", "ROOMIEST", "LARGE")),
    (histogram, "STRIDED", histogram.Policy(64, 4, 2)),
)
_COUNTING = (
    *_HISTOGRAM,
    (radix_sort, "MAX_ROW_WARPS", 1),
    (cuda, "_FEW_KEYS", {1: 0}),
)
_FEW_SAMPLES = (
    (histogram, "SMALL_SHAPES", {1 << 30: histogram.Small(64, 1, 2)}),
    (histogram, "SMALL_TABLE", 1 << 7),
    (histogram, "SLOT_THREADS", 1),
    (histogram, "SM_THREADS", 64),
    (histogram, "MOST_ROUNDS", 9),
)
_PACKED = (*_HISTOGRAM, (histogram, "_table", lambda *_: histogram.PACKED))
_GLOBAL = (*_HISTOGRAM, (histogram, "_table", lambda *_: histogram.GLOBAL))

CASES = {
    "search": Case(searches(1003, 700)),
    "search of stretches": Case(
        searches(1003, 700), ((searchsorted, "MOST_LEVELS", 4), (searchsorted, "NODE_BITS", {}))
    ),
    "search of samples": Case(searches(1003, 700), ((searchsorted, "MOST_LEVELS", 4),)),
    "search of windows": Case(
        close_searches,
        (
            (searchsorted, "MOST_LEVELS", 6),
            (searchsorted, "WINDOW_QUERIES", 1),
            (searchsorted, "BLOCKS_PER_SM", 1),
        ),
    ),
    "adjacent difference": Case(differences((2103,), 0)),
    "adjacent difference of rows": Case(differences((700, 3), 1)),
    "adjacent difference of columns": Case(differences((64, 48), 0)),
    "segments": Case(reductions_of_segments("all")),
    "large segments": Case(reductions_of_segments("all"), _LARGE),
    "segments of the end": Case(reductions_of_segments("end")),
    "segments of any offsets": Case(reductions_of_segments("any")),
    "segments that overlap": Case(reductions_of_segments("overlap")),
    "scan of segments": Case(scans_of_segments(has_row_init=False), _BY_KEY),
    "scan of large segments": Case(scans_of_segments(has_row_init=False), (*_BY_KEY, *_LARGE)),
    "scan of segments from starts": Case(scans_of_segments(has_row_init=True), _BY_KEY),
    "sorted segments": Case(sorts_of_segments(), _SEGMENTS),
    "sorted segments in place": Case(sorts_of_segments(in_place=True), _SEGMENTS),
    "segments of NaN": Case(sorts_of_segments(has_nan=True), _SEGMENTS),
    "select": Case(selections(20_003, has_rest=False), _SELECT),
    "partition": Case(selections(5003, has_rest=True), _SELECT),
    "by index": Case(reductions_by_index),
    "by index of many shares": Case(reductions_by_index, _MANY_SHARES),
    "by index in buckets": Case(reductions_in_buckets, _BUCKETS),
    "reduce by key": Case(reductions_by_key, _BY_KEY),
    "reduce by close keys": Case(
        reductions_of_close_keys, (*_BY_KEY, *_PASSES, (by_index, "TABLES_FROM", 1))
    ),
    "scan by key": Case(scans_by_key(9, 3000), _BY_KEY),
    "scan of pairs of one key": Case(scans_of_pairs, _MANY_BLOCKS),
    "reduce blocks": Case(reductions(5375, None), _REDUCE),
    "reduce blocks int64": Case(reductions(3001, None, np.int64), _REDUCE),
    "reduce small": Case(reductions(5375, None), _FEW),
    "reduce small int64": Case(reductions(3001, None, np.int64), _FEWER),
    "reduce small of many blocks": Case(reductions(16_001, None), _MANY),
    "reduce small in steps": Case(reductions(3001, None, step=2), _FEW),
    "reduce small of records": Case(reductions_of_records(3001, None), _FEW),
    "reduce in order": Case(reductions_in_order, _REDUCE),
    "reduce steps": Case(reductions(3001, None, step=2), _REDUCE),
    "reduce rows": Case(reductions((37, 21), -1), _REDUCE),
    "reduce rows of whole vectors": Case(greatest, _REDUCE),
    "reduce columns": Case(reductions((241, 20), 0), _REDUCE),
    "reduce columns of batches": Case(reductions((67, 8, 12), 1), _REDUCE),
    "reduce blocks of records": Case(reductions_of_records(3001, None), _REDUCE),
    "reduce rows of records in steps": Case(reductions_of_records((37, 42), -1, step=2), _REDUCE),
    "tiles of records": Case(scans_of_records("affine", 2450), _TILES),
    "tiles of records in steps": Case(scans_of_records("affine", 2450, 2), _TILES),
    "tiles of mixed records": Case(scans_of_records("mixed", 1201, 2), _RECORD_TILES),
    "reduce pairs": Case(of_pairs(ga.reduce, 3001), _REDUCE),
    "tiles of pairs": Case(of_pairs(ga.inclusive_scan, 2450), _TILES),
    "transform pairs": Case(of_pairs(ga.transform, 2103)),
    "merge sort": Case(merge_sorts(1100), _MERGES),
    "merge sort keys": Case(
        merge_sorts(1100, values=None), (*_MERGES, (merge_sort, "CACHED_BYTES", 0))
    ),
    "merge sort rows": Case(merge_sorts((30, 20)), _MERGES),
    "merge sort long rows": Case(merge_sorts((3, 450)), _MERGES),
    "merge": Case(merges(500, 333), _MERGES),
    "merged runs": Case(merged_runs(1100, 4), _RUNS),
    "transform": Case(sums_of_two(2103, 1)),
    "transform with numbers": Case(with_numbers),
    "transform steps": Case(sums_of_two(2005, 2)),
    "windows": Case(windows),
    "transform rows": Case(sums_beside((37, 20), False)),
    "transform rows of elements": Case(sums_beside((37, 301), False)),
    "transform turned": Case(sums_beside((62, 130), True)),
    "reduce short rows": Case(reductions((511, 8), -1), ((reduce, "TARGET_BLOCKS", 0),)),
    "wave": Case(scans(2501), _WAVE),
    "wave int64": Case(scans(1300, dtype=np.int64), _WAVE),
    "wave lines": Case(scans((2, 1201), exclusive=True, init=7), _WAVE),
    "wave steps": Case(scans(2501, step=2), _WAVE),
    "tiles": Case(scans(4224, dtype=np.int64), _TILES),
    "tiles int32": Case(scans(8001, reverse=True, init=3), _TILES),
    "tiles steps": Case(scans(5001, step=2), _TILES),
    "walked lines": Case(scans((17, 1700), init=5), (*_TILES, (scan, "MANY_LINES", 0))),
    "scan short rows": Case(scans((50, 20), times=1)),
    "scan rows": Case(scans((9, 200), times=1)),
    "scan long rows": Case(scans((3, 2500), times=1), ((scan, "ROWS_PER_WARP", 2),)),
    "scan long rows in reverse": Case(
        scans((3, 2500), reverse=True, times=1), ((scan, "ROWS_PER_WARP", 2),)
    ),
    "scan columns": Case(scans((700, 14), axis=0), _COLUMNS),
    "scan narrow columns": Case(scans((300, 3), axis=0), _COLUMNS),
    "scan one chunk": Case(scans((24, 16), axis=0), _SHORT_SEGMENTS),
    "first elements": Case(firsts((2, 1100), 40), _BLOCKS),
    "first elements that are equal": Case(firsts((1, 1100), 40, spread=0), _BLOCKS),
    "all elements": Case(firsts((1, 1030), 1030)),
    "first elements of short rows": Case(firsts((13, 70), 5, spread=9)),
    "first elements of short rows of a few lanes": Case(firsts_of_a_few_lanes),
    "many first elements of short rows": Case(firsts((5, 200), 64)),
    "equal first elements of short rows": Case(firsts((5, 200), 64, spread=0)),
    "first elements of rows in blocks": Case(firsts((2, 2100), 64)),
    "equal first elements of rows in blocks": Case(firsts((2, 2100), 64, spread=0)),
    "first elements of parts": Case(firsts((3, 4003), 37, spread=90), _PARTS),
    "first elements of a long row": Case(firsts((1, 4003), 40), _LONG),
    "first elements of a long row of few values": Case(firsts((1, 4003), 40, spread=5), _LONG),
    "first elements of a long row without room": Case(firsts((1, 4003), 40), _NO_ROOM),
    "many first elements of a long row": Case(firsts((1, 4003), 70), _LONG),
    "ranks of a long row": Case(ranks((4003,), [2001, 7, 2003, 3900]), _LISTS),
    "ranks of a long row of few values": Case(ranks((4003,), [2001, 7], spread=2), _LISTS),
    "ranks of shared rows": Case(ranks((2, 2003), [7, 1000]), _SHARED_ROWS),
    "equal first elements of a shared row": Case(firsts((1, 2003), 1500, spread=0), _SHARED_ROWS),
    "ranks again": Case(ranks((2003,), [7], times=3), _SHARED_ROWS),
    "first elements of a shared row": Case(firsts((1, 2003), 70), _SHARED_ROWS),
    "first elements of shared rows": Case(firsts((2, 2003), 70), _SHARED_ROWS),
    "scan walks": Case(scans((13, 70), axis=0, times=1)),
    "sort": Case(sorts(2500, np.uint32), _PASSES),
    "sort a digit": Case(sorts(6500, np.uint32, bits=8), _PASSES),
    "sort again": Case(sorts(4600, np.uint32, bits=8, times=2), _PASSES),
    "sort pairs": Case(sorts(2500, np.uint16, values=np.int32), _PASSES),
    "sort values behind keys": Case(sorts(2500, np.uint16, values=np.int32), _BEHIND),
    "sort joined pairs": Case(sorts(2500, np.uint16, values=np.int16), _JOINED),
    "sort long rows": Case(sorts((3, 1201), np.uint32, bits=8), _PASSES),
    "sort rows": Case(sorts((6, 255), np.uint16, values=np.uint32)),
    "sort block rows": Case(sorts((2, 600), np.uint16, values=np.uint32)),
    "sort small rows": Case(sorts((20, 11), np.uint8, values=np.uint32)),
    "sort tuples": Case(sorts_of_tuples(("int16", "float32", "int8"), ("int64", "int8"), (20, 11))),
    "sort wide tuples": Case(sorts_of_tuples(("float64", "int16"), ("int64", "int8"), (20, 11))),
    "counting sort": Case(sorts(5003, np.uint8, times=2), _COUNTING),
    "histogram": Case(histograms(3001, np.float32, 12, (-200, 200)), _HISTOGRAM),
    "histogram bytes": Case(histograms(6001, np.int8, 10, (-128, 127), scale=60), _HISTOGRAM),
    "histogram edges": Case(
        histograms(2001, np.float32, np.array([-90, -20, -5, 0, 1, 30, 31, 200.0])), _HISTOGRAM
    ),
    "histogram small": Case(histograms(3001, np.float32, 12, (-200, 200)), _FEW_SAMPLES),
    "histogram small bytes": Case(
        histograms(6001, np.int8, 10, (-128, 127), scale=60), _FEW_SAMPLES
    ),
    "histogram small values": Case(histograms(6001, np.uint8, 100, (20, 119.5)), _FEW_SAMPLES),
    "histogram packed": Case(histograms(3001, np.float32, 12, (-200, 200)), _PACKED),
    "histogram packed constant": Case(
        histograms(70_000, np.float32, 2, (-1, 2), scale=0, times=1),
        (*_PACKED, (histogram, "BLOCK_SAMPLES_PER_SLOT", 1 << 20)),
    ),
    "histogram global": Case(histograms(2001, np.float32, 50, (-200, 200)), _GLOBAL),
    "histogram channels": Case(
        histograms((900, 3), np.float32, 9, (-200, 200), axis=0), _HISTOGRAM
    ),
    "joint": Case(joint_histograms(3001, ([-20, -3, 0, 1, 2, 20], 5)), _HISTOGRAM),
    "joint two": Case(
        joint_histograms(3001, ([-20, -3, 0, 1, 2, 20], [-9, -8, 0, 1, 5])), _HISTOGRAM
    ),
    "joint global": Case(
        joint_histograms(3001, ([-20, -3, 0, 1, 2, 20], 5)),
        (*_HISTOGRAM, (histogram, "_table", lambda *_: histogram.GLOBAL)),
    ),
    "joint steps": Case(
        joint_histograms((3, 901), ([-20, -3, 0, 1, 2, 20], 5), step=2), _HISTOGRAM
    ),
    "weighted": Case(weighted(3001, 5, np.float32)),
    "weighted edges": Case(weighted(3001, np.array([0, 2, 3, 7.0, 7.5]), np.float64)),
    "weighted steps": Case(weighted(3001, 5, np.complex64, step=2)),
    "weighted shares": Case(weighted(3001, 5, np.int64), _MANY_SHARES),
    "weighted sorted": Case(weighted(1501, 200, np.float64), ((indexed, "TABLE_BYTES", 1),)),
    "histogram steps": Case(histograms(3001, np.int32, 12, (-200, 200), step=2), _HISTOGRAM),
}
