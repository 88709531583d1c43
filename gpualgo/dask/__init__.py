"""The algorithms on dask arrays: they build dask graphs, with calls of gpualgo for each chunk.

https://github.com/gpualgo/gpualgo/blob/main/docs/scale.md tells how many
tasks they take and what workers hold. The docstrings in the modules tell what differs from the
functions of the same names in `gpualgo`.
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
from gpualgo._distributed import document as _document
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

_functions = [globals()[name] for name in __all__]
_document(_functions, "dask arrays")
_show_signatures(*_functions)
