"""argsort of one row: index dtypes, outputs, passes; its order is looked at with that of sorts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import FLOATS, Backend, need_memory, random_array
from test_radix_sort import (
    LONG,
    assert_bits,
    check_pairs,
    special_floats,
    stable_order,
)

import gpualgo as ga

INDEX_DTYPES = ("int64", "int32", "uint64", "uint32")


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_descending_floats_by_passes(
    cuda: Backend, dtype: np.dtype[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of so few keys that no launch of them is too long for the emulated GPU."""
    from gpualgo._algorithms.radix_sort import cuda_passes

    monkeypatch.setattr(cuda_passes, "launch_of", lambda *_: None)
    keys = special_floats(dtype, 1237)
    result = ga.argsort(cuda.to_device(keys), descending=True)
    assert_bits(cuda.to_host(result), stable_order(keys, True).astype(np.int64))
    check_pairs(cuda, keys, np.arange(1237, dtype=np.int32), descending=True)


@pytest.mark.parametrize("dtype", INDEX_DTYPES)
@pytest.mark.parametrize("n", [0, 1, 100, 3000, LONG])
def test_index_dtypes(backend: Backend, guarded: Any, dtype: str, n: int) -> None:
    keys = random_array(n, FLOATS[2])
    device = backend.to_device(keys)
    want = stable_order(keys).astype(dtype)
    assert_bits(backend.to_host(ga.argsort(device, dtype=dtype)), want)
    assert_bits(backend.to_host(ga.argsort(device, dtype=np.dtype(dtype).type)), want)
    out = guarded((n,), dtype)
    assert ga.argsort(device, out=out) is out  # out names the dtype
    assert_bits(backend.to_host(out), want)
    ga.argsort(device, out=out, dtype=dtype, descending=True)
    assert_bits(backend.to_host(out), stable_order(keys, True).astype(dtype))


@pytest.mark.parametrize("dtype", ["int64", "uint32"])
def test_beyond_32_bits(cuda: Backend, dtype: str) -> None:
    n, step = 2**31 + 12_345, 1 << 27
    need_memory(cuda, 40 * n)
    xp = cuda.xp
    keys = xp.empty(n, np.uint8)
    for start in range(0, n, step):
        mixed = xp.arange(start, min(start + step, n), dtype=np.uint64)
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(56)
        keys[start : start + step] = mixed.astype(np.uint8)
    order = ga.argsort(keys, dtype=dtype)
    # Keys, and among equals positions, rise strictly: so n positions are all of them, once.
    for start in range(0, n, step):
        places = order[start : start + step + 1].astype(np.int64)
        assert int(places.min()) >= 0
        assert int(places.max()) < n
        taken = keys[places]
        rises = (taken[1:] > taken[:-1]) | ((taken[1:] == taken[:-1]) & (places[1:] > places[:-1]))
        assert bool(rises.all())
