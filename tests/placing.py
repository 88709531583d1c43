"""Host arrays under the default device "auto": fake GPUs, arrays that count as page-locked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import fake_driver
import numpy as np
import pytest
from fake_driver import FakeDriver

import gpualgo as ga

N = 1 << 16  # keys from which on sorts go to the GPU


@contextmanager
def fakes(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    """Give two fake GPUs with 128 GiB each, and "auto" as the default device."""
    made = fake_driver.install(monkeypatch)
    fake_driver.stub_kernels(monkeypatch)
    fake_driver.register_arrays(monkeypatch)
    with ga.default_device("auto"):
        yield made


def locked(fake: FakeDriver, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a copy that counts as page-locked."""
    copy = x.copy()
    fake.page_locked[copy.ctypes.data] = copy.nbytes
    return copy


def where(function: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    return ga.explain(function, *args, **kwargs).device


def long(n: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    """Return an array of any length that takes no memory."""
    return np.broadcast_to(np.zeros(1, dtype), (n,))
