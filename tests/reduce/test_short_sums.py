"""Sums of short rows whose dtype was summed before on the CPU: all is as of a first call."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support import DTYPES, random_array

import gpualgo as ga
from gpualgo._algorithms.reduce import problem as rk
from gpualgo._algorithms.reduce import short_sums
from gpualgo._algorithms.reduce.problem import Reduction
from gpualgo._cpu import direct
from gpualgo._pipeline import auto

MOST = short_sums.MOST_ELEMENTS
TILE = rk.tile_of(np.dtype(np.float64))
SIZES = (1, 2, 63, TILE - 1, TILE, TILE + 1, 10_000, MOST - 1, MOST, 3 * MOST)


class Own(np.ndarray[Any, Any]):
    """A class of somebody's own."""


@pytest.fixture(autouse=True)
def on_cpu() -> Iterator[None]:
    _forget()
    with ga.default_device("cpu"):
        yield
    _forget()


def _forget() -> None:
    Reduction.problems.clear()
    short_sums.clear()


def _learn(dtype: Any) -> None:
    for _ in range(2):
        ga.reduce(np.ones(3, dtype))


def _way_of(x: Any) -> Any:
    return short_sums.fold_for(x, None, operator.add, None, False, None, None, None, 0)


def _general(x: np.ndarray[Any, Any]) -> Any:
    """Return the sum by the first call of its kind."""
    _forget()
    found = ga.reduce(x)
    _forget()
    return found


def _assert_same(got: Any, want: Any) -> None:
    assert type(got) is type(want)
    assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_bits_and_no_problem(dtype: np.dtype[Any]) -> None:
    for n in SIZES:
        x = random_array(n, dtype, seed=n)
        before, want = x.copy(), _general(x)
        _learn(dtype)
        count = len(Reduction.problems)
        assert bool(_way_of(x)) is (n < MOST)
        _assert_same(ga.reduce(x), want)
        assert len(Reduction.problems) == count + (n >= MOST)
        _assert_same(ga.reduce(x, None, np.add), want)  # warm, by a problem
        _assert_same(ga.reduce(x, None, np.add), want)
        x.flags.writeable = False
        _assert_same(ga.reduce(x), want)
        assert x.tobytes() == before.tobytes()


@pytest.mark.parametrize("op", [np.add, operator.mul, max], ids=["add", "mul", "max"])
def test_a_first_value(op: Any) -> None:
    for n in SIZES:
        x = np.random.default_rng(n).standard_normal(n) * 3
        for init in (None, 0.5, np.float64(-7)):
            _forget()
            want = ga.reduce(x, init, op)  # by the general path, as nothing is known
            for _ in range(3):
                _assert_same(ga.reduce(x, init, op), want)
            np.testing.assert_array_equal(ga.reduce(x, init, op, keepdims=True), want[None])
            out = np.zeros(())
            assert ga.reduce(x, init, op, out=out) is out
            _assert_same(out[()], want)


def test_special_floats() -> None:
    _learn(np.float64)
    for values in ([-0.0, -0.0], [np.inf, 1], [np.inf, -np.inf], [np.nan, 2], [-0.0, 0.0]):
        x = np.tile(np.array(values), 5000)
        assert _way_of(x)
        _assert_same(ga.reduce(x), np.float64(x[0] + x[1] if np.isfinite(x).all() else sum(values)))


def test_no_elements() -> None:
    _learn(np.int32)
    x = np.zeros(0, np.int32)
    assert _way_of(x)
    _assert_same(ga.reduce(x), np.int32(0))
    with pytest.raises(ValueError, match="no elements"):
        ga.reduce(x, None, max)


def test_what_goes_by_the_general_path() -> None:
    _learn(np.float64)
    x = np.random.default_rng(0).random(9000)
    want = x.sum()
    memory = np.zeros(x.nbytes + 1, np.uint8)
    misaligned = memory[1:].view(float)
    misaligned[...] = x
    others = misaligned, np.repeat(x, 2)[::2], x[::-1], x.view(Own), x.reshape(90, 100)
    for given in others:
        assert _way_of(given) is False
        assert abs(float(ga.reduce(given)) - want) < 1e-9 * want
    for given in (list(x), None, 3, x[0], x.astype(">f8"), np.array(3.0)):
        assert _way_of(given) is False
    out = np.zeros(())
    assert ga.reduce(x, out=out) is out
    assert ga.reduce(x, keepdims=True).shape == (1,)
    assert ga.reduce(x, dtype=np.complex128).dtype == np.complex128
    assert ga.reduce(x, 1.0) == pytest.approx(want + 1)
    assert ga.reduce(x, axis=0) == ga.reduce(x)
    assert ga.reduce(x, axis=()).shape == x.shape
    for options in ({"axis": 1}, {"axis": True}, {"keepdims": 0}, {"stream": 1}, {"out": x}):
        with pytest.raises((TypeError, ValueError), match=r"reduce|axis"):
            ga.reduce(x, **options)
    with pytest.raises(TypeError, match="reduce"):
        ga.reduce(x.astype(">f8"))


@pytest.mark.parametrize("op", [operator.add, operator.mul, max], ids=["add", "mul", "max"])
def test_no_axis_is_reduced(op: Any) -> None:
    """Each element of a row is a result of its own, in the calls after the first one, too."""
    _learn(np.float64)
    for n in (1, 2, TILE, TILE + 1, MOST - 1, MOST + 1):
        x = np.random.default_rng(n).standard_normal(n)
        for _ in range(3):
            np.testing.assert_array_equal(ga.reduce(x, None, op, axis=()), x)
            np.testing.assert_array_equal(ga.reduce(x, None, op, axis=(), keepdims=True), x)
            out = np.zeros(n)
            assert ga.reduce(x, 0.5, op, axis=(), out=out) is out
            np.testing.assert_array_equal(out, [op(0.5, each) for each in x])
        _assert_same(ga.reduce(x, None, op), ga.reduce(x, None, op, axis=(0,)))


def test_calls_that_are_recorded() -> None:
    _learn(np.float32)
    x = np.arange(5000, dtype=np.float32)
    plan = ga.prepare(ga.reduce, x)
    _assert_same(np.asarray(plan(x))[()], ga.reduce(x))
    with ga.graph() as graph:
        found = ga.reduce(x)
    x[...] = 2
    graph.launch()
    assert np.asarray(found) == 10_000


def test_the_default_device_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """No size sends a sum to a GPU: page-locked arrays alone go there, which are asked for."""
    row = next(row for row in auto.TABLE if "reduce" in row.algorithms)
    assert row.least_keys is None
    _learn(np.float64)
    monkeypatch.setenv("GPUALGO_DEVICE", "no device")
    from gpualgo._driver import default_device

    token = default_device._chosen.set(None)
    try:
        with pytest.raises(ValueError, match="no device"):
            ga.reduce(np.ones(9))
    finally:
        default_device._chosen.reset(token)


def test_without_functions_of_cpythons_own_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).random(10_000)
    want = _general(x)
    monkeypatch.setattr(direct, "_IS_SUPPORTED", False)
    direct._method.cache_clear()
    try:
        _learn(np.float64)
        assert _way_of(x) is False
        for _ in range(3):
            _assert_same(ga.reduce(x), want)
    finally:
        direct._method.cache_clear()
