"""Parallel algorithms for Python arrays, with Python functions as operators."""

from gpualgo._device import default_device
from gpualgo._errors import CompileError, NoDeviceError
from gpualgo._histogram import histogram
from gpualgo._operator import Operator
from gpualgo._radix_sort import argsort, radix_sort
from gpualgo._reduce import reduce
from gpualgo._scan import exclusive_scan, inclusive_scan
from gpualgo._temp_storage import temp_storage_bytes
from gpualgo._transform import transform

__version__ = "0.1.0"

__all__ = [
    "CompileError",
    "NoDeviceError",
    "Operator",
    "__version__",
    "argsort",
    "default_device",
    "exclusive_scan",
    "histogram",
    "inclusive_scan",
    "radix_sort",
    "reduce",
    "temp_storage_bytes",
    "transform",
]
