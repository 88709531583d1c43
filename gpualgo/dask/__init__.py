"""The algorithms on dask arrays: they build dask graphs, with calls of gpualgo for each chunk."""

from __future__ import annotations

try:
    import dask.array
    import dask.task_spec  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"gpualgo.dask needs dask ({error}); run `pip install 'gpualgo[dask]'`"
    ) from error

from gpualgo._base import show_signatures as _show_signatures
from gpualgo.dask._by_key import reduce_by_key
from gpualgo.dask._histogram import histogram
from gpualgo.dask._reduce import reduce
from gpualgo.dask._runs import unique
from gpualgo.dask._scan import exclusive_scan, inclusive_scan
from gpualgo.dask._searchsorted import searchsorted
from gpualgo.dask._select import select
from gpualgo.dask._sort import argsort, radix_sort
from gpualgo.dask._top_k import top_k
from gpualgo.dask._transform import transform

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
