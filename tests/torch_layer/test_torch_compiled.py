"""gpualgo.torch within torch.compile and torch.export, and operators that they would confuse."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch_calls as of_torch
from torch._dynamo.testing import CompileCounterWithBackend

import gpualgo as ga
import gpualgo.torch as gt
from gpualgo.torch import _operators as operators

FACTOR = 2.0


def helper(a: Any, b: Any) -> Any:
    return a * b + a + b


def calls_helper(a: Any, b: Any) -> Any:
    return helper(a, b)


def reads_global(a: Any, b: Any) -> Any:
    return a * b * FACTOR


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
    counter = CompileCounterWithBackend("aot_eager")
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


def test_compiled_operators_are_no_closures(device: str) -> None:
    """torch.compile would take one closure for another of equal code."""
    torch._dynamo.reset()
    x = torch.arange(1.0, 5.0, device=device)
    calls: list[Callable[..., Any]] = [
        lambda x, fn: gt.inclusive_scan(x, None, lambda a, b: fn(a, b)),
        lambda x, fn: gt.reduce(x, None, max, vjp=(lambda a, b: fn(a, b), fn)),
        lambda x, fn: gt.select(x, lambda a: fn(a, a) > 3)[0],
    ]
    for call in calls:
        with pytest.raises(Exception, match="op reads variables"):
            torch.compile(call, fullgraph=True, backend="aot_eager")(x, helper)


def test_gradients_are_of_the_functions_of_the_call(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
    monkeypatch.setitem(globals(), "helper", lambda a, b: a * b)
    found = gt.reduce(x, None, calls_helper)
    monkeypatch.setitem(globals(), "helper", lambda a, b: a + b)
    assert torch.autograd.grad(found, x)[0].tolist() == [6, 3, 2]


def test_graphs_are_of_any_length(device: str) -> None:
    """No call, and no gradient, makes a graph for one length."""
    for name in ("segments", "indices", "keys", "selection", "recurrence"):
        torch._dynamo.reset()
        counter = CompileCounterWithBackend("aot_eager")
        call = {**COMPILED, "indices": lambda x: gt.reduce_by_index(
            (x > 0.8).int(), x, 2, 1.0, operator.mul
        )}[name]  # fmt: skip
        function = torch.compile(call, fullgraph=True, backend=counter, dynamic=True)
        for n in (5, 6, 7, 9):
            function(of_torch.numbers((n,), device)).sum().backward()
        assert counter.frame_count == 1, name


def test_exported(device: str) -> None:
    class Scan(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            own = gt.inclusive_scan(x, None, lambda a, b: max(a * b, a) + a + b)
            return own + gt.reduce(x, None, max)  # torch.export has a max of its own

    x = of_torch.numbers((4,), device).detach()
    program = torch.export.export(Scan(), (x,))
    torch.testing.assert_close(program.module()(x), Scan()(x))


def test_a_graph_of_another_process_names_what_it_needs() -> None:
    with pytest.raises(RuntimeError, match="does not know the operator f-0123 of a graph"):
        torch.ops.gpualgo.fold([torch.ones(3)], [], "f-0123", 0)

    def op(a: Any, b: Any) -> Any:
        return a * b + a + b + a * b * a * b * 0

    assert operators.constant_name(operator.add, None, "test") == operators.ADD.name
    name = operators.digest_name(ga.Operator(op), None)
    assert name is not None
    assert name not in operators._operators
    gt.register(op)
    assert torch.ops.gpualgo.fold([torch.ones(2)], [], name, 0)[0].item() == 3
