"""segmented_sort against NumPy's sorts of slices."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest
from segments.test_segments import CASES, cut
from support import (
    REAL,
    Backend,
    a_few,
    assert_same,
    random_array,
    sampled,
    special_values,
)

import gpualgo as ga
from gpualgo import lazy

Array = np.ndarray[Any, Any]
SORT = ga.segmented_sort


def orders(keys: Array, offsets: Any, *, descending: bool = False) -> Array:
    """Return the stable order of the elements, segment by segment."""
    found = np.arange(len(keys))
    with ga.default_device("cpu"):
        for begin, end in itertools.pairwise(offsets):
            part = keys[begin:end]
            found[begin:end] = begin + ga.argsort(part, descending=descending)
    return found


@pytest.mark.parametrize("case", CASES)
def test_sizes(backend: Backend, case: str) -> None:
    n, offsets = CASES[case]
    keys = random_array((n,), np.dtype("float32")).round()
    given = backend.to_device(keys), backend.to_device(np.asarray(offsets))
    want = orders(keys, offsets)
    assert_same(backend.to_host(SORT(*given)), keys[want])
    places = backend.to_device(np.arange(n))
    got = SORT(*given, values=places)
    assert_same(backend.to_host(got[0]), keys[want])
    assert_same(backend.to_host(got[1]), want)


@pytest.mark.parametrize("dtype", sampled(REAL, ("bool", "int8", "float32", "float64")), ids=str)
def test_dtypes(backend: Backend, dtype: np.dtype[Any]) -> None:
    """Zeros of both signs are equal, and NaN last both ways."""
    keys = np.repeat(special_values(dtype), 7)
    keys = keys[np.random.default_rng(1).permutation(len(keys))]
    offsets = np.array([1, 5, 5, 20, len(keys)])[: 5 if len(keys) > 20 else 3]
    given = backend.to_device(keys), backend.to_device(offsets)
    for descending in a_few((False, True)):
        want = keys[orders(keys, offsets, descending=descending)]
        assert_same(backend.to_host(SORT(*given, descending=descending)), want)


class Pair(NamedTuple):
    a: Any
    b: Any


def test_tuples_and_lazy_keys(backend: Backend) -> None:
    a = random_array((300,), np.dtype("int8")) % 3
    b = random_array((300,), np.dtype("float32"))
    offsets = cut(300, 9)
    given = Pair(backend.to_device(a), backend.to_device(b))
    got = SORT(given, backend.to_device(offsets), descending=Pair(True, False))
    assert type(got) is Pair
    want = np.arange(300)
    for begin, end in itertools.pairwise(offsets):
        want[begin:end] = begin + np.lexsort((b[begin:end], -a[begin:end]))
    assert_same(backend.to_host(got.a), a[want])
    assert_same(backend.to_host(got.b), b[want])
    twice = lazy.asarray(given.b) * 2
    got = SORT(twice, backend.to_device(offsets))
    assert_same(backend.to_host(got), (b * 2)[orders(b, offsets)])


def test_tuples_of_eight(backend: Backend) -> None:
    rng = np.random.default_rng(6)
    columns = [rng.integers(0, 2, 500).astype(dtype) for dtype in "bhilBHIL"]
    offsets = cut(500, 9)
    given = tuple(map(backend.to_device, columns))
    got = SORT(given, backend.to_device(offsets))
    want = np.arange(500)
    for begin, end in itertools.pairwise(offsets):
        want[begin:end] = begin + np.lexsort([column[begin:end] for column in columns[::-1]])
    for mine, column in zip(got, columns, strict=True):
        assert_same(backend.to_host(mine), column[want])
    nine = (*given, given[0])
    refused(TypeError, "keys has elements of 9 numbers", nine, backend.to_device(offsets))


@pytest.mark.parametrize("offsets", [[5, 2, 9], [-4, 20, 3, 90], [31], [0, 40, 9]], ids=str)
def test_device_offsets(cuda: Backend, offsets: list[int]) -> None:
    """A segment begins wherever an offset is, from the first one to the last."""
    keys = random_array((30,), np.dtype("int32"))
    ends = np.clip(offsets, 0, 30)
    inner = sorted(e for e in ends if ends[0] <= e < ends[-1])
    heads = [*range(min(int(ends[0]), 30)), *inner, *range(int(max(ends[0], ends[-1])), 31)]
    heads = sorted({*heads, *range(int(ends[-1]), 31), 30})
    got = SORT(cuda.to_device(keys), cuda.to_device(np.array(offsets)))
    assert_same(cuda.to_host(got), keys[orders(keys, heads)])


def test_misaligned(cuda: Backend) -> None:
    """Keys, values and results are copied; offsets are not."""
    memory = cuda.to_device(np.zeros(41, np.uint8))
    keys, out = cuda.to_device(np.array([3, 1, 2, 5, 4])), memory[1:].view(np.int64)
    out[...] = keys
    offsets = cuda.to_device(np.array([0, 3, 5]))
    assert SORT(out, offsets, values=keys, out=(out, keys))[0] is out
    assert_same(cuda.to_host(out), np.arange(1, 6))
    out[:3] = offsets
    refused(ValueError, "offsets starts at address", keys, out[:3])


def refused(kind: type[Exception], message: str, *args: Any, **more: Any) -> None:
    with pytest.raises(kind, match=rf"^segmented_sort: {message}") as caught:
        SORT(*args, **more)
    assert "\n" not in str(caught.value)
