"""What tests of sharded arrays share: devices to cut over, and comparisons to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import support
from pieces import leaves
from support import Backend

import gpualgo as ga

COUNTS = (1, 2, 3, 4, 8)
SIZES = (0, 1, 2, 7, 1000)


def devices(backend: Backend, count: int) -> list[str]:
    """Return devices of a backend: the CPU several times, or the GPUs there are, in turns."""
    if backend.name == "cpu":
        return [f"cpu:{number}" for number in range(count)]
    return [f"cuda:{number % support.count_gpus()}" for number in range(count)]


def cut(backend: Backend, x: np.ndarray[Any, Any], count: int, axis: int = 0) -> Any:
    """Return an array over so many devices."""
    return ga.distribute(x, devices(backend, count), axis=axis)


def on_host(x: Any) -> np.ndarray[Any, Any]:
    """Return a result's elements, wherever they are."""
    if isinstance(x, ga.ShardedArray):
        return np.asarray(x.gather("cpu"))
    if isinstance(x, ga.DeviceArray):
        return x.copy_to_host()
    return np.asarray(x.get()) if hasattr(x, "get") else np.asarray(x)


def check(got: Any, want: Any) -> None:
    """Compare results: how they are built, dtype, shape, all bits."""
    assert isinstance(got, tuple) == isinstance(want, tuple)
    if isinstance(want, tuple):
        assert type(got) is type(want)
    for one, other in zip(leaves(got), leaves(want), strict=True):
        found, wanted = on_host(one), on_host(other)
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape == tuple(one.shape)
        assert found.tobytes() == np.ascontiguousarray(wanted).tobytes(), (found, wanted)
