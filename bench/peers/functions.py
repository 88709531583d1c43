"""Calls of JAX, numba and polars, compiled and converted before the timing."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from bench import peers
from bench.peers import Contender, Prepared

# JAX has streams of its own, which events do not see. It is timed by the host's clock over several
# calls, which says little of small arrays: it takes no part in those.
JAX_LEAST = 1 << 24  # elements


def jax(function: Callable[..., Any]) -> Prepared:
    """Compile a function of jax.numpy and an array."""

    def make(x: Any) -> Contender | None:
        if x.size < JAX_LEAST:
            return None
        import jax.numpy as jnp

        held = peers.jax().dlpack.from_dlpack(x)
        compiled = peers.jax().jit(functools.partial(function, jnp))
        return functools.partial(compiled, held)

    return Prepared(make)


def jax_scan(operator: Callable[..., Any]) -> Prepared:
    """Compile an inclusive scan by an operator, a function of jax.numpy and two arrays."""
    return jax(lambda jnp, x: peers.jax().lax.associative_scan(functools.partial(operator, jnp), x))


def polars(function: Callable[[Any], Any]) -> Prepared:
    """Call a function of a polars series, which shares NumPy's memory."""

    def make(x: Any) -> Contender:
        import polars as pl

        series = pl.Series(x)
        return lambda: function(series).to_numpy()

    return Prepared(make)


def _sums_by_key(keys: Any, x: Any) -> Contender:
    import polars as pl

    table = pl.DataFrame({"key": keys, "x": x})
    return lambda: table.group_by("key").agg(pl.col("x").sum()).sort("key")["x"].to_numpy()


POLARS_SUMS_BY_KEY = Prepared(_sums_by_key)


@functools.cache
def _loop(name: str) -> Any:
    """Return a loop on the CPU's cores, as one writes it who knows neither library."""
    import numba

    prange = numba.prange

    def total(x):  # type: ignore[no-untyped-def]
        result = x.dtype.type(0)
        for i in prange(x.size):
            result += x[i]
        return result

    def scan(x, out):  # type: ignore[no-untyped-def]
        running = x.dtype.type(0)
        for i in range(x.size):
            running += x[i]
            out[i] = running
        return out

    def affine(x, out):  # type: ignore[no-untyped-def]
        for i in prange(x.size):
            out[i] = x[i] * x.dtype.type(2) + x.dtype.type(1)
        return out

    loops = {"total": total, "scan": scan, "affine": affine}
    # Sums may be taken in any order, as a parallel loop takes them anyway.
    return numba.njit(parallel=name != "scan", fastmath=True)(loops[name])


def _total(x: Any) -> Contender:
    loop, flat = _loop("total"), x.reshape(-1)
    return lambda: np.asarray(loop(flat), x.dtype)


NUMBA_TOTAL = Prepared(_total)
NUMBA_SCAN = Prepared(lambda x, out: functools.partial(_loop("scan"), x, out))
NUMBA_AFFINE = Prepared(lambda x, out: functools.partial(_loop("affine"), x, out))
