"""With GPUALGO_CHECK=1 merge and searchsorted look whether arrays are in order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Backend

import gpualgo as ga

RISING = np.array([1, 3, 3, 7, 9, 9, 12], np.int32)
WRONG = np.array([1, 3, 2, 7, 9, 9, 12], np.int32)


def coarse(a: Any, b: Any) -> Any:
    return a // 4 < b // 4


@pytest.fixture(autouse=True)
def _checks_are_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUALGO_CHECK", "1")


def test_what_is_in_order(backend: Backend) -> None:
    a, v = backend.to_device(RISING), backend.to_device(RISING[::2].copy())
    np.testing.assert_array_equal(
        backend.to_host(ga.searchsorted(a, v)), np.searchsorted(RISING, RISING[::2])
    )
    both = np.sort(np.append(RISING, RISING[::2]))
    np.testing.assert_array_equal(backend.to_host(ga.merge(a, v)), both)
    np.testing.assert_array_equal(
        backend.to_host(ga.merge(a[::-1], v[::-1], descending=True)), both[::-1]
    )
    some = backend.to_device(WRONG)  # within fours in any order
    np.testing.assert_array_equal(
        backend.to_host(ga.searchsorted(some, v, less=coarse)),
        np.searchsorted(WRONG // 4, RISING[::2] // 4),
    )
    floats = backend.to_device(np.array([-0.0, 0.0, -0.0, np.inf, np.nan, np.nan]))
    assert int(backend.to_host(ga.searchsorted(floats, floats[3:4]))[0]) == 3


def test_what_is_not(backend: Backend) -> None:
    a, wrong = backend.to_device(RISING), backend.to_device(WRONG)
    message = "is not in order from element 1 on; sort it first"
    with pytest.raises(ValueError, match=f"^searchsorted: a {message}"):
        ga.searchsorted(wrong, a)
    with pytest.raises(ValueError, match=f"^merge: a {message}"):
        ga.merge(wrong, a)
    with pytest.raises(ValueError, match=f"^merge: b {message}"):
        ga.merge(a, wrong)
    with pytest.raises(ValueError, match=r"^merge: a is not in order"):
        ga.merge(a, a, descending=True)
    with pytest.raises(ValueError, match=r"^merge: b is not in order from element 2 on"):
        ga.merge(a, wrong, less=lambda a, b: a < b)
    pairs = (a, wrong), (a, a)
    with pytest.raises(ValueError, match=r"^searchsorted: a is not in order from element 2 on"):
        ga.searchsorted(*pairs, less=lambda a, b: a[1] < b[1])
    with pytest.raises(ValueError, match=r"^searchsorted: a is not in order"):
        ga.searchsorted((a, wrong), (a, a), descending=True)


def test_what_a_tuple_broadcasts(backend: Backend) -> None:
    """It has no neighbours of its own."""
    a, wrong, one = (backend.to_device(x) for x in (RISING, WRONG, np.array([3])))
    plain = ga.searchsorted(a, a)
    for other in (one, one.reshape(()), *([3] if isinstance(a, np.ndarray) else [])):
        got = ga.searchsorted((a, other), (a, one), less=lambda a, b: a[0] < b[0])
        np.testing.assert_array_equal(backend.to_host(got), backend.to_host(plain))
        with pytest.raises(ValueError, match=r"^merge: b is not in order from element 2 on"):
            ga.merge((a, one), (wrong, other), less=lambda a, b: a[0] < b[0])


def test_what_is_taken_down_is_not_looked_at(backend: Backend) -> None:
    a, wrong = backend.to_device(RISING), backend.to_device(WRONG)
    for function in (ga.searchsorted, ga.merge):
        plan = ga.prepare(function, wrong, a)
        np.testing.assert_array_equal(backend.to_host(plan(a, a)), backend.to_host(function(a, a)))
        assert function.__name__ in str(ga.explain(function, wrong, a))


def test_not_without(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPUALGO_CHECK")
    wrong = backend.to_device(WRONG)
    assert ga.searchsorted(wrong, wrong).shape == wrong.shape
