"""Each error of an operator names the function that was called and the line that op stands in."""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from support import Backend, run_python

import gpualgo as ga
import gpualgo.numpy as gnp

module = types.ModuleType("module")
module.table = np.zeros(3)  # type: ignore[attr-defined]
numbers, pair = [1, 2], (np.zeros(2), 1)

Function = Callable[..., Any]

BAD: dict[str, tuple[Any, Function]] = {
    "captures a list": (TypeError, lambda a, b=0: a + numbers[b]),
    "an array out of reach": (TypeError, lambda a, b=0: a + pair[0][b]),
    "a name that is not there": (TypeError, lambda a, b=0: a + nowhere),  # type: ignore[name-defined]  # noqa: F821
    "a module's array": (ga.CompileError, lambda a, b=0: a + module.table[b]),  # type: ignore[attr-defined]
    "no attribute": (ga.CompileError, lambda a, b=0: a.nothing),
    "returns no number": (TypeError, lambda a, b=0: None),
    "too many parameters": (TypeError, lambda a, b, c, d: a),
}


def _calls(x: Any, op: Any) -> dict[str, Callable[[], Any]]:
    return {
        "transform": lambda: ga.transform(op, x),
        "reduce": lambda: ga.reduce(x, None, op),
        "inclusive_scan": lambda: ga.inclusive_scan(x, None, op),
        "exclusive_scan": lambda: ga.exclusive_scan(x, 0, op),
    }


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("wrap", [lambda op: op, ga.Operator], ids=["function", "Operator"])
def test_function_and_line_are_told(backend: Backend, case: str, wrap: Function) -> None:
    kind, op = BAD[case]
    x = backend.to_device(np.arange(5.0))
    line = op.__code__.co_firstlineno
    for name, call in _calls(x, wrap(op)).items():
        with pytest.raises(kind, match=rf"^{name}: .*test_operator_errors.py:{line}: ") as caught:
            call()
        assert str(caught.value).count(f":{line}: ") == 1
        assert "\n" not in str(caught.value).partition(f":{line}: ")[0]


def test_callables_without_a_line(backend: Backend) -> None:
    x = backend.to_device(np.arange(5.0))
    for op in (partial(max, 1), np.vectorize(abs), "add".join):
        for name, call in _calls(x, op).items():
            with pytest.raises((TypeError, ga.CompileError), match=f"^{name}: op is a "):
                call()


def test_functions_of_arrays_are_named_by_numpys(backend: Backend) -> None:
    with pytest.raises(TypeError, match=r"op is a UFunc, .*; pass numpy\.maximum$"):
        ga.reduce(backend.to_device(np.arange(5.0)), None, gnp.maximum)


def test_an_operator_in_the_place_of_another_argument(backend: Backend) -> None:
    x = backend.to_device(np.arange(5.0))
    calls: list[Callable[..., Any]] = [ga.reduce, ga.inclusive_scan, ga.exclusive_scan]
    for call in calls:
        name = call.__name__
        with pytest.raises(TypeError, match=rf"^{name}: init is a function; .* op=, after init"):
            call(x, lambda a, b: a + b)
        with pytest.raises(TypeError, match=rf"^{name}: x .*function; the array comes first"):
            call(lambda a, b: a + b, x)
        with pytest.raises(TypeError, match=rf"^{name}: x .*function; the array comes first"):
            call(max, None, x)
    with pytest.raises(TypeError, match=r"^transform: .* function; op comes before the arrays"):
        ga.transform(x, lambda a: a + 1)
    with pytest.raises(TypeError, match=r"got NoneType; a plan takes arrays alone, as `prepare`"):
        ga.prepare(ga.reduce, x)(x, None, max)
    with pytest.raises(TypeError, match=r"^argsort: keys .*got list; pass a tuple of arrays"):
        ga.argsort([x, x])


def test_the_line_is_the_operators_own(backend: Backend) -> None:
    x = backend.to_device(np.arange(5))

    def first(a: Any, b: Any) -> Any:
        return a < b

    def second(a: Any, b: Any) -> Any:
        return a < b

    def longer(a: Any) -> Any:
        b = a * 2
        return b[0]

    ga.sort(x, less=first)
    with pytest.raises(ga.CompileError) as caught:
        ga.sort((x, x), less=second)
    line = second.__code__.co_firstlineno
    assert f":{line}: " in str(caught.value)
    shown = re.findall(r"\(line (\d+):", str(caught.value))
    assert set(map(int, shown)) <= {line, line + 1}
    with pytest.raises(ga.CompileError, match=r"\(line \d+: return b\[0\]\)"):
        ga.transform(longer, x)


def test_functions_of_other_libraries(backend: Backend) -> None:
    class Function:
        __name__ = "maximum"

        def __call__(self, a: Any, b: Any) -> Any:
            return a

    x, maximum = backend.to_device(np.arange(5.0)), Function()
    with pytest.raises(TypeError, match=r"^reduce: op calls 'maximum', which kernels do not have"):
        ga.reduce(x, None, lambda a, b: maximum(a, b))


@pytest.mark.parametrize(
    "op", [lambda a, b: a + b, max, np.maximum, ga.Operator(max), partial(max)],
    ids=["lambda", "max", "np.maximum", "Operator", "partial"],
)  # fmt: skip
def test_an_operator_in_the_place_of_init(backend: Backend, op: Any) -> None:
    x = backend.to_device(np.arange(5.0))
    offsets, keys = (backend.to_device(np.array(ends)) for ends in ([0, 2, 5], [0, 0, 1, 1, 1]))
    for call in (
        lambda: ga.reduce(x, op),
        lambda: ga.reduce((x, x), op),
        lambda: ga.inclusive_scan(x, op),
        lambda: ga.exclusive_scan(x, op),
        lambda: ga.segmented_reduce(x, offsets, op),
        lambda: ga.segmented_inclusive_scan(x, offsets, op),
        lambda: ga.reduce_by_key(keys, x, op),
        lambda: ga.exclusive_scan_by_key(keys, x, op),
        lambda: ga.reduce_by_index(keys, x, 2, op),
    ):
        with pytest.raises(TypeError, match="init is a function; pass the operator as op="):
            call()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("call", [ga.select, ga.stable_partition, ga.find, ga.count])
def test_a_predicate_gets_one_tuple(backend: Backend, call: Any) -> None:
    x = backend.to_device(np.arange(5.0))
    with pytest.raises(TypeError, match=r"predicate takes 2 .* one tuple: lambda p: p\[0\] > 0"):
        call((x, x), lambda a, b: a > 0)
    with pytest.raises(TypeError, match=r"calls f\(a, b\)"):
        ga.lazy.transform(lambda a, b: a, x)


def _unpacked(a: Any, b: Any) -> Any:
    first, second = a
    return first + second + b[0]


def test_a_number_has_no_items(backend: Backend) -> None:
    told = "a number has no items; the elements are numbers: pass a tuple of arrays: "
    x = backend.to_device(np.arange(6.0))
    for array in (
        x,
        backend.to_device(np.ones((3, 2))),
        backend.to_device(np.arange(5, dtype="i1")),
    ):
        with pytest.raises(ga.CompileError, match=told):
            ga.inclusive_scan(array, None, lambda f, g: (g[0] * f[0], g[0] * f[1] + g[1]))
    with pytest.raises(ga.CompileError, match=told):
        ga.reduce(x, None, _unpacked)
    with pytest.raises(ga.CompileError, match=told):
        ga.select(x, lambda p: p[0] > 0)
    with pytest.raises(ga.CompileError, match="a number has no items: "):
        ga.reduce((x, x), None, lambda a, b: (a[0][0], a[1]))


def _in_a_condition(a: Any, b: Any) -> Any:
    if (c := a - b) > 0:
        return c
    return a + b


@pytest.mark.parametrize(
    "op",
    [
        lambda a, b: c if (c := a + b) > 0 else 0.0,
        lambda a, b: (a := a + b),
        lambda a, b: (c := np.where(a > b, a, b)) + c,
        _in_a_condition,
    ],
)
def test_assignment_expressions_are_refused_by_name(backend: Backend, op: Any) -> None:
    with pytest.raises(TypeError, match=r"op holds `:=`, .* on a line of its own"):
        ga.reduce(backend.to_device(np.arange(5.0)), 0.0, op)


def test_assignment_expressions_that_numba_supports(backend: Backend) -> None:
    x = backend.to_device(np.arange(5.0))
    assert float(ga.reduce(x, 0.0, lambda a, b: (c := a) + b + 0 * c)) == 10


def _chained(a: Any) -> Any:
    b = c = a * 2
    return b + c


def test_chained_assignments(backend: Backend) -> None:
    x = backend.to_device(np.arange(5.0))
    assert backend.to_host(ga.transform(_chained, x)).tolist() == [0, 4, 8, 12, 16]


def _on_some_path(a):  # type: ignore[no-untyped-def]
    if a > 1:
        return a


def _behind_a_star(a, *, scale=2):  # type: ignore[no-untyped-def]
    return a * scale


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda x: ga.transform(_on_some_path, x), "op returns None on some path, and float64 on "),
        (lambda x: ga.reduce(x, None, lambda a, b: a if a > b else None), "op returns None on so"),
        (lambda x: ga.transform(lambda a: (a, a if a > 1 else None), x), "None in item 1 on some"),
        (lambda x: ga.transform(_behind_a_star, x), "op has the parameter scale after [*]"),
        (lambda x: ga.transform(lambda a, b, c=1: a, x), "op takes 2 to 3 argument"),
        (lambda x: ga.reduce((x, x), (0,)), r"with init.0., init.1.; got \(0,\)"),
    ],
)
def test_what_is_wrong_is_said(backend: Backend, call: Function, told: str) -> None:
    with pytest.raises(TypeError, match=told):
        call(backend.to_device(np.arange(5.0)))


def test_numba_switched_off() -> None:
    done = run_python(
        """if True:
        import numpy as np
        import gpualgo as ga
        try:
            ga.transform(lambda a: a + 12345, np.arange(3))
        except ga.CompileError as error:
            print(error)
        """,
        NUMBA_DISABLE_JIT="1",
        GPUALGO_DEVICE="cpu",
    )
    assert "transform: numba compiles nothing while NUMBA_DISABLE_JIT is set" in done.stdout
