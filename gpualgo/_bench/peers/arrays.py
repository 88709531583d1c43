"""JAX on a GPU, on the memory of CuPy's arrays.

Its streams are its own, so that events do not see its work: it is timed by the host's clock over
several calls in a row, which tells little of small arrays. Those it takes no part in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpualgo._bench.support import Contender, jax

NAME = "JAX"
LEAST = 1 << 24  # elements


def function(make: Callable[[Any], Callable[[Any], Any]], x: Any) -> dict[str, Contender]:
    """Return a compiled function of an array; `make` gives it from jax.numpy."""
    module = jax() if x.size >= LEAST else None
    if module is None:
        return {}
    import jax.numpy as jnp

    held = module.dlpack.from_dlpack(x)
    compiled = module.jit(make(jnp))
    return {NAME: lambda: compiled(held)}


def scan(make: Callable[[Any], Callable[[Any, Any], Any]], x: Any) -> dict[str, Contender]:
    """Return an inclusive scan by an operator, by `jax.lax.associative_scan`."""
    module = jax() if x.size >= LEAST else None
    if module is None:
        return {}
    import jax.numpy as jnp

    fold, held = make(jnp), module.dlpack.from_dlpack(x)
    compiled = module.jit(lambda v: module.lax.associative_scan(fold, v))
    return {NAME: lambda: compiled(held)}
