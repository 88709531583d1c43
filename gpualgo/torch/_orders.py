"""Public functions: sorts, selections, histograms and searches."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gpualgo._pipeline import checks
from gpualgo.torch import _arguments as arguments
from gpualgo.torch import _ops as ops


def sort(x: Tensor, *, descending: bool = False, dim: int = -1) -> tuple[Tensor, Tensor]:
    """Return sorted elements and their indices; equal elements keep their order.

    Errors are those of `gpualgo.argsort`: TypeError and IndexError.

    Parameters
    ----------
    x : tensor
    descending : bool
        From the greatest to the least.
    dim : int
        The dimension.

    Returns
    -------
    (values, indices)
        With the shape of `x`; indices are int64.

    >>> gt.sort(torch.tensor([3, 1, 2]))
    (tensor([1, 2, 3]), tensor([1, 2, 0]))
    """
    return _sorted(x, descending, dim, "sort")


def argsort(x: Tensor, *, descending: bool = False, dim: int = -1) -> Tensor:
    """Return the indices of sorted elements.

    Parameters and errors are those of `sort`. The result is int64 and has the shape of `x`.

    >>> gt.argsort(torch.tensor([3, 1, 2]))
    tensor([1, 2, 0])
    """
    return _sorted(x, descending, dim, "argsort")[1]


def _sorted(x: Tensor, descending: bool, dim: int, where: str) -> tuple[Tensor, Tensor]:
    dim = arguments.axis_of(dim, arguments.tensors((x,), where), where)
    checks.flag_argument(descending, "descending", where)
    arguments.check_ordered(x, where)
    return ops.ordered(x, bool(descending), dim)  # type: ignore[no-any-return]


def top_k(x: Tensor, k: int, *, largest: bool = True, dim: int = -1) -> tuple[Tensor, Tensor]:
    """Return the k greatest elements of each row, the greatest first, and their indices.

    Errors are those of `gpualgo.top_k`: TypeError, ValueError and IndexError.

    Parameters
    ----------
    x : tensor
    k : int
        From 0 to the length of the dimension.
    largest : bool
        False takes the least elements, the least first.
    dim : int
        The dimension.

    Returns
    -------
    (values, indices)
        Of equal elements the first ones are taken. Indices are int64.

    >>> gt.top_k(torch.tensor([3, 1, 2]), 2)
    (tensor([3, 2]), tensor([0, 2]))
    """
    dim = arguments.axis_of(dim, arguments.tensors((x,), "top_k"), "top_k")
    k = arguments.size_of(k, "k", "top_k")
    checks.flag_argument(largest, "largest", "top_k")
    arguments.check_ordered(x, "top_k")
    if not 0 <= k <= x.shape[dim]:
        raise ValueError(f"top_k: k is {k}, and the dimension has {x.shape[dim]} elements")
    return ops.top(x, k, bool(largest), dim)  # type: ignore[no-any-return]


def select(
    x: Tensor, predicate: Any, *, size: int | None = None, fill_value: Any = 0
) -> tuple[Tensor, Tensor]:
    """Return the elements for which a predicate is true, in a tensor of a known length.

    Errors are those of `gpualgo.select`: TypeError, ValueError and CompileError.

    Parameters
    ----------
    x : tensor
        Flattened in C order.
    predicate : callable or tensor
        ``predicate(a)`` returns a bool; or a tensor of bool with the shape of `x`.
    size : int, optional
        The length of the result, by default that of `x`. Elements beyond it are left out.
    fill_value : number
        What is behind the last of the selected elements.

    Returns
    -------
    (values, count)
        Of length `size`; the number of elements for which the predicate is true.

    >>> gt.select(torch.tensor([3, -1, 4]), lambda a: a > 0, size=3)
    (tensor([3, 4, 0]), tensor(2))
    """
    arguments.tensors((x,), "select")
    mask = predicate
    if not isinstance(predicate, Tensor):
        mask = arguments.call(predicate, ops.marks, "select", (x.detach(),), num_arguments=1)
    if mask.dtype != torch.bool:
        raise TypeError(f"select: predicate is a tensor of {mask.dtype}; pass predicate != 0, say")
    if mask.shape != x.shape:
        raise ValueError(f"select: predicate has shape {tuple(mask.shape)}, x {tuple(x.shape)}")
    n = x.numel()
    size = n if size is None else arguments.size_of(size, "size", "select")
    indices, count = ops.selected(mask, size)
    behind = torch.nn.functional.pad(x.flatten(), (0, 1))  # an element for indices of none
    (fill,) = arguments.first_values(fill_value, [behind], 0, "select (fill_value)")
    return torch.where(indices < n, behind[indices], fill), count


# --- Histograms and searches.


def histogram(
    x: Tensor, bins: int | Tensor, range: tuple[float, float] | None = None, *,
    weights: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return the number of elements in each bin, or the sums of their weights.

    Errors are those of `gpualgo.histogram`: TypeError and ValueError;
    ValueError also without `range` or edges.

    Parameters
    ----------
    x : tensor
        Flattened.
    bins : int or tensor
        The number of equal bins in `range`; or their edges, which rise, on the device of `x`.
    range : (number, number)
        The least and the greatest value that is counted; for a number of bins.
    weights : tensor, optional
        A weight for each element. They have a gradient, `x` and the edges have none.

    Returns
    -------
    tensor
        int64, or the dtype of `weights`.

    >>> gt.histogram(torch.tensor([0.1, 0.2, 0.9]), 2, (0.0, 1.0))
    tensor([2, 1])
    """
    arguments.tensors((x,) if weights is None else (x, weights), "histogram")
    if weights is not None and weights.dtype == torch.bool:
        raise TypeError("histogram: weights has dtype torch.bool; pass weights.to(torch.int64)")
    if isinstance(bins, Tensor):
        if not bins.ndim:
            raise ValueError("histogram: bins has no dimension; pass edges in one, or int(bins)")
        found: Tensor = ops.counts(x, weights, bins, max(bins.numel() - 1, 0), 0.0, 0.0)
        return found
    if range is None:
        raise ValueError("histogram: range is needed; pass (low, high), or edges as a tensor")
    try:
        low, high = map(float, range)
    except (TypeError, ValueError):
        message = f"histogram: range is {range!r}, but must be two numbers, (low, high)"
        raise TypeError(message) from None
    bins = arguments.size_of(bins, "bins", "histogram")
    found = ops.counts(x, weights, None, bins, low, high)
    return found


def searchsorted(a: Tensor, v: Tensor, *, side: str = "left", descending: bool = False) -> Tensor:
    """Return where to insert elements into a sorted tensor so that it stays sorted.

    Errors are those of `gpualgo.searchsorted`: TypeError and ValueError.

    Parameters
    ----------
    a : tensor
        One-dimensional and sorted.
    v : tensor
        What to search, of the dtype of `a`.
    side : {'left', 'right'}
        Before or behind equal elements.
    descending : bool
        Whether `a` falls.

    Returns
    -------
    tensor
        int64, with the shape of `v`.

    >>> gt.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([3, 4]))
    tensor([1, 2])
    """
    arguments.tensors((a,), "searchsorted"), arguments.tensors((v,), "searchsorted")
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    checks.flag_argument(descending, "descending", "searchsorted")
    return ops.searched(a, v, side == "right", bool(descending))
