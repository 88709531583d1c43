"""Runs a task: on the graph's device, with at most as many threads as its worker has."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from gpualgo._base import threads
from gpualgo._driver.default_device import default_device


def call(name: str, device: Any, args: tuple[Any, ...]) -> Any:
    with threads.at_most(_worker_threads()), default_device(device):
        return _function(name)(*args)


@functools.lru_cache(256)
def _function(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    resolved: Callable[..., Any] = getattr(import_module(f"gpualgo.dask.{module}"), function)
    return resolved


def name_of(function: Callable[..., Any]) -> str:
    """Return the name that `call` resolves to a function."""
    return f"{function.__module__.rpartition('.')[2]}:{function.__name__}"


def _worker_threads() -> int | None:
    """Return the worker's number of concurrent tasks; None outside a dask worker."""
    distributed = sys.modules.get("distributed.worker")
    if distributed is None:
        return None
    try:
        return max(1, int(distributed.get_worker().state.nthreads))
    except (AttributeError, ValueError):  # a thread of another scheduler
        return None
