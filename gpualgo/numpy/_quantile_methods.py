"""Positions of quantiles among sorted elements for each method, bit for bit as in NumPy.

R. J. Hyndman and Y. Fan, "Sample Quantiles in Statistical Packages", The American Statistician
50(4), 1996, doi:10.1080/00031305.1996.10473566. Each function takes the number n of elements, n - 1
and q in one dtype: host arrays, or numbers in a kernel.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gpualgo._base.errors import shown

Dtype = np.dtype[Any]


def _closest_observation(n: Any, most: Any, q: Any) -> Any:
    position = n * q - 1 - 0.5
    below = np.floor(position)
    is_even = (position - below == 0) & (below % 2 == 1)
    return np.maximum(np.where(is_even, below, below + 1), 0)


def _linear(n: Any, most: Any, q: Any) -> Any:
    return most * q


MEDIAN = "median"  # of q = 0.5, not a caller's: positions are linear, between two is their mean

# Methods that choose one element.
DISCRETE_METHODS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "inverted_cdf": lambda n, most, q: np.maximum(np.ceil(n * q - 1), 0),
    "closest_observation": _closest_observation,
    "lower": lambda n, most, q: np.floor(most * q),
    "higher": lambda n, most, q: np.ceil(most * q),
    "nearest": lambda n, most, q: np.rint(most * q),
}
# Methods that interpolate between two elements.
INTERPOLATING_METHODS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "averaged_inverted_cdf": lambda n, most, q: n * q - 1,
    "interpolated_inverted_cdf": lambda n, most, q: n * q + (0 + q * 0) - 1,
    "hazen": lambda n, most, q: n * q + (0.5 + q * (1 - 0.5 - 0.5)) - 1,
    "weibull": lambda n, most, q: n * q + (0 + q * 1) - 1,
    "linear": _linear,
    "median_unbiased": lambda n, most, q: n * q + (1 / 3.0 + q * (1 - 1 / 3.0 - 1 / 3.0)) - 1,
    "normal_unbiased": lambda n, most, q: n * q + (3 / 8.0 + q * (1 - 3 / 8.0 - 3 / 8.0)) - 1,
    "midpoint": lambda n, most, q: 0.5 * (np.floor(most * q) + np.ceil(most * q)),
}


# The interpolation fraction, from a position and its fractional part, if it is another.
_FRACTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "averaged_inverted_cdf": lambda position, fraction: np.where(fraction == 0, 0.5, 1.0),
    "midpoint": lambda position, fraction: np.where(position % 1 == 0, 0.0, 0.5),
}


MOST_FRACTION = 2.0  # at the last element, where it has no effect: float16 cannot hold more


@functools.cache
def ranks_by(method: str) -> Callable[..., tuple[Any, Any, Any]]:
    """Return a function for the ranks on both sides of a quantile and the fraction between them.

    It takes host arrays, or numbers in a kernel.
    """
    if method in DISCRETE_METHODS:
        rank_of = DISCRETE_METHODS[method]

        def rank(count: Any, n: Any, most: Any, q: Any) -> tuple[Any, Any, Any]:
            found = np.clip(np.int64(rank_of(n, most, q)), 0, np.maximum(count - 1, 0))
            return found, found, 0.0

        return rank
    position_of = INTERPOLATING_METHODS.get(method, _linear)
    fraction_of = _FRACTIONS.get(method, lambda position, fraction: fraction)

    def ranks(count: Any, n: Any, most: Any, q: Any) -> tuple[Any, Any, Any]:
        position = position_of(n, most, q)
        is_last, is_before = position >= most, position < 0
        below = np.where(is_last, -1, np.where(is_before, 0, np.floor(position)))  # -1 as in NumPy
        low = np.where(is_last, np.maximum(count - 1, 0), np.int64(below))
        fraction = np.minimum(fraction_of(position, position - below), MOST_FRACTION)
        return low, np.where(is_last | is_before, low, low + 1), fraction

    return ranks


class Ranks(NamedTuple):
    """Ranks and fractions of quantiles; each array has the shape of q."""

    low: Any
    high: Any
    fraction: Any  # of interpolation; None: the element itself
    complement: Any  # 1 - fraction
    kind: Dtype  # of the result


def check(method: Any, where: str) -> None:
    if method not in DISCRETE_METHODS and method not in INTERPOLATING_METHODS:
        names = ", ".join([*DISCRETE_METHODS, *INTERPOLATING_METHODS])
        raise ValueError(f"{where}: {shown(method)} is unknown; use one of {names}")


@functools.lru_cache(256, typed=True)
def single_ranks(count: int, q: Any, kind: Dtype, method: str, is_weak: bool, own: Dtype) -> Ranks:
    """Return the ranks of one quantile, a number of a dtype."""
    return ranks_of(count, np.asarray(q, kind), method, is_weak, own)


def ranks_of(count: Any, q: Any, method: str, is_weak: bool, own: Dtype) -> Ranks:
    """Return the ranks of quantiles of `count` elements of a dtype.

    An array of counts is broadcast against q; for a count of 0 the rank is 0.
    """
    count, kind = np.asarray(count), result_dtype(q.dtype, method, is_weak, own)
    if method == MEDIAN:
        low, high, half = (count - (count > 0)) // 2, count // 2, 0.5 * (1 - count % 2)
        is_one = not half.ndim and not half  # of an odd number
        return Ranks(low, high, None if is_one else half, half, kind)
    if q.dtype.kind in "biu":
        is_element = own.kind in "biu" or is_picking(q.dtype, method)
        method, q = ("lower" if is_element else method), q.astype(np.float64)
    q_dtype, q = q.dtype, counting(q, count.max(initial=0))
    with np.errstate(all="ignore"):
        n, most = count.astype(q.dtype), (count - 1).astype(q.dtype)
        low, high, fraction = map(np.asarray, ranks_by(method)(count, n, most, q))
    if method in DISCRETE_METHODS:
        return Ranks(low, high, None, None, kind)
    fraction = fraction.astype(q_dtype)
    if is_weak:
        wide = np.asarray(fraction, np.float64)
        return Ranks(low, high, wide.astype(kind), (1 - wide).astype(kind), kind)
    return Ranks(low, high, fraction, np.asarray(1 - fraction), kind)


_MOST_IN_FLOAT16 = 65_519  # larger integers are infinite in float16


def counting(q: Any, length: int) -> Any:
    """Return q in a dtype that can represent ranks of so many elements.

    NumPy computes ranks in q's dtype: float16 gives NaN or the last element for more elements.
    """
    is_beyond = q.dtype == np.float16 and length > _MOST_IN_FLOAT16
    return q.astype(np.float64) if is_beyond else q


def is_picking(q: Dtype, method: str) -> bool:
    """Return whether results are elements, without interpolation, for q of a dtype."""
    return method in DISCRETE_METHODS or (method == "linear" and q.kind in "biu")


def result_dtype(q: Dtype, method: str, is_weak: bool, own: Dtype) -> Dtype:
    """Return the dtype of quantiles by NumPy's arithmetic, for q of a dtype."""
    if method == MEDIAN:
        return np.dtype(np.float64) if own.kind in "biu" else own
    if is_picking(q, method):
        return own
    if is_weak:
        return np.dtype((np.zeros(1, own) * 0.5).dtype)
    if q.kind in "biu":
        integer_methods = ("averaged_inverted_cdf", "interpolated_inverted_cdf", "weibull")
        q = np.dtype(np.int64 if method in integer_methods else np.float64)
    return np.dtype((np.zeros(1, own) * np.zeros(1, q)).dtype)
