"""Arrays sharded over several devices of one host, and the algorithms on them.

The section on several GPUs of docs/scale.md tells what each reads, sends and waits for.
"""

from __future__ import annotations

from gpualgo._algorithms import show_signatures as _show_signatures
from gpualgo.shards._elementwise import (
    adjacent_difference,
    run_length_encode,
    select,
    transform,
)
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
    reduce_by_index,
    searchsorted,
    segmented_reduce,
    top_k,
)
from gpualgo.shards._shards import ShardedArray, distribute
from gpualgo.shards._sort import argsort, radix_sort, reduce_by_key, sort, unique

__all__ = [
    "ShardedArray",
    "adjacent_difference",
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
    "reduce_by_index",
    "reduce_by_key",
    "run_length_encode",
    "searchsorted",
    "segmented_reduce",
    "select",
    "sort",
    "top_k",
    "transform",
    "unique",
]

_show_signatures(*(globals()[name] for name in __all__))
