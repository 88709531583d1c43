"""Where a task runs: the device that the graph says, no more threads than its worker has."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from gpualgo._base import threads
from gpualgo._driver.default_device import default_device


def call(name: str, device: str, args: tuple[Any, ...]) -> Any:
    """Call a function of this package by its name."""
    with threads.at_most(_worker_threads()), default_device(device):
        return _function(name)(*args)


@functools.lru_cache(256)
def _function(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(import_module(f"gpualgo.dask.{module}"), function)
    return found


def name_of(function: Callable[..., Any]) -> str:
    """Return the name by which `call` finds a function."""
    return f"{function.__module__.rpartition('.')[2]}:{function.__name__}"


def _worker_threads() -> int | None:
    """Return how many tasks this process's worker runs at once; None if it is no worker."""
    distributed = sys.modules.get("distributed.worker")
    if distributed is None:
        return None
    try:
        return max(1, int(distributed.get_worker().state.nthreads))
    except (AttributeError, ValueError):  # another scheduler's thread
        return None
