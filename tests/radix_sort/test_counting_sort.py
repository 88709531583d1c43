"""Sorting narrow keys by counting them: any number of them, which it is not used for by itself."""

from __future__ import annotations

import numpy as np
import pytest
from support import Backend, random_array, scaled

import gpualgo as ga
from gpualgo._algorithms.radix_sort import cuda as counting_sort
from gpualgo._algorithms.radix_sort.problem import Sort
from gpualgo._base.memo import Memo


@pytest.fixture(autouse=True)
def _always_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting_sort, "_FEW_KEYS", {1: 0, 2: 0})
    monkeypatch.setattr(Sort, "problems", Memo(Sort.max_kept))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16"])
def test_few_narrow_keys(cuda: Backend, dtype: str, descending: bool) -> None:
    for n in (1, 33, 255, 4097, *scaled((100_003, 1_000_003), emulated=(20_011,))):
        keys = random_array(n, np.dtype(dtype))
        want = np.sort(keys)[:: -1 if descending else 1]
        device = cuda.to_device(keys)
        got = ga.radix_sort(device, descending=descending)
        assert cuda.to_host(got).tobytes() == want.tobytes()
        assert cuda.to_host(device).tobytes() == keys.tobytes()
        ga.radix_sort(device, descending=descending, out=device)
        assert cuda.to_host(device).tobytes() == want.tobytes()


@pytest.mark.parametrize("value", [-128, 0, 127])
def test_equal_keys(cuda: Backend, value: int) -> None:
    keys = np.full(300_001, value, np.int8)
    assert cuda.to_host(ga.radix_sort(cuda.to_device(keys))).tobytes() == keys.tobytes()
