"""Inputs are left as they are, and their layout makes no difference."""

from __future__ import annotations

import numpy as np
from contract.case import Case, Shown, assert_bits, hosts
from contract.cases import each_case, each_case_from_the_end
from support import LAYOUTS, Array, Backend, is_emulated

import gpualgo as ga


@each_case
def test_every_layout(backend: Backend, case: Case) -> None:
    case = case.in_any_order()
    call, samples = case.on(backend), case.samples()
    want = hosts(backend, call(*case.arrays(backend)))
    for layout in LAYOUTS if all(x.ndim for x in samples) else ("contiguous", "offset"):
        arrays = [backend.arrange(layout, x) for x in samples]
        assert_bits(hosts(backend, call(*arrays)), want)
        assert_bits([backend.to_host(x) for x in arrays], samples)


@each_case
def test_read_only_and_misaligned(backend: Backend, case: Case) -> None:
    """Arrays of the host."""
    host = Backend(backend.name, np)
    call, samples = case.on(host), case.samples()
    want = hosts(host, call(*samples))
    for arrays in ([_read_only(x) for x in samples], [_misaligned(x) for x in samples]):
        for _ in range(2):
            assert_bits(hosts(host, call(*arrays)), want)
        assert_bits(arrays, samples)


@each_case_from_the_end
def test_misaligned_in_plans_and_graphs(backend: Backend, case: Case) -> None:
    """Each array of the host alone, and all of them."""
    host = Backend(backend.name, np)
    call, samples = case.on(host), case.samples()
    want = hosts(host, call(*samples))
    every = range(len(samples))
    alone = [] if is_emulated or len(samples) == 1 else [{i} for i in every]
    for chosen in (set(every), *alone):
        arrays = [_misaligned(x) if i in chosen else x.copy() for i, x in enumerate(samples)]
        plan = call.prepare(*arrays)
        for _ in range(2):
            assert_bits(hosts(host, plan(*arrays)), want)
        if case.can_be_recorded and backend.name == "cpu":
            with ga.graph("cpu") as graph:
                result = call(*arrays)
            for _ in range(2):
                graph.launch()
                assert_bits(hosts(host, result), want)
        assert_bits(arrays, samples)


@each_case
def test_read_only_on_a_device(cuda: Backend, case: Case) -> None:
    call, arrays = case.on(cuda), case.arrays(cuda)
    want = hosts(cuda, call(*arrays))
    results = call(*(Shown(x, readonly=True) for x in arrays))
    found = results if isinstance(results, tuple) else (results,)
    # Two results in one are arrays of the backend, maybe on the host already.
    copied = [x.copy_to_host() if hasattr(x, "copy_to_host") else cuda.to_host(x) for x in found]
    assert_bits(copied, want)
    assert_bits(hosts(cuda, tuple(arrays)), case.samples())


def _read_only(x: Array) -> Array:
    copy = x.copy()
    copy.flags.writeable = False
    return copy


def _misaligned(x: Array) -> Array:
    copy = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    copy[...] = x
    return copy
