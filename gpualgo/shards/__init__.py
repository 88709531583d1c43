"""Arrays sharded over several devices of one host, and the algorithms on them."""

from __future__ import annotations

from gpualgo._algorithms import show_signatures as _show_signatures
from gpualgo.shards._elementwise import select, transform
from gpualgo.shards._folds import (
    argmax,
    argmin,
    count,
    exclusive_scan,
    find,
    histogram,
    inclusive_scan,
    minmax,
    reduce,
    top_k,
)
from gpualgo.shards._shards import ShardedArray, distribute
from gpualgo.shards._sort import argsort, radix_sort, reduce_by_key, sort

__all__ = [
    "ShardedArray",
    "argmax",
    "argmin",
    "argsort",
    "count",
    "distribute",
    "exclusive_scan",
    "find",
    "histogram",
    "inclusive_scan",
    "minmax",
    "radix_sort",
    "reduce",
    "reduce_by_key",
    "select",
    "sort",
    "top_k",
    "transform",
]

_show_signatures(*(globals()[name] for name in __all__))
