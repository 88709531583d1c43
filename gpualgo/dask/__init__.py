"""The algorithms on dask arrays: lazy, and one call of gpualgo for each chunk."""

from __future__ import annotations

try:
    import dask.array
    import dask.task_spec  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"gpualgo.dask needs dask ({error}); run `pip install 'gpualgo[dask]'`"
    ) from error

from gpualgo.dask._histogram import histogram
from gpualgo.dask._reduce import reduce
from gpualgo.dask._scan import exclusive_scan, inclusive_scan
from gpualgo.dask._sort import argsort, radix_sort
from gpualgo.dask._transform import transform

__all__ = [
    "argsort",
    "exclusive_scan",
    "histogram",
    "inclusive_scan",
    "radix_sort",
    "reduce",
    "transform",
]
