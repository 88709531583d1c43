"""NumPy's names as parallel algorithms: ``import gpualgo.numpy as gnp``.

Functions have NumPy's signatures and results. They accept arrays of NumPy, CuPy and PyTorch and
lazy arrays, and run on a GPU or on all cores of the CPU. Missing names raise AttributeError; `wrap`
delegates them to NumPy. See https://github.com/gpualgo/gpualgo/blob/main/docs/numpy.md.
"""

from __future__ import annotations

import difflib as _difflib
from typing import Any

import numpy as _np

from gpualgo._algorithms import show_signatures as _show_signatures

# These modules write their functions into the table.
from gpualgo.numpy import (  # noqa: F401
    _counting,
    _elementwise,
    _products,
    _quantiles,
    _reductions,
    _scans,
    _selection,
    _sets,
    _sorting,
)
from gpualgo.numpy._call import TABLE as _TABLE
from gpualgo.numpy._call import NotTaken
from gpualgo.numpy._ufuncs import UFunc as _UFunc
from gpualgo.numpy._wrap import Namespace, wrap

globals().update({name: entry.function for name, entry in _TABLE.items()})

__all__ = ["Namespace", "NotTaken", "wrap"]
__all__ += sorted(_TABLE)

_show_signatures(_UFunc, *(globals()[name] for name in __all__))


def __getattr__(name: str) -> Any:
    message = f"gpualgo.numpy has no {name!r}"
    if hasattr(_np, name):
        message += f"; numpy.{name} is not accelerated: gpualgo.numpy.wrap(numpy) calls NumPy's"
    elif similar := _difflib.get_close_matches(name, _TABLE, 1, 0.75):
        message += f"; the nearest is {similar[0]!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
