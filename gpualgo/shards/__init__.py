"""Arrays sharded over several devices of one host, and the algorithms on them.

https://github.com/gpualgo/gpualgo/blob/main/docs/scale.md tells what each
reads, sends and waits for.
"""

from __future__ import annotations

from gpualgo._algorithms import show_signatures as _show_signatures
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
from gpualgo.shards._sharded import (
    adjacent_difference,
    argsort,
    radix_sort,
    reduce_by_key,
    run_length_encode,
    select,
    sort,
    transform,
    unique,
)
from gpualgo.shards._shards import ShardedArray, distribute

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
