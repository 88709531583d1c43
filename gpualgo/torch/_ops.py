"""The custom ops, whose kernels are calls of gpualgo: their results' shapes, gradients and vmap."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

import gpualgo as ga
from gpualgo._api.derivatives import compose, compose_pairs, element
from gpualgo.torch import _gradients as gradients
from gpualgo.torch._operators import find

Tensors: TypeAlias = Sequence[Any]  # any sequence of tensors


def _define(
    name: str, schema: str, results: Callable[..., Any], pull: Any = None, *,
    keeps: Callable[..., Any] = lambda *everything: everything, dim_at: int | None = None,
    always: bool = False,
) -> Callable[[Callable[..., None]], Callable[..., Any]]:  # fmt: skip
    """Make a custom op of a function that writes to tensors, which `results` makes.

    ``pull(grads, *kept)`` returns the gradients of the first arguments, where `grads` are those of
    the first result; no other has one. It is given what ``keeps(*args, result)`` returns, with the
    operator in place of its name. Argument `dim_at` is the dimension of rows: a batch is then one
    call of more rows, else several. Unless `always`, the function is not called where the first
    result has no elements.
    """

    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        saved: list[Tensor] = []

        def place(x: Tensor) -> _Place:
            saved.append(x)
            return _Place(len(saved) - 1)

        kept = _each(place, keeps(*inputs, output))
        ctx.kept = [find(x) if isinstance(x, str) else x for x in kept]
        ctx.count = len(inputs)
        ctx.save_for_backward(*saved)
        if isinstance(output, tuple):
            ctx.mark_non_differentiable(*output[1:])

    def backward(ctx: Any, grads: Any, *_: Any) -> tuple[Any, ...]:
        found = pull(grads, *_each(ctx.saved_tensors.__getitem__, ctx.kept, kind=_Place))
        return *found, *[None] * (ctx.count - len(found))

    def decorate(kernel: Callable[..., None]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            args = _each(Tensor.detach, args)
            outs = results(*args)
            first = outs
            while not isinstance(first, Tensor):
                first = first[0]
            if always or first.numel():
                kernel(outs, *args)
            return outs

        op = torch.library.custom_op(f"gpualgo::{name}", mutates_args=(), schema=schema)(run)
        op.register_fake(results)
        if pull is not None:
            op.register_autograd(backward, setup_context=setup)
        op.register_vmap(_in_turn(op) if dim_at is None else _in_rows(op, dim_at))

        def checked(*args: Any) -> Any:
            _each(_without_tangent, args)
            return op(*args)

        return checked

    return decorate


class _Place(int):
    """Where a tensor is among those that autograd saves."""


def _each(function: Callable[..., Any], x: Any, *others: Any, kind: Any = Tensor) -> Any:
    """Return x with a function applied to each tensor in it, and to the same items of others."""
    if isinstance(x, (list, tuple)):
        items = zip(x, *others, strict=True)
        return type(x)([_each(function, *each, kind=kind) for each in items])
    return function(x, *others) if isinstance(x, kind) else x


def _without_tangent(x: Tensor) -> None:
    if unpack_dual(x).tangent is not None:
        raise TypeError("forward-mode gradients (jvp) are not supported; use torch.autograd")


def _in_turn(op: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule of vmap that calls an op for each element of a batch."""

    def rule(info: Any, dims: Any, *args: Any) -> Any:
        def results(part: Callable[[Tensor, int], Tensor]) -> Any:
            return op(*_each(lambda x, dim: x if dim is None else part(x, dim), args, dims))

        if info.batch_size:
            rows = [results(lambda x, dim: x.select(dim, i)) for i in range(info.batch_size)]  # noqa: B023
            found = _each(lambda *several: torch.stack(several), *rows)
        else:  # the results of a row of zeros tell the shapes
            row = results(lambda x, dim: x.new_zeros(_resized(x, dim)))
            found = _each(lambda x: x.new_empty((0, *x.shape)), row)
        return found, _each(lambda x: 0, found)

    return rule


def _in_rows(op: Callable[..., Any], dim_at: int) -> Callable[..., Any]:
    """Return a rule of vmap that makes the batch the first dimension of all tensors."""

    def rule(info: Any, dims: Any, *args: Any) -> Any:
        def moved(x: Tensor, dim: int | None) -> Tensor:
            return x.expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0)

        rows = list(_each(moved, args, dims))
        rows[dim_at] += 1
        found = op(*rows)
        return found, _each(lambda x: 0, found)

    return rule


def _new(x: Tensor, shape: Sequence[Any] | None = None, dtype: Any = None) -> Tensor:
    """Return a new tensor in C order."""
    return torch.empty(x.shape if shape is None else shape, dtype=dtype or x.dtype, device=x.device)


def _resized(x: Tensor, dim: int, *sizes: int) -> list[Any]:
    """Return the shape of x with another size of a dimension, or without it."""
    return [*x.shape[:dim], *sizes, *x.shape[dim + 1 :]]


# --- Scans and reductions along an axis.


@_define(
    "scan",
    "(Tensor[] xs, Tensor[] init, str op, int dim, bool exclusive, bool reverse) -> Tensor[]",
    lambda xs, *rest: [_new(x) for x in xs],
    gradients.of_scan,
    dim_at=3,
)
def scan(
    outs: Tensors, xs: Tensors, init: Tensors, op: str, dim: int, exclusive: bool, reverse: bool
) -> None:
    """Scan each row; `init` has the first values of each row, or is empty."""
    function = ga.exclusive_scan if exclusive else ga.inclusive_scan
    _run(function, xs, init, op, dim, outs, reverse=reverse)


def _run(
    function: Any, xs: Tensors, init: Tensors, op: str, dim: int, outs: Tensors, **options: Any
) -> None:
    """Call `function` with initial values as it takes them: a number, or one for each row."""
    first: Tensors = [each.contiguous() for each in init]
    if init and not init[0].is_cuda and all(
        n == 1 or not stride for each in init
        for n, stride in zip(each.shape, each.stride(), strict=True)
    ):  # fmt: skip
        first = [each.as_strided((), ()).item() for each in init]
    elif init and not init[0].ndim:
        xs, first, outs = ([each[None] for each in group] for group in (xs, first, outs))
        dim = 1
    start = element(first) if init else None
    function(element(xs), start, find(op).fn, axis=dim, out=element(outs), **options)


@_define(
    "fold",
    "(Tensor[] xs, Tensor[] init, str op, int dim) -> Tensor[]",
    lambda xs, init, op, dim: [_new(x, _resized(x, dim)) for x in xs],
    gradients.of_fold,
    dim_at=3,
)
def fold(outs: Tensors, xs: Tensors, init: Tensors, op: str, dim: int) -> None:
    _run(ga.reduce, xs, init, op, dim, outs)


@_define(
    "recurrence",
    "(Tensor[] a, Tensor[] b, int dim, bool reverse) -> Tensor[]",
    lambda a, b, dim, reverse: [_new(x) for x in b],
    gradients.of_recurrence,
    keeps=lambda a, b, dim, reverse, h: (a, h, dim, reverse),
    dim_at=2,
)
def recurrence(outs: Tensors, a: Tensors, b: Tensors, dim: int, reverse: bool) -> None:
    """Write ``h[i] = h[i-1] a[i] + b[i]`` of row vectors of one or two numbers, from h[-1] = 0."""
    op = compose if len(b) == 1 else compose_pairs
    written = (*map(_new, a), *outs)
    ga.inclusive_scan((*a, *b), None, op, axis=dim, reverse=reverse, out=written)


# --- Segments and keys: one-dimensional.


@_define(
    "segment_scan",
    "(Tensor[] xs, Tensor offsets, str op, Scalar? init) -> Tensor[]",
    lambda xs, *rest: [_new(x) for x in xs],
    gradients.of_segment_scan,
)
def segment_scan(outs: Tensors, xs: Tensors, offsets: Tensor, op: str, init: Any) -> None:
    ga.segmented_inclusive_scan(element(xs), offsets, init, find(op).fn, out=element(outs))


@_define(
    "segment_fold",
    "(Tensor[] xs, Tensor offsets, str op, Scalar? init) -> Tensor[]",
    lambda xs, offsets, op, init: [_new(x, [offsets.shape[0] - 1]) for x in xs],
    gradients.of_segment_fold,
)
def segment_fold(outs: Tensors, xs: Tensors, offsets: Tensor, op: str, init: Any) -> None:
    ga.segmented_reduce(element(xs), offsets, init, find(op).fn, out=element(outs))


@_define(
    "fold_by_index",
    "(Tensor indices, Tensor x, SymInt size, str op, Scalar? init) -> Tensor",
    lambda indices, x, size, op, init: _new(x, [size]),
    gradients.of_fold_by_index,
)
def fold_by_index(out: Tensor, indices: Tensor, x: Tensor, size: int, op: str, init: Any) -> None:
    ga.reduce_by_index(indices, x, size, init, find(op).fn, out=out)


@_define(
    "fold_by_key",
    "(Tensor keys, Tensor[] xs, str op, Scalar? init) -> (Tensor[], Tensor, Tensor)",
    lambda keys, xs, *rest: ([_new(x) for x in xs], _new(keys), _new(keys, [], torch.int64)),
    gradients.of_fold_by_key,
    keeps=lambda keys, xs, op, init, _: (keys, xs, op, init),
)
def fold_by_key(outs: Any, keys: Tensor, xs: Tensors, op: str, init: Any) -> None:
    """Write the results and the keys of all runs to tensors of full length, and their number."""
    values, unique, count = outs
    ga.reduce_by_key(
        keys, element(xs), init, find(op).fn, consecutive=True, out=(unique, element(values)),
        out_count=count,
    )  # fmt: skip


# --- Orders: results are gathered, so that gradients are scattered.


@_define(
    "ordered",
    "(Tensor x, bool descending, int dim) -> (Tensor, Tensor)",
    lambda x, descending, dim: (_new(x), _new(x, dtype=torch.int64)),
    gradients.of_gather,
    keeps=lambda x, descending, dim, outs: (x.shape, outs[1], dim),
    dim_at=2,
)
def ordered(outs: Tensors, x: Tensor, descending: bool, dim: int) -> None:
    """Sort rows, and write the indices of their elements."""
    values, indices = outs
    ga.argsort(x, descending=descending, axis=dim, out=indices)
    signed = _SIGNED.get(x.dtype, x.dtype)  # PyTorch does not gather unsigned numbers
    torch.gather(x.view(signed), dim, indices, out=values.view(signed))


_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}


@_define(
    "top",
    "(Tensor x, SymInt k, bool largest, int dim) -> (Tensor, Tensor)",
    lambda x, k, largest, dim: (
        _new(x, _resized(x, dim, k)),
        _new(x, _resized(x, dim, k), torch.int64),
    ),
    gradients.of_gather,
    keeps=lambda x, k, largest, dim, outs: (x.shape, outs[1], dim),
    dim_at=3,
)
def top(outs: Any, x: Tensor, k: int, largest: bool, dim: int) -> None:
    ga.top_k(x, k, axis=dim, mode="largest" if largest else "smallest", out=outs)


@_define(
    "selected",
    "(Tensor mask, SymInt size) -> (Tensor, Tensor)",
    lambda mask, size: (_new(mask, [size], torch.int64), _new(mask, [], torch.int64)),
    always=True,
)
def selected(outs: Tensors, mask: Tensor, size: int) -> None:
    """Write the indices of the first `size` marked elements, and the number of marked ones.

    Indices behind the last marked element are the number of elements.
    """
    (indices, count), n = outs, mask.numel()
    numbers = torch.arange(n, device=mask.device)
    found = torch.empty_like(numbers)
    ga.select(numbers, mask.flatten(), out=found, out_count=count)
    found = torch.where(numbers < count, found, n)[:size]
    indices.fill_(n)[: len(found)] = found


@_define(
    "marks",
    "(Tensor x, str op) -> Tensor",
    lambda x, op: _new(x, dtype=torch.bool),
)
def marks(out: Tensor, x: Tensor, op: str) -> None:
    try:
        ga.transform(find(op).fn, x, out=out)
    except TypeError as error:
        found = re.search(r"op returns (\w+), which does not fit bool", str(error))
        if found is None:
            raise
        reason = f"predicate returns {found[1]}; return a bool, as in a != 0"
        raise TypeError(f"select: {reason}") from None


# --- Histograms and searches.


@_define(
    "counts",
    "(Tensor x, Tensor? weights, Tensor? edges, SymInt bins, float low, float high) -> Tensor",
    lambda x, weights, edges, bins, low, high: _new(
        x, [bins], torch.int64 if weights is None else weights.dtype
    ),
    gradients.of_counts,
    keeps=gradients.kept_of_counts,
    always=True,
)
def counts(
    out: Tensor, x: Tensor, weights: Tensor | None, edges: Tensor | None, bins: int, low: float,
    high: float,
) -> None:  # fmt: skip
    limits = None if edges is not None else (low, high)
    ga.histogram(x, bins if edges is None else edges, limits, weights=weights, out=out)


@_define(
    "searched",
    "(Tensor a, Tensor v, bool right, bool descending) -> Tensor",
    lambda a, v, right, descending: _new(v, dtype=torch.int64),
)
def searched(out: Tensor, a: Tensor, v: Tensor, right: bool, descending: bool) -> None:
    ga.searchsorted(a, v, side="right" if right else "left", descending=descending, out=out)
