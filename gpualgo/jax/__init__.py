"""The algorithms in JAX programs: inside ``jax.jit``, with gradients and ``jax.vmap``.

Each function is a call of XLA's foreign function interface, on the CPU and on a GPU. Shapes,
options and operators are static. See https://github.com/gpualgo/gpualgo/blob/main/docs/jax.md.
"""

try:
    import jax as _jax  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"gpualgo.jax needs jax ({error}); run `pip install 'gpualgo[jax]'`"
    ) from error

from gpualgo._algorithms import show_signatures as _show_signatures
from gpualgo.jax._folds import (
    ReducedByKey,
    exclusive_scan,
    inclusive_scan,
    linear_recurrence,
    reduce,
    reduce_by_index,
    reduce_by_key,
    segmented_exclusive_scan,
    segmented_inclusive_scan,
    segmented_reduce,
)
from gpualgo.jax._orders import Selected, argsort, histogram, searchsorted, select, sort, top_k

__all__ = [
    "ReducedByKey", "Selected", "argsort", "exclusive_scan", "histogram", "inclusive_scan",
    "linear_recurrence", "reduce", "reduce_by_index", "reduce_by_key", "searchsorted",
    "segmented_exclusive_scan", "segmented_inclusive_scan", "segmented_reduce", "select", "sort",
    "top_k",
]  # fmt: skip

_functions = map(globals().__getitem__, __all__)
_show_signatures(*_functions, first="import jax, jax.numpy as jnp, gpualgo.jax as gj")
