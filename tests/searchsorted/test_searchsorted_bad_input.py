"""What searchsorted refuses, and what it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import Backend

import gpualgo as ga


def refused(kind: type[Exception], message: str, call: Callable[[], Any]) -> None:
    with pytest.raises(kind, match=rf"^searchsorted: {message}") as caught:
        call()
    assert "\n" not in str(caught.value)


def test_arguments_that_do_not_fit(backend: Backend) -> None:
    a, v = (backend.to_device(np.arange(n, dtype=np.int32)) for n in (300, 20))
    f = ga.searchsorted
    refused(ValueError, "a has 2 dimensions", lambda: f(a.reshape(3, 100), v))
    refused(ValueError, "a has 0 dimensions", lambda: f(a[0:1].reshape(()), v))
    refused(ValueError, "side must be 'left' or 'right', got 'middle'",
            lambda: f(a, v, side="middle"))  # fmt: skip
    refused(TypeError, "side must be", lambda: f(a, v, side=True))
    refused(TypeError, "v and a differ in structure", lambda: f(a, (v, v)))
    refused(TypeError, "v and a differ in structure", lambda: f((a, a), v))
    refused(ValueError, "dtype int8 cannot hold 300", lambda: f(a, v, dtype="int8"))
    refused(TypeError, "dtype float32 cannot hold indices", lambda: f(a, v, dtype="float32"))
    refused(TypeError, "v", lambda: f(a, [1, 2]))
    refused(TypeError, "descending must be", lambda: f(a, v, descending=1))


def test_orders_that_are_none(backend: Backend) -> None:
    a = backend.to_device(np.arange(30, dtype=np.int32))
    numbers = backend.to_device(np.ones(3, np.complex64))
    f = ga.searchsorted
    refused(TypeError, "v has dtype complex64, which has no order", lambda: f(a, numbers))
    refused(TypeError, "a has dtype complex64, which has no order", lambda: f(numbers, a))
    refused(TypeError, "less returns int.*, and not a bool", lambda: f(a, a, less=lambda p, q: p))
    refused(TypeError, "less takes 1", lambda: f(a, a, less=lambda p: p > 0))
    refused(TypeError, "less must be callable", lambda: f(a, a, less=3))


def test_numbers_beside_a_gpu(backend: Backend) -> None:
    if backend.xp is np:
        pytest.skip("of device arrays")
    a = backend.to_device(np.arange(30))
    refused(TypeError, "v is the number 3 but a is on a GPU", lambda: ga.searchsorted(a, 3))
