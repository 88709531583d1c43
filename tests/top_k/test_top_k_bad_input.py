"""What top_k and kth_value refuse, and what they say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import Backend

import gpualgo as ga


def refused(kind: type[Exception], message: str, call: Callable[[], Any]) -> None:
    with pytest.raises(kind, match=rf"^{message}") as caught:
        call()
    assert "\n" not in str(caught.value)


def test_counts(backend: Backend) -> None:
    x, f = backend.to_device(np.arange(20.0).reshape(4, 5)), ga.top_k
    refused(ValueError, "top_k: k is 6, and there are 5 elements", lambda: f(x, 6))
    refused(ValueError, "top_k: k is 21, and there are 20", lambda: f(x, 21, axis=None))
    refused(ValueError, "top_k: k is -1", lambda: f(x, -1))
    for bad in (True, 2.0, "2", None, np.array([2]), np.True_):
        refused(TypeError, "top_k: k must be an int", lambda bad=bad: f(x, bad))
    refused(ValueError, "top_k: mode must be 'largest' or 'smallest', got 'most'",
            lambda: f(x, 2, mode="most"))  # fmt: skip
    refused(TypeError, "top_k: mode must be", lambda: f(x, 2, mode=True))  # type: ignore[arg-type]
    refused(TypeError, "top_k: mode must be", lambda: f(x, 2, mode=["largest"]))  # type: ignore[arg-type]


def test_ranks(backend: Backend) -> None:
    x, f = backend.to_device(np.arange(20.0).reshape(4, 5)), ga.kth_value
    for bad in (5, -1, [0, 5], (-2, 1), np.array([9])):
        refused(
            ValueError,
            "kth_value: rank k=.* is out of range for 5 elements",
            lambda bad=bad: f(x, bad),
        )
    for wrong in (True, 1.0, "1", None, [1.0], (True,), [[1]], np.array([1.0]), np.array([[1]])):
        refused(TypeError, "kth_value: (each of )?k ", lambda wrong=wrong: f(x, wrong))
    refused(TypeError, "kth_value: k is an array", lambda: f(x, np.array([True])))
    assert backend.to_host(f(x, np.array(3))).shape == (4,)


def test_elements_that_have_no_order(backend: Backend) -> None:
    x = backend.to_device(np.ones(9, np.complex64))
    refused(TypeError, "top_k: x has dtype complex64, which has no order", lambda: ga.top_k(x, 1))
    refused(TypeError, "kth_value: x has dtype complex64.* as x.real", lambda: ga.kth_value(x, 1))
    none = backend.to_device(np.ones((3, 0)))
    refused(ValueError, "kth_value: x has 0 elements", lambda: ga.kth_value(none, 0))
    y = backend.to_device(np.ones(9))
    refused(TypeError, "top_k: x is a tuple", lambda: ga.top_k((y, y), 1))  # type: ignore[arg-type]
    pairs = np.zeros(9, [("a", "i4"), ("b", "f4")])
    refused(TypeError, "kth_value: x has structured dtype", lambda: ga.kth_value(pairs, 1))
    refused(TypeError, "top_k: x", lambda: ga.top_k([1, 2], 1))  # type: ignore[arg-type]
