"""Where the methods of quantiles look among sorted elements, as NumPy computes it to the bit.

R. J. Hyndman and Y. Fan, "Sample Quantiles in Statistical Packages", The American Statistician
50(4), 1996, doi:10.1080/00031305.1996.10473566. Each function takes the number n of elements, n - 1
and q in one dtype, as arrays of the host or as numbers in a kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gpualgo._base.errors import shown

Dtype = np.dtype[Any]


def _inverted_cdf(n: Any, most: Any, q: Any) -> Any:
    at = n * q - 1
    return np.maximum(np.ceil(at), 0)


def _closest_observation(n: Any, most: Any, q: Any) -> Any:
    at = n * q - 1 - 0.5
    below = np.floor(at)
    is_even = (at - below == 0) & (below % 2 == 1)
    return np.maximum(np.where(is_even, below, below + 1), 0)


def _lower(n: Any, most: Any, q: Any) -> Any:
    return np.floor(most * q)


def _higher(n: Any, most: Any, q: Any) -> Any:
    return np.ceil(most * q)


def _nearest(n: Any, most: Any, q: Any) -> Any:
    return np.rint(most * q)


def _averaged_inverted_cdf(n: Any, most: Any, q: Any) -> Any:
    return n * q - 1


def _interpolated_inverted_cdf(n: Any, most: Any, q: Any) -> Any:
    return n * q + (0 + q * 0) - 1


def _hazen(n: Any, most: Any, q: Any) -> Any:
    return n * q + (0.5 + q * (1 - 0.5 - 0.5)) - 1


def _weibull(n: Any, most: Any, q: Any) -> Any:
    return n * q + (0 + q * 1) - 1


def _linear(n: Any, most: Any, q: Any) -> Any:
    return most * q


def _median_unbiased(n: Any, most: Any, q: Any) -> Any:
    return n * q + (1 / 3.0 + q * (1 - 1 / 3.0 - 1 / 3.0)) - 1


def _normal_unbiased(n: Any, most: Any, q: Any) -> Any:
    return n * q + (3 / 8.0 + q * (1 - 3 / 8.0 - 3 / 8.0)) - 1


def _midpoint(n: Any, most: Any, q: Any) -> Any:
    return 0.5 * (np.floor(most * q) + np.ceil(most * q))


# Those that take one element as it is.
PICKING: dict[str, Callable[[Any, Any, Any], Any]] = {
    "inverted_cdf": _inverted_cdf, "closest_observation": _closest_observation, "lower": _lower,
    "higher": _higher, "nearest": _nearest,
}  # fmt: skip
# Those that look between two.
BETWEEN: dict[str, Callable[[Any, Any, Any], Any]] = {
    "averaged_inverted_cdf": _averaged_inverted_cdf,
    "interpolated_inverted_cdf": _interpolated_inverted_cdf, "hazen": _hazen,
    "weibull": _weibull, "linear": _linear, "median_unbiased": _median_unbiased,
    "normal_unbiased": _normal_unbiased, "midpoint": _midpoint,
}  # fmt: skip


# What part of the way from one element to the next: of the place and what it is past the first.


def _as_far(at: Any, part: Any) -> Any:
    return part


def _half_if_whole(at: Any, part: Any) -> Any:
    return np.where(part == 0, 0.5, 1.0)


def _half_unless_whole(at: Any, part: Any) -> Any:
    return np.where(at % 1 == 0, 0.0, 0.5)


PARTS = {"averaged_inverted_cdf": _half_if_whole, "midpoint": _half_unless_whole}


class Places(NamedTuple):
    """What elements quantiles are made of, each array in the shape of q."""

    low: Any
    high: Any
    part: Any  # of the way from the one to the other; None: the element itself
    rest: Any  # 1 - part
    kind: Dtype  # of the result


def check(method: Any, where: str) -> None:
    """Raise ValueError for a method that is none."""
    if method not in PICKING and method not in BETWEEN:
        raise ValueError(
            f"{where}: {shown(method)} is no method; use one of {', '.join([*PICKING, *BETWEEN])}"
        )


def places_of(count: Any, q: Any, method: str, is_weak: bool, own: Dtype) -> Places:
    """Return where quantiles of so many elements of a dtype lie.

    Of an array of numbers of elements q is broadcast against it; of none it is the first one.
    """
    count = np.asarray(count)
    last = np.maximum(count - 1, 0)
    kind = result_dtype(q, method, is_weak, own)
    if q.dtype.kind in "biu":
        at = np.where(q, last, 0)  # an end, whatever the method
        return Places(at, at, None, None, kind)
    own_part, q = q.dtype, counting(q, count.max(initial=0))
    with np.errstate(all="ignore"):
        n, most = count.astype(q.dtype), (count - 1).astype(q.dtype)
        if method in PICKING:
            at = np.clip(PICKING[method](n, most, q), 0, last).astype(np.int64)
            return Places(at, at, None, None, kind)
        at = np.asarray(BETWEEN[method](n, most, q))
        is_last = at >= most  # NumPy's place is -1 then
        below = np.where(is_last, -1, np.where(at < 0, 0, np.floor(at)))
        part = PARTS.get(method, _as_far)(at, (at - below).astype(at.dtype))
        part = np.minimum(part, MOST_PART).astype(own_part)
    low = np.where(is_last, last, below).astype(np.int64)
    high = np.where(is_last | (at < 0), low, low + 1)
    if is_weak:
        way = np.asarray(part, np.float64)
        return Places(low, high, way.astype(kind), (1 - way).astype(kind), kind)
    return Places(low, high, np.asarray(part), np.asarray(1 - part), kind)


MOST_PART = 2.0
"""Past the last element the way is of no length: a greater part of it is beyond float16."""

_MOST_IN_FLOAT16 = 65_519  # numbers from the next one on are infinite


def counting(q: Any, length: int) -> Any:
    """Return q in a dtype that has numbers for the places of so many elements.

    NumPy looks in that of q: in float16 it finds none for more, and NaN or the last element.
    """
    is_beyond = q.dtype == np.float16 and length > _MOST_IN_FLOAT16
    return q.astype(np.float64) if is_beyond else q


def is_picking(q: Any, method: str) -> bool:
    """Return whether results are elements as they are."""
    return method in PICKING or (method == "linear" and q.dtype.kind in "biu")


def result_dtype(q: Any, method: str, is_weak: bool, own: Dtype) -> Dtype:
    """Return the dtype of quantiles, as NumPy's arithmetic has it."""
    if is_picking(q, method):
        return own
    if is_weak:
        return np.dtype((np.zeros(1, own) * 0.5).dtype)
    part = q.dtype
    if part.kind in "biu":
        whole = ("averaged_inverted_cdf", "interpolated_inverted_cdf", "weibull")
        part = np.dtype(np.int64 if method in whole else np.float64)
    return np.dtype((np.zeros(1, own) * np.zeros(1, part)).dtype)
