"""Parallel algorithms for Python arrays, with Python functions as operators."""

from typing import TYPE_CHECKING, Any

from gpualgo._device import default_device
from gpualgo._errors import CompileError, NoDeviceError
from gpualgo._histogram import histogram
from gpualgo._operator import Operator
from gpualgo._radix_sort import argsort, radix_sort
from gpualgo._reduce import reduce
from gpualgo._scan import exclusive_scan, inclusive_scan
from gpualgo._transform import transform

if TYPE_CHECKING:
    from gpualgo._cuda.device_array import DeviceArray
    from gpualgo._empty_pinned import empty_pinned
    from gpualgo._from_pointer import from_pointer
    from gpualgo._graph import Graph, graph
    from gpualgo._memory_resource import set_memory_resource
    from gpualgo._prepare import Plan, prepare
    from gpualgo._temp_storage import temp_storage_bytes

__version__ = "0.1.0"

__all__ = [
    "CompileError",
    "DeviceArray",
    "Graph",
    "NoDeviceError",
    "Operator",
    "Plan",
    "__version__",
    "argsort",
    "default_device",
    "empty_pinned",
    "exclusive_scan",
    "from_pointer",
    "graph",
    "histogram",
    "inclusive_scan",
    "prepare",
    "radix_sort",
    "reduce",
    "set_memory_resource",
    "temp_storage_bytes",
    "transform",
]

# Loaded where they are asked for: most programs need few of them.
_LAZY = {
    "DeviceArray": "_cuda.device_array",
    "Graph": "_graph",
    "Plan": "_prepare",
    "empty_pinned": "_empty_pinned",
    "from_pointer": "_from_pointer",
    "graph": "_graph",
    "prepare": "_prepare",
    "set_memory_resource": "_memory_resource",
    "temp_storage_bytes": "_temp_storage",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'gpualgo' has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"gpualgo.{_LAZY[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*globals(), *_LAZY]
