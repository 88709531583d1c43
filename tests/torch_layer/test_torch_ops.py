"""gpualgo.torch: results, gradients, vmap, and operators that read variables."""

from __future__ import annotations

import gc
import operator
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch_calls as of_torch
from support import Backend

import gpualgo as ga
import gpualgo.torch as gt
from gpualgo.torch import _gradients as gradients
from gpualgo.torch import _operators as operators

CALLS = len(of_torch.calls("cpu"))
FACTOR = 2.0


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


def test_no_call_ignores_a_tangent(device: str) -> None:
    x, one = torch.ones(3, device=device), torch.ones((), device=device)
    calls: list[Callable[..., Any]] = [
        lambda i: gt.reduce(x, i),
        lambda i: gt.inclusive_scan(x, i),
        lambda i: gt.linear_recurrence(x, x, i),
        torch.compile(lambda i: gt.sort(x * i)[0], backend="aot_eager"),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="forward-mode gradients"):
            torch.func.jvp(call, (one,), (one,))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_extremes_are_counted_exactly(device: str, dtype: torch.dtype) -> None:
    x = torch.zeros(100_000, dtype=dtype, device=device, requires_grad=True)
    indices = torch.zeros(len(x), dtype=torch.int32, device=device)
    for y in (gt.reduce(x, None, max), gt.reduce_by_index(indices, x, 1, -1.0, max).sum()):
        assert float(torch.autograd.grad(y, x)[0].double().sum()) == pytest.approx(1, rel=0.01)


def test_infinite_logaddexp_has_a_gradient(device: str) -> None:
    for value in (-torch.inf, torch.inf):
        for op in (np.logaddexp, lambda a, b: np.logaddexp(a, b)):
            x = torch.full((2,), value, device=device, requires_grad=True)
            assert torch.autograd.grad(gt.reduce(x, None, op), x)[0].tolist() == [0.5, 0.5]


def test_equal_numbers_of_logaddexp_have_a_second_gradient(device: str) -> None:
    x = torch.zeros(2, dtype=torch.float64, device=device, requires_grad=True)
    offsets, init = torch.tensor([0, 2], device=device), torch.zeros((), dtype=torch.float64)
    for f in (
        lambda x: gt.inclusive_scan(x, None, np.logaddexp)[1],
        lambda x: gt.reduce(x, init, np.logaddexp) - gt.reduce(x, None, np.logaddexp),
        lambda x: gt.segmented_reduce(x, offsets, 0.0, np.logaddexp).sum(),
    ):
        assert torch.autograd.gradgradcheck(f, x)


def test_views_that_conjugate_or_negate(device: str) -> None:
    x, offsets = torch.tensor([1 + 2j, 3 - 1j], device=device), torch.tensor([0, 2], device=device)
    for view in (x.conj(), x.conj().imag):
        found = gt.segmented_exclusive_scan(view, offsets, 1.0)
        assert torch.equal(found, torch.stack([torch.ones_like(view[0]), 1 + view[0]]))


def test_results_have_the_dtype_of_x(device: str) -> None:
    x = torch.tensor([True, True, False], device=device)
    empty, offsets = torch.zeros(0, dtype=torch.int8, device=device), torch.zeros(1, device=device)
    assert gt.select(x, lambda a: a)[0].tolist() == [True, True, False]
    assert gt.select(x, x)[0].dtype == torch.bool
    assert gt.reduce_by_key(x, x.float())[0].dtype == torch.bool
    assert gt.segmented_exclusive_scan(empty, offsets.int(), 1.0).dtype == torch.int8


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
    for found, wanted in zip(results, expected, strict=True):
        torch.testing.assert_close(found, wanted)
        (gradient,) = torch.autograd.grad(found.sum(), x)
        torch.testing.assert_close(gradient, torch.autograd.grad(wanted.sum(), x)[0])
    del found, results, gradient
    gc.collect()
    assert len(operators._operators) == before


def _by_module(a: Any, b: Any) -> Any:
    return a * settings.FACTOR + b


settings = ModuleType("utils")  # torch has a module of this name


@pytest.mark.parametrize("vjp", [None, (lambda a, b: a * 0 + settings.FACTOR, lambda a, b: 1.0)])
def test_variables_of_modules_are_those_of_the_call(device: str, vjp: Any) -> None:
    x = torch.tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
    settings.FACTOR = 2.0
    total = gt.reduce(x, None, _by_module, vjp=vjp)
    settings.FACTOR = 5.0
    total.backward()
    assert total.item() == 11
    assert x.grad is not None
    assert x.grad.tolist() == [4, 2, 1]


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
def test_unsigned_numbers_are_sorted(device: str, dtype: torch.dtype) -> None:
    x = torch.tensor([[3, 1, 2], [9, 8, 7]], device=device).to(dtype)
    values, order = gt.sort(x, dim=1, descending=True)
    assert (values.dtype, order.tolist()) == (dtype, [[0, 2, 1], [0, 1, 2]])
    assert values.long().tolist() == [[3, 2, 1], [9, 8, 7]]


def test_complex_numbers_beside_real_ones_have_gradients(device: str) -> None:
    def both(a: Any, b: Any) -> Any:
        return a[0] * b[0], a[1] + b[1]

    def total(c: Any, r: Any) -> Any:
        scanned = gt.inclusive_scan((c, r), None, both)
        exclusive = gt.exclusive_scan((c, r), (1 + 0j, 0.5), both)
        known = ga.Operator(both, identity=(1, 0))
        segments = gt.segmented_reduce((c, r), offsets, None, known)
        return sum((a.abs().square() * b).sum() for a, b in (scanned, exclusive, segments))

    offsets = torch.tensor([0, 2, 4], device=device)
    c = torch.tensor([1 + 1j, 2, -1j, 0.5], device=device, dtype=torch.complex128)
    r = torch.tensor([1.0, 2, 3, -1], device=device, dtype=torch.float64)
    inputs = [x.requires_grad_() for x in (c, r)]
    assert torch.autograd.gradcheck(total, inputs)


def _per_operator(op: Any, **options: Any) -> list[Callable[..., Any]]:
    """Return calls of each kind that combine all elements of x by an operator."""
    return [
        lambda x: gt.reduce(x, None, op, **options),
        lambda x: gt.inclusive_scan(x, None, op, **options)[-1],
        lambda x: gt.segmented_reduce(
            x, torch.tensor([0, len(x)], device=x.device), 1.0, op, **options
        )[0],
        lambda x: gt.reduce_by_index(torch.zeros_like(x.real).int(), x, 1, 1.0, op, **options)[0],
        lambda x: gt.reduce_by_key(torch.zeros_like(x.real).int(), x, None, op, **options)[1][0],
    ]


@pytest.mark.parametrize("op", [operator.mul, operator.add, max, lambda a, b: a * b])
def test_a_given_vjp_counts_for_known_operators(device: str, op: Any) -> None:
    vjp = (lambda a, b: torch.zeros_like(a), lambda a, b: 3)
    for call in _per_operator(op, vjp=vjp):
        x = of_torch.numbers((4,), device)
        assert torch.autograd.grad(call(x), x)[0].tolist() == [0, 0, 0, 3]


def test_complex_numbers(device: str) -> None:
    x = torch.complex(of_torch.numbers((4,), device), of_torch.numbers((4,), device, 1)).detach()
    x.requires_grad_()
    vjp = (lambda a, b: b, lambda a, b: a)
    calls = [
        *_per_operator(operator.mul), *_per_operator(lambda a, b: a * b, vjp=vjp),
        lambda x: gt.linear_recurrence(x, x * 2, x[0]),
        lambda x: gt.linear_recurrence(x, x * 2, 1.5, reverse=True),
        lambda x: gt.inclusive_scan((x, x), None, of_torch.pair)[1],
        lambda x: gt.inclusive_scan(x.conj(), x[0].conj(), operator.mul).conj(),
    ]  # fmt: skip
    for call in calls:
        assert torch.autograd.gradcheck(call, (x,))
        assert torch.autograd.gradgradcheck(call, (x,))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_narrow_indices(device: str, dtype: torch.dtype) -> None:
    """The gradients' indices are not narrow: there are more elements than the dtype counts."""
    size = min(torch.iinfo(dtype).max + 1, 300)
    x = torch.linspace(0.95, 1.05, 2 * size, dtype=torch.float64, device=device)
    x.requires_grad_()
    indices = (torch.arange(2 * size, device=device) % size).to(dtype)
    for op in (operator.add, operator.mul, max):
        results = [
            gt.reduce_by_index(each, x, size, 0.5, op) * torch.arange(size, device=device)
            for each in (indices, indices.long())
        ]
        gradients = [torch.autograd.grad(each.sum(), x)[0] for each in results]
        torch.testing.assert_close(*gradients)
    offsets = torch.tensor([0, 50, 50, 120], device=device)
    for function in (gt.segmented_reduce, gt.segmented_inclusive_scan, gt.segmented_exclusive_scan):
        results = [function(x, each, 1.0, operator.mul) for each in (offsets.to(dtype), offsets)]
        torch.testing.assert_close(*results)
        gradients = [torch.autograd.grad(each.sin().sum(), x)[0] for each in results]
        torch.testing.assert_close(*gradients)


def test_segments_of_nothing(device: str) -> None:
    x = torch.zeros(0, device=device, requires_grad=True)
    empty, offsets = torch.zeros(0, dtype=torch.int64), torch.tensor([0, 0, 0], device=device)
    results = [
        gt.segmented_reduce(x, offsets, 2.0, operator.mul),
        gt.segmented_inclusive_scan(x, offsets, 2.0, operator.mul),
        gt.segmented_exclusive_scan(x, offsets, 2.0, operator.mul),
        gt.reduce_by_index(empty.to(device), x, 2, 2.0, operator.mul),
        gt.reduce_by_key(empty.to(device), x, size=1)[1],
    ]
    assert [each.tolist() for each in results] == [[2, 2], [], [], [2, 2], [0]]
    for each in results:
        assert torch.autograd.grad(each.sum(), x)[0].shape == (0,)


def test_keys_that_are_nan_are_one_run(device: str) -> None:
    keys = torch.tensor([torch.nan, torch.nan, 0.0, -0.0, 1.0], device=device)
    for op in (operator.add, operator.mul):
        x = torch.ones(5, device=device, requires_grad=True)
        found = gt.reduce_by_key(keys, x, None, op)[1]
        (found * torch.arange(1, 6, device=device)).sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [1, 1, 2, 2, 3]


def test_one_row(device: str) -> None:
    """One row may have an initial value of its own, of any dtype that has tensors."""
    for dtype in (torch.float32, torch.bfloat16):
        for rows in (1, 2):
            x = torch.full((rows, 3), 2.0, dtype=dtype, device=device)
            for init in (x[:, 0], x[0, 0], 2.0):
                assert gt.inclusive_scan(x, init).tolist() == [[4, 6, 8]] * rows
                assert gt.reduce(x, init, operator.mul).tolist() == [16] * rows


def test_numbers_of_several_dtypes(device: str) -> None:
    """Integers of tuples have no gradient; the others keep their dtypes."""
    x = torch.tensor([1.0, 3.0, 2.0, 3.0], device=device, requires_grad=True)
    order = torch.arange(4, device=device)

    def is_left(a: Any, b: Any) -> Any:
        return ((a[0] >= b[0]).float(), 0), (0, 0)

    def is_right(a: Any, b: Any) -> Any:
        return ((a[0] < b[0]).float(), 0), (0, 0)

    found, at = gt.reduce(
        (x, order), None, lambda a, b: a if a[0] >= b[0] else b, vjp=(is_left, is_right)
    )
    assert (found.item(), at.item()) == (3, 1)
    assert torch.autograd.grad(found, x)[0].tolist() == [0, 1, 0, 0]
    add = lambda a, b: (a[0] + b[0], a[1] + b[1])  # noqa: E731
    count, total = gt.inclusive_scan((order, x), None, add)
    assert torch.autograd.grad((total / (count + 1)).sum(), x)[0].tolist()[3] == pytest.approx(
        1 / 7
    )
    wide = of_torch.numbers((4,), device)
    assert torch.autograd.grad(gt.reduce((x, wide), None, add)[1], wide)[0].tolist() == [1] * 4


def max_of_module(a: Any, b: Any) -> Any:
    return max(a, b) + 0 * a


def odd(a: Any, b: Any, n: Any) -> Any:
    return a * b if n <= 0 else even(a, b, n - 1)


def even(a: Any, b: Any, n: Any) -> Any:
    return a * b if n <= 0 else odd(a, b, n - 1)


def scaled_root(a: Any, b: Any) -> Any:
    return np.sqrt(a * b * a * b) * FACTOR


def _with_variables() -> dict[str, Callable[..., Any]]:
    import math as m

    jitted = pytest.importorskip("numba").njit(lambda a, b: a * b + a + b)
    root, names = m.sqrt, {"max": lambda a, b: a * b, "__builtins__": __builtins__}
    own_max = type(max_of_module)(max_of_module.__code__, names)
    return {
        "module in a cell": lambda a, b: m.sqrt(a * b * a * b),
        "function in a cell": lambda a, b: root(a * b * a * b) + m.sqrt(2.0),
        "helper that reads a number": lambda a, b: scaled_root(a, b),
        "functions of each other": lambda a, b: odd(a, b, 2),
        "numba": jitted,
        "helper of numba": lambda a, b: jitted(a, b),
        "max of numbers": lambda a, b: min(max(a * b, 0.1, b * 0), 9.0),
        "np.maximum of numbers": lambda a, b: np.maximum(np.power(a * b, 1.0), 0.1),
        "own max": own_max,
    }


@pytest.mark.parametrize("name", _with_variables())
def test_derivatives_of_functions_that_read_others(backend: Backend, name: str) -> None:
    if backend.name != "cpu" and "each other" in name:
        pytest.skip("recursion is for the CPU")
    op = _with_variables()[name]
    x = of_torch.numbers((4,), "cpu" if backend.name == "cpu" else "cuda")
    assert torch.autograd.gradcheck(lambda x: gt.inclusive_scan(x, None, op), (x,))


def test_an_identity_is_part_of_an_operator(device: str) -> None:
    torch._dynamo.reset()
    offsets, x = torch.tensor([0, 0, 2], device=device), torch.ones(2, device=device)
    one, two = (ga.Operator(lambda a, b: a * b, identity=i) for i in (1.0, 2.0))
    compiled = torch.compile(
        lambda x: gt.segmented_reduce(x, offsets, None, one), fullgraph=True, backend="aot_eager"
    )
    for _ in range(2):
        assert compiled(x).tolist() == [1, 1]
        assert gt.segmented_reduce(x, offsets, None, two).tolist() == [2, 1]


def test_weights_have_the_gradients_of_their_bins(device: str) -> None:
    """The gradient finds the bins that the histogram counted in, on edges too."""
    rng = np.random.default_rng(3)
    for dtype in (torch.float32, torch.float16, torch.int32, torch.bool):
        for number in range(20):
            low, high = sorted(rng.normal(0, 30, 2).tolist())
            count = 1 + number % 7
            inner = torch.linspace(low, high, count + 1, dtype=torch.float64)
            x = torch.cat([inner, torch.tensor(rng.normal(0, 30, 9))]).to(device, dtype)
            whole = torch.tensor([-20, -3, 4, 4, 20], device=device)
            for bins, limits in ((count, (low, high)), (whole, None), (whole / 3, None)):
                weights = of_torch.numbers((len(x),), device)
                result = gt.histogram(x, bins, limits, weights=weights)
                factors = of_torch.numbers(tuple(result.shape), device, 1).detach()
                (found,) = torch.autograd.grad((result * factors).sum(), weights)
                each = [gt.histogram(sample[None], bins, limits) for sample in x]
                torch.testing.assert_close(found, torch.stack(each).double() @ factors)


def test_weights_of_great_integers_have_the_gradients_of_their_bins(device: str) -> None:
    """Integers are compared with edges exactly, by the gradient, too."""
    great = 2**53
    x = torch.tensor([great + 3, great + 4, great - 1, 2**63 - 1, -(2**63), 7], device=device)
    for edges in ([0, great + 4, 2 * great], [-torch.inf, 6.5, torch.inf], [-(2.0**63), 2.0**63],
                  [0.0, 7.5], [7.0, 7.0], [0.0, 7.0], [0.0, 2.0**63, 2.0**64],
                  [2.0**63, 2.0**64]):  # fmt: skip
        bins = torch.tensor(edges, dtype=torch.float64, device=device)
        weights = torch.ones(len(x), dtype=torch.float64, device=device, requires_grad=True)
        result = gt.histogram(x, bins, weights=weights)
        factors = 1.0 + torch.arange(len(result), device=device, dtype=torch.float64)
        (found,) = torch.autograd.grad((result * factors).sum(), weights)
        each = [gt.histogram(sample[None], bins) for sample in x]
        torch.testing.assert_close(found, torch.stack(each).double() @ factors)


def test_batches_of_segments(device: str) -> None:
    x = of_torch.numbers((5, 3), device)
    offsets, keys = (torch.tensor(v, device=device) for v in ([0, 2, 5], [4, 4, 7, 7, 9]))
    calls: list[Callable[..., Any]] = [
        lambda c: gt.segmented_reduce(c, offsets, 0.0, max),
        lambda c: gt.segmented_inclusive_scan(c, offsets, None, operator.mul),
        lambda c: gt.reduce_by_index(keys, c, 10, 0.0),
        lambda c: gt.reduce_by_key(keys, c)[1],
        lambda c: gt.select(c, lambda a: a > 0.7)[0],
        lambda c: gt.histogram(keys, 3, (0, 10), weights=c),
    ]
    for call in calls:
        found = torch.vmap(call, in_dims=1, out_dims=1)(x)
        expected = torch.stack([call(column) for column in x.T], 1)
        torch.testing.assert_close(found, expected)
        gradients = [torch.autograd.grad(y.sin().sum(), x)[0] for y in (found, expected)]
        torch.testing.assert_close(*gradients)


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


def test_a_coefficient_of_zero_begins_anew(device: str) -> None:
    """Products before it that overflow have no effect, as where a segment begins."""
    a = torch.tensor([1e300, 1e300, 0.0, 2.0] * 300, dtype=torch.float64, device=device)
    b = torch.ones_like(a)
    h, expected = gt.linear_recurrence(a, b), [0.0]
    for i in range(len(a)):
        expected.append(1.0 if a[i] == 0 else float(a[i]) * expected[-1] + 1.0)
    np.testing.assert_array_equal(h.cpu()[2::4], expected[3::4])
    np.testing.assert_array_equal(h.cpu()[3::4], expected[4::4])


def test_indices_of_no_result_have_no_gradient() -> None:
    """A GPU ignores them."""
    x, y = torch.tensor([1.0, 2.0, 3.0, 2.0]), torch.tensor([1.0, 2.0])
    indices = torch.tensor([0, 7, -1, 1])
    for op, wanted in ((operator.add, [5.0, 0, 0, 6]), (max, [5.0, 0, 0, 6])):
        known = operators.parsed(op, None, "test")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gradients, "_ops", lambda: SimpleNamespace(fold_by_index=_ignoring))
            grad = torch.tensor([5.0, 6.0])
            found = gradients.of_fold_by_index(grad, indices, x, 2, known, None, y)[1]
        assert found.tolist() == wanted


def _ignoring(indices: torch.Tensor, x: torch.Tensor, size: int, *_: Any) -> torch.Tensor:
    inside = (indices >= 0) & (indices < size)
    return torch.zeros(size).index_add(0, indices[inside], x[inside])


def test_vmap_of_no_rows() -> None:
    x, offsets = torch.ones(0, 4), torch.tensor([0, 2, 4])
    assert torch.vmap(lambda row: gt.segmented_reduce(row, offsets))(x).shape == (0, 2)
    values, count = torch.vmap(lambda row: gt.select(row, row > 0, size=3))(x)
    assert values.shape == (0, 3)
    assert count.shape == (0,)
    assert torch.vmap(lambda row: gt.histogram(row, 5, (0.0, 1.0)))(x).shape == (0, 5)


def test_torchs_functions_are_operators() -> None:
    x = torch.tensor([3.0, 4.0])
    assert gt.reduce(x, None, torch.hypot).item() == 5
    assert gt.reduce(x > 3.5, None, torch.logical_or).item() is True
    assert gt.reduce(x.int(), None, torch.bitwise_xor).item() == 7


def test_gpualgo_names_the_functions_with_gradients() -> None:
    with pytest.raises(TypeError, match=r"gpualgo\.torch"):
        ga.reduce(torch.ones(3, requires_grad=True))


def test_weights_of_uint64_have_no_gradient(device: str) -> None:
    x = torch.tensor([2**63 + 5, 7], dtype=torch.uint64, device=device)
    edges = torch.tensor([0.0, 2.0**63, 2.0**64], dtype=torch.float64, device=device)
    weights = torch.ones(2, device=device)
    assert gt.histogram(x, edges, weights=weights).tolist() == [1, 1]
    with pytest.raises(TypeError, match="uint64 elements have no gradient"):
        gt.histogram(x, edges, weights=weights.requires_grad_())
