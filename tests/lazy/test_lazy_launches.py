"""Calls on lazy arrays: one kernel, and no memory but what the same call on real ones takes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import fake_driver
import numpy as np
import pytest
from fake_driver import FakeArray, FakeDriver

import gpualgo as ga
from gpualgo._cuda import build

RESULT_DTYPE = build.result_dtype
N = 1 << 16


def _made(shape: tuple[int, ...] = (N,)) -> Any:
    """Return a lazy array of an array, positions and numbers."""
    counted = ga.lazy.arange(N, dtype=np.float32).reshape(shape)
    return ga.lazy.asarray(FakeArray(shape, np.float32)) * 2.5 + counted


def _pairs() -> Any:
    return ga.lazy.transform(lambda a: (a, a + 1), FakeArray((N,), np.float32))


# Each with how many kernels it launches: sums of weights are rounded by a second one.
CALLS: dict[str, tuple[Callable[[], Callable[[], Any]], int]] = {
    "reduce": (lambda: _bound(ga.reduce, _made()), 1),
    "reduce of rows": (lambda: _bound(ga.reduce, _made((64, 1024)), axis=1), 1),
    "reduce of columns": (lambda: _bound(ga.reduce, _made((64, 1024)), axis=0), 1),
    "reduce of tuples": (
        lambda: _bound(ga.reduce, _pairs(), None, lambda a, b: (a[0] + b[0], max(a[1], b[1]))),
        1,
    ),
    "transform": (lambda: _bound(ga.transform, operator.neg, _made()), 1),
    "argmin": (lambda: _bound(ga.argmin, _made()), 1),
    "argmax": (lambda: _bound(ga.argmax, _made((64, 1024)), 1), 1),
    "minmax": (lambda: _bound(ga.minmax, _made()), 1),
    "histogram": (lambda: _bound(ga.histogram, _made(), 50, (0.0, 1.0)), 1),
    "histogram of rows": (
        lambda: _bound(ga.histogram, _made((64, 1024)), 50, (0.0, 1.0), axis=1),
        1,
    ),
    "histogram of tuples": (lambda: _bound(ga.histogram, _pairs(), 8, ((0, 1), (0, 1))), 1),
    "histogram with weights": (
        lambda: _bound(ga.histogram, _made(), 50, (0.0, 1.0), weights=FakeArray((N,), np.float32)),
        2,
    ),
}


def _bound(function: Any, *args: Any, **kwargs: Any) -> Callable[[], Any]:
    return lambda: function(*args, **kwargs)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    made = fake_driver.install(monkeypatch)
    fake_driver.stub_kernels(monkeypatch)
    monkeypatch.setattr(build, "result_dtype", RESULT_DTYPE)  # of tuples no stub knows it
    fake_driver.register_arrays(monkeypatch)
    return made


@pytest.mark.parametrize("name", CALLS)
def test_one_launch_and_nothing_allocated(name: str, fake: FakeDriver) -> None:
    make, launches = CALLS[name]
    call = make()
    call()
    fake.calls.clear()
    call()
    assert len(fake.named("cuLaunchKernel", "cuLaunchKernelEx")) == launches
    assert len(fake.calls) == launches, fake.calls


TEMPORARY: dict[str, tuple[Any, ...]] = {
    "reduce": (ga.reduce,),
    "transform": (ga.transform, operator.neg),
    "minmax": (ga.minmax,),
    "histogram": (ga.histogram, 50, (0.0, 1.0)),
}


@pytest.mark.parametrize("name", TEMPORARY)
def test_no_temporary_storage_for_elements(name: str, fake: FakeDriver) -> None:
    """What blocks hand each other is as for an array; elements have no place in it."""
    function, *rest = TEMPORARY[name]
    first = [rest.pop(0)] if name == "transform" else []
    for shape in ((N,), (64, 1024)):
        found = [
            ga.temp_storage_bytes(function, *first, x, *rest)
            for x in (_made(shape), FakeArray(shape, np.float32))
        ]
        assert found[0] <= found[1] + 4096 < 2 * N, (shape, found)
