"""A recorded call gives what the call gives, each time it is launched."""

from __future__ import annotations

import numpy as np
import pytest
from contract.case import Case, assert_bits, hosts, outputs_like, used
from contract.cases import each_case
from support import Backend

import gpualgo as ga


@each_case
def test_as_the_call(backend: Backend, case: Case) -> None:
    if not case.can_be_recorded:
        pytest.skip("the host looks at the elements; see below")
    call, arrays = case.on(backend), case.arrays(backend)
    wanted = [hosts(backend, call(*case.arrays(backend, seed))) for seed in (1, 2)]
    out = outputs_like(wanted[0], used(backend))
    with ga.graph() as g:
        result = call(*arrays)
        assert call(*arrays, out=out) is out
    assert all((x == 1).all() for x in hosts(backend, out))  # nothing has run
    for seed, want in enumerate(wanted, 1):
        for array, other in zip(arrays, case.arrays(backend, seed), strict=True):
            array[...] = other
        g.launch()
        assert_bits(hosts(backend, result), want)
        assert_bits(hosts(backend, out), want)


@each_case
def test_update(backend: Backend, case: Case) -> None:
    """A successor may have other strides."""
    if not case.can_be_recorded:
        pytest.skip("the host looks at the elements; see below")
    if backend.name == "cpu":  # which adds floats as memory lies
        case = case.in_any_order()
    call, arrays = case.on(backend), case.arrays(backend)
    with ga.graph() as g:
        result = call(*arrays)
    for seed, layout in enumerate(("step", "offset", "contiguous"), 1):
        samples = case.samples(seed)
        want = hosts(backend, call(*map(backend.to_device, samples)))
        others = [backend.arrange(layout if x.ndim else "contiguous", x) for x in samples]
        pairs = list(zip(arrays, others, strict=True))
        g.update(*(pairs[-1:] if case.reads_last_alone else pairs))
        g.launch()
        assert_bits(hosts(backend, result), want)
        arrays = others


@each_case
def test_streams_are_the_launch_s(cuda: Backend, case: Case) -> None:
    if not case.can_be_recorded:
        pytest.skip("the host looks at the elements; see below")
    call, arrays = case.on(cuda), case.arrays(cuda)
    message = rf"^{case.name}: stream= cannot be given while a graph is recorded"
    with pytest.raises(ValueError, match=message), ga.graph():
        call(*arrays, stream=0)


@each_case
def test_what_would_wait_is_refused(cuda: Backend, case: Case) -> None:
    """Pageable arrays, and calls for which the host looks at the elements."""
    if any(0 in shape for shape, _ in case.inputs):
        pytest.skip("there is nothing to bring over")
    source = Backend("cuda", np) if case.can_be_recorded else cuda
    call, arrays = case.on(source), case.arrays(source)
    want = hosts(source, call(*arrays))
    with pytest.raises(RuntimeError, match=r"cannot be recorded"), ga.graph():
        call(*arrays)
    assert_bits(hosts(source, call(*arrays)), want)  # the thread's calls run again
