"""The algorithms on dask arrays: they build dask graphs, with calls of gpualgo for each chunk.

https://github.com/gpualgo/gpualgo/blob/main/docs/scale.md tells how many
tasks they take and what workers hold.
"""

from __future__ import annotations

try:
    import dask.array
    import dask.task_spec  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"gpualgo.dask needs dask ({error}); run `pip install 'gpualgo[dask]'`"
    ) from error

from gpualgo._algorithms import show_signatures as _show_signatures
from gpualgo.dask._folds import (
    exclusive_scan,
    histogram,
    inclusive_scan,
    reduce,
    searchsorted,
    select,
    top_k,
    transform,
)
from gpualgo.dask._sort import argsort, radix_sort, reduce_by_key, unique

__all__ = [
    "argsort",
    "exclusive_scan",
    "histogram",
    "inclusive_scan",
    "radix_sort",
    "reduce",
    "reduce_by_key",
    "searchsorted",
    "select",
    "top_k",
    "transform",
    "unique",
]

_show_signatures(*(globals()[name] for name in __all__))
