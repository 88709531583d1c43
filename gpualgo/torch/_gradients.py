"""Gradients of the custom ops, made of custom ops: they have gradients of their own.

Let a scan compute ``L[i+1] = op(L[i], x[i])``, and p[i] and q[i] be the derivatives of op there by
its left and its right argument. The gradient of L[i+1] is ``H[i] = g[i] + H[i+1] p[i+1]``, where g
is the gradient of the scan's result: a linear recurrence from the last element to the first. The
gradient of x[i] is ``H[i] q[i]``. Elements of two numbers have row vectors H and matrices p and q.
Of a reduction only the last g differs from zero, and p is zero where a segment begins.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from gpualgo.torch._operators import ADD, Operator, framework

Tensors = Sequence[Tensor]
Matrix = Sequence[Sequence[Tensor]]


def _ops() -> Any:
    return torch.ops.gpualgo


def _dense(grads: Any, like: Tensors) -> list[Tensor]:
    """Return gradients as tensors of one dtype; PyTorch leaves out some, those of integers."""
    dtype = functools.reduce(torch.promote_types, [x.dtype for x in like])
    return [
        torch.zeros_like(x, dtype=dtype) if g is None else g.to(dtype).contiguous()
        for g, x in zip(grads, like, strict=True)
    ]


def _like(found: Tensors, xs: Tensors) -> list[Tensor]:
    """Return gradients, of real numbers beside complex ones without their imaginary parts."""
    return [
        g.real if g.is_complex() and not x.is_complex() else g
        for g, x in zip(found, xs, strict=True)
    ]


def _partials(op: Operator, left: Tensors, right: Tensors) -> tuple[Matrix, Matrix]:
    """Return the derivatives, conjugated as PyTorch's gradients are; those of integers are 0."""
    sides = framework.partials(op.fn.fn, op.vjp, left, right, op.where)
    if op.vjp is not None:  # PyTorch conjugates its own
        sides = [[[x.conj() for x in row] for row in side] for side in sides]
    return sides[0], sides[1]


def _times(rows: Tensors, matrix: Matrix) -> list[Tensor]:
    """Return row vectors multiplied by matrices."""
    return [
        sum((row * line[k] for row, line in zip(rows[1:], matrix[1:], strict=True)),
            rows[0] * matrix[0][k])
        for k in range(len(matrix[0]))
    ]  # fmt: skip


def _part(x: Tensor, dim: int, start: int, stop: int) -> Tensor:
    return x.narrow(dim, start, stop - start)


def _accumulated(p: Matrix, grads: Tensors, dim: int) -> list[Tensor]:
    """Return H, given the p of all elements but the first."""
    if grads[0].shape[dim] < 2:
        return list(grads)
    coefficients = [_extended(x, dim, 1) for row in p for x in row]
    found: list[Tensor] = _ops().recurrence(coefficients, list(grads), dim, True)
    return found


# --- Scans and reductions along an axis.


def _of_rows(
    op: Operator, xs: Tensors, ys: Tensors, grads: Tensors, first: Tensors, dim: int
) -> tuple[list[Tensor], list[Tensor]]:
    """Return the gradients of an inclusive scan's elements and of its initial values.

    `first` has the initial values, in rows of length one, or is empty.
    """
    n = xs[0].shape[dim]
    if not n:
        return list(map(torch.zeros_like, xs)), list(map(torch.zeros_like, first))
    if op.known == "add" and n > 1:
        h = _ops().scan(list(grads), [], ADD.name, dim, False, True)
        return h, [_part(row, dim, 0, 1) for row in h]
    lefts = [_part(y, dim, 0, n - 1) for y in ys]
    if not first:
        p, q = _partials(op, lefts, [_part(x, dim, 1, n) for x in xs])
        h = _accumulated(p, grads, dim)
        later = _times([_part(row, dim, 1, n) for row in h], q)
        heads = [_part(row, dim, 0, 1) for row in h]
        return [torch.cat(pair, dim) for pair in zip(heads, later, strict=True)], []
    lefts = [torch.cat(pair, dim) for pair in zip(first, lefts, strict=True)]
    p, q = _partials(op, lefts, xs)
    h = _accumulated([[_part(x, dim, 1, n) for x in row] for row in p], grads, dim)
    heads = [_part(row, dim, 0, 1) for row in h]
    return _times(h, q), _times(heads, [[_part(x, dim, 0, 1) for x in row] for row in p])


def _of_init(heads: Tensors, init: Tensors, dim: int) -> list[Tensor]:
    return _like([x.squeeze(dim) for x in heads[: len(init)]], init)


def of_scan(
    grads: Any, xs: Tensors, init: Tensors, op: Operator, dim: int, exclusive: bool, reverse: bool,
    ys: Tensors,
) -> tuple[Any, ...]:  # fmt: skip
    n, inputs = xs[0].shape[dim], xs
    first = [x.to(xs[0].device).unsqueeze(dim) for x in init]
    grads = _dense(grads, ys)
    if reverse:
        xs, ys, grads = ([x.flip(dim) for x in each] for each in (xs, ys, grads))
    if exclusive and n:  # an inclusive scan of all elements but the last, behind the first value
        starts, heads = ([_part(x, dim, 0, 1) for x in each] for each in (ys, grads))
        ys, grads = ([_part(x, dim, 1, n) for x in each] for each in (ys, grads))
        shorter = [_part(x, dim, 0, n - 1) for x in xs]
        found, before = _of_rows(op, shorter, ys, grads, starts, dim)
        found = [_extended(x, dim, 1) for x in found]
        heads = [a + b for a, b in zip(heads, before, strict=True)]
    else:
        found, heads = _of_rows(op, xs, ys, grads, first, dim)
    if reverse:
        found = [x.flip(dim) for x in found]
    return _like(found, inputs), _of_init(heads, init, dim)


def of_fold(
    grads: Any, xs: Tensors, init: Tensors, op: Operator, dim: int, ys: Tensors
) -> tuple[Any, ...]:
    grads = [g.unsqueeze(dim) for g in _dense(grads, ys)]
    n = xs[0].shape[dim]
    (x, *_), (g, *_), y = xs, grads, ys[0].unsqueeze(dim)
    if not n or op.known == "add":
        found = [g.expand_as(x) for g, x in zip(_like(grads, xs), xs, strict=True)]
        return found, _of_init(grads, init, dim)
    if not init and op.known in ("maximum", "minimum"):
        return [_shared(x == y, g, dim)], []
    if not init and op.known == "logaddexp":  # equal infinities have equal shares, as in scans
        return [_shared(torch.where(x == y, 0, x - y).exp(), g, dim)], []
    scanned = _ops().scan(list(xs), list(init), op.name, dim, False, False)
    last = [torch.cat([torch.zeros_like(_part(x, dim, 1, n)), g], dim)
            for x, g in zip(xs, grads, strict=True)]  # fmt: skip
    first = [x.to(g.device).unsqueeze(dim) for x in init]
    found, heads = _of_rows(op, xs, scanned, last, first, dim)
    return _like(found, xs), _of_init(heads, init, dim)


def _shared(weights: Tensor, g: Tensor, dim: int) -> Tensor:
    """Return a gradient in shares of the elements of each row."""
    shares = weights.to(torch.promote_types(g.dtype, torch.float32))  # a half counts to 256 only
    return shares * (g / shares.sum(dim, keepdim=True))


# --- The linear recurrence h[i] = h[i-1] a[i] + b[i].


def of_recurrence(
    grads: Any, a: Tensors, h: Tensors, dim: int, reverse: bool
) -> tuple[Any, ...]:  # fmt: skip
    g, count = _dense(grads, h), len(h)
    if not h[0].shape[dim]:
        return [torch.zeros_like(x) for x in a], g
    step = 1 if reverse else -1  # from an element to the one before it
    conjugates = [x.conj().resolve_conj() for x in a]
    matrix = [conjugates[i * count : (i + 1) * count] for i in range(count)]
    later = [shifted(line[k], dim, -step) for k in range(count) for line in matrix]
    total = _ops().recurrence(later, g, dim, not reverse)
    before = [_all_but_one(x, dim, step).conj() for x in h]
    after = [_all_but_one(x, dim, -step) for x in total]
    return [_extended(x * y, dim, step) for x in before for y in after], total


def shifted(x: Tensor, dim: int, step: int) -> Tensor:
    """Return for each element the one `step` further, 1 or -1; zero beyond the ends."""
    return _extended(_all_but_one(x, dim, step), dim, step) if x.shape[dim] else x


def _all_but_one(x: Tensor, dim: int, step: int) -> Tensor:
    """Return all elements but the first if `step` is 1, but the last if it is -1."""
    n = x.shape[dim]
    return _part(x, dim, 1, n) if step > 0 else _part(x, dim, 0, n - 1)


def _extended(x: Tensor, dim: int, step: int) -> Tensor:
    """Return the elements with a zero behind them if `step` is 1, before them if it is -1."""
    n = x.shape[dim]
    found = x.new_empty([*x.shape[:dim], n + 1, *x.shape[dim + 1 :]])  # faster than torch.cat
    found.narrow(dim, n if step > 0 else 0, 1).zero_()
    found.narrow(dim, 0 if step > 0 else 1, n).copy_(x)
    return found


# --- Segments, and reductions by index as reductions of segments.


def segment_of(offsets: Tensor, n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return each element's segment, and whether it is the first one, and whether it has none.

    Segments have numbers from 1 on. Elements before the first segment have the number 0, and those
    behind the last one its number plus 1; each of them counts as a first.
    """
    starts = offsets.long().clamp(0, n)
    marks = torch.zeros(n + 1, dtype=torch.int32, device=offsets.device)
    marks = marks.index_add(0, starts, torch.ones_like(starts, dtype=torch.int32))[:n]
    numbers = marks.cumsum(0, dtype=torch.int32)
    outside = (numbers == 0) | (numbers == offsets.shape[0])
    return numbers, (marks > 0) | outside, outside


def _of_segments(
    op: Operator, init: Any, xs: Tensors, ys: Tensors, grads: Tensors, outside: Tensor,
    heads: Tensor,
) -> list[Tensor]:  # fmt: skip
    """Return the gradient of a scan of segments that begin at `heads`.

    `outside` marks the elements without a segment.
    """
    lefts = [shifted(y, 0, -1) for y in ys]
    # Where a segment begins, its own element stands for a left argument that there is not.
    lefts = [torch.where(heads, x if init is None else torch.full_like(x, init), left)
             for x, left in zip(xs, lefts, strict=True)]  # fmt: skip
    p, q = _partials(op, lefts, xs)
    p = [[torch.where(heads, 0, x)[1:] for x in row] for row in p]
    alone = heads if init is None else outside  # elements that are copied
    q = [[torch.where(alone, float(i == k), x) for k, x in enumerate(row)]
         for i, row in enumerate(q)]  # fmt: skip
    return _like(_times(_accumulated(p, grads, 0), q), xs)


def of_segment_scan(
    grads: Any, xs: Tensors, offsets: Tensor, op: Operator, init: Any, ys: Tensors
) -> tuple[Any, ...]:
    _, heads, outside = segment_of(offsets, xs[0].shape[0])
    return (_of_segments(op, init, xs, ys, _dense(grads, ys), outside, heads),)


def of_segment_fold(
    grads: Any, xs: Tensors, offsets: Tensor, op: Operator, init: Any, like: Tensors
) -> tuple[Any, ...]:
    """`like` has the dtypes and, where there are no gradients, the shapes of the results."""
    numbers, heads, outside = segment_of(offsets, xs[0].shape[0])
    # The gradient of each element's segment, zero if it has none.
    rows = [pad(g, (1, 1)).index_select(0, numbers) for g in _dense(grads, like)]
    if op.known == "add":
        return (rows,)
    scanned = _ops().segment_scan(list(xs), offsets, op.name, init)
    ends = ~shifted(~heads, 0, 1)  # a segment begins behind them
    rows = [torch.where(ends, g, 0) for g in rows]
    return (_of_segments(op, init, xs, scanned, rows, outside, heads),)


def of_fold_by_key(
    grads: Any, keys: Tensor, xs: Tensors, op: Operator, init: Any
) -> tuple[Any, ...]:
    last, key = keys[:-1], keys[1:]
    differ = (key != last) & ~(key.isnan() & last.isnan())  # NaN are one run
    heads = torch.cat([torch.ones_like(keys[:1], dtype=torch.bool), differ])
    offsets, _ = _ops().selected(heads, keys.shape[0] + 1)
    return None, *of_segment_fold(grads, xs, offsets, op, init, xs)


def of_fold_by_index(
    grad: Tensor, indices: Tensor, x: Tensor, size: int, op: Operator, init: Any, y: Tensor
) -> tuple[Any, ...]:
    indices = indices.long()
    # Elements of other indices, which a GPU ignores, read the zero behind the results, as -1 does.
    at = indices.clamp(-1, size)
    if op.known in ("maximum", "minimum"):  # shares of those that are equal to the result
        marks = (x == pad(y, (0, 1))[at]).to(torch.promote_types(x.dtype, torch.float32))
        count = _ops().fold_by_index(indices, marks, size, ADD.name, 0)
        found = marks * pad(grad / count.clamp(min=1), (0, 1))[at]
    elif op.known == "add":
        found = pad(grad, (0, 1))[at]
    else:
        keys, order = _ops().ordered(indices, False, 0)
        offsets = torch.searchsorted(keys, torch.arange(size + 1, device=x.device))
        ((rows,),) = of_segment_fold([grad], [x[order]], offsets, op, init, [y])
        found = torch.zeros_like(x).scatter(0, order, rows)
    return None, found


# --- Gathers.


def of_gather(grad: Tensor, shape: torch.Size, indices: Tensor, dim: int) -> tuple[Any, ...]:
    return (grad.new_zeros(shape).scatter(dim, indices, grad),)


def kept_of_counts(
    x: Tensor, weights: Any, edges: Any, bins: int, low: float, high: float, _: Tensor
) -> tuple[Any, ...]:
    if x.dtype == torch.uint64:  # PyTorch does not compare its numbers
        raise TypeError("histogram: weights of uint64 elements have no gradient; pass x.double()")
    return x, edges, bins, low, high


def of_counts(
    grad: Tensor, x: Tensor, edges: Any, bins: int, low: float, high: float
) -> tuple[Any, ...]:
    """Return the gradient of the weights: that of the bin of each element."""
    if edges is None:
        name = "uint8" if x.dtype == torch.bool else str(x.dtype).removeprefix("torch.")
        found = np.histogram_bin_edges(np.zeros(0, name), bins, (low, high))
        edges = torch.tensor(found.tolist(), dtype=torch.float64, device=x.device)
    x = x.double() if x.is_floating_point() else x.long()
    last, reached = edges[-1], None
    if x.dtype == torch.float64 or not edges.is_floating_point():
        edges = edges.to(x.dtype)
    else:
        edges, reached = framework.whole_edges(edges.double(), torch.int64)
    return None, framework.pulled_weights(grad, x, edges, last, reached)
