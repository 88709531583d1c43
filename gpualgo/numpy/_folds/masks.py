"""``where=`` of reductions: excluded elements are replaced by the identity."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._lazy.combining import led_by
from gpualgo._lazy.kept import Kept
from gpualgo.lazy import asarray as lazy_of
from gpualgo.lazy import full
from gpualgo.numpy._call import results
from gpualgo.numpy._call.arguments import array_of

_UNSET: Any = np._NoValue
_BOOL = np.dtype(bool)
# Identities; extremes use the initial value instead.
_IDENTITIES: dict[np.ufunc, Any] = {
    np.add: 0, np.multiply: 1, np.logical_or: False, np.logical_and: True, np.logical_xor: False,
    np.bitwise_or: 0, np.bitwise_xor: 0, np.bitwise_and: -1, np.gcd: 0, np.lcm: 1, np.hypot: 0,
    np.logaddexp: -np.inf, np.logaddexp2: -np.inf,
}  # fmt: skip


def mask_of(where: Any, shape: tuple[int, ...], name: str) -> Any:
    """Return ``where=`` as an array of bool that broadcasts to a shape; None for all."""
    if where is _UNSET or where is True:
        return None
    mask = where
    if isinstance(mask, np.ndarray) or not hasattr(mask, "dtype"):
        mask = np.asarray(mask)
        if not isinstance(where, np.ndarray):
            mask = mask.astype(bool)  # as NumPy does with lists and numbers
        if not mask.ndim:
            return None if mask else full(shape, False)
    mask = array_of(mask, f"{name}: where")
    if (kind := results.dtype_of(mask, name)) != _BOOL:
        raise TypeError(f"{name}: where has dtype {kind}; pass an array of bool")
    if len(mask.shape) > len(shape):
        raise ValueError(f"{name}: where has shape {mask.shape}, more axes than {shape}")
    return mask


def lazy_mask_of(where: Any, a: Any, name: str) -> Any:
    """Return the mask as a lazy array of the shape and in the library of an array."""
    shape = tuple(a.shape)
    mask = mask_of(where, shape, name)
    return None if mask is None else led_by(lazy_of(mask).broadcast_to(shape), lazy_of(a))


def identity_of(ufunc: np.ufunc, start: Any, kind: Any, name: str) -> Any:
    """Return the replacement of excluded elements: the identity, else the initial value."""
    if ufunc in _IDENTITIES:
        return np.array(_IDENTITIES[ufunc]).astype(kind)[()]  # -1 has all bits
    if start is None:
        raise ValueError(
            f"{name}: where= needs initial=, because there may be no elements to choose from"
        )
    return kind.type(start)


def _masked(x: Any, mask: Any, kind: Any, filler: Any, _bits: bytes) -> Any:
    """Return the elements, excluded ones replaced."""
    return np.where(mask.broadcast_to(x.shape), x if x.dtype == kind else x.astype(kind), filler)


MASKED = Kept(_masked)
