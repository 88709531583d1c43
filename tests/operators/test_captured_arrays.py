"""Arrays that operators capture: what is read, and what a swap of arrays costs on the CPU."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import BFLOAT16, DTYPES, LAYOUTS, Backend, assert_same, random_array, scaled

import gpualgo as ga
from gpualgo._operators import captured

Function = Callable[..., Any]


@pytest.fixture(autouse=True)
def _on_cpu(request: pytest.FixtureRequest) -> Iterator[None]:
    if "backend" in request.fixturenames:
        yield
        return
    with ga.default_device("cpu"):
        yield


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """List what numba compiles for the CPU from here on; on disk nothing is found."""
    from gpualgo._cpu import compiler

    made: list[Any] = []
    original = compiler.compile_operator

    def counted(*args: Any) -> Any:
        made.append(args)
        return original(*args)

    monkeypatch.setattr(compiler, "compile_operator", counted)
    monkeypatch.setenv("GPUALGO_CACHE_DIR", str(tmp_path))
    return made


def _lookup(table: Any) -> Function:
    return lambda i: table[i]


INDICES = np.array([0, 3, 4, -1, -5, 2])


# --- what is read -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype(backend: Backend, dtype: np.dtype[Any]) -> None:
    table = random_array(5, dtype)
    got = ga.transform(_lookup(backend.to_device(table)), backend.to_device(INDICES))
    assert_same(backend.to_host(got), table[INDICES])


@pytest.mark.parametrize("dtype", ["bool", "float16", "complex64"])
def test_reductions_and_scans(dtype: str) -> None:
    weights = np.ones(3, dtype)
    x = np.array([1, 0, 1, 1], dtype)
    assert_same(ga.reduce(x, None, lambda a, b: a * b * weights[1]), np.prod(x).astype(dtype))
    assert_same(
        ga.inclusive_scan(x, None, lambda a, b: a * b * weights[2]), np.cumprod(x).astype(dtype)
    )


def test_a_composition_table() -> None:
    """The group of permutations of three, as its multiplication table."""
    elements = [(0, 1, 2), (1, 2, 0), (2, 0, 1), (0, 2, 1), (2, 1, 0), (1, 0, 2)]
    product = np.array(
        [[elements.index(tuple(b[i] for i in a)) for b in elements] for a in elements]
    )
    x = np.random.default_rng(0).integers(0, 6, 100_000)
    want = [0]
    for element in x:
        want.append(product[want[-1], element])

    def join(a: Any, b: Any) -> Any:
        return product[a, b]

    assert_same(ga.inclusive_scan(x, 0, join), np.array(want[1:]))
    assert_same(ga.exclusive_scan(x, 0, join), np.array(want[:-1]))
    assert ga.reduce(x, 0, join) == want[-1]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout(backend: Backend, layout: str) -> None:
    values = np.arange(20).reshape(4, 5)
    table = backend.arrange(layout, values)
    rows, columns = np.array([0, 3, -1, -4]), np.array([4, 0, -1, -5])
    given = map(backend.to_device, (rows, columns))
    got = ga.transform(lambda i, j: table[i, j] + 100 * table.shape[1], *given)
    assert_same(backend.to_host(got), values[rows, columns] + 500)


def test_rows_slices_and_broadcasts() -> None:
    table = np.arange(24.0).reshape(2, 3, 4)
    wide = np.broadcast_to(np.array([1.5]), (7,))

    def fold(i: Any) -> Any:
        total = 0.0
        for row in table[i % 2]:
            for value in row[1:]:
                total += value
        return total + len(wide) * wide[i] + table.ndim

    want = table[INDICES % 2][..., 1:].sum((1, 2)) + 7 * 1.5 + 3
    assert_same(ga.transform(fold, INDICES), want)
    empty, single = np.empty(0), np.array(2.5)
    assert_same(ga.transform(lambda i: i + len(empty) + single[()], INDICES), INDICES + 2.5)


def test_indices_that_are_computed() -> None:
    """Python numbers are weak in operators, and indices none the less."""
    table = np.arange(10, dtype=np.float32)
    square = table.reshape(2, 5)

    def fold(a: Any) -> Any:
        total = table[-1] + table[3]
        for k in range(3):
            total += table[k * 2 + 1] * square[k // 2, k * 1]
        return total * a

    total = 9 + 3 + sum(table[k * 2 + 1] * square[k // 2, k] for k in range(3))
    x = np.array([1, 2], np.float32)
    assert_same(ga.transform(fold, x), x * np.float32(total))
    assert_same(ga.transform(_lookup(table), np.array([3, 200], np.uint8) % 10), table[[3, 0]])


TABLE = np.arange(5) * 1.5
GLOBAL = TABLE


def _global(i: Any) -> Any:
    return GLOBAL[i]


def test_globals(monkeypatch: pytest.MonkeyPatch, compiled: list[Any]) -> None:
    monkeypatch.setitem(globals(), "GLOBAL", TABLE + 0.25)
    assert_same(ga.transform(_global, INDICES), TABLE[INDICES] + 0.25)
    count = len(compiled)
    monkeypatch.setitem(globals(), "GLOBAL", np.arange(9) * 2.5)
    assert_same(ga.transform(_global, INDICES), np.arange(9)[INDICES] * 2.5)
    assert len(compiled) == count
    monkeypatch.setitem(globals(), "GLOBAL", np.arange(9))
    assert_same(ga.transform(_global, INDICES), np.arange(9)[INDICES])
    assert len(compiled) > count


def test_functions_that_capture() -> None:
    first, second = np.array([10, 20, 30]), np.array([0.5, 0.25])

    def inner(i: Any) -> Any:
        return first[i] + GLOBAL[i]

    def passed(table: Any, i: Any) -> Any:
        return table[i]

    def outer(i: Any) -> Any:
        return inner(i) * second[1] + passed(first, i) + inner(0)

    want = (first + TABLE[:3]) * 0.25 + first + 10
    for _ in range(2):
        assert_same(ga.transform(outer, np.arange(3)), want)
        first = first.copy()


def test_operators_with_more_or_fewer_parameters() -> None:
    table = np.array([1.0, 2.0])
    assert_same(ga.transform(lambda i, k=1: table[i] + k, np.array([0, 1])), table + 1)
    assert_same(ga.transform(lambda *i: table[i[0]], np.array([1, 0])), table[::-1])
    largest = ga.Operator(lambda a, b: max(a, b) * table[0], identity=0.0, commutative=True)
    assert ga.reduce(np.array([3.0, 7.0, 5.0]), None, largest) == 7
    assert ga.reduce(np.empty(0), None, largest) == 0


# --- what is swapped ----------------------------------------------------------------------


def _scaled_lookup(table: Any) -> Function:
    return lambda i: table[i] * 3


def test_swapping_compiles_nothing(compiled: list[Any]) -> None:
    x = np.array([1, 0])
    assert_same(ga.transform(_scaled_lookup(np.array([1.0, 2.0])), x), np.array([6.0, 3.0]))
    once = len(compiled)
    for size in range(2, 40):
        table = np.arange(size) * 0.5
        assert_same(ga.transform(_scaled_lookup(table), x - size), table[x] * 3)
    assert len(compiled) == once > 0
    for other in (np.arange(8.0)[::2], np.arange(4), np.arange(4, dtype=np.float32)):
        ga.transform(_scaled_lookup(other), x)
    assert len(compiled) == 4 * once
    for other in (np.arange(9.0)[::-3], np.arange(7, dtype=np.float32)):
        assert_same(ga.transform(_scaled_lookup(other), x), other[x] * 3)
    assert len(compiled) == 4 * once


def test_keys_hold_layouts_alone() -> None:
    def key(table: Any) -> int:
        return ga.Operator(_lookup(table)).key

    base = np.zeros(4)
    assert key(base) == key(np.ones(7)) == key(np.broadcast_to(base, (1, 4))[0])
    assert key(base[::2]) == key(base[::-1])
    others = [base[::2], base.reshape(2, 2), np.array(1.0), base.astype("float32")]
    others += [base.astype(BFLOAT16), base.astype("int64"), 0.0]
    assert len({key(table) for table in (base, *others)}) == len(others) + 1


def test_a_shape_that_changes_is_seen() -> None:
    table = np.zeros(3)
    op = _lookup(table)
    ga.transform(op, np.array([1]))
    table.shape = (3, 1)
    with pytest.raises(TypeError, match="returns"):
        ga.transform(op, np.array([1]))


def _sum_less(table: Any, first: int) -> Function:
    """Return a sum that is one as long as the table is the right one."""
    return lambda a, b: a + b + (0 if table[0] == first else 1)


def test_threads_with_tables_of_their_own(backend: Backend) -> None:
    x = np.arange(scaled(200_000, emulated=3000)) % 100
    given, ready = backend.to_device(x), threading.Barrier(4)

    def work(number: int) -> None:
        ready.wait()
        for turn in range(scaled(10, emulated=5)):
            values = np.arange(100) * (number + 1) + turn
            table = backend.to_device(values)
            assert_same(backend.to_host(ga.transform(_lookup(table), given)), values[x])
            assert ga.reduce(given, 0, _sum_less(table, turn)) == x.sum()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def _misaligned(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    made = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    made[...] = x
    return made


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_misaligned_arrays_of_the_host(backend: Backend, dtype: np.dtype[Any]) -> None:
    """One function reads aligned and misaligned arrays, each as it is when it is called."""
    table = random_array(5, dtype)

    def op(i: Any) -> Any:
        return table[i]

    for _ in range(2):
        for crooked in (_misaligned(random_array(5, dtype, seed=1)), random_array(5, dtype)):
            table = crooked
            assert_same(backend.to_host(ga.transform(op, np.arange(5)[::-1])), table[::-1])
            table[...] = random_array(5, dtype, seed=2)
            assert_same(backend.to_host(ga.transform(op, np.arange(5)[::-1])), table[::-1])


def test_misaligned_arrays_are_not_compiled_as_aligned_ones() -> None:
    """Some processors read only aligned words, or read several at once."""
    x = np.arange(4.0)
    tokens = [captured.token_of(captured.view_of(y)) for y in (x, _misaligned(x), x[::2])]
    assert len(set(tokens)) == 3
