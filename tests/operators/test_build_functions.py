"""What operators hold beside arithmetic compiles and links for a GPU, which need not be there."""

from __future__ import annotations

import enum
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sass import needs_compilers
from support import run_python

import gpualgo as ga
from gpualgo._api.warm_up import probe_spec
from gpualgo._cuda import build
from gpualgo._cuda.operator import compile_operator

Pair = namedtuple("Pair", "low high")


class Level(enum.IntEnum):
    LOW, HIGH = 1, 7


def _twice(a: Any) -> Any:
    return a + a


def _scaled(a: Any, by: Any = 3) -> Any:
    return _twice(a) * by


def _applied(fn: Any, a: Any) -> Any:
    return fn(a)


def _sum_of(*values: Any) -> Any:
    total = values[0] * 0
    for value in values:
        total += value
    return total


def _collatz(a: Any, b: Any) -> Any:
    n, steps = int(a), 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
        if steps > 100:
            break
    return steps + b


def _of_loops(a: Any, b: Any) -> Any:
    total = a * 0
    for i in range(4):
        if i == 2:
            continue
        total += a * i
    for i, x in enumerate((a, b)):
        total += x + i
    for x, y in zip((a, b), (b, a)):  # noqa: B905
        total += x * y
    return total


def _of_tuples(a: Any, b: Any) -> Any:
    pair = (a, b)
    (x, y), z = pair, pair[-1]
    p = Pair(min(x, y), max(x, y))
    return p.high - p.low + len(pair) + z * (x in (1, 2, 3))


TABLE = np.arange(9.0, dtype=np.float32)

FUNCTIONS: list[Callable[..., Any]] = [
    lambda a, b: _scaled(a) + b, lambda a, b: _scaled(a, by=2) + _scaled(b, 5),
    lambda a, b: _applied(_twice, a) + b, lambda a, b: _applied(abs, a) + b,
    lambda a, b: _sum_of(a, b, a), _collatz, _of_loops, _of_tuples,
    lambda a, b: a + (b if a > Level.HIGH else b * Level.LOW),
    lambda a, b: (lambda c: c * c)(a) + b,
    lambda a, b: TABLE[int(b) % 9] + a, lambda a, b: TABLE.shape[0] + a + TABLE.size * b,
    lambda a, b: a if a == a and b == b else -b, np.hypot, lambda a, b: abs(complex(a, b)),
]  # fmt: skip


@needs_compilers
@pytest.mark.parametrize("fn", FUNCTIONS, ids=range(len(FUNCTIONS)))
@pytest.mark.parametrize("capability", [(7, 5), (9, 0), (12, 0)], ids=str)
def test_it_links(fn: Callable[..., Any], capability: tuple[int, int]) -> None:
    probe = probe_spec()
    spec = build.Spec(
        probe.header, probe.expression, probe.parameters, ga.Operator(fn), probe.arg_dtypes,
        probe.result_dtype,
    )  # fmt: skip
    assert build.cubin(spec, capability)


@needs_compilers
def test_a_captured_number_and_a_function_of_two_types() -> None:
    by = 2.5
    op = ga.Operator(lambda a, b: _twice(a) * by + _twice(b))
    made = compile_operator(op, (np.dtype(np.float64), np.dtype(np.int32)), None, (9, 0))
    assert made.result_dtype == np.float64


def _factorial(n: Any) -> Any:
    return n if n <= 1 else n * _factorial(n - 1)


def _is_even(n: Any) -> Any:
    return True if n == 0 else _is_odd(n - 1)


def _is_odd(n: Any) -> Any:
    return False if n == 0 else _is_even(n - 1)


@needs_compilers
@pytest.mark.parametrize("fn", [_factorial, _is_even], ids=lambda fn: fn.__name__)
def test_recursion_is_refused(fn: Callable[..., Any]) -> None:
    """The linker would not know how much stack it takes."""
    with pytest.raises(ga.CompileError, match=r"op calls itself.*write a loop"):
        compile_operator(ga.Operator(lambda a: fn(a)), (np.dtype(np.int32),), None, (9, 0))


@needs_compilers
def test_a_first_operator_fills_no_context_of_the_cpu() -> None:
    """Templates of numba would fill it several hundred times, which takes 0.1 s."""
    done = run_python("""if True:
        import sys
        from gpualgo._api.warm_up import self_test
        self_test()
        print("numba.core.callconv" in sys.modules, "numba.typed.typeddict" in sys.modules)
    """)
    assert done.stdout.split() == ["True", "False"], done.stderr
