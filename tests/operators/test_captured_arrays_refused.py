"""Arrays that operators cannot capture, and what they cannot do with them, on the CPU."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from support import assert_same, run_python

import gpualgo as ga
from gpualgo._operators.operator import as_operator, operator_key

Function = Callable[..., Any]


@pytest.fixture(autouse=True)
def _on_cpu() -> Iterator[None]:
    with ga.default_device("cpu"):
        yield


def _lookup(table: Any) -> Function:
    return lambda i: table[i]


def test_methods_are_refused() -> None:
    """They would be computed for each element; shapes and transposes cost nothing."""
    table = np.arange(6.0).reshape(2, 3)
    for method in (lambda a: a - table.mean(), lambda a: a + table.sum(), lambda a: table.argmax()):
        with pytest.raises(ga.CompileError, match="compute it outside of op"):
            ga.transform(method, np.arange(3))
    found = ga.transform(lambda i: table.T[i, 1] + table.size + table.shape[0], np.arange(3))
    assert_same(found, table[1] + 8)
    pair = ga.transform(lambda p: p.sum - p.mean, Sums(np.arange(3), np.ones(3, int)))
    assert_same(pair, np.arange(3) - 1)


class Sums(NamedTuple):
    sum: Any
    mean: Any


def test_writing_is_refused() -> None:
    table = np.zeros(3)

    def assign(i: Any) -> Any:
        table[i] = 1
        return i

    def add(i: Any) -> Any:
        table[0] += i
        return i

    def write_row(i: Any) -> Any:
        row = table[1:]
        row[i] = 1.0
        return i

    for op in (assign, add, write_row):
        with pytest.raises(ga.CompileError, match=r"captures|readonly"):
            ga.transform(op, np.arange(2))
    assert_same(table, np.zeros(3))


def test_arrays_out_of_reach_are_refused() -> None:
    pair, table = (np.zeros(2), 1), np.zeros(2)

    def defaulted(i: Any, t: Any = table) -> Any:
        return t[i]

    for op in (defaulted, lambda i: pair[0][i], lambda i: pair[1] + i):
        with pytest.raises(TypeError, match="capture the array itself"):
            ga.transform(op, np.arange(2))
    many = [np.zeros((1,) * 20) for _ in range(2)]
    first, second = many
    with pytest.raises(TypeError, match="capture fewer arrays"):
        ga.transform(lambda i: first[()] + second[()], np.arange(2))
    with pytest.raises(TypeError, match="list"):
        ga.transform(_lookup([1, 2]), np.arange(2))


def test_a_module_s_array_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import support

    monkeypatch.setattr(support, "table", np.zeros(2), raising=False)
    with pytest.raises(ga.CompileError, match="attribute of a module"):
        ga.transform(lambda i: support.table[i], np.arange(2))  # type: ignore[attr-defined]


def test_dtypes_that_are_refused() -> None:
    for table in (np.array([None]), np.array(["a"]), np.zeros(2, ">f4"), np.zeros(2, "M8[s]")):
        with pytest.raises(TypeError, match="captured array"):
            ga.transform(_lookup(table), np.arange(2))
    with pytest.raises(TypeError, match="masked"):
        ga.transform(_lookup(np.ma.zeros(2)), np.arange(2))


def test_results_are_not_written_into_a_table() -> None:
    table = np.arange(4)
    op = _lookup(table)
    with pytest.raises(ValueError, match="op captures"):
        ga.transform(op, table, out=table)
    add = _with(table)
    with pytest.raises(ValueError, match="op captures"):
        ga.reduce(np.arange(3), None, add, out=table[1:2].reshape(()))
    with pytest.raises(ValueError, match="op captures"):
        ga.inclusive_scan(np.arange(2), None, add, out=table[2:])
    assert_same(table, np.arange(4))


def _with(table: Any) -> Function:
    return lambda a, b: a + b + table[0]


def test_a_table_on_a_gpu_is_refused_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpualgo._operators import captured

    view = captured.view_of(np.zeros(4))._replace(device=0)
    monkeypatch.setattr(captured, "as_view", lambda *_: view)
    with pytest.raises(TypeError, match=r"on cuda:0.*runs on the CPU; capture a NumPy copy"):
        ga.transform(_lookup(np.zeros(4)), np.arange(2))


def test_errors_name_the_operator() -> None:
    table = np.zeros((2, 2))
    with pytest.raises(TypeError, match="returns an array"):
        ga.transform(_lookup(table), np.arange(2))
    with pytest.raises(ga.CompileError, match="could not be compiled"):
        ga.transform(_lookup(table), np.array([0.5]))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_can_call() -> None:
    code = """if True:
        import os, sys
        import numpy as np, gpualgo as ga
        table = np.arange(5)
        with ga.default_device("cpu"):
            ga.transform(lambda i: table[i], np.arange(3))
            child = os.fork()
            if not child:
                table = np.arange(5) * 2
                got = ga.transform(lambda i: table[i], np.arange(3))
                os._exit(got.tolist() != [0, 2, 4])
            sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    assert run_python(code).returncode == 0


def test_a_swap_while_a_call_begins_is_noticed() -> None:
    """A plan must not be kept for one array and read another."""
    first, second = _lookup(np.zeros(2)), _lookup(np.zeros(3))
    hot = operator_key(first)
    assert as_operator(first, "transform", 1, hot).key is hot[0]
    for other in (second, lambda i: i):
        with pytest.raises(RuntimeError, match="transform: another thread changed the "):
            as_operator(other, "transform", 1, hot)
