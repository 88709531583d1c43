"""Public functions: reductions and scans, along an axis, of segments, by index and by key."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import Tensor

from gpualgo._pipeline import checks
from gpualgo.torch import _arguments as arguments
from gpualgo.torch import _gradients as gradients
from gpualgo.torch import _ops as ops
from gpualgo.torch._arguments import Values

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
    return _of_rows(ops.fold, "reduce", x, init, op, dim, vjp)


def inclusive_scan(
    x: Values, init: Any = None, op: Any = operator.add, *, dim: int = -1, reverse: bool = False,
    vjp: Any = None,
) -> Any:  # fmt: skip
    """Return the running combination along a dimension: ``y[i] = init op x[0] op … op x[i]``.

    Parameters and errors are those of `reduce`. With `reverse` each row is scanned from its last
    element to the first. The result has the shape of `x`, and is a tuple if `x` is one.

    Notes
    -----
    The gradient takes one linear recurrence in the other direction, that of a sum one scan.

    >>> gt.inclusive_scan(torch.tensor([3, 1, 2]), None, max)
    tensor([3, 3, 3])
    """
    return _of_rows(ops.scan, "inclusive_scan", x, init, op, dim, vjp, False, reverse)


def exclusive_scan(
    x: Values, init: Any = None, op: Any = operator.add, *, dim: int = -1, reverse: bool = False,
    vjp: Any = None,
) -> Any:  # fmt: skip
    """Return the running combination without the element itself: ``y[i] = init op … op x[i-1]``.

    Parameters, results and errors are those of `inclusive_scan`. `init` is the first result, by
    default the identity of a recognised operator; ValueError if `op` has none.

    >>> gt.exclusive_scan(torch.tensor([3, 1, 2]), 0)
    tensor([0, 3, 4])
    """
    return _of_rows(ops.scan, "exclusive_scan", x, init, op, dim, vjp, True, reverse)


def _of_rows(
    function: Any, where: str, x: Any, init: Any, op: Any, dim: int, vjp: Any, *flags: bool
) -> Any:
    """Call a custom op of rows; the last of the flags of scans is `reverse`."""
    xs = arguments.tensors(x, where)
    dim = arguments.axis_of(dim, xs, where)
    first = arguments.first_values(init, xs, dim, where)
    for reverse in flags[-1:]:
        checks.flag_argument(reverse, "reverse", where)
    found = arguments.call(op, function, where, (xs, first), (dim, *flags), vjp)
    return arguments.result(found, x)


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
        arguments.tensors((each,), f"{where}: {name}")
    if a.dtype != b.dtype:
        raise TypeError(f"{where}: a has dtype {a.dtype}, b {b.dtype}; convert one")
    checks.flag_argument(reverse, "reverse", where)
    try:
        a, b = torch.broadcast_tensors(a, b)
    except RuntimeError as error:
        shapes = f"a has shape {tuple(a.shape)}, b {tuple(b.shape)}"
        raise ValueError(f"{where}: {shapes}, which do not broadcast together") from error
    dim = arguments.axis_of(dim, [b], where)
    if init is not None and b.shape[dim]:
        (first,) = arguments.first_values(init, [b], dim, where)
        at = b.shape[dim] - 1 if reverse else 0
        start = (b.select(dim, at) + a.select(dim, at) * first.to(b.device)).unsqueeze(dim)
        rest = b.narrow(dim, 0 if reverse else 1, b.shape[dim] - 1)
        b = torch.cat([rest, start] if reverse else [start, rest], dim)
    return ops.recurrence([a], [b], dim, reverse)[0]


# --- Segments, indices and keys.


def segmented_reduce(
    x: Values, offsets: Tensor, init: Any = None, op: Any = operator.add, *, vjp: Any = None
) -> Any:
    """Return the elements of each segment combined: those of ``x[offsets[i]:offsets[i+1]]``.

    Errors are those of `gpualgo.segmented_reduce`: TypeError, ValueError and CompileError.

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

    >>> gt.segmented_reduce(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([0, 2, 3]))
    tensor([3., 4.])
    """
    return _of_segments(ops.segment_fold, "segmented_reduce", x, offsets, init, op, vjp)


def segmented_inclusive_scan(
    x: Values, offsets: Tensor, init: Any = None, op: Any = operator.add, *, vjp: Any = None
) -> Any:
    """Return the running combination within each segment.

    Parameters are those of `segmented_reduce`, errors those of `gpualgo.segmented_inclusive_scan`.
    The result has the shape of `x`, and is a tuple if `x` is one. Elements in no segment are
    copied.

    >>> gt.segmented_inclusive_scan(torch.tensor([1, 2, 4]), torch.tensor([0, 2, 3]))
    tensor([1, 3, 4])
    """
    return _of_segments(ops.segment_scan, "segmented_inclusive_scan", x, offsets, init, op, vjp)


def segmented_exclusive_scan(
    x: Tensor, offsets: Tensor, init: Any = None, op: Any = operator.add, *, vjp: Any = None
) -> Tensor:
    """Return the running combination within each segment without the element itself.

    Parameters are those of `segmented_reduce`; `x` is one tensor. `init` is the first result of
    each segment, by default 0, for sums alone; ValueError for another `op`. Other errors are those
    of `gpualgo.segmented_exclusive_scan`. The result has the shape of `x`. Elements in no segment
    are copied.

    >>> gt.segmented_exclusive_scan(torch.tensor([1, 2, 4]), torch.tensor([0, 2, 3]))
    tensor([0, 1, 0])
    """
    where = "segmented_exclusive_scan"
    init = arguments.check_number(init, where)
    if init is None and op is not operator.add:
        raise ValueError(f"{where}: init is needed for another operator than operator.add")
    init = 0 if init is None else init
    (scanned,) = _of_segments(ops.segment_scan, where, (x,), offsets, init, op, vjp)
    _, heads, outside = gradients.segment_of(offsets, x.shape[0])
    found = torch.where(heads, x.new_full((), init), gradients.shifted(scanned, 0, -1))
    return torch.where(outside, x, found)


def _of_segments(
    function: Any, where: str, x: Any, offsets: Tensor, init: Any, op: Any, vjp: Any
) -> Any:
    xs = arguments.tensors(x, where, are_flat=True)
    arguments.check_offsets(offsets, where)
    init = arguments.check_number(init, where)
    return arguments.result(arguments.call(op, function, where, (xs, offsets), (init,), vjp), x)


def reduce_by_index(
    indices: Tensor, x: Tensor, size: int, init: Any = None, op: Any = operator.add, *,
    vjp: Any = None,
) -> Tensor:  # fmt: skip
    """Return for each index the elements that have it, combined.

    Errors are those of `gpualgo.reduce_by_index`: TypeError, ValueError and CompileError.

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

    Notes
    -----
    The same input gives the same bits on every run, unlike `torch.Tensor.scatter_add` on a GPU.

    >>> gt.reduce_by_index(torch.tensor([0, 2, 0]), torch.tensor([1.0, 2.0, 4.0]), 3, 0.0)
    tensor([5., 0., 2.])
    """
    where = "reduce_by_index"
    arguments.tensors((indices, x), where)
    init = arguments.check_number(init, where)
    before = indices.flatten(), x.flatten(), arguments.size_of(size, "size", where)
    return arguments.call(op, ops.fold_by_index, where, before, (init,), vjp)


def reduce_by_key(
    keys: Tensor, x: Values, init: Any = None, op: Any = operator.add, *, size: int | None = None,
    vjp: Any = None,
) -> tuple[Tensor, Any, Tensor]:  # fmt: skip
    """Return the elements of each run of equal keys combined.

    Errors are those of `gpualgo.segmented_reduce`: TypeError, ValueError and CompileError.

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

    >>> gt.reduce_by_key(torch.tensor([5, 5, 7]), torch.tensor([1.0, 2.0, 4.0]), size=2)
    (tensor([5, 7]), tensor([3., 4.]), tensor(2))
    """
    where = "reduce_by_key"
    xs = arguments.tensors(x, where, are_flat=True)
    arguments.tensors((keys, *xs), where)
    init = arguments.check_number(init, where)
    size = keys.shape[0] if size is None else arguments.size_of(size, "size", where)
    if keys.shape[0]:
        found = arguments.call(op, ops.fold_by_key, where, (keys, xs), (init,), vjp)
        values, unique, count = found
    else:
        values, unique = xs, keys
        count = torch.zeros((), dtype=torch.int64, device=keys.device)
    unique, *values = [_resized(each, count, size) for each in (unique, *values)]
    return unique, arguments.result(values, x), count


def _resized(x: Tensor, count: Tensor, size: int) -> Tensor:
    """Return the first `count` elements in a tensor of `size`, and zeros behind them."""
    x = torch.nn.functional.pad(x[:size], (0, size - min(size, x.shape[0])))
    return torch.where(torch.arange(size, device=x.device) < count, x, x.new_zeros(()))
