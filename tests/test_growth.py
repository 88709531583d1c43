"""Nothing in the package grows for ever in a program that calls what it has not called before."""

from __future__ import annotations

import functools
import gc
import importlib
import pkgutil
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from support import arrays_kept

import gpualgo as ga
from gpualgo._base.memo import Memo
from gpualgo._cpu import kernels, launch

NEW = 540  # operators, shapes and bins
LIMIT = 50  # of each memo here


def _modules() -> Iterator[types.ModuleType]:
    for info in pkgutil.walk_packages(ga.__path__, "gpualgo."):
        if info.name in sys.modules:
            yield sys.modules[info.name]


def _sizes() -> dict[str, int]:
    """Return how much each container of the package's modules holds, and each cached function."""
    found: dict[str, int] = {}
    for module in _modules():
        for name, value in vars(module).items():
            where = f"{module.__name__}.{name}"
            if hasattr(value, "cache_info"):
                found[where] = value.cache_info().currsize
            elif hasattr(type(value), "__len__") and not isinstance(
                value, str | bytes | np.ndarray
            ):
                found[where] = len(value)
    return found


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no memo hold much, and let nothing be compiled."""
    for name in ("reduce", "scan", "transform", "radix_sort", "histogram"):
        importlib.import_module(f"gpualgo._algorithms.{name}.cpu")
    monkeypatch.setattr(kernels, "_load", lambda *_: types.SimpleNamespace(address=1))
    sorts = importlib.import_module("gpualgo._algorithms.radix_sort.cpu_numpy")
    for module in (launch, sorts):
        monkeypatch.setattr(module, "status_function", lambda _: lambda *_: 0)
    monkeypatch.setattr(launch, "launch_function", lambda *_: None)
    monkeypatch.setattr(sorts, "sort_of", functools.cache(sorts.SortByNumPy))
    monkeypatch.setattr(
        kernels, "_read_or_compile",
        lambda new: kernels.CompiledOperator(b"", new.result_dtype or new.arguments[0]),
    )  # fmt: skip
    gc.unfreeze()  # what is set aside is not listed
    for memo in [thing for thing in gc.get_objects() if type(thing) is Memo]:
        monkeypatch.setattr(memo, "limit", min(memo.limit, LIMIT))
        memo.clear()  # what was made in earnest is for other tests
        found: dict[Any, Any] = {}
        monkeypatch.setattr(memo, "_values", found)
        monkeypatch.setattr(memo, "look", found.get)
    for module in _modules():
        for name in ("_MAX_CALLS", "_MAX_PLANS"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, LIMIT)


def _new_operator(number: int) -> Callable[..., Any]:
    """Return an operator of new code that captures a new value and an array."""
    names: dict[str, Any] = {"table": np.zeros(3), "number": number}
    return eval(f"lambda a, b: a + b * {number} + number + table[0]", names)  # type: ignore[no-any-return]


def _calls(number: int) -> None:
    """Call every function as it has not been called before."""
    x, op = np.zeros(number + 1), _new_operator(number)
    ga.reduce(x, 0.0, op)
    ga.inclusive_scan(x, None, op)
    ga.exclusive_scan(x, 0.0, op)
    ga.transform(op, x, x)
    ga.transform(lambda a: a * number, x)
    ga.transform(op, x, 1.5 + number)
    ga.radix_sort(x)
    ga.argsort(x)
    ga.histogram(x, number + 1, (0.0, 1.0 + number))
    ga.histogram(x, [0.0, 1.0, 2.0 + number])


def test_nothing_grows_for_ever(small: None) -> None:
    with ga.default_device("cpu"):
        for number in range(NEW // 2):
            _calls(number)
        gc.collect()
        before = _sizes()
        for number in range(NEW // 2, NEW):
            _calls(number)
        gc.collect()
    after = _sizes()
    grown = {
        name: (before.get(name, 0), size)
        for name, size in after.items()
        if size > before.get(name, 0) + LIMIT // 10
    }
    assert not grown
    assert len(after) > 20  # it does look
    for name in ("_cpu.kernels._kernels", "_cpu.kernels._compiled", "_operators.key.codes"):
        assert after[f"gpualgo.{name}"] == LIMIT  # the limits were reached


def test_new_values_of_numbers_leave_nothing() -> None:
    x = np.arange(3.0)
    with ga.default_device("cpu"):

        def call(k: float) -> None:
            ga.transform(lambda a, b=-k: a * k + b, x)
            ga.transform(lambda a, b: a * b, x, k)
            assert ga.reduce(x, 0.0, lambda a, b: a + b + k) == 3.0 + 3 * k

        for number in range(3):
            call(number / 2)
        gc.collect()
        before = _sizes()
        for number in range(3, 400):
            call(number / 2)
    assert _sizes() == before


def test_a_reduction_in_steps_keeps_no_partials() -> None:
    """Two rows of partials lie between its passes."""
    x = np.arange(520.0 * 520).reshape(520, 520) % 97

    def call(k: int) -> None:
        part = x[:, : 500 + k]
        found = ga.reduce(part, 0.0, lambda a, b: a + b, axis=0)
        np.testing.assert_array_equal(found, part.sum(0))

    def again(k: int) -> None:
        for _ in range(4):  # one thread does all of it once it is known to take little time
            call(k)

    with ga.default_device("cpu"):
        assert arrays_kept(again, 3, 18) < 3000
