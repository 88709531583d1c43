"""What arrays of a program hold, and what of results is compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from contract.state.memory import Host

SHAPES: dict[str, Callable[[int], tuple[int, ...]]] = {
    "n": lambda n: (n,), "m": lambda n: (n // 5, 5), "w": lambda n: (5,), "5": lambda n: (5,),
}  # fmt: skip


class Fault(AssertionError):
    """What a step did that is not right."""


def assert_same(got: Host, want: Host, tolerance: float, what: str) -> None:
    if got.shape != want.shape:
        raise Fault(f"{what}: shape {got.shape}, wanted {want.shape}")
    try:
        if tolerance and got.dtype.kind in "fc":
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(got, want)
    except AssertionError as error:
        raise Fault(f"{what}: {' '.join(str(error).split())}") from None


def listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, (tuple, list)) else [results]


def dtype_of(kind: str, own: str) -> np.dtype[Any]:
    return np.dtype({"i": "u1", "b": "?", "o": "i8", "w": "f8"}.get(kind, own))


def values_of(kind: str, shape: Any, dtype: Any, n: int, rng: np.random.Generator) -> Host:
    """Return small whole numbers, so that every order of association gives the same sums."""
    low = 0 if dtype.kind == "u" else -8
    found = rng.integers(low, 9, shape)
    if kind == "s":
        found = np.sort(found, axis=-1)
    elif kind == "k":
        found = np.repeat(found, 3)[: found.size].reshape(shape) // 3
    elif kind == "i":
        found = abs(found) % 7
    elif kind == "b":
        found = found > 0
    elif kind == "o":
        found = np.sort(rng.integers(0, n + 1, shape))
    return found.astype(dtype)
