"""Parallel algorithms for Python arrays, with Python functions as operators."""

from typing import TYPE_CHECKING, Any

from gpualgo._device import default_device
from gpualgo._empty_pinned import empty_pinned
from gpualgo._errors import CompileError, NoDeviceError
from gpualgo._from_pointer import from_pointer
from gpualgo._graph import Graph, graph
from gpualgo._histogram import histogram
from gpualgo._memory_resource import set_memory_resource
from gpualgo._operator import Operator
from gpualgo._prepare import Plan, prepare
from gpualgo._radix_sort import argsort, radix_sort
from gpualgo._reduce import reduce
from gpualgo._scan import exclusive_scan, inclusive_scan
from gpualgo._temp_storage import temp_storage_bytes
from gpualgo._transform import transform

if TYPE_CHECKING:
    from gpualgo._cuda.device_array import DeviceArray

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


def __getattr__(name: str) -> Any:
    if name == "DeviceArray":  # loaded where it is asked for: most programs never see one
        from gpualgo._cuda.device_array import DeviceArray

        return DeviceArray
    raise AttributeError(f"module 'gpualgo' has no attribute {name!r}")
