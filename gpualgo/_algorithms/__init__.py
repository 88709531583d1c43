"""The algorithms, a package for each; the registry by which everything common knows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpualgo._algorithms.extremes import argmax, argmin, minmax
from gpualgo._algorithms.histogram import histogram
from gpualgo._algorithms.merge_sort import merge, merge_sort, sort
from gpualgo._algorithms.radix_sort import argsort, radix_sort
from gpualgo._algorithms.reduce import reduce
from gpualgo._algorithms.scan import exclusive_scan, inclusive_scan
from gpualgo._algorithms.transform import transform

# In the registry: `prepare`, `temp_storage_bytes` and graphs take it, and tests/contract tests it.
ALGORITHMS: tuple[Callable[..., Any], ...] = (
    reduce, inclusive_scan, exclusive_scan, transform, radix_sort, argsort, histogram, argmin,
    argmax, minmax, merge_sort, merge, sort,
)  # fmt: skip
