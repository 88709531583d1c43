"""Parallel algorithms for Python arrays, with Python functions as operators."""

import os as _os
from typing import Any

import gpualgo._base.loaded  # noqa: F401  # the first of all: it takes the time
from gpualgo._algorithms import show_signatures as _show_signatures
from gpualgo._algorithms.extremes import MinMax, argmax, argmin, minmax
from gpualgo._algorithms.histogram import histogram
from gpualgo._algorithms.radix_sort import argsort, radix_sort
from gpualgo._algorithms.reduce import reduce
from gpualgo._algorithms.scan import exclusive_scan, inclusive_scan
from gpualgo._algorithms.transform import transform
from gpualgo._base.errors import CompileError, NoDeviceError
from gpualgo._driver.default_device import default_device
from gpualgo._operators.operator import Operator

__version__ = "0.1.0"

__all__ = [
    "CompileError",
    "DeviceArray",
    "Explanation",
    "Graph",
    "MinMax",
    "NoDeviceError",
    "Operator",
    "Plan",
    "ReducedByKey",
    "RunLengthEncoded",
    "ShardedArray",
    "TopK",
    "__version__",
    "adjacent_difference",
    "argmax",
    "argmin",
    "argsort",
    "copy",
    "count",
    "default_device",
    "distribute",
    "empty_pinned",
    "exclusive_scan",
    "exclusive_scan_by_key",
    "explain",
    "find",
    "from_pointer",
    "graph",
    "histogram",
    "inclusive_scan",
    "inclusive_scan_by_key",
    "kth_value",
    "lazy",
    "merge",
    "merge_sort",
    "minmax",
    "prepare",
    "radix_sort",
    "reduce",
    "reduce_by_index",
    "reduce_by_key",
    "rolling",
    "run_length_encode",
    "searchsorted",
    "segmented_exclusive_scan",
    "segmented_inclusive_scan",
    "segmented_reduce",
    "segmented_sort",
    "select",
    "set_memory_resource",
    "sort",
    "stable_partition",
    "temp_storage_bytes",
    "top_k",
    "transform",
    "unique",
]

# Loaded when they are asked for: most programs need few of them. `__init__.pyi` has all names.
_LAZY = {
    "DeviceArray": "_arrays.device_array",
    "Explanation": "_api.explain",
    "Graph": "_api.graph",
    "Plan": "_api.prepare",
    "TopK": "_algorithms.top_k",
    "ReducedByKey": "_algorithms.by_key",
    "RunLengthEncoded": "_algorithms.runs",
    "ShardedArray": "shards",
    "adjacent_difference": "_algorithms.adjacent_difference",
    "copy": "_algorithms.transform",
    "count": "_algorithms.find",
    "distribute": "shards",
    "empty_pinned": "_arrays.page_locked",
    "exclusive_scan_by_key": "_algorithms.by_key",
    "explain": "_api.explain",
    "find": "_algorithms.find",
    "from_pointer": "_arrays.device_array",
    "graph": "_api.graph",
    "kth_value": "_algorithms.top_k",
    "inclusive_scan_by_key": "_algorithms.by_key",
    "lazy": "lazy",
    "merge": "_algorithms.merge_sort",
    "merge_sort": "_algorithms.merge_sort",
    "prepare": "_api.prepare",
    "reduce_by_index": "_algorithms.by_index",
    "reduce_by_key": "_algorithms.by_key",
    "rolling": "_algorithms.rolling",
    "run_length_encode": "_algorithms.runs",
    "searchsorted": "_algorithms.searchsorted",
    "segmented_exclusive_scan": "_algorithms.segments",
    "segmented_inclusive_scan": "_algorithms.segments",
    "segmented_reduce": "_algorithms.segments",
    "segmented_sort": "_algorithms.segmented_sort",
    "select": "_algorithms.select",
    "set_memory_resource": "_api.memory_resource",
    "sort": "_algorithms.merge_sort",
    "stable_partition": "_algorithms.select",
    "temp_storage_bytes": "_api.memory_resource",
    "top_k": "_algorithms.top_k",
    "unique": "_api.unique",
}

_show_signatures(*(globals()[name] for name in __all__ if name in globals()))

if _os.environ.get("GPUALGO_LOG"):
    from gpualgo._base import log as _log

    _log.start()


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'gpualgo' has no attribute {name!r}")
    from importlib import import_module

    found = import_module(f"gpualgo.{_LAZY[name]}")
    if name != "lazy":  # itself a module
        found = getattr(found, name)
        _show_signatures(found)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*{*__all__, *(name for name in globals() if name.startswith("__"))}]
