"""Calls of gpualgo.torch with the gradients that they must have: name, function, input shapes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

import gpualgo as ga
import gpualgo.torch as gt

DTYPE = torch.float64


def scaled(factor: float) -> Callable[[Any, Any], Any]:
    return lambda a, b: a * b * factor


def pair(a: Any, b: Any) -> Any:
    return a[0] * b[0], a[1] * b[0] + b[1] * a[0]


OPERATORS: dict[str, Any] = {
    "add": operator.add, "multiply": operator.mul, "max": max, "min": min,
    "logaddexp": np.logaddexp, "torch.maximum": torch.maximum,
    "polynomial": lambda a, b: a * b + a + b, "captured": scaled(1.7),
    "hypot": lambda a, b: np.sqrt(a * a + b * b),
    "vjp": lambda a, b: a if a > b else b,
}  # fmt: skip
VJPS = {"vjp": (lambda a, b: (a > b).to(a.dtype), lambda a, b: (a <= b).to(a.dtype))}


class Call(NamedTuple):
    name: str
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]


def _of_rows(name: str, op: Any, vjp: Any) -> Iterator[Call]:
    for shape, dim in (((5,), 0), ((3, 4), 0), ((3, 4), 1), ((1,), 0), ((2, 3, 2), 1)):
        rows = (*shape[:dim], *shape[dim + 1 :])
        options = {"dim": dim, "vjp": vjp}
        for reverse in (False, True):
            scan = {**options, "reverse": reverse}
            yield Call(
                f"inclusive_scan {name} {shape} {scan}",
                lambda x, scan=scan: gt.inclusive_scan(x, None, op, **scan), (shape,),
            )  # fmt: skip
            yield Call(
                f"inclusive_scan with init {name} {shape} {scan}",
                lambda x, i, scan=scan: gt.inclusive_scan(x, i, op, **scan), (shape, rows),
            )  # fmt: skip
            yield Call(
                f"exclusive_scan {name} {shape} {scan}",
                lambda x, i, scan=scan: gt.exclusive_scan(x, i, op, **scan), (shape, rows),
            )  # fmt: skip
        yield Call(
            f"reduce {name} {shape} {dim}",
            lambda x, o=options: gt.reduce(x, None, op, **o), (shape,),
        )  # fmt: skip
        yield Call(
            f"reduce with init {name} {shape} {dim}",
            lambda x, i, o=options: gt.reduce(x, i, op, **o), (shape, rows),
        )  # fmt: skip


def _of_segments(name: str, op: Any, vjp: Any, device: str) -> Iterator[Call]:
    with_identity = ga.Operator(max if op is torch.maximum else op, identity=-9.0)
    offsets, full = (torch.tensor(o, device=device) for o in ([1, 3, 3, 6], [0, 3, 6, 7]))
    indices = torch.tensor([2, 0, 2, 1, 0, 2, 2], device=device)
    keys = torch.tensor([3, 3, 5, 5, 5, 3, 9], device=device)
    functions = {
        "segmented_inclusive_scan": lambda x: gt.segmented_inclusive_scan(
            x, offsets, None, op, vjp=vjp
        ),
        "segmented_inclusive_scan with init": lambda x: gt.segmented_inclusive_scan(
            x, offsets, 0.5, op, vjp=vjp
        ),
        "segmented_exclusive_scan": lambda x: gt.segmented_exclusive_scan(
            x, offsets, 0.5, op, vjp=vjp
        ),
        "segmented_reduce": lambda x: gt.segmented_reduce(x, full, None, with_identity, vjp=vjp),
        "segmented_reduce with init": lambda x: gt.segmented_reduce(x, offsets, 0.5, op, vjp=vjp),
        "reduce_by_index": lambda x: gt.reduce_by_index(indices, x, 4, 0.5, op, vjp=vjp),
        "reduce_by_key": lambda x: gt.reduce_by_key(keys, x, None, op, size=5, vjp=vjp)[1],
    }
    for function, call in functions.items():
        yield Call(f"{function} {name}", call, ((7,),))


def _others(device: str) -> Iterator[Call]:
    samples = torch.linspace(-0.1, 1.1, 20, dtype=DTYPE, device=device)
    edges = torch.tensor([0, 0.2, 0.5, 1.0], dtype=DTYPE, device=device)
    offsets = torch.tensor([0, 2, 5], device=device)
    with_identity = ga.Operator(pair, identity=(1.0, 0.0))
    yield Call("linear_recurrence", gt.linear_recurrence, ((6,), (6,)))
    yield Call(
        "linear_recurrence reversed",
        lambda a, b, i: gt.linear_recurrence(a, b, i, dim=1, reverse=True),
        ((2, 6, 3), (2, 6, 3), (2, 3)),
    )
    yield Call("sort", lambda x: gt.sort(x)[0], ((3, 5),))
    yield Call("sort descending", lambda x: gt.sort(x, descending=True, dim=0)[0], ((3, 5),))
    yield Call("top_k", lambda x: gt.top_k(x, 2, dim=0)[0], ((3, 5),))
    yield Call("select", lambda x: gt.select(x, lambda a: a > 0.7, size=4)[0], ((9,),))
    yield Call("histogram", lambda w: gt.histogram(samples, 4, (0, 1), weights=w), ((20,),))
    yield Call("histogram of edges", lambda w: gt.histogram(samples, edges, weights=w), ((20,),))
    yield Call("scan of pairs", lambda x, y: gt.inclusive_scan((x, y), None, pair), ((4,), (4,)))
    yield Call("reduction of pairs", lambda x, y: gt.reduce((x, y), None, pair), ((4,), (4,)))
    yield Call(
        "exclusive scan of pairs", lambda x, y, i, j: gt.exclusive_scan((x, y), (i, j), pair),
        ((4,), (4,), (), ()),
    )  # fmt: skip
    yield Call(
        "segments of pairs",
        lambda x, y: gt.segmented_reduce((x, y), offsets, None, with_identity), ((5,), (5,)),
    )  # fmt: skip


def calls(device: str) -> list[Call]:
    found = list(_others(device))
    for name, op in OPERATORS.items():
        found += _of_rows(name, op, VJPS.get(name))
        found += _of_segments(name, op, VJPS.get(name), device)
    return found


def numbers(shape: tuple[int, ...], device: str, seed: int = 0) -> torch.Tensor:
    """Return distinct numbers from 0.3 to 1.3."""
    made = np.random.default_rng(seed).random(shape) + 0.3
    return torch.tensor(made, dtype=DTYPE, device=device, requires_grad=True)
