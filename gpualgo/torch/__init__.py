"""gpualgo for PyTorch: the algorithms as custom ops, with gradients, in torch.compile and vmap."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from types import FunctionType
from typing import Any, TypeAlias

try:
    import numpy as np
    import torch
    from torch import Tensor
    from torch.autograd.forward_ad import unpack_dual
except ImportError as error:
    raise ImportError(
        f"gpualgo.torch needs PyTorch ({error}); run `pip install 'gpualgo[torch]'`"
    ) from error

from gpualgo._algorithms import show_signatures as _show_signatures
from gpualgo.torch import _gradients as gradients
from gpualgo.torch import _operators as operators
from gpualgo.torch import _ops as ops

__all__ = [
    "argsort", "exclusive_scan", "histogram", "inclusive_scan", "linear_recurrence", "reduce",
    "reduce_by_index", "reduce_by_key", "register", "searchsorted", "segmented_exclusive_scan",
    "segmented_inclusive_scan", "segmented_reduce", "select", "sort", "top_k",
]  # fmt: skip


Values: TypeAlias = Tensor | tuple[Tensor, ...]


# --- Arguments.


def _tensors(x: Any, where: str) -> list[Tensor]:
    xs = list(x) if isinstance(x, tuple) else [x]
    if not xs or not all(isinstance(each, Tensor) for each in xs):
        raise TypeError(
            f"{where}: x must be a tensor or a tuple of tensors; pass torch.as_tensor(x)"
        )
    if not torch.compiler.is_compiling() and any(unpack_dual(x).tangent is not None for x in xs):
        raise TypeError(
            f"{where}: forward-mode gradients (jvp) are not supported; use torch.autograd"
        )
    if any(each.shape != xs[0].shape for each in xs):
        raise ValueError(f"{where}: the tensors of x differ in shape; expand them to one")
    return xs


def _result(found: Sequence[Tensor], x: Any) -> Any:
    return tuple(found) if isinstance(x, tuple) else found[0]


def _axis(dim: int, xs: Sequence[Tensor], where: str) -> int:
    ndim = xs[0].ndim
    if not -ndim <= dim < ndim:
        raise IndexError(f"{where}: dim {dim} is out of range for {ndim} dimensions")
    return int(dim % ndim)


def _flat(xs: Sequence[Tensor], where: str) -> list[Tensor]:
    if any(x.ndim != 1 for x in xs):
        raise ValueError(
            f"{where}: x must have one dimension; pass x.flatten(), or map the call over rows by "
            "torch.vmap"
        )
    return list(xs)


def _check_segments(offsets: Any, init: Any, where: str) -> None:
    _check_number(init, where)
    if not isinstance(offsets, Tensor) or offsets.ndim != 1 or not offsets.shape[0]:
        raise TypeError(
            f"{where}: offsets must be a tensor of one dimension with the ends of the segments, "
            "one more than their number"
        )


def _check_number(init: Any, where: str) -> None:
    if init is not None and not isinstance(
        init, (int, float, complex, torch.SymInt, torch.SymFloat, np.generic)
    ):
        raise TypeError(
            f"{where}: init is a {type(init).__name__}, but must be a number; combine another one "
            "with the result, or give tuples an identity: gpualgo.Operator(op, identity=(1, 0))"
        )


def _kind(dtype: torch.dtype) -> int:
    return 2 if dtype.is_complex else int(dtype.is_floating_point)


def _first_values(init: Any, xs: Sequence[Tensor], dim: int, where: str) -> list[Tensor]:
    """Return initial values as tensors with the shape of `xs` without `dim`."""
    if init is None:
        return []
    given = list(init) if isinstance(init, tuple) else [init]
    if len(given) != len(xs):
        raise ValueError(f"{where}: init has {len(given)} numbers, and x has {len(xs)} tensors")
    found = []
    for value, x in zip(given, xs, strict=True):
        shape = (*x.shape[:dim], *x.shape[dim + 1 :])
        first = value if isinstance(value, Tensor) else torch.as_tensor(value)
        if not isinstance(value, Tensor) and _kind(first.dtype) <= _kind(x.dtype):
            first = torch.tensor(value, dtype=x.dtype)
        if first.dtype != x.dtype:
            raise TypeError(f"{where}: init has dtype {first.dtype}, x {x.dtype}; convert one")
        try:
            found.append(first.to(x.device).expand(shape))
        except RuntimeError as error:
            raise ValueError(
                f"{where}: init has shape {tuple(first.shape)}, the result of rows {tuple(shape)}"
            ) from error
    return found


def _call(op: Any, function: Any, where: str, before: tuple[Any, ...], behind: tuple[Any, ...] = (),
          vjp: Any = None, num_arguments: int = 2) -> Any:  # fmt: skip
    """Return function(*before, name of op, *behind)."""
    if torch.compiler.is_compiling():
        name = operators.constant_name(op, vjp, where, num_arguments)
        return function(*before, name, *behind)
    with operators.named(op, vjp, where, num_arguments) as name:
        return function(*before, name, *behind)


def register(op: Any, vjp: Any = None) -> None:
    """Make an operator known to graphs that another process has compiled or exported.

    Parameters
    ----------
    op : callable
        The operator, or the predicate of a `select`. It reads no variables.
    vjp : tuple of two callables, optional
        As the calls in the graph have it.

    Examples
    --------
    >>> import gpualgo.torch as gt
    >>> gt.register(lambda a, b: a * b + a + b)
    """
    count = op.__code__.co_argcount if isinstance(op, FunctionType) else 2
    operators.constant_name(op, vjp, "register", count)


# --- Scans and reductions along an axis.


def reduce(
    x: Values, init: Any = None, op: Any = operator.add, *, dim: int = -1, vjp: Any = None
) -> Any:
    """Return the elements along a dimension combined by an operator.

    Parameters
    ----------
    x : tensor, or tuple of tensors of one shape
        A tuple is a tensor of tuples: `op` takes and returns tuples of their numbers.
    init : number or tensor, or tuple of them, optional
        The initial value, combined with the first element. A tensor has the shape of the result and
        the dtype of `x`.
    op : callable
        ``op(a, b)``, associative and pure, of numbers: a Python function that numba compiles, a
        built-in such as ``max``, a NumPy ufunc such as ``np.logaddexp``, or a torch function of the
        same meaning.
    dim : int
        The dimension.
    vjp : tuple of two callables, optional
        ``vjp[0](a, b)`` and ``vjp[1](a, b)`` return the derivatives of `op` by its first and its
        second argument, computed with tensors. For tuples each returns rows: ``d[i][k]`` is the
        derivative of number i of the result by number k of the argument. By default the
        derivatives are known, or PyTorch derives them from the function.

    Returns
    -------
    tensor, or tuple of tensors
        With the shape of `x` without `dim`.

    Raises
    ------
    TypeError, ValueError, IndexError, CompileError
        As `gpualgo.reduce`; TypeError also if a gradient is needed and cannot be derived.

    Notes
    -----
    Under `torch.compile` the operator reads no variables but modules and functions. The gradient of
    `max` is shared by equal elements. Other gradients take a scan and a linear recurrence.

    Examples
    --------
    >>> import torch, gpualgo.torch as gt
    >>> x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> gt.reduce(x, None, lambda a, b: a * b).backward()
    >>> x.grad
    tensor([6., 3., 2.])
    """
    xs = _tensors(x, "reduce")
    dim = _axis(dim, xs, "reduce")
    first = _first_values(init, xs, dim, "reduce")
    return _result(_call(op, ops.fold, "reduce", (xs, first), (dim,), vjp), x)


def inclusive_scan(
    x: Values, init: Any = None, op: Any = operator.add, *, dim: int = -1, reverse: bool = False,
    vjp: Any = None,
) -> Any:  # fmt: skip
    """Return the running combination along a dimension: ``y[i] = init op x[0] op … op x[i]``.

    Parameters
    ----------
    x, init, op, dim, vjp
        As for `reduce`.
    reverse : bool
        Scan from the last element to the first.

    Returns
    -------
    tensor, or tuple of tensors
        With the shape of `x`.

    Raises
    ------
    TypeError, ValueError, IndexError, CompileError
        As for `reduce`.

    Notes
    -----
    The gradient takes one linear recurrence in the other direction, that of a sum one scan.

    Examples
    --------
    >>> import torch, gpualgo.torch as gt
    >>> gt.inclusive_scan(torch.tensor([3, 1, 2]), None, max)
    tensor([3, 3, 3])
    """
    return _scan(x, init, op, dim, vjp, "inclusive_scan", False, reverse)


def exclusive_scan(
    x: Values, init: Any = None, op: Any = operator.add, *, dim: int = -1, reverse: bool = False,
    vjp: Any = None,
) -> Any:  # fmt: skip
    """Return the running combination without the element itself: ``y[i] = init op … op x[i-1]``.

    Parameters
    ----------
    x, op, dim, reverse, vjp
        As for `inclusive_scan`.
    init : number or tensor, or tuple of them, optional
        The first result; by default the identity of a recognised operator.

    Returns
    -------
    tensor, or tuple of tensors
        With the shape of `x`.

    Raises
    ------
    TypeError, ValueError, IndexError, CompileError
        As for `reduce`; ValueError also if `op` needs an `init`.

    Examples
    --------
    >>> import torch, gpualgo.torch as gt
    >>> gt.exclusive_scan(torch.tensor([3, 1, 2]), 0)
    tensor([0, 3, 4])
    """
    return _scan(x, init, op, dim, vjp, "exclusive_scan", True, reverse)


def _scan(x: Any, init: Any, op: Any, dim: int, vjp: Any, where: str, *flags: bool) -> Any:
    xs = _tensors(x, where)
    dim = _axis(dim, xs, where)
    first = _first_values(init, xs, dim, where)
    return _result(_call(op, ops.scan, where, (xs, first), (dim, *flags), vjp), x)


def linear_recurrence(
    a: Tensor, b: Tensor, init: Any = None, *, dim: int = -1, reverse: bool = False
) -> Tensor:
    """Return h with ``h[i] = a[i] * h[i-1] + b[i]`` along a dimension.

    Parameters
    ----------
    a, b : tensors
        Of one shape, or broadcast together; of one dtype.
    init : number or tensor, optional
        The h before the first element: 0 by default. A tensor has the shape of `b` without `dim`.
    dim : int
        The dimension.
    reverse : bool
        From the last element to the first: ``h[i] = a[i] * h[i+1] + b[i]``.

    Returns
    -------
    tensor

    Raises
    ------
    TypeError, ValueError, IndexError
        An argument does not fit.

    Notes
    -----
    One scan by the operator of pairs; the gradient is the same in the other direction.

    Examples
    --------
    >>> import torch, gpualgo.torch as gt
    >>> gt.linear_recurrence(torch.tensor([0.5, 0.5, 0.5]), torch.tensor([1.0, 1.0, 1.0]))
    tensor([1.0000, 1.5000, 1.7500])
    """
    where = "linear_recurrence"
    _tensors((a,), where), _tensors((b,), where)
    if a.dtype != b.dtype:
        raise TypeError(f"{where}: a has dtype {a.dtype}, b {b.dtype}; convert one")
    a, b = torch.broadcast_tensors(a, b)
    dim = _axis(dim, [b], where)
    if init is not None and b.shape[dim]:
        (first,) = _first_values(init, [b], dim, where)
        at = b.shape[dim] - 1 if reverse else 0
        start = (b.select(dim, at) + a.select(dim, at) * first).unsqueeze(dim)
        rest = b.narrow(dim, 0 if reverse else 1, b.shape[dim] - 1)
        b = torch.cat([rest, start] if reverse else [start, rest], dim)
    found: list[Tensor] = ops.recurrence([a], [b], dim, reverse)
    return found[0]


# --- Segments, indices and keys.


def segmented_reduce(
    x: Values, offsets: Tensor, init: Any = None, op: Any = operator.add, *, vjp: Any = None
) -> Any:
    """Return the elements of each segment combined: those of ``x[offsets[i]:offsets[i+1]]``.

    Parameters
    ----------
    x, op, vjp
        As for `reduce`; of one dimension.
    offsets : tensor
        One-dimensional, integers, on the device of `x`, as for `gpualgo.segmented_reduce`.
    init : number, optional
        The initial value of each segment, and the result of empty ones. It has no gradient.

    Returns
    -------
    tensor, or tuple of tensors
        Of length ``len(offsets) - 1``.

    Raises
    ------
    TypeError, ValueError, CompileError
        As `gpualgo.segmented_reduce`.

    Examples
    --------
    >>> import torch, gpualgo.torch as gt
    >>> gt.segmented_reduce(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([0, 2, 3]))
    tensor([3., 4.])
    """
    where = "segmented_reduce"
    xs = _flat(_tensors(x, where), where)
    _check_segments(offsets, init, where)
    return _result(_call(op, ops.segment_fold, where, (xs, offsets), (init,), vjp), x)


def segmented_inclusive_scan(
    x: Values, offsets: Tensor, init: Any = None, op: Any = operator.add, *, vjp: Any = None
) -> Any:
    """Return the running combination within each segment.

    Parameters
    ----------
    x, offsets, init, op, vjp
        As for `segmented_reduce`.

    Returns
    -------
    tensor, or tuple of tensors
        With the shape of `x`. Elements in no segment are copied.

    Raises
    ------
    TypeError, ValueError, CompileError
        As `gpualgo.segmented_inclusive_scan`.

    Examples
    --------
    >>> import torch, gpualgo.torch as gt
    >>> gt.segmented_inclusive_scan(torch.tensor([1, 2, 4]), torch.tensor([0, 2, 3]))
    tensor([1, 3, 4])
    """
    where = "segmented_inclusive_scan"
    xs = _flat(_tensors(x, where), where)
    _check_segments(offsets, init, where)
    return _result(_call(op, ops.segment_scan, where, (xs, offsets), (init,), vjp), x)


def segmented_exclusive_scan(
    x: Tensor, offsets: Tensor, init: Any = None, op: Any = operator.add, *, vjp: Any = None
) -> Tensor:
    """Return the running combination within each segment without the element itself.

    Parameters
    ----------
    x, offsets, op, vjp
        As for `segmented_reduce`.
    init : number, optional
        The first result of each segment; by default 0, for sums alone.

    Returns
    -------
    tensor
        With the shape of `x`. Elements in no segment are copied.

    Raises
    ------
    TypeError, ValueError, CompileError
        As `gpualgo.segmented_exclusive_scan`; ValueError also if `op` needs an `init`.

    Examples
    --------
    >>> import torch, gpualgo.torch as gt
    >>> gt.segmented_exclusive_scan(torch.tensor([1, 2, 4]), torch.tensor([0, 2, 3]))
    tensor([0, 1, 0])
    """
    where = "segmented_exclusive_scan"
    (x,) = _flat(_tensors((x,), where), where)
    _check_segments(offsets, init, where)
    if init is None and op is not operator.add:
        raise ValueError(f"{where}: init is needed for another operator than operator.add")
    init = 0 if init is None else init
    scanned = _call(op, ops.segment_scan, where, ([x], offsets), (init,), vjp)[0]
    segments, heads = gradients.segment_of(offsets, x.shape[0])
    found = torch.where(heads, init, gradients.shifted(scanned, 0, -1))
    return torch.where(segments < 0, x, found)


def reduce_by_index(
    indices: Tensor, x: Tensor, size: int, init: Any = None, op: Any = operator.add, *,
    vjp: Any = None,
) -> Tensor:  # fmt: skip
    """Return for each index the elements that have it, combined.

    Parameters
    ----------
    indices : tensor
        Integers from 0 to ``size - 1``, of the shape of `x`.
    x : tensor
        Of any shape.
    size : int
        The number of results.
    init, op, vjp
        As for `segmented_reduce`.

    Returns
    -------
    tensor
        Of length `size`.

    Raises
    ------
    TypeError, ValueError, CompileError
        As `gpualgo.reduce_by_index`.

    Notes
    -----
    The same input gives the same bits on every run, unlike `torch.Tensor.scatter_add` on a GPU.

    Examples
    --------
    >>> import torch, gpualgo.torch as gt
    >>> gt.reduce_by_index(torch.tensor([0, 2, 0]), torch.tensor([1.0, 2.0, 4.0]), 3, 0.0)
    tensor([5., 0., 2.])
    """
    where = "reduce_by_index"
    _tensors((indices, x), where)
    _check_number(init, where)
    before = indices.flatten(), x.flatten(), size
    found: Tensor = _call(op, ops.fold_by_index, where, before, (init,), vjp)
    return found


def reduce_by_key(
    keys: Tensor, x: Values, init: Any = None, op: Any = operator.add, *, size: int | None = None,
    vjp: Any = None,
) -> tuple[Tensor, Any, Tensor]:  # fmt: skip
    """Return the elements of each run of equal keys combined.

    Parameters
    ----------
    keys : tensor
        One-dimensional; equal keys are neighbours.
    x, op, vjp
        As for `segmented_reduce`.
    init : number, optional
        The initial value of each run.
    size : int, optional
        The length of the results, by default that of `keys`. Runs beyond it are left out.

    Returns
    -------
    (keys, values, count)
        The keys and the results of the first `size` runs, and the number of runs. Behind the last
        run both are 0.

    Raises
    ------
    TypeError, ValueError, CompileError
        As `gpualgo.segmented_reduce`.

    Examples
    --------
    >>> import torch, gpualgo.torch as gt
    >>> gt.reduce_by_key(torch.tensor([5, 5, 7]), torch.tensor([1.0, 2.0, 4.0]), size=2)
    (tensor([5, 7]), tensor([3., 4.]), tensor(2))
    """
    where = "reduce_by_key"
    xs = _flat(_tensors(x, where), where)
    _flat(_tensors((keys, *xs), where), where)
    _check_number(init, where)
    size = keys.shape[0] if size is None else size
    if not keys.shape[0]:
        empty = [each.new_zeros(size) for each in xs]
        count = torch.zeros((), dtype=torch.int64, device=keys.device)
        return keys.new_zeros(size), _result(empty, x), count
    values, unique, count = _call(op, ops.fold_by_key, where, (keys, xs), (init,), vjp)
    unique, *values = [_resized(each, count, size) for each in (unique, *values)]
    return unique, _result(values, x), count


def _resized(x: Tensor, count: Tensor, size: int) -> Tensor:
    """Return the first `count` elements in a tensor of `size`, and zeros behind them."""
    x = torch.nn.functional.pad(x[:size], (0, size - min(size, x.shape[0])))
    return torch.where(torch.arange(size, device=x.device) < count, x, 0)


# --- Orders and selections.


def sort(x: Tensor, *, descending: bool = False, dim: int = -1) -> tuple[Tensor, Tensor]:
    """Return sorted elements and their indices; equal elements keep their order.

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

    Raises
    ------
    TypeError, IndexError
        As `gpualgo.argsort`.

    Examples
    --------
    >>> import torch, gpualgo.torch as gt
    >>> gt.sort(torch.tensor([3, 1, 2]))
    (tensor([1, 2, 3]), tensor([1, 2, 0]))
    """
    return _sorted(x, descending, dim, "sort")


def argsort(x: Tensor, *, descending: bool = False, dim: int = -1) -> Tensor:
    """Return the indices of sorted elements.

    Parameters
    ----------
    x, descending, dim
        As for `sort`.

    Returns
    -------
    tensor
        int64, with the shape of `x`.

    Raises
    ------
    TypeError, IndexError
        As `gpualgo.argsort`.

    Examples
    --------
    >>> import torch, gpualgo.torch as gt
    >>> gt.argsort(torch.tensor([3, 1, 2]))
    tensor([1, 2, 0])
    """
    return _sorted(x, descending, dim, "argsort")[1]


def _sorted(x: Tensor, descending: bool, dim: int, where: str) -> tuple[Tensor, Tensor]:
    dim = _axis(dim, _tensors((x,), where), where)
    found: tuple[Tensor, Tensor] = ops.ordered(x, bool(descending), dim)
    return found


def top_k(x: Tensor, k: int, *, largest: bool = True, dim: int = -1) -> tuple[Tensor, Tensor]:
    """Return the k greatest elements of each row, the greatest first, and their indices.

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

    Raises
    ------
    TypeError, ValueError, IndexError
        As `gpualgo.top_k`.

    Examples
    --------
    >>> import torch, gpualgo.torch as gt
    >>> gt.top_k(torch.tensor([3, 1, 2]), 2)
    (tensor([3, 2]), tensor([0, 2]))
    """
    dim = _axis(dim, _tensors((x,), "top_k"), "top_k")
    if not 0 <= k <= x.shape[dim]:
        raise ValueError(f"top_k: k is {k}, and the dimension has {x.shape[dim]} elements")
    found: tuple[Tensor, Tensor] = ops.top(x, k, bool(largest), dim)
    return found


def select(
    x: Tensor, predicate: Any, *, size: int | None = None, fill_value: Any = 0
) -> tuple[Tensor, Tensor]:
    """Return the elements for which a predicate is true, in a tensor of a known length.

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

    Raises
    ------
    TypeError, ValueError, CompileError
        As `gpualgo.select`.

    Examples
    --------
    >>> import torch, gpualgo.torch as gt
    >>> gt.select(torch.tensor([3, -1, 4]), lambda a: a > 0, size=3)
    (tensor([3, 4, 0]), tensor(2))
    """
    _tensors((x,), "select")
    mask = predicate
    if not isinstance(predicate, Tensor):
        mask = _call(predicate, ops.marks, "select", (x.detach(),), num_arguments=1)
    if mask.dtype != torch.bool:
        raise TypeError(f"select: predicate is a tensor of {mask.dtype}; pass predicate != 0, say")
    if mask.shape != x.shape:
        raise ValueError(f"select: predicate has shape {tuple(mask.shape)}, x {tuple(x.shape)}")
    n = x.numel()
    size = n if size is None else size
    indices, count = ops.selected(mask, size)
    behind = torch.nn.functional.pad(x.flatten(), (0, 1))  # an element for indices of none
    return torch.where(indices < n, behind[indices], fill_value), count


# --- Histograms and searches.


def histogram(
    x: Tensor, bins: int | Tensor, range: tuple[float, float] | None = None, *,
    weights: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return the number of elements in each bin, or the sums of their weights.

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

    Raises
    ------
    TypeError, ValueError
        As `gpualgo.histogram`; ValueError also without `range` or edges.

    Examples
    --------
    >>> import torch, gpualgo.torch as gt
    >>> gt.histogram(torch.tensor([0.1, 0.2, 0.9]), 2, (0.0, 1.0))
    tensor([2, 1])
    """
    _tensors((x,) if weights is None else (x, weights), "histogram")
    if isinstance(bins, Tensor):
        found: Tensor = ops.counts(x, weights, bins, bins.shape[0] - 1, 0.0, 0.0)
        return found
    if range is None:
        raise ValueError("histogram: range is needed for a number of bins; pass (low, high)")
    found = ops.counts(x, weights, None, bins, float(range[0]), float(range[1]))
    return found


def searchsorted(a: Tensor, v: Tensor, *, side: str = "left", descending: bool = False) -> Tensor:
    """Return where to insert elements into a sorted tensor so that it stays sorted.

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

    Raises
    ------
    TypeError, ValueError
        As `gpualgo.searchsorted`.

    Examples
    --------
    >>> import torch, gpualgo.torch as gt
    >>> gt.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([3, 4]))
    tensor([1, 2])
    """
    _tensors((a,), "searchsorted"), _tensors((v,), "searchsorted")
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    found: Tensor = ops.searched(a, v, side == "right", bool(descending))
    return found


_show_signatures(*(globals()[name] for name in __all__))
