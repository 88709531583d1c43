"""Orders of keys of one and two bytes on the CPU: by a kernel of their own, and by all cores."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support import FLOATS, INTEGERS, random_array
from test_radix_sort import assert_bits, special_floats, stable_order

import gpualgo as ga
from gpualgo._algorithms.radix_sort import cpu, cpu_again, cpu_rows
from gpualgo._algorithms.radix_sort import cpu_parameters as rk
from gpualgo._algorithms.radix_sort.problem import Sort
from gpualgo._base import threads

NARROW = [dtype for dtype in (np.dtype("bool"), *INTEGERS, *FLOATS) if dtype.itemsize <= 2]
SIZES = (rk.SHORT - 1, rk.SHORT, rk.SHORT + 1, rk.BLOCK, 2 * rk.BLOCK + 1, 5003, 20_011, 140_001)


@pytest.fixture(autouse=True)
def on_cpu() -> Iterator[None]:
    _forget()
    with ga.default_device("cpu"):
        yield
    _forget()


def _forget() -> None:
    Sort.problems.clear()
    cpu_again.clear()


def _keys(dtype: np.dtype[Any], n: int) -> np.ndarray[Any, Any]:
    return special_floats(dtype, n) if dtype in FLOATS else random_array(n, dtype, seed=n)


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_every_size(dtype: np.dtype[Any]) -> None:
    for n, descending in itertools.product(SIZES, (False, True)):
        keys = _keys(dtype, n)
        want = stable_order(keys, descending)
        for _ in range(2):  # the second time it is prepared
            assert_bits(ga.argsort(keys, descending=descending), want)
        short = ga.argsort(keys, descending=descending, dtype=np.uint32)
        assert_bits(short, want.astype(np.uint32))


def test_which_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Positions of narrow keys are moved alone; what is more, or wider, goes by all passes."""
    asked = []
    entry = cpu_rows.entry
    monkeypatch.setattr(cpu_rows, "entry", lambda *key: asked.append(key[0]) or entry(*key))
    keys = np.random.default_rng(0).integers(0, 99, 20_000).astype(np.int16)
    ga.argsort(keys)
    assert set(asked) == {"order"}
    for call in (
        lambda: ga.argsort(keys.astype(np.int32)), lambda: ga.argsort(keys[: rk.SHORT], dtype="i4"),
        lambda: ga.radix_sort(keys, keys), lambda: ga.radix_sort(keys, end_bit=4),
    ):  # fmt: skip
        asked.clear()
        call()
        assert "row" in asked
        assert "order" not in asked
    asked.clear()
    monkeypatch.setattr(rk, "POSITION_BITS", 14)
    _forget()
    assert_bits(ga.argsort(keys), stable_order(keys))
    assert "order" not in asked


@pytest.mark.parametrize("dtype", ["int16", "uint16", "int8", "bool"])
@pytest.mark.parametrize("kind", ["one", "low", "high", "two", "rising", "falling", "last"])
def test_digits_that_are_one(kind: str, dtype: str) -> None:
    n, random = 20_001, np.random.default_rng(0)
    keys = {
        "one": np.full(n, 7),
        "low": 0x300 + random.integers(0, 256, n),
        "high": 5 + 256 * random.integers(-100, 100, n),
        "two": 0x101 * random.integers(0, 2, n),
        "rising": np.arange(n) // 200 - 50,
        "falling": 50 - np.arange(n) // 200,
        "last": np.where(np.arange(n) == n - 1, -1, 3),
    }[kind].astype(dtype)
    for descending in (False, True):
        assert_bits(ga.argsort(keys, descending=descending), stable_order(keys, descending))


@pytest.mark.parametrize("dtype", [np.dtype("int16"), np.dtype("uint8"), FLOATS[0]], ids=str)
def test_layouts(dtype: np.dtype[Any]) -> None:
    keys = _keys(dtype, 40_000)
    rows = keys.reshape(8, 5000)
    fixed = keys.copy()
    fixed.flags.writeable = False
    for given, axis in (
        (keys[::-1], -1), (keys[::2], -1), (keys[1:], -1), (fixed, -1), (rows, 1), (rows, 0),
        (rows.T, 0), (rows[:, ::3], 1), (np.broadcast_to(keys[:5000], (3, 5000)), 1),
    ):  # fmt: skip
        want = stable_order(np.ascontiguousarray(given), False, axis)
        for _ in range(2):
            assert_bits(ga.argsort(given, axis=axis), want)
        memory = np.full((*given.shape, 2), -1)
        out = memory[..., 1]
        assert ga.argsort(given, axis=axis, out=out) is out
        assert_bits(out, want)
        assert (memory[..., 0] == -1).all()


@pytest.mark.parametrize("count", [1, 2, 3, 16])
@pytest.mark.parametrize("dtype", [np.dtype("int16"), np.dtype("uint8"), FLOATS[0]], ids=str)
def test_long_rows(dtype: np.dtype[Any], count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that all cores share, from a bound on that depends on how many there are."""
    monkeypatch.setattr(threads, "num_threads", lambda: count)
    monkeypatch.setattr(cpu, "LONG_ORDER", 100_000)
    monkeypatch.setattr(cpu, "_LONG_ORDER_FOR_TWO", 120_000)
    alone = []
    sort = cpu_rows.sort
    monkeypatch.setattr(cpu_rows, "sort", lambda *given: alone.append(True) or sort(*given))
    for n in (110_000, 130_000):
        alone.clear()
        keys = _keys(dtype, n)
        for descending in (False, True):
            assert_bits(ga.argsort(keys, descending=descending), stable_order(keys, descending))
        assert bool(alone) is (n < 120_000 and count <= 2)
        (told,) = ga.explain(ga.argsort, keys).steps
        assert (told.tasks == 1) is bool(alone)
        assert told.tile == n or not alone
        alone.clear()
        ga.argsort(np.stack((keys, keys), axis=1), axis=0)
        (told,) = ga.explain(ga.argsort, np.stack((keys, keys), axis=1), axis=0).steps
        assert (told.tasks == 2) is bool(alone)


def test_tuples_of_two_bytes() -> None:
    random = np.random.default_rng(0)
    for dtypes in (("bool", "bool"), ("int8", "uint8"), ("uint8", "bool")):
        first, second = (random.integers(0, 2, 30_000).astype(dtype) for dtype in dtypes)
        assert_bits(ga.argsort((first, second)), np.lexsort((second, first)))
