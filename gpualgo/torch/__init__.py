"""gpualgo for PyTorch: the algorithms as custom ops, with gradients, in torch.compile and vmap."""

from __future__ import annotations

from types import FunctionType
from typing import Any

try:
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"gpualgo.torch needs PyTorch ({error}); run `pip install 'gpualgo[torch]'`"
    ) from error

from gpualgo._algorithms import show_signatures as _show_signatures
from gpualgo.torch import _operators as operators
from gpualgo.torch._folds import (
    exclusive_scan,
    inclusive_scan,
    linear_recurrence,
    reduce,
    reduce_by_index,
    reduce_by_key,
    segmented_exclusive_scan,
    segmented_inclusive_scan,
    segmented_reduce,
)
from gpualgo.torch._orders import argsort, histogram, searchsorted, select, sort, top_k

__all__ = [
    "argsort", "exclusive_scan", "histogram", "inclusive_scan", "linear_recurrence", "reduce",
    "reduce_by_index", "reduce_by_key", "register", "searchsorted", "segmented_exclusive_scan",
    "segmented_inclusive_scan", "segmented_reduce", "select", "sort", "top_k",
]  # fmt: skip


def register(op: Any, vjp: Any = None) -> None:
    """Make an operator known to graphs that another process has compiled or exported.

    Parameters
    ----------
    op : callable
        The operator, or the predicate of a `select`. It reads no variables.
    vjp : tuple of two callables, optional
        As the calls in the graph have it.

    >>> gt.register(lambda a, b: a * b + a + b)
    """
    count = op.__code__.co_argcount if isinstance(op, FunctionType) else 2
    operators.constant_name(op, vjp, "register", count)


_functions = map(globals().__getitem__, __all__)
_show_signatures(*_functions, first="import torch, gpualgo.torch as gt")
