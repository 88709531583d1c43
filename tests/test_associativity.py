"""With GPUALGO_CHECK=1 operators are tried on triples of the data: both groupings must agree."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np
import pytest
from support import BFLOAT16, Backend, a_few

import gpualgo as ga
from gpualgo._lazy import associativity

X = np.arange(100, dtype=np.float64)


class Pair(NamedTuple):
    n: Any
    s: Any


def minus(a: Any, b: Any) -> Any:
    return a - b


def plus(a: Any, b: Any) -> Any:
    return a + b


def affine(f: Any, g: Any) -> Any:
    return f[0] * g[0], f[1] * g[0] + g[1]


def merged(a: Any, b: Any) -> Any:
    """Number, mean and sum of squared deviations: cancels where the mean is large."""
    n, d = a[0] + b[0], b[1] - a[1]
    return n, a[1] + d * b[0] / n, a[2] + b[2] + d * d * a[0] * b[0] / n


@pytest.fixture(autouse=True)
def _checks_are_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUALGO_CHECK", "1")


def refused(call: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(ValueError, match="op is not associative") as info:
        call(*arguments, **options)
    return str(info.value)


def test_message_shows_triple_and_results() -> None:
    text = refused(ga.reduce, np.array([1, 2, 4]), None, minus)
    assert text.startswith(
        "reduce: op is not associative, so results depend on how elements are grouped: with a = 1, "
        "b = 2, c = 4, op(op(a, b), c) is -5 and op(a, op(b, c)) is 3; pass an associative operator"
    )
    assert "test_associativity.py" in text
    assert text == refused(ga.reduce, np.array([1, 2, 4]), None, minus)  # the same triple again


def test_every_function(backend: Backend) -> None:
    x = backend.to_device(X)
    keys = backend.to_device(np.arange(100) // 7)
    offsets = backend.to_device(np.array([0, 20, 100]))
    calls = [
        (ga.reduce, x, 0.0, minus),
        (ga.inclusive_scan, x, None, minus),
        (ga.exclusive_scan, x, 0.0, minus),
        (ga.reduce_by_key, keys, x, None, minus),
        (ga.inclusive_scan_by_key, keys, x, None, minus),
        (ga.exclusive_scan_by_key, keys, x, 0.0, minus),
        (ga.reduce_by_index, keys, x, 15, 0.0, minus),
        (ga.rolling, x, 3, minus),
        (ga.segmented_reduce, x, offsets, 0.0, minus),
        (ga.segmented_inclusive_scan, x, offsets, None, minus),
        (ga.segmented_exclusive_scan, x, offsets, 0.0, minus),
    ]
    for call, *arguments in a_few(calls, 4):
        function: Any = call
        assert refused(function, *arguments).startswith(function.__name__ + ": ")
    refused(ga.reduce_by_key, keys, x, None, minus, consecutive=True, eq=lambda a, b: a == b)
    refused(ga.reduce, ga.lazy.transform(lambda v: v * 2, x), None, minus)
    assert backend.to_host(ga.transform(minus, x, x)).sum() == 0
    assert backend.to_host(ga.adjacent_difference(x, minus)).sum() == 99
    assert float(backend.to_host(ga.reduce(x, 0.0, plus))) == X.sum()


KNOWN = (
    "sub", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "lt", "ge",
    "subtract", "divide", "floor_divide", "remainder", "fmod", "power", "left_shift", "right_shift",
    "arctan2", "less",
)  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("is_checked", ["0", "1"])
def test_known_functions_that_do_not_associate(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, name: str, is_checked: str
) -> None:
    monkeypatch.setenv("GPUALGO_CHECK", is_checked)
    fn = getattr(operator, name, None) or getattr(np, name)
    told = rf"op (operator|numpy)\.{name} is not associative, .* or write a lambda if you mean it$"
    x, keys = backend.to_device(np.arange(9)), backend.to_device(np.arange(9) // 3)
    offsets = backend.to_device(np.array([0, 2, 9]))
    for call, *arguments in (
        (ga.reduce, x, None, fn),
        (ga.reduce, x, 1, ga.Operator(fn, identity=0)),
        (ga.reduce, ga.lazy.transform(lambda v: v * 2, x), None, fn),
        (ga.inclusive_scan, x, None, fn),
        (ga.exclusive_scan, x, 0, fn),
        (ga.reduce_by_key, keys, x, None, fn),
        (ga.inclusive_scan_by_key, keys, x, None, fn),
        (ga.exclusive_scan_by_key, keys, x, 0, fn),
        (ga.reduce_by_index, keys, x, 3, 0, fn),
        (ga.segmented_reduce, x, offsets, 0, fn),
        (ga.segmented_inclusive_scan, x, offsets, None, fn),
        (ga.segmented_exclusive_scan, x, offsets, 0, fn),
    ):
        function: Any = call
        for _ in range(2):
            with pytest.raises(TypeError, match=f"^{function.__name__}: {told}"):
                function(*arguments)
    with pytest.raises(TypeError, match=told):
        ga.prepare(ga.reduce, x, None, fn)
    with pytest.raises(TypeError, match=told):
        ga.reduce_by_key(keys, x, None, fn, consecutive=True, eq=lambda a, b: a == b)


def test_known_functions_elsewhere(backend: Backend) -> None:
    x = backend.to_device(np.arange(9))
    assert backend.to_host(ga.adjacent_difference(x, operator.sub)).sum() == 8
    assert not backend.to_host(ga.transform(operator.sub, x, x)).any()


@pytest.mark.parametrize("fn", [minus, lambda a, b: (a + b) / 2])
def test_other_operators_that_do_not_associate(fn: Any) -> None:
    refused(ga.reduce, X, None, fn)


@pytest.mark.parametrize(
    "fn", [max, operator.mul, np.hypot, lambda a, b: a, lambda a, b: b, lambda a, b: max(a, b)]
)
def test_operators_that_associate(fn: Any) -> None:
    ga.reduce(X, None, fn)


@pytest.mark.parametrize("dtype", [np.float16, BFLOAT16, np.float32, np.float64, np.complex64])
def test_rounding_is_no_error(dtype: Any) -> None:
    values = np.random.default_rng(1).normal(size=90)
    ga.reduce(values.astype(dtype), None, plus)
    large = float(np.float32(3e4))
    ga.reduce(np.array([large, 1, -large, 3e-3, -2, 0.5] * 9).astype(dtype), None, plus)
    refused(ga.reduce, values.astype(dtype), None, minus)


def test_cancellation_within_a_tuple_is_no_error() -> None:
    mean = (1e6 + np.random.default_rng(1).normal(size=60)).astype(np.float32)
    one = np.ones_like(mean)
    ga.reduce((one, mean, one - one), None, merged)


def test_overflow_proves_nothing() -> None:
    with np.errstate(all="ignore"):
        ga.reduce(np.array([1e200, 1e200, 1e-200, 1e-200] * 5), None, lambda a, b: a * b)


def test_integers_are_exact() -> None:
    x = np.arange(-60, 60, dtype=np.int8)
    ga.reduce(x, None, plus)  # wraps
    refused(ga.reduce, x, None, lambda a, b: a * b + 1)
    large = np.arange(1 << 60, (1 << 60) + 9)
    refused(ga.reduce, large, None, lambda a, b: a - (b >> 60))


def test_nan_is_equal_to_nan() -> None:
    x = np.array([1.0, np.nan, 3.0, np.inf, -np.inf, 2.0])
    ga.reduce(x, None, plus)
    refused(ga.reduce, np.array([3.0, np.nan, 2.0]), None, lambda a, b: a if a > b else b)


def test_tuples() -> None:
    scale = np.linspace(-1, 1, 60)
    ga.inclusive_scan((scale, X[:60]), (1.0, 0.0), affine)
    text = refused(ga.reduce, Pair(np.arange(9), X[:9]), None, lambda a, b: (a.n + b.n, a.s - b.s))
    assert "a = Pair(n=" in text
    structured = np.zeros(9, [("n", np.int32), ("s", np.float64)])
    structured["s"] = X[:9]
    refused(ga.reduce, structured, None, lambda a, b: (a.n + b.n, a.s - b.s))
    refused(ga.reduce, ga.lazy.transform(lambda v: (v, v), X), None, lambda a, b: (a[0], a[1] / 2))


def test_captured_arrays() -> None:
    table, x = np.arange(10), np.arange(50) % 10
    ga.reduce(x, None, lambda a, b: table[(a + b) % 10])
    refused(ga.reduce, x, None, lambda a, b: table[(a - b) % 10])


def test_init_takes_part() -> None:
    """Of zeros alone nothing shows."""
    ga.reduce(np.zeros(5), None, minus)
    assert "a = 3.0, b = 0.0" in refused(ga.reduce, np.zeros(5), 3.0, lambda a, b: (a + b) * 0.5)
    ga.reduce(X[:2], None, minus)  # two elements have one grouping
    refused(ga.reduce, X[1:3], 1.0, minus)


def test_shapes_and_strides() -> None:
    grid = np.asfortranarray(X.reshape(10, 10))[::2, ::-1]
    refused(ga.reduce, grid, None, minus, axis=0)
    refused(ga.reduce, grid, np.zeros(5), minus, axis=1)
    ga.reduce(np.empty((0, 3)), 0.0, minus)


def test_other_errors_are_the_calls() -> None:
    with pytest.raises(TypeError, match=r"^reduce: op "):
        ga.reduce(X, 0.0, lambda a, b: (a, b))
    with pytest.raises(ga.CompileError, match=r"^reduce: "):
        ga.reduce(X, 0.0, lambda a, b: a.upper() + b)


def test_plans_are_not_tried() -> None:
    assert float(ga.prepare(ga.reduce, X, 0.0, minus)(X)) == float(
        ga.prepare(ga.reduce, X, 0.0, minus)(X)
    )
    assert "reduce" in str(ga.explain(ga.reduce, X, 0.0, minus))


def test_calls_that_were_made_before(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, is_tried in (("0", False), ("1", True), ("", False)):
        monkeypatch.setenv("GPUALGO_CHECK", value)
        if is_tried:
            refused(ga.reduce, X, 0.5, minus)
        else:
            ga.reduce(X, 0.5, minus)
    monkeypatch.setenv("GPUALGO_CHECK", "yes")
    with pytest.raises(ValueError, match="GPUALGO_CHECK must be 1 or 0"):
        ga.reduce(X, 0.5, minus)


@pytest.mark.parametrize("scale", [1, 1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("dtype", [np.float16, BFLOAT16, np.float32])
def test_numbers_near_the_smallest_are_no_error(dtype: Any, scale: float) -> None:
    random = np.random.default_rng(2)
    for _ in a_few(range(3)):
        values, factors = random.normal(size=(2, 60))
        mean, one = (values * scale).astype(dtype), np.ones(60, dtype)
        functions = factors.astype(dtype), mean
        ways: Any = (
            (ga.reduce, (one, mean, one - one), merged),
            (ga.inclusive_scan, functions, affine),
        )
        for call, x, op in a_few(ways):
            call(x, None, op)


def test_small_numbers_are_tried() -> None:
    small = (1e-4 * np.random.default_rng(1).normal(size=60)).astype(np.float16)
    refused(ga.reduce, small, None, minus)


@pytest.mark.parametrize(
    ("dtype", "small", "large"),
    [(np.float16, 2e-4, 250), (np.float32, 1e-22, 5e37), (np.float64, 1e-161, 1e200)],
)
def test_overflow_and_underflow_inside_prove_nothing(
    dtype: Any, small: float, large: float
) -> None:
    x = 0.2 + 2 * np.random.default_rng(1).random(60)
    ga.reduce((x * small).astype(dtype), None, lambda a, b: a * b / (a + b))
    ga.reduce((x * large).astype(dtype), None, lambda a, b: (a + b) / (1 + a * b))


def test_the_calls_own_error_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def error_of(op: Any, x: Any) -> str:
        with pytest.raises(TypeError, match="does not fit") as info:
            ga.reduce(x, None, op)
        return str(info.value)

    operators: Any = (
        (lambda a, b: (a + b) * 0.5, np.arange(9)),
        (lambda a, b: (a + b) * 0.5j, X),
        (lambda a, b: np.int64(a) - b, np.arange(9, dtype=np.uint8)),
    )
    for op, x in a_few(operators):
        monkeypatch.setenv("GPUALGO_CHECK", "1")
        text = error_of(op, x)
        monkeypatch.setenv("GPUALGO_CHECK", "0")
        assert error_of(op, x) == text


def test_offsets_are_looked_at_first() -> None:
    with pytest.raises(ValueError, match="offsets"):
        ga.segmented_reduce(X, np.array([0, 200]), 0.0, minus)
    with pytest.raises(ValueError, match="indices"):
        ga.reduce_by_index(np.full(100, 7), X, 3, 0.0, minus)


@pytest.mark.filterwarnings("error")
def test_no_warning_of_its_own() -> None:
    large = np.array([1e5, 2, 3, 4] * 4, np.float32)
    ga.reduce(large, None, plus, dtype=np.float16)
    ga.reduce(large * np.float32(1e30), np.float16(3), plus, dtype=np.float16)
    ga.reduce(np.array([1e30, 2, 3]), None, lambda a, b: max(a, b))


@pytest.mark.parametrize("size", [2, 48, 49, 50, 55, 89, 144, 1000, 1 << 20])
def test_no_element_is_taken_twice(size: int) -> None:
    _, (found,) = associativity._sampled(np.arange(size), [np.dtype(np.int64)], "reduce", None)
    assert len(found) == min(size, 48)
    assert (np.diff(found) > 0).all()
