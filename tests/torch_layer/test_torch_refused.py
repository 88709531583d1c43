"""gpualgo.torch: arguments that are refused by name, and those that look like them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch_calls as of_torch

import gpualgo as ga
import gpualgo.torch as gt


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda x: gt.reduce([1.0]), TypeError, r"reduce: got list .*; pass torch.as_tensor\(x\)"),
        (lambda x: gt.linear_recurrence(0.5, x), TypeError, "linear_recurrence: a: got float"),
        (lambda x: gt.reduce(x, max), TypeError, "init is a function; pass the operator as op="),
        (lambda x: gt.reduce(x, dim=None), TypeError, "dim is None, but must be one int; flatten"),
        (lambda x: gt.reduce(x, dim=(0,)), TypeError, r"dim is \(0,\), but must be one int"),
        (lambda x: gt.reduce_by_index(x.int()[:2], x, 3), ValueError, r"\[\(2,\), \(4,\)\]"),
        (lambda x: gt.reduce(x, None, torch.dot), TypeError, "pass a function or lambda of scal"),
        (
            lambda x: gt.reduce(x, None, lambda a, b: torch.maximum(a, b)),
            ga.CompileError, "kernels have no function 'maximum' of .*; call one of numpy or",
        ),
        (lambda x: gt.reduce((x, x[:1])), ValueError, "differ in shape"),
        (lambda x: gt.reduce(x, dim=2), IndexError, "dim 2 is out of range for 1 dimensions"),
        (lambda x: gt.reduce(x, x.int()[0]), TypeError, "init has dtype torch.int32, and x has"),
        (lambda x: gt.reduce(x, (1.0, 2.0)), ValueError, "init has 2 numbers, and x has 1"),
        (lambda x: gt.reduce(x[None], x), ValueError, r"init has shape \(4,\) and must"),
        (lambda x: gt.reduce(x.byte(), -1, max), ValueError, "init -1 is out of range for torch.u"),
        (lambda x: gt.select(x.int(), x > 1, fill_value=0.5), TypeError, r"init is 0\.5, and x"),
        (lambda x: gt.select(x, x > 1, size=2.0), TypeError, r"size must be an int, got 2\.0"),
        (lambda x: gt.select(x, x > 1, size=-1), ValueError, "size is -1, but must not be neg"),
        (lambda x: gt.select(x, lambda a: a), TypeError, "^select: predicate returns float64; ret"),
        (lambda x: gt.reduce_by_index(x.int(), x, -1), ValueError, "size is -1, but must not"),
        (lambda x: gt.reduce_by_key(x.int(), x, size=True), TypeError, "size must be an int, got"),
        (lambda x: gt.top_k(x, True), TypeError, "^top_k: k must be an int, got True"),
        (lambda x: gt.histogram(x, 2.0, (0, 1)), TypeError, r"bins must be an int, got 2\.0"),
        (lambda x: gt.histogram(x, 2, 5), TypeError, "range is 5, but must be two numbers"),
        (lambda x: gt.histogram(x, 2, (0, 1), weights=x > 0), TypeError, "weights has dtype torch"),
        (lambda x: gt.sort(x, descending=1), TypeError, "descending must be True or False"),
        (lambda x: gt.inclusive_scan(x, reverse=1), TypeError, "reverse must be True or False"),
        (lambda x: gt.sort(x.cfloat()), TypeError, "^sort: x has dtype .*, whose numbers have no"),
        (lambda x: gt.sort((x, x)), TypeError, "got tuple instead of a tensor; pass one tensor"),
        (lambda x: gt.linear_recurrence(x, x[:2]), ValueError, "do not broadcast together"),
        (
            lambda x: gt.reduce(x.cfloat(), None, lambda a, b: a.real + b.real).abs().backward(),
            TypeError, "is no holomorphic function",
        ),
        (lambda x: gt.reduce(x.int(), 0.5), TypeError, r"init is 0\.5, and x has dtype torch.i"),
        (lambda x: gt.segmented_reduce(x, x.int(), x[0]), TypeError, "init is a Tensor, but must"),
        (lambda x: gt.reduce_by_index(x.int(), x, 2, x[0]), TypeError, "init is a Tensor, but"),
        (lambda x: gt.segmented_reduce(x, x.int()[:0]), TypeError, "offsets must be a tensor of"),
        (lambda x: gt.segmented_reduce(x, [0, 4]), TypeError, "offsets must be a tensor of one"),
        (lambda x: torch.func.jvp(gt.reduce, (x,), (x,)), TypeError, "forward-mode gradients"),
        (
            lambda x: gt.reduce(x, vjp=(lambda a, b: a[:0], lambda a, b: a)).backward(),
            TypeError, "vjp returns what is no derivative",
        ),
        (
            lambda x: gt.reduce(x, vjp=(lambda a, b: ((a, a),), lambda a, b: a)).backward(),
            TypeError, "vjp must return 1 rows of 1",
        ),
        (lambda x: gt.reduce(x, vjp=1), TypeError, "vjp must be a tuple of two functions"),
        (lambda x: gt.segmented_reduce(x[None], x.int()), ValueError, "must have one dimension"),
        (lambda x: gt.top_k(x, 9), ValueError, "k is 9, and the dimension has 4 elements"),
        (lambda x: gt.select(x, x), TypeError, "predicate is a tensor of torch.float64"),
        (lambda x: gt.select(x, x[:1] > 0), ValueError, "predicate has shape"),
        (lambda x: gt.histogram(x, 3), ValueError, "range is needed"),
        (lambda x: gt.histogram(x, x[:0]), ValueError, "bins has 0 edges, but their number"),
        (lambda x: gt.histogram(x, x[0]), ValueError, "bins has no dimension; pass edges"),
        (lambda x: gt.searchsorted(x, x, side="middle"), ValueError, "side must be"),
        (lambda x: gt.linear_recurrence(x, x.float()), TypeError, "a has dtype torch.float64, b"),
        (
            lambda x: gt.reduce(x, None, lambda a, b: a if a > b else b).backward(),
            TypeError, "op has no gradient that PyTorch can derive",
        ),
        (
            lambda x: gt.inclusive_scan((x, x, x), None, lambda a, b: a)[0].sum().backward(),
            TypeError, "elements of 3 numbers have no gradient",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(call: Callable[..., Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call(of_torch.numbers((4,), "cpu"))


def test_sizes_and_ends_that_are_tensors() -> None:
    x, index = torch.tensor([3.0, 1.0]), torch.tensor([0, 2])
    assert gt.reduce_by_index(index, x, index.max() + 1, 0.0).tolist() == [3, 0, 1]
    assert gt.histogram(x, 2, torch.tensor([0.0, 4.0])).tolist() == [1, 1]
    assert gt.histogram(x, np.int64(2), np.array([0.0, 4.0])).tolist() == [1, 1]
