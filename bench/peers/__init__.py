"""The libraries that gpualgo is compared with: which of them are here, and which are wanted."""

from __future__ import annotations

import functools
import importlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

OURS = "gpualgo"
PEERS = ("CUB", "cuda.compute", "CuPy", "torch", "JAX", "NumPy", "numba", "polars")
NO_PEER = "none"  # given as a peer: no library at all takes part

Contender = Callable[[], Any]


@dataclass(frozen=True)
class Prepared:
    """A call whose storage or compilation is not timed: `make` returns the call, or None."""

    make: Callable[..., Any]
    cub_source: str = ""  # the .cu file that it is compiled from


_wanted: list[str] = []  # peers by the beginnings of their names; empty: all of them


def want(peers: list[str]) -> None:
    """Let only these peers take part; all of them if the list is empty."""
    _wanted[:] = [peer.lower() for peer in peers]


def is_wanted(who: str) -> bool:
    """Return whether a contender takes part; one that is no library's always does."""
    if not who.startswith(PEERS):
        return True
    return not _wanted or any(who.lower().startswith(start) for start in _wanted)


def is_here(who: str) -> bool:
    """Return whether a contender takes part and its library is installed and works here."""
    find = next((find for peer, find in _FIND.items() if who.startswith(peer)), None)
    return is_wanted(who) and (find is None or find() is not None)


@functools.cache
def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except Exception:  # what is installed and does not load is not here either
        return None


@functools.cache
def gpu() -> Any:
    """Return CuPy where it and a GPU are here, else None."""
    cupy = _module("cupy")
    try:
        return cupy if cupy is not None and cupy.cuda.runtime.getDeviceCount() else None
    except Exception:  # no driver, no device: the CPU's rows run without
        return None


@functools.cache
def torch() -> Any:
    """Return PyTorch where it sees a GPU, else None."""
    module = _module("torch")
    return module if module is not None and module.cuda.is_available() else None


@functools.cache
def jax() -> Any:
    """Return JAX where it sees a GPU, else None. It takes memory as it needs it."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    module = _module("jax") if gpu() is not None else None
    try:
        if module is None or module.default_backend() != "gpu":
            return None
        module.config.update("jax_enable_x64", True)  # without it JAX works in 32 bits
    except Exception:  # a GPU that JAX was not built for
        return None
    return module


_FIND: dict[str, Callable[[], Any]] = {
    "CUB": lambda: shutil.which("nvcc"),
    "cuda.compute": lambda: _module("cuda.compute"),
    "CuPy": gpu,
    "torch": torch,
    "JAX": jax,
    "polars": lambda: _module("polars"),
}


def as_tensor(x: Any) -> Any:
    """Return CuPy arrays' memory as tensors of PyTorch, anything else as it is."""
    if isinstance(x, dict):
        return {name: as_tensor(each) for name, each in x.items()}
    if isinstance(x, tuple):
        tensors = map(as_tensor, x)
        return x._make(tensors) if hasattr(x, "_make") else tuple(tensors)
    return torch().from_dlpack(x) if isinstance(x, gpu().ndarray) else x


def free_memory() -> None:
    """Give the peers' pooled memory back, so that the next row finds all of it."""
    if gpu() is not None:
        gpu().get_default_memory_pool().free_all_blocks()
        if is_here("torch"):
            torch().cuda.empty_cache()
