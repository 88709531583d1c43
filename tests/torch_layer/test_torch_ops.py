"""gpualgo.torch: results, gradients, torch.compile, vmap, and operators that read variables."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch_calls as of_torch
from support import Backend

import gpualgo as ga
import gpualgo.torch as gt
from gpualgo.torch import _operators as operators

CALLS = len(of_torch.calls("cpu"))
FACTOR = 2.0


@pytest.fixture
def device(backend: Backend) -> str:
    return "cpu" if backend.name == "cpu" else "cuda"


def helper(a: Any, b: Any) -> Any:
    return a * b + a + b


def calls_helper(a: Any, b: Any) -> Any:
    return helper(a, b)


def reads_global(a: Any, b: Any) -> Any:
    return a * b * FACTOR


@pytest.mark.parametrize("number", range(CALLS))
def test_gradients(device: str, number: int) -> None:
    call = of_torch.calls(device)[number]
    inputs = [of_torch.numbers(shape, device, i) for i, shape in enumerate(call.shapes)]
    assert torch.autograd.gradcheck(call.function, inputs), call.name
    assert torch.autograd.gradgradcheck(call.function, inputs), call.name


@pytest.mark.parametrize("name", of_torch.OPERATORS)
def test_results(device: str, name: str) -> None:
    """Results are those of gpualgo's functions."""
    op = of_torch.OPERATORS[name]
    fn = max if op is torch.maximum else op
    x = of_torch.numbers((3, 7), device).detach()
    for dim in (0, 1):
        for reverse in (False, True):
            np.testing.assert_array_equal(
                gt.inclusive_scan(x, None, op, dim=dim, reverse=reverse).cpu(),
                ga.inclusive_scan(x, None, fn, axis=dim, reverse=reverse).cpu(),
            )
            np.testing.assert_array_equal(
                gt.exclusive_scan(x, 0.5, op, dim=dim, reverse=reverse).cpu(),
                ga.exclusive_scan(x, 0.5, fn, axis=dim, reverse=reverse).cpu(),
            )
        np.testing.assert_array_equal(
            gt.reduce(x.T, None, op, dim=dim).cpu(), ga.reduce(x.T, None, fn, axis=dim).cpu()
        )


def test_orders_and_selections(device: str) -> None:
    x = torch.tensor([3, 1, 4, 1, 5, 9, 2, 6], device=device)
    values, order = gt.sort(x, descending=True)
    assert values.tolist() == sorted(x.tolist(), reverse=True)
    assert torch.equal(x[order], values)
    assert gt.argsort(x).tolist()[:2] == [1, 3]
    assert gt.top_k(x, 2, largest=False)[1].tolist() == [1, 3]
    chosen, count = gt.select(x, x > 2, size=6, fill_value=-1)
    assert (chosen.tolist(), int(count)) == ([3, 4, 5, 9, 6, -1], 5)
    assert gt.select(x, lambda a: a > 2, size=2)[0].tolist() == [3, 4]
    assert gt.histogram(x, 2, (0, 10)).tolist() == [5, 3]
    assert gt.searchsorted(values.flip(0), x, side="right").tolist()[0] == 4
    keys, sums, runs = gt.reduce_by_key(torch.tensor([7, 7, 8], device=device), x[:3], size=4)
    assert (keys.tolist(), sums.tolist(), int(runs)) == ([7, 8, 0, 0], [4, 4, 0, 0], 2)


def test_of_nothing(device: str) -> None:
    x = torch.zeros((0, 3), device=device, requires_grad=True)
    assert gt.inclusive_scan(x, dim=0).shape == (0, 3)
    assert gt.reduce(x, 2.0, dim=0).tolist() == [2.0] * 3
    assert gt.sort(x, dim=0)[1].shape == (0, 3)
    assert gt.select(x, x > 0, size=2)[0].tolist() == [0.0, 0.0]
    assert gt.linear_recurrence(x, x, 1.0, dim=0).shape == (0, 3)
    gt.inclusive_scan(x, None, max, dim=0).sum().backward()
    assert x.grad is not None
    assert x.grad.shape == (0, 3)
    keys = torch.zeros(0, dtype=torch.int64, device=device)
    assert int(gt.reduce_by_key(keys, x[:, 0], size=2)[2]) == 0


COMPILED: dict[str, Callable[..., Any]] = {
    "scan": lambda x: gt.inclusive_scan(x * 2, None, lambda a, b: a * b + a + b),
    "modules": lambda x: gt.inclusive_scan(x, None, lambda a, b: np.maximum(a, b)),
    "functions": lambda x: gt.exclusive_scan(x, 0.5, calls_helper),
    "reductions": lambda x: gt.reduce(x, None, max) + gt.reduce(x, 1.0, operator.mul),
    "recurrence": lambda x: gt.linear_recurrence(torch.sigmoid(x), x, x[0]),
    "segments": lambda x: gt.segmented_reduce(
        x, torch.tensor([0, 2, 5], device=x.device), 1.0, lambda a, b: a * b
    ),
    "indices": lambda x: gt.reduce_by_index(
        torch.tensor([0, 2, 0, 1, 2], device=x.device), x, 3, 0.0
    ),
    "keys": lambda x: gt.reduce_by_key((x > 0.8).long(), x, None, helper, size=4)[1],
    "orders": lambda x: gt.sort(x)[0] + gt.top_k(x, 5)[0],
    "selection": lambda x: gt.select(x, lambda a: a > 0.6, size=4)[0],
    "pairs": lambda x: gt.inclusive_scan((x, x), None, of_torch.pair)[1],
}


@pytest.mark.parametrize("name", COMPILED)
def test_compiled(device: str, name: str) -> None:
    """torch.compile takes each call into one graph, with the same results and gradients."""
    torch._dynamo.reset()
    function = COMPILED[name]
    x = of_torch.numbers((5,), device)
    expected = function(x)
    (gradient,) = torch.autograd.grad(expected.sum(), x)
    found = torch.compile(function, fullgraph=True, backend="aot_eager")(x)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(torch.autograd.grad(found.sum(), x)[0], gradient)


def test_lengths_share_a_graph(device: str) -> None:
    torch._dynamo.reset()
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    function = torch.compile(
        lambda x: gt.inclusive_scan(x, None, lambda a, b: a * b).sum() + gt.reduce(x, None, max),
        fullgraph=True, backend=counter, dynamic=True,
    )  # fmt: skip
    for n in (5, 6, 7, 9):
        function(of_torch.numbers((n,), device)).backward()
    assert counter.frame_count == 1


def test_each_operator_has_a_graph(device: str) -> None:
    torch._dynamo.reset()
    function = torch.compile(
        lambda x, op: gt.inclusive_scan(x, None, op), fullgraph=True, backend="aot_eager"
    )
    x = torch.arange(1.0, 5.0, device=device)
    for _ in range(2):
        assert function(x, max).tolist() == [1, 2, 3, 4]
        assert function(x, operator.add).tolist() == [1, 3, 6, 10]
        assert function(x, lambda a, b: a * b).tolist() == [1, 2, 6, 24]
        assert function(x, lambda a, b: a + 2 * b).tolist()[1] == 5


@pytest.mark.parametrize("kind", ["global", "closure", "argument"])
def test_compiled_operators_read_no_variables(device: str, kind: str) -> None:
    torch._dynamo.reset()
    x, factor, argument = of_torch.numbers((4,), device), 3.0, of_torch.scaled(3.0)
    functions: dict[str, Callable[..., Any]] = {
        "global": lambda x: gt.inclusive_scan(x, None, reads_global),
        "closure": lambda x: gt.inclusive_scan(x, None, lambda a, b: a * b * factor),
        "argument": lambda x: gt.inclusive_scan(x, None, argument),
    }
    with pytest.raises(Exception, match="op reads variables"):
        torch.compile(functions[kind], fullgraph=True, backend="aot_eager")(x)


def test_captured_values_are_those_of_the_call(device: str) -> None:
    """Gradients are computed later: a variable may have changed by then."""
    x = of_torch.numbers((4,), device)
    results, expected = [], []
    before = len(operators._operators)
    for factor in (1.5, 2.5, 1.5):
        results.append(gt.inclusive_scan(x, None, lambda a, b: a * b * factor))  # noqa: B023
        y = [x[0]]
        for i in range(1, 4):
            y.append(y[-1] * x[i] * factor)
        expected.append(torch.stack(y))
    assert len(operators._operators) == before
    for found, wanted in zip(results, expected, strict=True):
        torch.testing.assert_close(found, wanted)
        (gradient,) = torch.autograd.grad(found.sum(), x)
        torch.testing.assert_close(gradient, torch.autograd.grad(wanted.sum(), x)[0])


def test_batches(device: str) -> None:
    x = of_torch.numbers((3, 5), device).detach()
    vmap = torch.vmap
    torch.testing.assert_close(vmap(lambda r: gt.inclusive_scan(r, None, max))(x), x.cummax(1)[0])
    torch.testing.assert_close(
        vmap(lambda r: gt.linear_recurrence(r, r), in_dims=1, out_dims=1)(x),
        gt.linear_recurrence(x, x, dim=0),
    )
    torch.testing.assert_close(
        vmap(lambda r, i: gt.inclusive_scan(r, i, operator.mul), in_dims=(0, None))(x, x[0, 0]),
        x.cumprod(1) * x[0, 0],
    )
    torch.testing.assert_close(vmap(lambda r: gt.reduce(r, None, min))(x), x.amin(1))
    assert torch.equal(vmap(lambda r: gt.sort(r)[0])(x), x.sort(1)[0])
    assert torch.equal(vmap(lambda r: gt.top_k(r, 2)[1])(x), x.topk(2)[1])


def test_ops_are_well_defined(device: str) -> None:
    name = operators.constant_name(operator.mul, None, "test")
    marked = operators.constant_name(lambda a: a > 0.5, None, "test", 1)
    ops = torch.ops.gpualgo
    rows, one = of_torch.numbers((3, 4), device), of_torch.numbers((5,), device)
    first = of_torch.numbers((3,), device)
    offsets, indices = (torch.tensor(v, device=device) for v in ([0, 2, 5], [0, 2, 0, 1, 2]))
    calls: list[tuple[Any, tuple[Any, ...]]] = [
        (ops.scan, ([rows], [first], name, 1, False, False)),
        (ops.fold, ([rows], [], name, 0)),
        (ops.recurrence, ([rows], [rows], 1, True)),
        (ops.segment_scan, ([one], offsets, name, None)),
        (ops.segment_fold, ([one], offsets, name, 1.5)),
        (ops.fold_by_index, (indices, one, 3, name, 1.0)),
        (ops.fold_by_key, (indices, [one], name, None)),
        (ops.ordered, (rows, True, 1)),
        (ops.top, (rows, 2, True, 0)),
        (ops.selected, (indices > 0, 2)),
        (ops.marks, (one.detach(), marked)),
        (ops.counts, (one.detach(), one, None, 4, 0.0, 1.0)),
        (ops.searched, (one.detach().sort()[0], one.detach(), True, False)),
    ]
    for op, arguments in calls:
        found = torch.library.opcheck(op.default, arguments)
        assert set(found.values()) == {"SUCCESS"}, op


def test_exported(device: str) -> None:
    class Scan(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return gt.inclusive_scan(x, None, lambda a, b: a * b + a + b)

    x = of_torch.numbers((4,), device).detach()
    program = torch.export.export(Scan(), (x,))
    torch.testing.assert_close(program.module()(x), Scan()(x))


def test_a_graph_of_another_process_names_what_it_needs() -> None:
    with pytest.raises(RuntimeError, match="does not know the operator f-0123 of a graph"):
        torch.ops.gpualgo.fold([torch.ones(3)], [], "f-0123", 0)

    def op(a: Any, b: Any) -> Any:
        return a * b + a + b + a * b * a * b * 0

    name = operators._name_of(operators._parsed(op, None, "test", 2))
    assert name is not None
    assert not operators.is_known(name)
    gt.register(op)
    assert torch.ops.gpualgo.fold([torch.ones(2)], [], name, 0)[0].item() == 3


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda x: gt.reduce([1.0]), TypeError, "reduce: x must be a tensor"),
        (lambda x: gt.reduce((x, x[:1])), ValueError, "differ in shape"),
        (lambda x: gt.reduce(x, dim=2), IndexError, "dim 2 is out of range for 1 dimensions"),
        (lambda x: gt.reduce(x, x.int()[0]), TypeError, "init has dtype torch.int32, x torch.f"),
        (lambda x: gt.reduce(x, (1.0, 2.0)), ValueError, "init has 2 numbers, and x has 1"),
        (lambda x: gt.reduce(x, vjp=1), TypeError, "vjp must be a tuple of two functions"),
        (lambda x: gt.segmented_reduce(x[None], x.int()), ValueError, "must have one dimension"),
        (lambda x: gt.top_k(x, 9), ValueError, "k is 9, and the dimension has 4 elements"),
        (lambda x: gt.select(x, x), TypeError, "predicate is a tensor of torch.float64"),
        (lambda x: gt.select(x, x[:1] > 0), ValueError, "predicate has shape"),
        (lambda x: gt.histogram(x, 3), ValueError, "range is needed"),
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


def test_gpualgo_names_the_functions_with_gradients() -> None:
    with pytest.raises(TypeError, match=r"gpualgo\.torch"):
        ga.reduce(torch.ones(3, requires_grad=True))
