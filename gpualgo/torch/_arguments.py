"""Arguments of the public functions, checked and as tensors, and the call of a custom op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from gpualgo import Operator
from gpualgo.torch import _operators as operators

Values: TypeAlias = Tensor | tuple[Tensor, ...]


def tensors(x: Any, where: str) -> list[Tensor]:
    xs = list(x) if isinstance(x, tuple) else [x]
    if not xs or not all(isinstance(each, Tensor) for each in xs):
        wrong = next(type(each).__name__ for each in xs or [x] if not isinstance(each, Tensor))
        raise TypeError(
            f"{where}: got {wrong} instead of a tensor; pass torch.as_tensor(x), or a tuple"
        )
    if any(each.shape != xs[0].shape for each in xs):
        shapes = [tuple(each.shape) for each in xs]
        raise ValueError(f"{where}: the tensors differ in shape, {shapes}; expand them to one")
    return xs


def result(found: Sequence[Tensor], x: Any) -> Any:
    return tuple(found) if isinstance(x, tuple) else found[0]


def axis_of(dim: int, xs: Sequence[Tensor], where: str) -> int:
    ndim = xs[0].ndim
    if not isinstance(dim, (int, np.integer, torch.SymInt)):
        raise TypeError(f"{where}: dim is {dim!r}, but must be one int; flatten x for all elements")
    if not -ndim <= dim < ndim:
        raise IndexError(f"{where}: dim {dim} is out of range for {ndim} dimensions")
    return int(dim % ndim)


def flat(xs: Sequence[Tensor], where: str) -> list[Tensor]:
    if any(x.ndim != 1 for x in xs):
        raise ValueError(
            f"{where}: x must have one dimension; pass x.flatten(), or map the call over rows by "
            "torch.vmap"
        )
    return list(xs)


def check_segments(offsets: Any, init: Any, where: str) -> None:
    check_number(init, where)
    if not isinstance(offsets, Tensor) or offsets.ndim != 1 or not offsets.shape[0]:
        raise TypeError(
            f"{where}: offsets must be a tensor of one dimension with the ends of the segments, "
            "one more than their number"
        )


def check_number(init: Any, where: str) -> None:
    if init is not None and not isinstance(
        init, (int, float, complex, torch.SymInt, torch.SymFloat, np.generic)
    ):
        raise TypeError(
            f"{where}: init is a {type(init).__name__}, but must be a number; combine another one "
            "with the result, or give tuples an identity: gpualgo.Operator(op, identity=(1, 0))"
        )


def _kind(dtype: torch.dtype) -> int:
    return 2 if dtype.is_complex else int(dtype.is_floating_point)


def first_values(init: Any, xs: Sequence[Tensor], dim: int, where: str) -> list[Tensor]:
    """Return initial values as tensors with the shape of `xs` without `dim`.

    Numbers stay on the CPU, where the call reads them without a wait for the GPU.
    """
    if init is None:
        return []
    if callable(init):
        raise TypeError(f"{where}: init is a function; pass the operator as op=, after init")
    given = list(init) if isinstance(init, tuple) else [init]
    if len(given) != len(xs):
        raise ValueError(f"{where}: init has {len(given)} numbers, and x has {len(xs)} tensors")
    has_tensors, found = any(isinstance(value, Tensor) for value in given), []
    for value, x in zip(given, xs, strict=True):
        shape = (*x.shape[:dim], *x.shape[dim + 1 :])
        first = value if isinstance(value, Tensor) else torch.as_tensor(value)
        if not isinstance(value, Tensor) and _kind(first.dtype) <= _kind(x.dtype):
            if not x.dtype.is_signed and value < 0:  # torch.tensor wraps it
                raise ValueError(f"{where}: init {value} is out of range for {x.dtype}")
            first = torch.tensor(value, dtype=x.dtype)
        if first.dtype != x.dtype:
            raise TypeError(f"{where}: init has dtype {first.dtype}, x {x.dtype}; convert one")
        try:
            found.append((first.to(x.device) if has_tensors else first).expand(shape))
        except RuntimeError as error:
            raise ValueError(
                f"{where}: init has shape {tuple(first.shape)} and must expand to {tuple(shape)}, "
                "the shape of x without dim"
            ) from error
    return found


def call(op: Any, function: Any, where: str, before: tuple[Any, ...], behind: tuple[Any, ...] = (),
          vjp: Any = None, num_arguments: int = 2) -> Any:  # fmt: skip
    """Return function(*before, name of op, *behind)."""
    if torch.compiler.is_compiling():
        facts: dict[str, Any] = {}
        if isinstance(op, Operator):  # which PyTorch 2.11 does not take as a constant
            op, facts = op.fn, {"identity": op.identity, "commutative": op.commutative}
        name = operators.constant_name(op, vjp, where, num_arguments, **facts)
        return function(*before, name, *behind)
    with operators.named(op, vjp, where, num_arguments) as name:
        return function(*before, name, *behind)
