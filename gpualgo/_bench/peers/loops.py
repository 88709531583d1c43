"""Loops by numba on the CPU's cores: what one would write who knows neither library."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gpualgo._bench.support import Contender, is_wanted

NAME = "numba"


@functools.cache
def _compiled(name: str) -> Any:
    import numba

    # Sums may be taken in any order, as a parallel loop takes them anyway.
    return numba.njit(parallel=name != "scan", fastmath=True)(_LOOPS[name](numba.prange))


def _sum_in(prange: Any) -> Any:
    def total(x: Any) -> Any:
        result = x.dtype.type(0)
        for i in prange(x.size):
            result += x[i]
        return result

    return total


def _scan_in(prange: Any) -> Any:
    def scan(x: Any, out: Any) -> None:
        running = x.dtype.type(0)
        for i in range(x.size):
            running += x[i]
            out[i] = running

    return scan


def _affine_in(prange: Any) -> Any:
    def affine(x: Any, out: Any) -> None:
        for i in prange(x.size):
            out[i] = x[i] * x.dtype.type(2) + x.dtype.type(1)

    return affine


_LOOPS = {"sum": _sum_in, "scan": _scan_in, "affine": _affine_in}


def reduction(x: Any) -> dict[str, Contender]:
    """Return a parallel loop that sums an array."""
    if not is_wanted(NAME):
        return {}
    loop, flat = _compiled("sum"), x.reshape(-1)
    return {NAME: lambda: np.asarray(loop(flat), x.dtype)}


def into(name: str, x: Any, out: Any) -> dict[str, Contender]:
    """Return the loop of that name, which writes an array: "scan" (one core) or "affine"."""
    if not is_wanted(NAME):
        return {}
    loop = _compiled(name)

    def call() -> Any:
        loop(x, out)
        return out

    return {NAME: call}
