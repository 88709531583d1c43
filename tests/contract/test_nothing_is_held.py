"""Arrays of the caller and results are let go when the caller drops them, whatever is kept."""

from __future__ import annotations

import contextlib
import gc
import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from contract.case import TABLE, Call, Case, hosts
from contract.cases import CASES
from support import Backend, arrays_kept, forget_problems

import gpualgo as ga

FEW = 700  # elements: what one task does, for which more is kept


def _of_few(case: Case) -> Case:
    inputs = tuple((tuple(min(n, FEW) for n in shape), dtype) for shape, dtype in case.inputs)
    return replace(case, inputs=inputs, about=f"few, {case.about}")


_SHORT = [
    _of_few(case)
    for case in CASES
    if max((n for shape, _ in case.inputs for n in shape), default=0) > FEW
    and case.options.get("k", 0) < FEW
]


@pytest.mark.parametrize("case", [*CASES, *_SHORT], ids=str)
def test_arrays_are_let_go(backend: Backend, case: Case) -> None:
    refs: list[weakref.ref[Any]] = []
    forget_problems()
    for _ in range(3):  # the first call decides what is kept, the others find it
        table = backend.to_device(TABLE.copy())
        arrays = case.arrays(backend)
        found = Call(case, table)(*arrays)
        results = found if isinstance(found, tuple) else (found,)
        made = [array for array in results if not np.isscalar(array)]
        refs += [weakref.ref(_memory_of(array)) for array in (*arrays, *made, table)]
        hosts(backend, (*made, table))  # what is queued has run
        del table, arrays, found, results, made
    if backend.xp is not np:  # captured arrays of launches that have run go with the next launch
        other = backend.to_device(TABLE)
        ga.transform(lambda a: a + other[0], other)
    gc.collect()
    held = [ref() for ref in refs if ref() is not None]
    assert not held


def _memory_of(array: Any) -> Any:
    """Return the array whose memory one shows."""
    while isinstance(getattr(array, "base", None), type(array)):
        array = array.base
    return array


@pytest.mark.parametrize(
    "call",
    [
        lambda x: ga.reduce(x, axis=7),
        lambda x: ga.radix_sort(x, axis=9),
        lambda x: ga.transform(abs, x, out=np.zeros(x.shape, np.int32)),
        lambda x: ga.reduce(np.ones((x.size, 2)), x, axis=1),
        lambda x: ga.inclusive_scan(np.ones((x.size, 2)), x, axis=1),
    ],
)
def test_arrays_do_not_wait_for_the_collector(call: Any) -> None:
    """No cycle holds what a failed call or an init for each row was given."""
    with contextlib.suppress(TypeError, ValueError):
        call(np.ones(1000))  # numba, which compiles in a first call, leaves cycles of its own
    seen = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            x = np.ones(1000)
            seen.append(weakref.ref(x))
            with contextlib.suppress(TypeError, ValueError):
                call(x)
            del x
        assert [each() is not None for each in seen] == [False] * 5
    finally:
        gc.enable()


def test_an_updated_graph_lets_earlier_arrays_go() -> None:
    x, out = np.ones(1000), np.empty(1000)
    with ga.default_device("cpu"), ga.graph() as graph:
        ga.transform(np.negative, x, out=out)
    gc.collect()
    gc.disable()
    try:
        seen = []
        for _ in range(5):
            new = np.ones(1000)
            graph.update((x, new))
            x = new
            seen.append(weakref.ref(new))
            del new
        assert [each() is not None for each in seen] == [False] * 4 + [True]
    finally:
        gc.enable()


def test_an_operator_that_does_not_associate_holds_no_array(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GPUALGO_CHECK", "1")

    def difference(a: Any, b: Any) -> Any:
        return a - b

    def refused() -> Any:
        x = np.arange(1000.0)
        with pytest.raises(ValueError, match="not associative"):
            ga.reduce(x, 0.0, difference)
        return weakref.ref(x)

    refused()
    gc.collect()
    gc.disable()
    try:
        assert refused()() is None
    finally:
        gc.enable()


def test_variables_of_a_namespace_that_ends() -> None:
    """Code that `exec` ran reads a variable and a function: the others are let go with it."""
    code = """if True:
        rest = np.ones(1 << 16)
        def helper(a): return a * K
        def op(a): return helper(a) + K
        result = ga.transform(op, rest)
        assert result[0] == 4.0
    """

    def call(k: int) -> None:
        exec(code, {"K": 2.0, "np": np, "ga": ga})

    with ga.default_device("cpu"):
        assert arrays_kept(call, 3, 9) < 1000
