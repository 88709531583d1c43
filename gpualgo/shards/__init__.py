"""Arrays on several devices of one host, and the algorithms on them: a call on each device."""

from __future__ import annotations

from gpualgo.shards._distribute import distribute
from gpualgo.shards._histogram import histogram
from gpualgo.shards._reduce import reduce
from gpualgo.shards._scan import exclusive_scan, inclusive_scan
from gpualgo.shards._shards import ShardedArray
from gpualgo.shards._sort import argsort, radix_sort, sort
from gpualgo.shards._transform import transform

__all__ = [
    "ShardedArray",
    "argsort",
    "distribute",
    "exclusive_scan",
    "histogram",
    "inclusive_scan",
    "radix_sort",
    "reduce",
    "sort",
    "transform",
]
