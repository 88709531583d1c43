"""What is compiled is what the key was taken of, whatever changes while the compiler runs."""

from __future__ import annotations

import gc
import itertools
import operator
import sys
import threading
import types
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from sass import needs_compilers
from support import Backend

import gpualgo as ga
from gpualgo._base import disk_cache
from gpualgo._base.errors import CompileError
from gpualgo._cpu import kernels as cpu_operator
from gpualgo._cuda import build
from gpualgo._operators import key
from gpualgo._operators.numpy_rules import rewrite
from gpualgo._operators.operator import as_operator, operator_key

WAIT = 60  # seconds; what takes longer hangs


@pytest.fixture
def while_compiling(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Callable[[], None]]:
    """Run what is put here when an operator is about to be compiled, in the way of a thread."""
    monkeypatch.setenv("GPUALGO_CACHE_DIR", str(tmp_path / "empty"))  # what is kept is not compiled
    changes: list[Callable[[], None]] = []
    function_of = rewrite.function_of

    def interrupted(op: Any, arity: int) -> Any:
        while changes:
            changes.pop()()
        return function_of(op, arity)

    monkeypatch.setattr(rewrite, "function_of", interrupted)
    return changes


settings = types.ModuleType("settings")
offset: Any = 0


def _helper(a: Any) -> Any:
    return a + offset


def test_a_change_during_compilation_is_seen_whole_or_not_at_all(
    backend: Backend, while_compiling: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    scale, inner = 1000, lambda a: a + 70_000
    x = backend.to_device(np.array([1]))

    def op(a: Any, k: int = 5_000_000) -> Any:
        return a * scale + inner(a) + _helper(a) + settings.SHIFT + settings.deep.SHIFT + k

    def call() -> int:
        return int(backend.to_host(ga.transform(op, x))[0])

    def change() -> None:
        nonlocal scale, inner
        scale, inner = 2000, lambda a: a + 80_000
        monkeypatch.setitem(globals(), "offset", 3)
        settings.SHIFT, settings.deep.SHIFT = 30, 500  # type: ignore[attr-defined]
        op.__defaults__ = (6_000_000,)

    settings.SHIFT = 10  # type: ignore[attr-defined]
    settings.deep = types.ModuleType("deep")  # type: ignore[attr-defined]
    settings.deep.SHIFT = 100
    before = 1000 + 70_001 + 1 + 10 + 100 + 5_000_000
    after = 2000 + 80_001 + 4 + 30 + 500 + 6_000_000
    while_compiling.append(change)
    assert call() in (before, after)  # after: where the numbers are data by then, the call is anew
    assert not while_compiling
    assert call() == after
    scale, inner = 1000, lambda a: a + 70_000
    monkeypatch.setitem(globals(), "offset", 0)
    settings.SHIFT, settings.deep.SHIFT = 10, 100  # type: ignore[attr-defined]
    op.__defaults__ = (5_000_000,)
    assert call() == before


def test_code_that_is_replaced_during_compilation(
    backend: Backend, while_compiling: list[Callable[[], None]]
) -> None:
    x = backend.to_device(np.array([3]))

    def op(a: Any) -> Any:
        return a * 4321

    first, second = op.__code__, (lambda a: a - 4321).__code__
    while_compiling.append(lambda: setattr(op, "__code__", second))
    assert int(backend.to_host(ga.transform(op, x))[0]) == 3 * 4321
    assert int(backend.to_host(ga.transform(op, x))[0]) == 3 - 4321
    op.__code__ = first
    assert int(backend.to_host(ga.transform(op, x))[0]) == 3 * 4321


def test_a_plan_that_is_prepared_during_a_change(
    backend: Backend, while_compiling: list[Callable[[], None]]
) -> None:
    scale = 31

    def op(a: Any) -> Any:
        return a * scale

    def change() -> None:
        nonlocal scale
        scale = 37

    x = backend.to_device(np.arange(5))
    while_compiling.append(change)
    plan = ga.prepare(ga.transform, op, x)
    assert backend.to_host(plan(x)).tolist() == [37 * i for i in range(5)]
    scale = 31
    assert backend.to_host(plan(x)).tolist() == [31 * i for i in range(5)]


@needs_compilers
def test_a_change_during_compilation_for_a_gpu(
    while_compiling: list[Callable[[], None]], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No GPU is needed to see that equal keys have equal code."""
    monkeypatch.setenv("GPUALGO_CACHE_DIR", str(tmp_path))
    factor: Any = 2

    def op(a: Any) -> Any:
        return a * factor * settings.FACTOR

    def change() -> None:
        nonlocal factor
        factor = settings.FACTOR = 2.5  # type: ignore[attr-defined]

    def result_dtype() -> np.dtype[Any]:
        begun = as_operator(op, "transform", 1, operator_key(op))
        return build.result_dtype(begun, (np.dtype("int32"),), None, (9, 0))

    settings.FACTOR = 3  # type: ignore[attr-defined]
    while_compiling.append(change)
    assert result_dtype() == np.int32
    assert result_dtype() == np.float64
    factor = 2
    settings.FACTOR = 3  # type: ignore[attr-defined]
    assert result_dtype() == np.int32


def test_threads_that_change_what_others_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each result is of one value that the variable had while the call ran."""
    monkeypatch.setattr(disk_cache, "read", lambda _: None)  # nothing is found there
    interval = sys.getswitchinterval()
    number, stop = 0, threading.Event()
    module = types.ModuleType("module")
    module.NUMBER = 0  # type: ignore[attr-defined]
    x = np.array([0])
    values = itertools.cycle([3, 5, 11, 17])

    def read_cell(a: Any) -> Any:
        return a + number

    def read_module(a: Any) -> Any:
        return read_cell(a) * 0 + module.NUMBER

    def change() -> None:
        nonlocal number
        while not stop.is_set():
            number = module.NUMBER = next(values)  # type: ignore[attr-defined]

    def call(op: Callable[..., Any]) -> set[int]:
        found = set()
        with ga.default_device("cpu"):
            for repeat in range(40):
                if repeat % 20 == 0:
                    cpu_operator._compiled.clear()  # compiled anew
                found.add(int(ga.transform(op, x)[0]))
        return found

    sys.setswitchinterval(1e-5)
    changing = threading.Thread(target=change)
    try:
        with ThreadPoolExecutor(3) as pool:
            changing.start()
            found = list(pool.map(call, [read_cell, read_module, read_cell]))
    finally:
        stop.set()
        sys.setswitchinterval(interval)
        changing.join(WAIT)
    assert set().union(*found) <= {0, 3, 5, 11, 17}
    for value in (3, 5, 11, 17, 3):  # nothing wrong was kept
        number = module.NUMBER = value  # type: ignore[attr-defined]
        with ga.default_device("cpu"):
            assert [int(ga.transform(op, x)[0]) for op in (read_cell, read_module)] == [value] * 2


def test_a_key_holds_no_array_and_no_function_of_the_user() -> None:
    class Table(np.ndarray[Any, Any]):
        """One that can be watched."""

    def new() -> tuple[Any, Any, Any]:
        table = np.arange(4).view(Table)
        helper = eval("lambda a: a + 123321")
        op = eval("lambda i: helper(table[i]) * 99", {"helper": helper, "table": table})
        return ga.Operator(op).key, weakref.ref(table), weakref.ref(op)

    key, table, op = new()
    from gpualgo._operators import key as key_module

    key_module.codes.clear()
    gc.collect()
    assert key.arrays
    assert table() is None
    assert op() is None


def test_warm_calls_read_operators_by_their_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables are compared; the code is read once, also of functions that gpualgo composes."""
    x, factor = np.arange(9.0), 2.0
    kept = ga.lazy.transform(lambda a: np.sqrt(a) * limit, x)
    calls: list[Callable[[], Any]] = [
        lambda: ga.reduce(kept),
        lambda: ga.reduce(kept, None, lambda a, b: a + b * limit),
        lambda: ga.reduce(ga.lazy.transform(lambda a: a * limit, x)),
        lambda: ga.reduce(ga.lazy.transform(lambda a: a * factor, x)),
        lambda: ga.count(x, lambda a: a > limit),
        lambda: ga.find(x, lambda a: helper(a, factor) > limit),
        lambda: ga.transform(lambda a: a * factor, x),
        lambda: ga.count(x, lambda a: a > 3),
        lambda: ga.find(x, lambda a: a > 3),
        lambda: ga.reduce(ga.lazy.transform(operator.mul, x, x)),
        eval("lambda: ga.count(x, lambda a: a > 5)", {"ga": ga, "x": x}),
        lambda: ga.reduce_by_key(x, x, None, lambda a, b: helper(a, b)),
        *[(lambda made=made: ga.transform(made(), x)) for made in _OF_NEW_INTEGERS],
        lambda: ga.transform(lambda a, n: a * n, x, int("1000")),
    ]
    with ga.default_device("cpu"):
        for call in calls:
            for _ in range(3):
                call()
            with monkeypatch.context() as patch:
                patch.setattr(key, "take_snapshot", None)
                call()


def _op_of(n: Any) -> Callable[..., Any]:
    return lambda a: a * n


def _op_of_item(shape: tuple[Any, ...]) -> Callable[..., Any]:
    return lambda a: a * shape[1]


def _op_of_default(value: Any) -> Callable[..., Any]:
    return lambda a, n=value: a * n


def _op_inside(n: Any) -> Callable[..., Any]:
    inner = _op_of(n)
    return lambda a: inner(a) + 1


_OF_NEW_INTEGERS: list[Callable[[], Callable[..., Any]]] = [  # of equal integers: new objects
    lambda: _op_of(int("1000")),
    lambda: _op_of(np.int64(1000)),
    lambda: _op_of_item((3, int("1000"))),
    lambda: _op_of_default(int("1000")),
    lambda: _op_inside(int("1000")),
]
_ALIKE: list[Any] = [
    1000, 1000.0, np.int16(1000), np.int64(1000), np.float32(1000), np.uint16(1000), 1000 + 0j,
    1001, 1, True, np.True_, np.int8(1), 1.0, 0, False, -0.0, 0.0, 300, 70_000,
]  # fmt: skip


@pytest.mark.parametrize("of", [_op_of, _op_of_item, _op_of_default, _op_inside])
def test_equal_numbers_of_other_types_are_told_apart(
    backend: Backend, of: Callable[..., Any]
) -> None:
    """Each result has the dtype and the bits that a function seen for the first time gives."""
    x = np.array([-2, 0, 3], np.int8)
    given = backend.to_device(x)

    def result(value: Any) -> Any:
        try:
            y = ga.transform(of((3, value) if of is _op_of_item else value), given)
        except CompileError as error:  # 1000 is no int8
            return type(error)
        return y.dtype, backend.to_host(y).tobytes()

    expected = {}
    for i, value in enumerate(_ALIKE):
        key.codes.clear()
        expected[i] = result(value)
    key.codes.clear()
    order = [*range(len(_ALIKE)), *range(len(_ALIKE) - 1, -1, -1), *range(0, len(_ALIKE), 3)]
    for i in order:
        assert result(_ALIKE[i]) == expected[i], repr(_ALIKE[i])


limit: Any = 3.0


def helper(a: Any, b: Any) -> Any:
    return a + b


def test_functions_inside_read_other_objects_in_later_calls(backend: Backend) -> None:
    """Functions of one code in the cells of others, whose variables and defaults change."""
    x = np.arange(1.0, 8.0)
    scaled = lambda k: lambda a: a * k  # noqa: E731
    inside = lambda f, k=1.0: lambda a: f(a) + k  # noqa: E731
    more, less = (lambda k: lambda a: a + k), (lambda k: lambda a: a - k)
    space: dict[str, Any] = {"__name__": "a space of its own", "k": 0.0}
    reads_k, has_default = (
        compile(text, "operators", "eval")
        for text in ("lambda a: a - k + 1.5", "lambda a, plus=2.0: a - 0.5 + plus")
    )

    def sums(op: Callable[..., Any]) -> list[float]:
        marks = backend.to_device(x)
        lazily = ga.lazy.transform(lambda a: op(a), marks)
        return [float(ga.reduce(lazily)), float(ga.count(marks, lambda a: op(a) > 6.0))]

    def read(k: Any) -> Callable[..., Any]:
        space["k"] = k
        return cast(Callable[..., Any], eval(reads_k, space))

    def default(k: Any) -> Callable[..., Any]:
        op = eval(has_default, space)
        op.__defaults__ = (k,)
        return cast(Callable[..., Any], op)

    makers: list[Callable[[Any], Callable[..., Any]]] = [
        read, default, scaled, lambda k: inside(scaled(k), 2.0), lambda k: inside(scaled(2.0), k),
        lambda k: inside(read(k)), lambda k: more(2.0) if k < 2.5 else less(2.0),
    ]  # fmt: skip
    for make in makers:
        for k in (2.0, 2.0, 3.0, 2.0):
            op = make(k)
            values = np.array([op(a) for a in x])
            assert sums(op) == [values.sum(), (values > 6).sum()]


def shared(a: Any) -> Any:
    return a + 1.0


def nested(h: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a: h(a)


@pytest.mark.parametrize("is_global", [True, False])
def test_code_of_a_function_that_a_cell_and_another_variable_hold(is_global: bool) -> None:
    """The cell gets another function of the old code; the other variable's has new code."""
    x = np.arange(1.0, 6.0)
    fn = shared if is_global else types.FunctionType(shared.__code__, globals())
    other, code = types.FunctionType(fn.__code__, globals()), fn.__code__
    inner = nested(fn)

    def of_global(h: Callable[..., Any]) -> Callable[..., Any]:
        return lambda a: h(a) + shared(a)

    def of_cells(h: Callable[..., Any]) -> Callable[..., Any]:
        return lambda a: h(a) + inner(a)

    make = of_global if is_global else of_cells
    with ga.default_device("cpu"):
        for _ in range(2):
            np.testing.assert_array_equal(ga.transform(make(fn), x), 2 * x + 2)
        try:
            fn.__code__ = (lambda a: a * 10.0).__code__
            np.testing.assert_array_equal(ga.transform(make(other), x), 11 * x + 1)
        finally:
            fn.__code__ = code


@pytest.mark.parametrize("name", [None, 5, [], "no module", "None in sys.modules", "numpy"])
def test_functions_of_any_namespace(name: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "None in sys.modules", None)
    space = {"__name__": name, "factor": 2.0}
    exec("def op(a): return a * factor", space)
    with ga.default_device("cpu"):
        for factor in (2.0, 3.0):
            space["factor"] = factor
            for _ in range(2):
                np.testing.assert_array_equal(ga.transform(space["op"], np.ones(3)), [factor] * 3)
