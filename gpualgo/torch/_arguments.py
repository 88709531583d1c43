"""Arguments of the public functions, checked and as tensors, and the call of a custom op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from gpualgo import Operator
from gpualgo._api.derivatives import extent
from gpualgo.torch import _operators as operators

Values: TypeAlias = Tensor | tuple[Tensor, ...]


def tensors(x: Any, where: str, *, are_flat: bool = False) -> list[Tensor]:
    """Return the tensors of x, one or those of a tuple, of one shape."""
    xs = list(x) if isinstance(x, tuple) else [x]
    if not xs or not all(isinstance(each, Tensor) for each in xs):
        wrong = next(type(each).__name__ for each in xs or [x] if not isinstance(each, Tensor))
        hint = "pass torch.as_tensor(x)"
        if any(isinstance(each, tuple) for each in xs):
            hint = "pass one tensor"
        elif isinstance(x, list):
            hint += ", or a tuple of tensors"
        raise TypeError(f"{where}: got {wrong} instead of a tensor; {hint}")
    if any(each.shape != xs[0].shape for each in xs):
        shapes = [tuple(each.shape) for each in xs]
        raise ValueError(f"{where}: the tensors differ in shape, {shapes}; expand them to one")
    if are_flat and xs[0].ndim != 1:
        raise ValueError(
            f"{where}: x must have one dimension; pass x.flatten(), or map the call over rows by "
            "torch.vmap"
        )
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


def size_of(value: Any, name: str, where: str) -> Any:
    """Return a number of elements."""
    return value if isinstance(value, torch.SymInt) else extent(value, name, where)


def check_ordered(x: Tensor, where: str) -> None:
    if x.is_complex():
        raise TypeError(f"{where}: x has dtype {x.dtype}, whose numbers have no order; sort x.real")


def check_offsets(offsets: Any, where: str) -> None:
    if not isinstance(offsets, Tensor) or offsets.ndim != 1 or not offsets.shape[0]:
        raise TypeError(
            f"{where}: offsets must be a tensor of one dimension with the ends of the segments, "
            "one more than their number"
        )


def check_number(init: Any, where: str) -> Any:
    """Return an initial value as a number of Python's."""
    if init is not None and not isinstance(
        init, (int, float, complex, torch.SymInt, torch.SymFloat, np.generic)
    ):
        raise TypeError(
            f"{where}: init is a {type(init).__name__}, but must be a number; combine another one "
            "with the result, or give tuples an identity: gpualgo.Operator(op, identity=(1, 0))"
        )
    return init.item() if isinstance(init, np.generic) else init


def _kind(dtype: torch.dtype) -> int:
    return 2 if dtype.is_complex else int(dtype.is_floating_point)


def _first(value: Any, dtype: torch.dtype, where: str) -> Tensor:
    """Return a number as a tensor of x's dtype, or of its own if x has a lower kind."""
    value = value.item() if isinstance(value, np.generic) else value
    is_whole = isinstance(value, (int, torch.SymInt))
    if not is_whole and not isinstance(value, (float, complex, torch.SymFloat)):
        raise TypeError(
            f"{where}: init is a {type(value).__name__}, but must be numbers or tensors"
        )
    kind = 0 if is_whole else 2 if isinstance(value, complex) else 1
    if kind > _kind(dtype) or (dtype == torch.bool and value not in (0, 1)):
        return torch.as_tensor(value)
    if kind < 2 and dtype != torch.bool:
        limits = torch.finfo(dtype) if _kind(dtype) else torch.iinfo(dtype)
        if not limits.min <= value <= limits.max and value - value == 0:
            raise ValueError(f"{where}: init {value} is out of range for {dtype}")
    return torch.tensor(value, dtype=dtype)


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
        first = value if isinstance(value, Tensor) else _first(value, x.dtype, where)
        if first.dtype != x.dtype:
            given_as = f"is {value!r}" if first is not value else f"has dtype {first.dtype}"
            raise TypeError(f"{where}: init {given_as}, and x has dtype {x.dtype}; convert one")
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
    parsed = operators.parsed(op, vjp, where, num_arguments)
    return function(*before, parsed.name, *behind)
