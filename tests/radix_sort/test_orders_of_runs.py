"""Orders of keys that are nearly sorted on the CPU: NumPy finds them, and no other keys' orders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support import a_few
from test_radix_sort import assert_bits, stable_order

import gpualgo as ga
from gpualgo._algorithms.radix_sort import cpu, cpu_numpy
from gpualgo._algorithms.radix_sort.problem import Sort

DTYPES = ("int32", "uint32", "float32", "int64", "uint64", "float64")
Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def on_cpu() -> Iterator[None]:
    _forget()
    with ga.default_device("cpu"):
        yield
    _forget()


def _forget() -> None:
    Sort.problems.clear()


def _patterns(n: int) -> dict[str, Array]:
    random, place = np.random.default_rng(n), np.arange(n)
    swapped = place.copy()
    few = random.integers(0, n, (2, max(1, n // 500)))
    swapped[few[0]], swapped[few[1]] = place[few[1]], place[few[0]]
    tail = place.copy()
    tail[-(n // 100) - 1 :] = random.integers(0, n, n // 100 + 1)
    return {
        "rising": place, "falling": place[::-1], "organ pipe": np.minimum(place, n - 1 - place),
        "swapped": swapped, "jittered": place + random.integers(0, 8, n), "tail": tail,
        "rolled": np.roll(place, n // 3), "saw": place % (n // 4 + 1), "equal": 0 * place,
        "steps down": -(place // (n // 8 + 1)) + 9,
    }  # fmt: skip


def _in_no_order(n: int) -> dict[str, Array]:
    random = np.random.default_rng(n)
    blocks = np.sort(random.integers(0, n, (n // 16, 16)), axis=1).reshape(-1)
    return {"random": random.permutation(n), "four values": random.integers(0, 4, n),
            "blocks": blocks}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [3000, 40_000, 300_000])
def test_which_way(n: int, dtype: str) -> None:
    """Every pattern of runs is NumPy's in one direction at least; what has no order never is."""
    for name, pattern in _patterns(n).items():
        assert _has_few_runs(pattern.astype(dtype), False), name
    for name in ("rising", "falling", "organ pipe", "swapped", "rolled"):
        assert _has_few_runs(_patterns(n)[name].astype(dtype), True), name
    for name, pattern in _in_no_order(n).items():
        assert not _has_few_runs(pattern.astype(dtype), False), name
        assert not _has_few_runs(pattern.astype(dtype), True), name


def _has_few_runs(keys: Array, descending: bool) -> bool:
    return cpu_numpy.has_few_runs(keys, descending)(keys)


def test_no_digits_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of keys in runs, whichever way they are given, and whether or not it is the first call."""

    def refuse(*_: Any) -> None:
        raise AssertionError("digits were looked at")

    keys = np.arange(200_000.0)[::-1].copy()
    rows = keys.reshape(20, 10_000)
    monkeypatch.setattr(cpu, "by_digits", lambda *_: refuse)
    for _ in range(2):
        for descending in a_few((False, True)):
            ga.argsort(keys, descending=descending)
            ga.argsort(keys, descending=descending, out=np.empty(200_000, np.int64))
            ga.argsort(rows, descending=descending)
            ga.argsort(rows, axis=0, dtype=np.int32, descending=descending)
            ga.radix_sort(keys, keys.astype("f4"), descending=descending)
    assert ga.explain(ga.argsort, keys).steps[0].name == "radix_sort"  # no key is looked at
    assert ga.explain(ga.argsort, keys.astype("i2")).steps[0].name == "numpy.argsort"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [3, 40, 2000, 33_000])
def test_orders(n: int, dtype: str) -> None:
    for pattern in _patterns(n).values():
        keys = pattern.astype(dtype)
        if keys.dtype.kind == "f":
            keys[::7] *= 0.0
            keys[1::9] = -0.0
            keys[2::11] = np.nan
            keys[-3::-50] = -np.nan
        values = np.arange(n, dtype=np.int16)
        for descending in a_few((False, True)):
            want = stable_order(keys, descending)
            for _ in range(2):  # the second time it is prepared
                assert_bits(ga.argsort(keys, descending=descending), want)
                found, moved = ga.radix_sort(keys, values, descending=descending)
                assert_bits(found, keys[want])
                assert_bits(moved, values[want])
            short = ga.argsort(keys, descending=descending, dtype=np.uint32)
            assert_bits(short, want.astype(np.uint32))
            both, order = keys.copy(), values.copy()
            ga.radix_sort(both, order, descending=descending, out=(both, order))
            assert_bits(both, keys[want])
            assert_bits(order, values[want])


@pytest.mark.parametrize("descending", [False, True])
def test_rows(descending: bool) -> None:
    keys = np.stack([_patterns(900)[name] for name in ("rising", "falling", "tail", "rolled")])
    rows = np.stack((keys, keys[::-1]), axis=1).astype(np.float32)
    before = rows.copy()
    for given in (rows, rows.transpose(2, 0, 1), rows[:, ::-1], rows[..., ::3], rows[:, :, :0]):
        for axis in range(3):
            if not given.shape[axis]:
                continue
            want = stable_order(np.ascontiguousarray(given), descending, axis)
            memory = np.full((*given.shape, 2), -1)
            for _ in range(2):
                assert_bits(ga.argsort(given, axis=axis, descending=descending), want)
                ga.argsort(given, axis=axis, descending=descending, out=memory[..., 1])
            assert_bits(memory[..., 1], want)
            assert (memory[..., 0] == -1).all()
    assert_bits(rows, before)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_one_run(dtype: str, descending: bool) -> None:
    """Rows that rise or fall throughout, with neighbours that are equal and NaNs at either end."""
    place = np.arange(600)
    rises, equal, ends = place + 5, place // 2 + 5, place + 5
    ends[-1] = 0
    rows = np.stack([rises, rises[::-1], equal, equal[::-1], 0 * place, ends, rises]).astype(dtype)
    if rows.dtype.kind == "f":
        with_nan = np.repeat(rows[:2], 4, axis=0)
        with_nan[0, 0], with_nan[1, -1], with_nan[2, :2], with_nan[3, -2:] = (
            np.nan,
            np.nan,
            np.nan,
            np.nan,
        )
        with_nan[4, 0], with_nan[5, -1], with_nan[6, 300], with_nan[7] = (
            np.nan,
            np.nan,
            np.nan,
            -np.nan,
        )
        rows = np.concatenate((rows[:2], with_nan, rows[2:]))
    memory = np.frombuffer(b"\0" + np.repeat(rows, 2, axis=1).tobytes(), np.uint8)[1:]
    misaligned = memory.view(dtype).reshape(len(rows), -1)
    for given in (rows, rows[::-1], rows[:, ::-1], misaligned[:, ::2], rows[:, :1], rows[:, :2]):
        for first in range(len(given)):  # the first row decides how far the kernel goes
            taken = given[first:]
            want = stable_order(taken, descending)
            for _ in range(2):
                assert_bits(ga.argsort(taken, descending=descending), want)
            out = np.full((len(taken), 2, taken.shape[1]), -1)
            ga.argsort(taken, descending=descending, out=out[:, 0])
            assert_bits(out[:, 0], want)
            assert (out[:, 1] == -1).all()


def test_the_same_layout_with_other_keys() -> None:
    """What is prepared for keys in runs does not stand for keys in no order, nor the reverse."""
    runs, random = np.arange(5000.0), np.random.default_rng(0).random(5000)
    for keys in (runs, random, runs, random[::-1].copy()):
        want = stable_order(keys)
        assert_bits(ga.argsort(keys), want)
        assert_bits(ga.argsort(keys, dtype=np.int32), want.astype(np.int32))
        assert_bits(ga.radix_sort(keys, want)[1], want[want])
