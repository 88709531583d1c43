"""What a benchmark is made of: rows, the work that they compare, and the peers' libraries."""

from __future__ import annotations

import functools
import importlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from gpualgo._bench.sizes import size_text

Contender = Callable[[], Any]
OURS = "gpualgo"
PEERS = ("CUB", "cuda.compute", "CuPy", "torch", "JAX", "NumPy", "numba", "polars")
NO_PEER = "none"  # beside no library at all
_DTYPE = re.compile(r"\b(float|int|uint|bool|f|i|u)(8|16|32|64|)\b")


@dataclass(frozen=True)
class Work:
    """What a row compares: each contender does the same work and returns the same values."""

    contenders: dict[str, Contender]
    expected: Any  # an array, or a tuple of them
    tolerance: float = 0.0  # relative; 0 where the result is exact
    any_dtype: bool = False  # the libraries' results differ in dtype


@dataclass(frozen=True)
class Row:
    """One row of the table. Arrays are made only when it runs, and freed after it."""

    name: str
    n: int
    # "device", "host" (enqueue only), "cpu" (to the result), "wall" (to the result, arrays of the
    # host where a GPU is), "start" (of a process)
    clock: str
    build: Callable[[int], Work]
    bytes_moved: float = 0.0
    quick: bool = True
    beside: str = ""  # the one peer that the ratio is taken with; else the best of them
    dtype: str = ""  # where the name does not tell
    of_its_size: bool = False  # there is no such row of another n
    entropy: float | None = None
    algorithm: str = ""  # the file that lists it; the catalog fills it in

    def __str__(self) -> str:
        return f"{self.name}, n={size_text(self.n)}, {self.clock}"

    @property
    def key(self) -> tuple[str, int, str]:
        return self.name, self.n, self.clock

    @property
    def dtypes(self) -> frozenset[str]:
        """Return the dtypes that it is about, as f32 or u8."""
        return frozenset(map(short_dtype, _dtypes_in(self.dtype or self.name)))

    def at(self, n: int) -> Row:
        """Return the same row of another size."""
        return replace(self, n=n, bytes_moved=self.bytes_moved * n / self.n)


def _dtypes_in(text: str) -> list[str]:
    return [found[0] for found in _DTYPE.finditer(text) if found[2] or found[1] == "bool"]


def short_dtype(name: str) -> str:
    """Return a dtype's short name: f32 of float32."""
    for long, short in (("float", "f"), ("uint", "u"), ("int", "i")):
        name = re.sub(rf"^{long}(?=\d)", short, name)
    return name


def refuse_to_build(_: int) -> Work:
    """Stand for the work of a row that was read from a file, or times whole processes."""
    raise NotImplementedError("there is no work to build for this row")


_wanted: list[str] = []  # peers by the beginnings of their names; none: all of them


def want(peers: list[str]) -> None:
    """Let only these peers take part; all of them if the list is empty."""
    _wanted[:] = [peer.lower() for peer in peers]


def is_wanted(peer: str) -> bool:
    """Return whether a contender takes part; those that are no library's always do."""
    if not peer.startswith(PEERS):
        return True
    return not _wanted or any(peer.lower().startswith(start) for start in _wanted)


@functools.cache
def gpu() -> Any:
    """Return CuPy where it and a GPU are there, else None."""
    try:
        import cupy

        return cupy if cupy.cuda.runtime.getDeviceCount() else None
    except Exception:  # no CuPy, no driver, no device: the CPU rows run without
        return None


@functools.cache
def _found(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except Exception:  # what is installed and does not load is not there either
        return None


def torch() -> Any:
    """Return PyTorch if it is wanted and sees a GPU."""
    module = _found("torch") if is_wanted("torch") else None
    return module if module is not None and module.cuda.is_available() else None


def jax() -> Any:
    """Return JAX if it is wanted and sees a GPU; it takes memory as it needs it here."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    module = _found("jax") if gpu() is not None and is_wanted("JAX") else None
    try:
        if module is None or module.default_backend() != "gpu":
            return None
        module.config.update("jax_enable_x64", True)  # else it would work in 32 bits
    except Exception:  # a GPU that JAX was not built for
        return None
    return module


def polars() -> Any:
    """Return polars if it is wanted and installed."""
    return _found("polars") if is_wanted("polars") else None


def free_memory() -> None:
    """Give the peers' pooled memory back, so that the next row finds all of it."""
    if gpu() is not None:
        gpu().get_default_memory_pool().free_all_blocks()
        if torch() is not None:
            torch().cuda.empty_cache()


def as_tensor(x: Any) -> Any:
    """Return a CuPy array's memory as a tensor of PyTorch."""
    return torch().from_dlpack(x)
