"""The same call gives the same bits: again, in a fresh function, and in several threads at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from contract.case import Case, assert_bits, hosts
from contract.cases import each_case
from support import Backend, scaled

import gpualgo as ga


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
