"""Public functions: reductions and scans, along an axis, of segments, by index and by key."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import Tensor

from gpualgo.torch import _gradients as gradients
from gpualgo.torch import _ops as ops
from gpualgo.torch._arguments import (
    Values,
    axis_of,
    call,
    check_flags,
    check_number,
    check_segments,
    first_values,
    flat,
    result,
    size_of,
    tensors,
)

# --- Along an axis.


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

    >>> x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> gt.reduce(x, None, lambda a, b: a * b).backward()
    >>> x.grad
    tensor([6., 3., 2.])
    """
    xs = tensors(x, "reduce")
    dim = axis_of(dim, xs, "reduce")
    first = first_values(init, xs, dim, "reduce")
    return result(call(op, ops.fold, "reduce", (xs, first), (dim,), vjp), x)


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

    >>> gt.exclusive_scan(torch.tensor([3, 1, 2]), 0)
    tensor([0, 3, 4])
    """
    return _scan(x, init, op, dim, vjp, "exclusive_scan", True, reverse)


def _scan(x: Any, init: Any, op: Any, dim: int, vjp: Any, where: str, *flags: bool) -> Any:
    xs = tensors(x, where)
    dim = axis_of(dim, xs, where)
    first = first_values(init, xs, dim, where)
    check_flags(where, reverse=flags[1])
    return result(call(op, ops.scan, where, (xs, first), (dim, *flags), vjp), x)


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

    >>> gt.linear_recurrence(torch.tensor([0.5, 0.5, 0.5]), torch.tensor([1.0, 1.0, 1.0]))
    tensor([1.0000, 1.5000, 1.7500])
    """
    where = "linear_recurrence"
    for name, each in (("a", a), ("b", b)):
        tensors((each,), f"{where}: {name}")
    if a.dtype != b.dtype:
        raise TypeError(f"{where}: a has dtype {a.dtype}, b {b.dtype}; convert one")
    check_flags(where, reverse=reverse)
    try:
        a, b = torch.broadcast_tensors(a, b)
    except RuntimeError as error:
        shapes = f"a has shape {tuple(a.shape)}, b {tuple(b.shape)}"
        raise ValueError(f"{where}: {shapes}, which do not broadcast together") from error
    dim = axis_of(dim, [b], where)
    if init is not None and b.shape[dim]:
        (first,) = first_values(init, [b], dim, where)
        at = b.shape[dim] - 1 if reverse else 0
        start = (b.select(dim, at) + a.select(dim, at) * first.to(b.device)).unsqueeze(dim)
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

    >>> gt.segmented_reduce(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([0, 2, 3]))
    tensor([3., 4.])
    """
    where = "segmented_reduce"
    xs = flat(tensors(x, where), where)
    init = check_segments(offsets, init, where)
    return result(call(op, ops.segment_fold, where, (xs, offsets), (init,), vjp), x)


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

    >>> gt.segmented_inclusive_scan(torch.tensor([1, 2, 4]), torch.tensor([0, 2, 3]))
    tensor([1, 3, 4])
    """
    where = "segmented_inclusive_scan"
    xs = flat(tensors(x, where), where)
    init = check_segments(offsets, init, where)
    return result(call(op, ops.segment_scan, where, (xs, offsets), (init,), vjp), x)


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

    >>> gt.segmented_exclusive_scan(torch.tensor([1, 2, 4]), torch.tensor([0, 2, 3]))
    tensor([0, 1, 0])
    """
    where = "segmented_exclusive_scan"
    (x,) = flat(tensors((x,), where), where)
    init = check_segments(offsets, init, where)
    if init is None and op is not operator.add:
        raise ValueError(f"{where}: init is needed for another operator than operator.add")
    init = 0 if init is None else init
    scanned = call(op, ops.segment_scan, where, ([x], offsets), (init,), vjp)[0]
    _, heads, outside = gradients.segment_of(offsets, x.shape[0])
    found = torch.where(heads, x.new_full((), init), gradients.shifted(scanned, 0, -1))
    return torch.where(outside, x, found)


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

    >>> gt.reduce_by_index(torch.tensor([0, 2, 0]), torch.tensor([1.0, 2.0, 4.0]), 3, 0.0)
    tensor([5., 0., 2.])
    """
    where = "reduce_by_index"
    tensors((indices, x), where)
    init = check_number(init, where)
    before = indices.flatten(), x.flatten(), size_of(size, "size", where)
    found: Tensor = call(op, ops.fold_by_index, where, before, (init,), vjp)
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

    >>> gt.reduce_by_key(torch.tensor([5, 5, 7]), torch.tensor([1.0, 2.0, 4.0]), size=2)
    (tensor([5, 7]), tensor([3., 4.]), tensor(2))
    """
    where = "reduce_by_key"
    xs = flat(tensors(x, where), where)
    flat(tensors((keys, *xs), where), where)
    init = check_number(init, where)
    size = keys.shape[0] if size is None else size_of(size, "size", where)
    if keys.shape[0]:
        values, unique, count = call(op, ops.fold_by_key, where, (keys, xs), (init,), vjp)
    else:
        values, unique = xs, keys
        count = torch.zeros((), dtype=torch.int64, device=keys.device)
    unique, *values = [_resized(each, count, size) for each in (unique, *values)]
    return unique, result(values, x), count


def _resized(x: Tensor, count: Tensor, size: int) -> Tensor:
    """Return the first `count` elements in a tensor of `size`, and zeros behind them."""
    x = torch.nn.functional.pad(x[:size], (0, size - min(size, x.shape[0])))
    return torch.where(torch.arange(size, device=x.device) < count, x, x.new_zeros(()))
