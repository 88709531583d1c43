"""The order of elements of several numbers, as NumPy finds it, and samples of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from support import BFLOAT16, Array, Backend, random_array
from test_radix_sort import assert_bits, special_floats

import gpualgo as ga

Host = np.ndarray[Any, Any]
Ways = bool | tuple[bool, ...]


def ranks_of(numbers: Host, descending: bool) -> Host:
    """Return integers in the order of numbers: the zeros are one, and all NaNs, which are last."""
    if numbers.dtype == BFLOAT16 or numbers.dtype == np.float16:
        numbers = numbers.astype(np.float32)
    is_nan = numbers != numbers
    ranks = np.unique(np.where(is_nan, numbers.dtype.type(0), numbers), return_inverse=True)[1]
    ranks = ranks.reshape(numbers.shape)
    return np.where(is_nan, numbers.size, -ranks if descending else ranks)


def lexical_order(keys: Sequence[Host], descending: Ways = False, axis: int = -1) -> Host:
    """Return the stable order of elements: np.lexsort of each number's rank."""
    ways = descending if isinstance(descending, tuple) else (descending,) * len(keys)
    spread = np.broadcast_arrays(*keys)
    ranks = [ranks_of(k, way) for k, way in zip(spread, ways, strict=True)]
    return np.lexsort(ranks[::-1], axis=axis)


def some(n: int | tuple[int, ...], dtype: Any, seed: int = 0) -> Host:
    """Return numbers of which many are equal; of floats, all kinds."""
    dtype = np.dtype(dtype)
    size = int(np.prod(n))
    if dtype == BFLOAT16 or dtype.kind == "f":
        numbers = special_floats(dtype, size + seed)[:size]
    else:
        numbers = random_array(size, dtype, seed)
        few = random_array(7, dtype, seed + 1)
        is_few = np.random.default_rng(seed).random(size) < 0.7
        numbers = np.where(is_few, few[np.arange(size) * 5 % 7], numbers)
    return numbers.reshape(n)


def leaves(x: Any) -> list[Any]:
    """Return the arrays of a tuple, one after another."""
    return [leaf for item in x for leaf in leaves(item)] if isinstance(x, tuple) else [x]


def assert_leaves(backend: Backend, got: Any, want: Sequence[Host]) -> None:
    found = leaves(got)
    assert len(found) == len(want)
    for mine, other in zip(found, want, strict=True):
        assert_bits(backend.to_host(mine), other)


def check(
    backend: Backend, keys: tuple[Host, ...], values: tuple[Host, ...] = (), *,
    device: tuple[Array, ...] = (), axis: int | None = -1, **options: Any,
) -> None:  # fmt: skip
    """Sort keys alone, keys with values, and argsort: each against NumPy, bit for bit."""
    spread = np.broadcast_arrays(*keys)
    moved = [np.broadcast_to(v, spread[0].shape) for v in values]
    if axis is None:
        spread, moved = ([a.reshape(-1) for a in arrays] for arrays in (spread, moved))
    along = -1 if axis is None else axis
    order = lexical_order(spread, options.get("descending", False), along)
    want = [np.take_along_axis(k, order, along) for k in spread]
    given = device or tuple(map(backend.to_device, keys))
    got = ga.radix_sort(given, axis=axis, **options)
    assert type(got) is tuple
    assert_leaves(backend, got, want)
    indices = ga.argsort(given, axis=axis, **options)
    assert_bits(backend.to_host(indices), order.astype(np.int64))
    if not values:
        return
    numbers = tuple(map(backend.to_device, values))
    got, got_values = ga.radix_sort(given, numbers, axis=axis, **options)
    assert_leaves(backend, got, want)
    assert_leaves(backend, got_values, [np.take_along_axis(v, order, along) for v in moved])
