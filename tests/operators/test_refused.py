"""What no operator may contain: refused by name, with its line and a way out, on every backend."""

from __future__ import annotations

import asyncio
import functools
import math
import operator
import random
import types
from collections.abc import Callable
from random import random as drawn
from typing import Any

import numpy as np
import pytest
from support import Backend

import gpualgo as ga

Function = Callable[..., Any]
_total = 0


_PARTIAL, _LISTS = functools.partial(max, 3), ([1], 2)
_ARRAYS, _OBJECTS = (np.arange(3), 2), np.array([object()])
_MODULE = types.ModuleType("settings")
_MODULE.limits = [1]  # type: ignore[attr-defined]


def _through_a_function(a: Any) -> Any:
    def inner(a: Any) -> Any:
        return a + _LISTS[1]

    return inner(a)


@pytest.mark.parametrize(
    ("op", "name"),
    [
        (lambda a: _PARTIAL(a), "_PARTIAL"),
        (lambda a: a + _LISTS[1], "_LISTS"),
        (_through_a_function, "_LISTS"),
        (lambda a: a + _ARRAYS[1], "_ARRAYS"),
        (lambda a: a + _OBJECTS[0], "_OBJECTS"),
        (lambda a: a + _MODULE.limits[0], "settings.limits"),
        (lambda a, b=_ARRAYS[0]: a + b[0], "b"),
    ],
)
def test_refused_values_are_named(op: Function, name: str) -> None:
    with pytest.raises(TypeError, match=rf"^transform: op.*\(variable {name}\); .*\.py"):
        ga.transform(op, np.arange(3.0))


def _prints(a: Any) -> Any:
    print(a)
    return a


def _yields(a: Any) -> Any:
    yield a


async def _waits(a: Any) -> Any:
    await asyncio.sleep(0)
    return a


def _counting() -> Function:
    calls = 0

    def fn(a: Any) -> Any:
        nonlocal calls
        calls += 1
        return a + calls

    return fn


def _assigns_a_global(a: Any) -> Any:
    global _total
    _total = a
    return a


def _tries(a: Any) -> Any:
    try:
        return 1 / a
    except ZeroDivisionError:
        return 0.0


def _opens(a: Any) -> Any:
    with open("x") as file:
        return a + len(file.read())


def _imports(a: Any) -> Any:
    import math as m

    return m.sqrt(a)


def _fills_a_list(a: Any) -> Any:
    found = [a, a]
    return found[0]


def _calls_one_that_prints(a: Any) -> Any:
    return _prints(a) + 1


def _takes_keywords(a: Any, **others: Any) -> Any:
    return a


def _unpacks(a: Any) -> Any:
    first, *others = (a, a, a)
    return first + others[0]


CASES: list[tuple[Function, str]] = [
    (_prints, r"print.*return a value.*test_refused\.py:\d+: def _prints"),
    (_calls_one_that_prints, "print"),
    (_yields, r"_yields.*generator.*def _yields"),
    (lambda a: sum(x for x in (a, a)), "generator"),
    (_waits, r"async def.*write `def`"),
    (_counting(), r"'calls'.*return the value"),
    (_assigns_a_global, "a global"),
    (_tries, "`try`"),
    (_opens, "`with`"),
    (_imports, "`import`"),
    (_fills_a_list, "a list.*tuple"),
    (_takes_keywords, r"has a `\*\*` parameter"),
    (_unpacks, r"`\*` in an assignment"),
    (lambda a: {1: a}[1], "a dictionary"),
    (lambda a: f"{a}", "a string"),
    (lambda a: a + np.random.random(), r"np\.random\.random.*as an array"),  # noqa: NPY002
    (lambda a: a + random.random(), r"random\.random.*as an array"),
    (lambda a: a + drawn(), "random.*as an array"),
    (lambda a: np.sum(a), r"np\.sum.*write it out"),
    (lambda a: np.sort(a)[0], r"np\.sort"),
    (lambda a: math.factorial(a), r"math\.factorial"),
    (lambda a: operator.matmul(a, a), r"operator\.matmul"),
    (lambda a: a @ a, "matmul"),
    (lambda a: sorted((a, a))[0], "sorted"),
    (lambda a: np.add(a, a, dtype=np.float64), r"np\.add.*keyword"),
    (np.sum, r"np\.sum"),
    (np.isnat, r"np\.isnat"),
    (math.factorial, r"math\.factorial"),
]


@pytest.mark.parametrize(("fn", "message"), CASES)
def test_refused_by_name(backend: Backend, fn: Function, message: str) -> None:
    x = backend.to_device(np.array([1.5, 2.5], np.float32))
    with pytest.raises(TypeError, match=message) as caught:
        ga.transform(fn, x)
    assert "Weak(" not in str(caught.value)


def _of_a_variable_without_value() -> Function:
    def fn(a: Any) -> Any:
        return a + later

    if not CASES:
        later = 1
    return fn


def _without_else(a: Any) -> Any:
    if a > 2:
        found = a * 10
    return found


def _behind_a_loop(a: Any) -> Any:
    for k in range(a):
        a += k
    return k


def _in_some_rounds(a: Any) -> Any:
    for k in range(3):
        if a > k:
            found = (a, k)
    return found


def _behind_a_while(a: Any) -> Any:
    while a > 0:
        rest = a
        a -= 1
    return rest


FUNCTIONS = (abs, lambda a: a + 1)

NUMBERS: list[tuple[Function, str, str]] = [
    (lambda a: int(a, 2), "float32", r"int takes 1 argument in an operator, not 2.*lambda a: int"),
    (lambda a: float(a, 2), "float32", "float takes 1 argument"),
    (lambda a: np.float32(a, 2), "float32", r"np\.float32 takes 1 argument"),
    (lambda a: math.floor(a, 2), "float32", r"math\.floor takes 1 argument"),
    (lambda a: np.hypot(a), "float32", r"np\.hypot takes 2 arguments"),
    (lambda a: np.float64(), "float32", r"np\.float64 takes 1 argument"),
    (lambda a: pow(a, a, a), "int32", "pow takes 2 arguments"),
    (lambda a: complex(a, 1), "complex64", "real numbers"),
    (lambda a: float(a), "complex64", r"a\.real"),
    (lambda a: math.sin(a), "complex64", "real numbers"),
    (lambda a: max(a, a), "complex64", "an order"),
    (lambda a: a - a, "bool", "boolean subtract"),
    (lambda a: a & 1.5, "int32", "bitwise_and"),
    (lambda a: a**-1, "int32", r"negative integer powers.*\*\* -1\.0"),
    (lambda a: 2**3**9**9 * a, "float32", "too large|too"),
    (lambda a: a + 300, "int8", "300 is out of bounds for int8"),
    (lambda a: a * 10**20, "int64", f"{10**20} is out of bounds for int64"),
    (lambda a, k=2**64: a + k, "uint64", "out of bounds for uint64"),
    (lambda a: np.where(a > 0, a, 2**70), "int8", "out of bounds for int8"),
    (lambda a: a if a > 0 else 300, "int8", "out of bounds for int8"),
    (lambda a: a + (300 if a > 0 else 5), "int8", "300 is out of bounds"),
    (lambda a: np.int8(300) + a, "int8", "300 is out of bounds for int8"),
    (lambda a: np.maximum(a, 300), "int8", "300 is out of bounds for int8"),
    (lambda a: a * 10**400, "float64", "too large for a float"),
    (lambda a: a * (1, 2), "int8", "argument 2 is a tuple"),
    (lambda a: a + None, "int8", "argument 2 is None"),
    (lambda a: a in range(3), "int8", "`in` takes a tuple of numbers, not a range"),
    (lambda a: FUNCTIONS[0](a), "int8", "cannot hold the tuple FUNCTIONS, .* a name of its own"),
    (_of_a_variable_without_value(), "int8", "'later' has no value; assign one before the call"),
    (_without_else, "int8", "reads 'found', which has no value on some path"),
    (_behind_a_loop, "int8", "reads 'k', which has no value on some path"),
    (_in_some_rounds, "int8", "reads 'found', which has no value on some path"),
    (_behind_a_while, "int8", "reads 'rest', which has no value on some path"),
    (lambda a: _without_else(a) + 1, "int8", "reads 'found', which has no value on some path"),
]


@pytest.mark.parametrize(("fn", "dtype", "message"), NUMBERS)
def test_refused_for_a_dtype(backend: Backend, fn: Function, dtype: str, message: str) -> None:
    x = backend.to_device(np.array([1, 2], dtype))
    with pytest.raises(ga.CompileError, match=message) as caught:
        ga.transform(fn, x)
    assert "test_refused.py" in str(caught.value)
    for name in ("Weak(", "Narrow(", "\n"):
        assert name not in str(caught.value)


def test_python_integers_that_no_result_holds(backend: Backend) -> None:
    x = backend.to_device(np.array([1, 2], np.int8))
    with pytest.raises(TypeError, match=rf"{2**70}.*int64"):
        ga.transform(lambda a: 2**70, x)
    with pytest.raises(TypeError, match=r"300.*int8"):
        ga.transform(lambda a: 300, x, dtype="int8")


def test_variables_that_have_a_value_on_each_path(backend: Backend) -> None:
    def fn(a: Any) -> Any:
        if a > 2:
            sign, _ = 1, 0
        else:
            sign = -1
        for k in range(2):
            last = a * k
        for i, weight in enumerate((2, 3)):
            sum_of = last + i * weight
        while True:
            found = sum_of * sign
            if found == found:
                break
        if a > 100:
            return a
        elif a > 3:
            other = found
        else:
            other = -found
        return other

    x = np.arange(-3, 9, dtype=np.int32)
    got = ga.transform(fn, backend.to_device(x))
    want = [fn(int(a)) for a in x]
    np.testing.assert_array_equal(backend.to_host(got), want)


PAIR = (1, 2)


def _of_loops_in_loops(a: Any) -> Any:
    s = 0
    for _ in range(3):
        for j in range(len(PAIR)):
            t = a + j
            if t > 5:
                break
        s += t
    k = 0
    while True:
        for j in PAIR:
            t = a * j
            if t > 3:
                break
        k += 1
        if k > 2:
            break
    for j in (4, 5):
        u = a + j
        break
    return s + t + u


def _of_further_arguments(a: Any, *rest: Any) -> Any:
    for each in rest:
        last = each + a
    return last


def _of_items(p: Any) -> Any:
    for each in p:
        last = each
    return last


def test_loops_that_have_a_round(backend: Backend) -> None:
    x = np.arange(-3, 8, dtype=np.int64)
    given = backend.to_device(x)
    values = x.tolist()
    got = ga.transform(_of_loops_in_loops, given)
    np.testing.assert_array_equal(backend.to_host(got), [_of_loops_in_loops(a) for a in values])
    got = ga.transform(_of_further_arguments, given, given, given)
    np.testing.assert_array_equal(backend.to_host(got), 2 * x)
    got = ga.transform(_of_items, (given, given))
    np.testing.assert_array_equal(backend.to_host(got), x)
    names: dict[str, Any] = {}
    body = "        a = a * 3 + i\n" * 60  # too far for a short jump
    exec(f"def fn(a):\n    for i in (1, 2):\n        u = a - i\n{body}    return u\n", names)
    ga.transform(names["fn"], given)
