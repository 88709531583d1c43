"""Arrays of the host that travel to a GPU, page-locked or not, give what device arrays give."""

from __future__ import annotations

from typing import Any

import numpy as np
from contract.case import Case, assert_bits, hosts, outputs_like, used
from contract.cases import each_case
from support import Array, Backend

import gpualgo as ga


def page_locked(shape: tuple[int, ...], dtype: Any) -> Array:
    array = ga.empty_pinned(shape, dtype)
    array[...] = 1
    return array


@each_case
def test_the_same_bits(cuda: Backend, case: Case) -> None:
    want = hosts(cuda, case.on(cuda)(*case.arrays(cuda)))
    host = Backend("cuda", np)
    call, samples = case.on(host), case.samples()
    locked = [ga.empty_pinned(x.shape, x.dtype) for x in samples]
    for array, x in zip(locked, samples, strict=True):
        array[...] = x
    for arrays in (samples, locked):
        assert_bits(hosts(host, call(*arrays)), want)
        for make in (used(host), page_locked):
            out = outputs_like(want, make)
            for _ in range(2):
                assert call(*arrays, out=out) is out
                assert_bits(hosts(host, out), want)
    assert_bits(locked, samples)
