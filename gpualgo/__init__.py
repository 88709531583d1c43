"""Parallel algorithms for Python arrays, with Python functions as operators."""

from gpualgo._device import default_device
from gpualgo._errors import CompileError, NoDeviceError
from gpualgo._operator import Operator
from gpualgo._reduce import reduce
from gpualgo._transform import transform

__version__ = "0.1.0"

__all__ = [
    "CompileError",
    "NoDeviceError",
    "Operator",
    "__version__",
    "default_device",
    "reduce",
    "transform",
]
