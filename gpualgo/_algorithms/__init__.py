"""The algorithms, a package for each; the registry by which everything common knows them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

# In the registry: `prepare`, `temp_storage_bytes` and graphs take it, and tests/contract tests it.
ALGORITHMS: tuple[Callable[..., Any], ...]

_NAMES = {
    "adjacent_difference": ("adjacent_difference",),
    "by_index": ("reduce_by_index",),
    "by_key": ("reduce_by_key", "inclusive_scan_by_key", "exclusive_scan_by_key"),
    "extremes": ("argmin", "argmax", "minmax"),
    "find": ("find", "count"),
    "histogram": ("histogram",),
    "merge_sort": ("merge_sort", "merge", "sort"),
    "radix_sort": ("radix_sort", "argsort"),
    "reduce": ("reduce",),
    "rolling": ("rolling",),
    "runs": ("run_length_encode",),
    "scan": ("inclusive_scan", "exclusive_scan"),
    "searchsorted": ("searchsorted",),
    "segmented_sort": ("segmented_sort",),
    "segments": ("segmented_reduce", "segmented_inclusive_scan", "segmented_exclusive_scan"),
    "select": ("select", "stable_partition"),
    "top_k": ("top_k", "kth_value"),
    "transform": ("transform",),
}


def __getattr__(name: str) -> Any:
    """Load all algorithms once the registry is asked for: most programs need few of them."""
    if name != "ALGORITHMS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = tuple(
        getattr(import_module(f"{__name__}.{package}"), function)
        for package, functions in _NAMES.items()
        for function in functions
    )
    globals()[name] = found
    return found
