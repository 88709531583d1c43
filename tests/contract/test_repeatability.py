"""The same call gives the same bits: again, in a fresh function, and in several threads at once.

And nothing of the arrays is kept for a call to come.
"""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from contract.case import Case, assert_bits, hosts
from contract.cases import each_case
from support import Backend, scaled

import gpualgo as ga
from gpualgo._api.explain import describe


@each_case
def test_again(backend: Backend, case: Case) -> None:
    arrays = case.arrays(backend)
    call = case.on(backend)
    want = hosts(backend, call(*arrays))
    for other in (call, call, case.on(backend)):
        assert_bits(hosts(backend, other(*arrays)), want)


@each_case
def test_in_threads(backend: Backend, case: Case) -> None:
    call = case.on(backend)
    inputs = [case.arrays(backend, seed) for seed in range(4)]
    wanted = [hosts(backend, call(*arrays)) for arrays in inputs]

    def run(number: int) -> Any:
        with ga.default_device(backend.name):
            return hosts(backend, call(*inputs[number % 4]))

    with ThreadPoolExecutor(4) as pool:
        for number, got in enumerate(pool.map(run, range(scaled(16, emulated=8)))):
            assert_bits(got, wanted[number % 4])


@each_case
def test_no_array_is_kept(backend: Backend, case: Case) -> None:
    arrays = case.arrays(backend)
    call = case.on(backend)
    args, options = call.arguments(arrays)
    describe("contract", case.function, args, options).problem.problems.clear()
    del args, options
    hosts(backend, call(*arrays))
    left = [weakref.ref(array) for array in arrays]
    del arrays
    gc.collect()
    assert [ref() is None for ref in left] == [True] * len(left)
