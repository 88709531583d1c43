"""The custom ops, whose kernels are calls of gpualgo: their results' shapes, gradients and vmap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

import gpualgo as ga
from gpualgo._api.derivatives import compose
from gpualgo.torch import _gradients as gradients
from gpualgo.torch._operators import find


def _define(
    name: str, schema: str, fake: Callable[..., Any], *, setup: Callable[..., None] | None = None,
    backward: Callable[..., Any] | None = None, batch: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # fmt: skip
    def decorate(kernel: Callable[..., Any]) -> Callable[..., Any]:
        def detached(*args: Any) -> Any:
            return kernel(*[_detached(each) for each in args])

        op = torch.library.custom_op(f"gpualgo::{name}", mutates_args=(), schema=schema)(detached)
        op.register_fake(fake)
        if backward is not None:
            op.register_autograd(backward, setup_context=setup)
        op.register_vmap(batch or _in_turn(op))
        made: Callable[..., Any] = op
        return made

    return decorate


def _detached(argument: Any) -> Any:
    if isinstance(argument, Tensor):
        return argument.detach()
    if isinstance(argument, (list, tuple)):
        return [_detached(each) for each in argument]
    return argument


def _in_turn(op: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule of vmap that calls an op for each element of a batch."""

    def at(x: Any, dim: Any, i: int) -> Any:
        if isinstance(x, (list, tuple)):
            return [at(*pair, i) for pair in zip(x, dim, strict=True)]
        return x if dim is None else x.select(dim, i)

    def stacked(results: Sequence[Any]) -> Any:
        if isinstance(results[0], Tensor):
            return torch.stack(list(results)), 0
        pairs = [stacked(each) for each in zip(*results, strict=True)]
        kind = type(results[0])
        return kind([x for x, _ in pairs]), kind([dim for _, dim in pairs])

    return lambda info, dims, *args: stacked(
        [op(*at(args, dims, i)) for i in range(info.batch_size)]
    )


def _element(tensors: Sequence[Tensor]) -> Any:
    return tensors[0] if len(tensors) == 1 else tuple(tensors)


def _new(x: Tensor, shape: Sequence[Any] | None = None, dtype: Any = None) -> Tensor:
    """Return a new tensor in C order."""
    return torch.empty(x.shape if shape is None else shape, dtype=dtype or x.dtype, device=x.device)


def _without(x: Tensor, dim: int) -> list[Any]:
    return [*x.shape[:dim], *x.shape[dim + 1 :]]


def _shifted(xs: Sequence[Tensor], dims: Any, at: int) -> tuple[list[Tensor], int]:
    """Return tensors whose batch axis is the first one, and the axis `at` of each behind it."""
    size = next(x.shape[d] for x, d in zip(xs, dims, strict=True) if d is not None)
    moved = [
        x.expand(size, *x.shape) if d is None else x.movedim(d, 0)
        for x, d in zip(xs, dims, strict=True)
    ]
    return moved, at + 1


# --- Scans and reductions along an axis.


def _batched_scan(info: Any, dims: Any, xs: Any, init: Any, op: str, dim: int, *flags: bool) -> Any:
    both, dim = _shifted([*xs, *init], [*dims[0], *dims[1]], dim)
    xs, init = both[: len(xs)], both[len(xs) :]
    return scan(xs, init, op, dim, *flags), [0] * len(xs)


@_define(
    "scan",
    "(Tensor[] xs, Tensor[] init, str op, int dim, bool exclusive, bool reverse) -> Tensor[]",
    lambda xs, init, op, dim, exclusive, reverse: [_new(x) for x in xs],
    setup=gradients.keep_scan,
    backward=gradients.of_scan,
    batch=_batched_scan,
)
def scan(
    xs: list[Tensor], init: list[Tensor], op: str, dim: int, exclusive: bool, reverse: bool
) -> list[Tensor]:
    """Return the scan of each row; `init` has the first values of each row, or is empty."""
    outs = [_new(x) for x in xs]
    if xs[0].numel():
        _run(
            ga.exclusive_scan if exclusive else ga.inclusive_scan,
            xs, init, op, dim, outs, reverse=reverse,
        )  # fmt: skip
    return outs


def _run(
    function: Any, xs: list[Tensor], init: list[Tensor], op: str, dim: int, outs: list[Tensor],
    **options: Any,
) -> None:  # fmt: skip
    """Call `function` with initial values as it takes them: a number, or one for each row."""
    first: Sequence[Any] = [each.contiguous() for each in init]
    if init and not init[0].is_cuda and all(
        n == 1 or not stride for each in init
        for n, stride in zip(each.shape, each.stride(), strict=True)
    ):  # fmt: skip
        first = [each.as_strided((), ()).item() for each in init]
    elif init and not init[0].ndim:
        xs, first, outs = ([each[None] for each in group] for group in (xs, first, outs))
        dim = 1
    start = _element(first) if init else None
    function(_element(xs), start, find(op).fn, axis=dim, out=_element(outs), **options)


def _batched_fold(info: Any, dims: Any, xs: Any, init: Any, op: str, dim: int) -> Any:
    both, dim = _shifted([*xs, *init], [*dims[0], *dims[1]], dim)
    xs, init = both[: len(xs)], both[len(xs) :]
    return fold(xs, init, op, dim), [0] * len(xs)


@_define(
    "fold",
    "(Tensor[] xs, Tensor[] init, str op, int dim) -> Tensor[]",
    lambda xs, init, op, dim: [_new(x, _without(x, dim)) for x in xs],
    setup=gradients.keep_fold,
    backward=gradients.of_fold,
    batch=_batched_fold,
)
def fold(xs: list[Tensor], init: list[Tensor], op: str, dim: int) -> list[Tensor]:
    outs = [_new(x, _without(x, dim)) for x in xs]
    if outs[0].numel():
        _run(ga.reduce, xs, init, op, dim, outs)
    return outs


def _linear_of_pairs(m: Any, n: Any) -> Any:
    """Compose x -> x A + b of row vectors of two numbers: (a00, a01, a10, a11, b0, b1)."""
    return (
        m[0] * n[0] + m[1] * n[2], m[0] * n[1] + m[1] * n[3],
        m[2] * n[0] + m[3] * n[2], m[2] * n[1] + m[3] * n[3],
        m[4] * n[0] + m[5] * n[2] + n[4], m[4] * n[1] + m[5] * n[3] + n[5],
    )  # fmt: skip


def _batched_recurrence(info: Any, dims: Any, a: Any, b: Any, dim: int, reverse: bool) -> Any:
    both, dim = _shifted([*a, *b], [*dims[0], *dims[1]], dim)
    count = len(b)
    return recurrence(both[:-count], both[-count:], dim, reverse), [0] * count


@_define(
    "recurrence",
    "(Tensor[] a, Tensor[] b, int dim, bool reverse) -> Tensor[]",
    lambda a, b, dim, reverse: [_new(x) for x in b],
    setup=gradients.keep_recurrence,
    backward=gradients.of_recurrence,
    batch=_batched_recurrence,
)
def recurrence(a: list[Tensor], b: list[Tensor], dim: int, reverse: bool) -> list[Tensor]:
    """Return ``h[i] = h[i-1] a[i] + b[i]`` of row vectors of one or two numbers, from h[-1] = 0."""
    outs = [_new(x) for x in (*a, *b)]
    if b[0].numel():
        op = compose if len(b) == 1 else _linear_of_pairs
        ga.inclusive_scan((*a, *b), None, op, axis=dim, reverse=reverse, out=tuple(outs))
    return outs[len(a) :]


# --- Segments and keys: one-dimensional.


@_define(
    "segment_scan",
    "(Tensor[] xs, Tensor offsets, str op, Scalar? init) -> Tensor[]",
    lambda xs, offsets, op, init: [_new(x) for x in xs],
    setup=gradients.keep_segments,
    backward=gradients.of_segment_scan,
)
def segment_scan(xs: list[Tensor], offsets: Tensor, op: str, init: Any) -> list[Tensor]:
    outs = [_new(x) for x in xs]
    if xs[0].numel():
        ga.segmented_inclusive_scan(_element(xs), offsets, init, find(op).fn, out=_element(outs))
    return outs


@_define(
    "segment_fold",
    "(Tensor[] xs, Tensor offsets, str op, Scalar? init) -> Tensor[]",
    lambda xs, offsets, op, init: [_new(x, [offsets.shape[0] - 1]) for x in xs],
    setup=gradients.keep_segments,
    backward=gradients.of_segment_fold,
)
def segment_fold(xs: list[Tensor], offsets: Tensor, op: str, init: Any) -> list[Tensor]:
    outs = [_new(x, [offsets.shape[0] - 1]) for x in xs]
    if outs[0].numel():
        ga.segmented_reduce(_element(xs), offsets, init, find(op).fn, out=_element(outs))
    return outs


@_define(
    "fold_by_index",
    "(Tensor indices, Tensor x, SymInt size, str op, Scalar? init) -> Tensor",
    lambda indices, x, size, op, init: _new(x, [size]),
    setup=gradients.keep_by_index,
    backward=gradients.of_fold_by_index,
)
def fold_by_index(indices: Tensor, x: Tensor, size: int, op: str, init: Any) -> Tensor:
    out = _new(x, [size])
    if size:
        ga.reduce_by_index(indices, x, size, init, find(op).fn, out=out)
    return out


@_define(
    "fold_by_key",
    "(Tensor keys, Tensor[] xs, str op, Scalar? init) -> (Tensor[], Tensor, Tensor)",
    lambda keys, xs, op, init: ([_new(x) for x in xs], _new(keys), _new(keys, [], torch.int64)),
    setup=gradients.keep_by_key,
    backward=gradients.of_fold_by_key,
)
def fold_by_key(
    keys: Tensor, xs: list[Tensor], op: str, init: Any
) -> tuple[list[Tensor], Tensor, Tensor]:
    """Return the results and the keys of all runs in tensors of full length, and their number."""
    unique, count, outs = _new(keys), _new(keys, [], torch.int64), [_new(x) for x in xs]
    ga.reduce_by_key(
        keys, _element(xs), init, find(op).fn, consecutive=True, out=(unique, _element(outs)),
        out_count=count,
    )  # fmt: skip
    return outs, unique, count


# --- Orders: results are gathered, so that gradients are scattered.


def _batched_order(info: Any, dims: Any, x: Tensor, *rest: Any) -> Any:
    *options, dim = rest
    (moved,), dim = _shifted([x], dims[:1], dim)
    return ordered(moved, *options, dim), (0, 0)


@_define(
    "ordered",
    "(Tensor x, bool descending, int dim) -> (Tensor, Tensor)",
    lambda x, descending, dim: (_new(x), _new(x, dtype=torch.int64)),
    setup=gradients.keep_indices,
    backward=gradients.of_gather,
    batch=_batched_order,
)
def ordered(x: Tensor, descending: bool, dim: int) -> tuple[Tensor, Tensor]:
    """Return sorted rows and the indices of their elements."""
    indices = _new(x, dtype=torch.int64)
    if x.numel():
        ga.argsort(x, descending=descending, axis=dim, out=indices)
    return x.gather(dim, indices), indices


def _batched_top(info: Any, dims: Any, x: Tensor, k: int, largest: bool, dim: int) -> Any:
    (moved,), dim = _shifted([x], dims[:1], dim)
    return top(moved, k, largest, dim), (0, 0)


@_define(
    "top",
    "(Tensor x, int k, bool largest, int dim) -> (Tensor, Tensor)",
    lambda x, k, largest, dim: (
        _new(x, [*x.shape[:dim], k, *x.shape[dim + 1 :]]),
        _new(x, [*x.shape[:dim], k, *x.shape[dim + 1 :]], torch.int64),
    ),
    setup=gradients.keep_indices,
    backward=gradients.of_gather,
    batch=_batched_top,
)
def top(x: Tensor, k: int, largest: bool, dim: int) -> tuple[Tensor, Tensor]:
    shape = [*x.shape[:dim], k, *x.shape[dim + 1 :]]
    outs = _new(x, shape), _new(x, shape, torch.int64)
    if outs[0].numel():
        ga.top_k(x, k, axis=dim, mode="largest" if largest else "smallest", out=outs)
    return outs


@_define(
    "selected",
    "(Tensor mask, SymInt size) -> (Tensor, Tensor)",
    lambda mask, size: (_new(mask, [size], torch.int64), _new(mask, [], torch.int64)),
)
def selected(mask: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return the indices of the first `size` marked elements, and the number of marked ones.

    Indices behind the last marked element are the number of elements.
    """
    n = mask.numel()
    indices = torch.arange(n, device=mask.device)
    found, count = torch.empty_like(indices), _new(mask, [], torch.int64)
    if n:
        ga.select(indices, mask.flatten(), out=found, out_count=count)
    else:
        count.zero_()
    found = torch.where(indices < count, found, n)[:size]
    return torch.nn.functional.pad(found, (0, size - len(found)), value=n), count


@_define(
    "marks",
    "(Tensor x, str op) -> Tensor",
    lambda x, op: _new(x, dtype=torch.bool),
)
def marks(x: Tensor, op: str) -> Tensor:
    out = _new(x, dtype=torch.bool)
    if x.numel():
        ga.transform(find(op).fn, x, out=out)
    return out


# --- Histograms and searches.


@_define(
    "counts",
    "(Tensor x, Tensor? weights, Tensor? edges, int bins, float low, float high) -> Tensor",
    lambda x, weights, edges, bins, low, high: _new(
        x, [bins], torch.int64 if weights is None else weights.dtype
    ),
    setup=gradients.keep_counts,
    backward=gradients.of_counts,
)
def counts(
    x: Tensor, weights: Tensor | None, edges: Tensor | None, bins: int, low: float, high: float
) -> Tensor:
    out = _new(x, [bins], torch.int64 if weights is None else weights.dtype)
    limits = None if edges is not None else (low, high)
    ga.histogram(x, bins if edges is None else edges, limits, weights=weights, out=out)
    return out


@_define(
    "searched",
    "(Tensor a, Tensor v, bool right, bool descending) -> Tensor",
    lambda a, v, right, descending: _new(v, dtype=torch.int64),
)
def searched(a: Tensor, v: Tensor, right: bool, descending: bool) -> Tensor:
    out = _new(v, dtype=torch.int64)
    if v.numel():
        ga.searchsorted(a, v, side="right" if right else "left", descending=descending, out=out)
    return out
