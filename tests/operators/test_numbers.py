"""Numbers that operators capture are data: others of their type are right, and compile nothing."""

from __future__ import annotations

import threading
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import Backend, a_few, sampled

import gpualgo as ga
from gpualgo._base import dtypes
from gpualgo._operators.key import resolve

SCALE = 1.5
settings = types.ModuleType("settings")


def scaled(k: Any) -> Callable[..., Any]:
    return lambda a: a * k


def of_numpy(op: Callable[..., Any], *arrays: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return what NumPy computes of elements that are scalars of its own."""
    with np.errstate(all="ignore"):
        return np.array([op(*items) for items in zip(*arrays, strict=True)])


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, backend: Backend) -> list[Any]:
    """Give what is compiled of operators from now on, in this process."""
    found: list[Any] = []
    if backend.name == "cpu":
        from gpualgo._cpu import kernels as module

        original = module._read_or_compile
        monkeypatch.setattr(
            module,
            "_read_or_compile",
            lambda applied: (found.append(applied), original(applied))[1],
        )
    else:
        from gpualgo._cuda import operator as cuda

        compile_operator = cuda.compile_operator
        monkeypatch.setattr(
            cuda, "compile_operator", lambda *args: (found.append(args), compile_operator(*args))[1]
        )
    return found


NUMBERS: list[tuple[Any, ...]] = [
    (1.5, -0.0, float("inf"), 2.0**-1074, 1e300),
    (1, 2, 100, 3, -3, 200, -200, 40000, 2**31, 2**40),
    (True, False),
    (1 + 2j, -3.5j),
    *((np.dtype(name).type(3), np.dtype(name).type(5)) for name in dtypes.NAMES
      if name not in ("bool", "bfloat16")),
    (np.True_, np.False_),
    (np.int64(3), np.longlong(5), np.int64(6), np.longlong(7)),  # one dtype, two types
    (np.ulonglong(3), np.uint64(5), np.ulonglong(6)),
]  # fmt: skip


NAMES = ["int8", "uint16", "int64", "float16", "float32", "complex64"]


@pytest.mark.parametrize("values", NUMBERS, ids=lambda v: f"{type(v[0]).__name__}")
@pytest.mark.parametrize("name", sampled(NAMES, ["int8", "float16", "complex64"]))
def test_each_value_gives_what_numpy_gives(
    backend: Backend, name: str, values: tuple[Any, ...]
) -> None:
    x = np.array([0, 1, 2, 3, 7, 100]).astype(name)
    for value in (*values, *values[::-1]):
        op = scaled(value)
        try:
            expected = of_numpy(op, x)
        except OverflowError:
            with pytest.raises((ga.CompileError, TypeError), match="out of bounds"):
                ga.transform(op, backend.to_device(x))
            continue
        found = backend.to_host(ga.transform(op, backend.to_device(x)))
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", ["captured", "default", "global", "attribute"])
def test_no_value_compiles_again(backend: Backend, compiled: list[Any], kind: str) -> None:
    global SCALE
    x = np.arange(100, dtype=np.float32)
    on_device = backend.to_device(x)
    counts = []
    for value in (1.25, 2.5, -7.0, 1e10, 0.0):
        settings.scale = SCALE = value
        op = {
            "captured": scaled(value),
            "default": lambda a, k=value: a * k,
            "global": lambda a: a * SCALE,  # noqa: B023
            "attribute": lambda a: a * settings.scale,
        }[kind]
        found = backend.to_host(ga.transform(op, on_device))
        np.testing.assert_array_equal(found, x * np.float32(value))
        counts.append(len(compiled))
    assert len(set(counts)) == 1


def test_an_integer_compiles_once_more(backend: Backend, compiled: list[Any]) -> None:
    x = np.arange(100, dtype=np.int32)
    for value in range(2, 60):
        found = backend.to_host(ga.transform(lambda a: a % value - value, backend.to_device(x)))  # noqa: B023
        np.testing.assert_array_equal(found, x % np.int32(value) - np.int32(value))
    assert len({id(args) for args in compiled}) <= 2 * 2  # by dtype wanted and found


@pytest.mark.parametrize("n", [1, 100, 5000])
def test_every_algorithm_reads_them(backend: Backend, n: int) -> None:
    x = np.random.default_rng(n).integers(0, 1000, n).astype(np.int64)
    rows = np.ascontiguousarray(np.broadcast_to(x, (3, n)))
    for offset in (np.int64(3), np.int64(9), np.int64(-4)):
        op = lambda a, b: a + b + offset  # noqa: B023, E731
        expected = np.cumsum(x + offset) - offset
        given = backend.to_device(x)
        assert int(backend.to_host(ga.reduce(given, None, op))) == expected[-1]
        np.testing.assert_array_equal(backend.to_host(ga.inclusive_scan(given, None, op)), expected)
        np.testing.assert_array_equal(
            backend.to_host(ga.reduce(backend.to_device(rows), None, op, axis=1)),
            [expected[-1]] * 3,
        )
        np.testing.assert_array_equal(
            backend.to_host(ga.inclusive_scan(backend.to_device(rows), None, op, axis=1)),
            np.stack([expected] * 3),
        )
        np.testing.assert_array_equal(
            backend.to_host(ga.inclusive_scan(backend.to_device(rows.T.copy()), None, op, axis=0)),
            np.stack([expected] * 3).T,
        )
        np.testing.assert_array_equal(
            backend.to_host(ga.reduce(backend.to_device(rows.T.copy()), None, op, axis=0)),
            [expected[-1]] * 3,
        )
        if offset != 3:  # the first integer is compiled in
            assert resolve(op).key.numbers  # no kernel was refused with numbers as data


VALUE_NEEDED: list[tuple[Callable[[Any], Callable[..., Any]], tuple[Any, ...]]] = [
    (lambda k: lambda a: a**k, (2, 3, 0.5, -1.0, 2.5)),
    (lambda k: lambda a: np.round(a, k), (0, 1, 2)),
    (lambda k: lambda a: (1.0, a, 3.0)[k], (0, 1, 2)),
    (lambda k: lambda a: a * (1 / k), (2, 4.0, 5.0)),
    (lambda k: lambda a: a * (k * 10**18), (3, 50, 7)),
    (lambda k: lambda a: a + 1 if k > 2 else a - 1, (1, 3, 2.5)),
    (lambda k: lambda a: a + 1 if k else a - 1, (1.0, 0.0, 3)),
]


@pytest.mark.parametrize(("make", "values"), VALUE_NEEDED)
def test_code_that_needs_a_value_is_compiled_for_it(
    backend: Backend, make: Callable[[Any], Callable[..., Any]], values: tuple[Any, ...]
) -> None:
    x = np.array([0.5, 1.25, 2.0, 4.0])
    for value in (*values, *values):
        op = make(value)
        found = backend.to_host(ga.transform(op, backend.to_device(x)))
        np.testing.assert_allclose(found, of_numpy(op, x), rtol=1e-15)


def test_an_error_is_the_values_own(backend: Backend) -> None:
    x = backend.to_device(np.arange(3.0))
    op = lambda k: lambda a: a / (1 / k)  # noqa: E731
    ga.transform(op(2.0), x)
    with pytest.raises((ga.CompileError, TypeError), match="division by zero"):
        ga.transform(op(0.0), x)
    np.testing.assert_array_equal(backend.to_host(ga.transform(op(4.0), x)), np.arange(3.0) * 4)


def test_numbers_stay_data_after_an_error_of_another_kind(backend: Backend) -> None:
    made = scaled(2.5)
    with pytest.raises((ga.CompileError, TypeError)):
        ga.transform(lambda a, k=2.5: a & k, backend.to_device(np.arange(3.0)))
    with pytest.raises((ga.CompileError, TypeError)):
        ga.transform(made, backend.to_device(np.arange(3)), dtype=np.int8)
    ga.transform(made, backend.to_device(np.arange(3.0)))
    assert resolve(made).key is resolve(scaled(3.5)).key


def test_threads_with_other_numbers_do_not_disturb_each_other(backend: Backend) -> None:
    x = np.arange(1000, dtype=np.float64)
    errors: list[Any] = []

    def work(start: int) -> None:
        given = backend.to_device(x)
        for k in range(start, start + 40):
            found = backend.to_host(ga.transform(scaled(float(k)), given))
            if not np.array_equal(found, x * k):
                errors.append(k)

    threads = [threading.Thread(target=work, args=(100 * i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_more_numbers_than_there_is_room_for(backend: Backend) -> None:
    x = np.arange(5.0)
    for base in (1.0, 2.0):
        a, b, c, d, e, f, g, h, i = (base + n for n in range(9))
        j, k, m, n, o, p, q, r = (complex(base, n) for n in range(8))
        op = lambda z: (a + b + c + d + e + f + g + h + i) * z + (j + k + m + n + o + p + q + r)  # noqa: B023, E731
        np.testing.assert_array_equal(
            backend.to_host(ga.transform(op, backend.to_device(x))), of_numpy(op, x)
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["float16", "float32", "complex64", "int32"])
def test_a_power_is_that_of_the_literal(backend: Backend, name: str) -> None:
    x = np.array([0.0, 0.5, 1.0, 1.75, 3.0, 7.0]).astype(name)
    given = backend.to_device(x)
    for k in (2.2, 2.0, 2.4, 0.5, 2.6, -1.0, 3, 17, 16, 20, 17.5, 0, 2.2):
        literal = eval(f"lambda a: a ** {k!r}")
        found = backend.to_host(ga.transform(lambda a: a**k, given))  # noqa: B023
        expected = backend.to_host(ga.transform(literal, given))
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_a_graph_has_those_of_its_recording(cuda: Backend) -> None:
    global SCALE
    x = np.arange(10.0)
    given = cuda.to_device(x)
    SCALE = 2.0
    with ga.graph() as graph:
        result = ga.transform(lambda a: a * SCALE, given)
    for SCALE in (3.0, -5.5):  # noqa: B007
        graph.launch()
        np.testing.assert_array_equal(cuda.to_host(result), x * 2.0)
    graph.update()
    graph.launch()
    np.testing.assert_array_equal(cuda.to_host(result), x * -5.5)
    SCALE = 2  # of another type: other code
    graph.update()
    graph.launch()
    np.testing.assert_array_equal(cuda.to_host(result), x * 2)


@pytest.mark.parametrize("wrap", [lambda op: op, ga.Operator], ids=["function", "Operator"])
def test_beside_a_captured_array(backend: Backend, wrap: Any) -> None:
    x = np.arange(50)
    for step in range(4):
        values = np.arange(50.0) * (step + 1)
        table, k = backend.to_device(values), 0.5 + step
        found = ga.transform(wrap(lambda i: table[i] * k), backend.to_device(x))  # noqa: B023
        np.testing.assert_array_equal(backend.to_host(found), values * k)


def test_arrays_of_the_host_go_with_them(on_backend: None) -> None:
    """Whole to a GPU, or in blocks: each launch gets them."""
    x = np.arange(3000, dtype=np.int64)
    for step in (np.int64(3), np.int64(7), np.int64(-2)):
        op = lambda a, b: a + b + step  # noqa: B023, E731
        sums = np.cumsum(x + step) - step
        np.testing.assert_array_equal(ga.transform(lambda a: a * step, x), x * step)  # noqa: B023
        np.testing.assert_array_equal(ga.inclusive_scan(x, None, op), sums)
        assert ga.reduce(x, None, op) == sums[-1]
        for axis in a_few((0, 1)):
            rows = x.reshape(3, -1)
            expected = (np.cumsum(rows + step, axis) - step).take(-1, axis)
            np.testing.assert_array_equal(ga.reduce(rows, None, op, axis=axis), expected)
