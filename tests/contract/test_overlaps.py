"""Outputs that overlap inputs are refused; in place gives what apart gives, where documented."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from contract.case import TABLE, Call, Case, assert_bits, bytes_view, hosts, outputs_like, used
from contract.cases import each_capturing, each_case
from support import LAYOUTS, Array, Backend, forget_problems

STEP = 16  # bytes: arrays start at multiples of it, so that nothing but the overlap is amiss


def last_step(nbytes: int) -> int:
    """Return the last place within so many bytes where an array may start."""
    return (nbytes - 1) // STEP * STEP


def placements(input_bytes: int, output_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield where an input and an output start, sharing memory each time."""
    yield 0, 0
    if last_step(input_bytes):
        yield 0, last_step(input_bytes)
    if last_step(output_bytes):
        yield last_step(output_bytes), 0


def may_be_same(source: Array, result: Array, inputs: tuple[int, ...], i: int) -> bool:
    return i in inputs and (source.dtype, source.size) == (result.dtype, result.size)


def refused(backend: Backend, case: Case, base: Array, call: Call, arrays: Any, out: Any) -> None:
    before = backend.to_host(base).tobytes()
    with pytest.raises(ValueError, match=rf"^{case.name}: out.* (overlaps|shares? memory)"):
        call(*arrays, out=out)
    assert backend.to_host(base).tobytes() == before


@each_case
def test_partly(backend: Backend, case: Case) -> None:
    call, arrays = case.on(backend), case.arrays(backend)
    want = hosts(backend, call(*arrays))
    in_place = call.in_place_of(*arrays)
    for _ in range(2):
        for i, x in enumerate(case.samples()):
            for j, result in enumerate(want):
                for start, begin in placements(x.nbytes, result.nbytes):
                    if not x.size or not result.size or (case.reads_last_alone and i == 0):
                        continue
                    if start == begin and may_be_same(x, result, in_place[j], i):
                        continue
                    size = max(start + x.nbytes, begin + result.nbytes)
                    base = backend.xp.zeros(size, np.uint8)
                    source = bytes_view(base, start, x.shape, x.dtype)
                    source[...] = arrays[i]
                    outs = [used(backend)(r.shape, r.dtype) for r in want]
                    outs[j] = bytes_view(base, begin, result.shape, result.dtype)
                    given = [*arrays[:i], source, *arrays[i + 1 :]]
                    out = tuple(outs) if len(outs) > 1 else outs[0]
                    refused(backend, case, base, call, given, out)
        call(*arrays, out=outputs_like(want, used(backend)))  # a plan that must not be used


@each_case
def test_backwards_and_in_the_gaps(backend: Backend, case: Case) -> None:
    """The same memory in another order is an overlap; what lies in gaps or behind is none."""
    call, arrays = case.on(backend), case.arrays(backend)
    want = hosts(backend, call(*arrays))
    x = case.samples()[0]
    if len(want) > 1 or x.shape != want[0].shape or x.dtype != want[0].dtype or x.size < 2:
        pytest.skip("the result is not of the shape and dtype of the input")
    source = backend.to_device(x)
    refused(backend, case, source, call, [source, *arrays[1:]], source[..., ::-1])
    both = backend.xp.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    both[..., ::2] = arrays[0]
    out = both[..., 1::2]
    assert call(both[..., ::2], *arrays[1:], out=out) is out
    assert_bits(hosts(backend, out), want)
    assert_bits(hosts(backend, both[..., ::2]), [x])
    both = backend.xp.zeros((2, *x.shape), x.dtype)
    both[0] = arrays[0]
    assert_bits(hosts(backend, call(both[0], *arrays[1:], out=both[1])), want)


@each_case
def test_of_two_outputs(backend: Backend, case: Case) -> None:
    call, arrays = case.on(backend), case.arrays(backend)
    want = hosts(backend, call(*arrays))
    if len(want) == 1 or not want[0].size:
        pytest.skip("there are no two outputs to overlap")
    first, second = want
    begin = last_step(first.nbytes)
    base = backend.xp.zeros(begin + second.nbytes, np.uint8)
    out = (bytes_view(base, 0, first.shape, first.dtype),
           bytes_view(base, begin, second.shape, second.dtype))  # fmt: skip
    refused(backend, case, base, call, arrays, out)


@each_capturing
def test_of_what_is_captured(backend: Backend, case: Case) -> None:
    arrays = case.arrays(backend)
    want, *others = hosts(backend, case.on(backend)(*arrays))
    base = backend.xp.zeros(TABLE.nbytes + want.nbytes, np.uint8)
    table = bytes_view(base, 0, TABLE.shape, TABLE.dtype)
    table[...] = backend.to_device(TABLE)
    call = Call(case, table)

    def outputs(begin: int) -> Any:
        first = bytes_view(base, begin, want.shape, want.dtype)
        return (first, *(used(backend)(x.shape, x.dtype) for x in others)) if others else first

    for begin in (0, STEP):
        refused(backend, case, base, call, arrays, outputs(begin))
    apart = outputs(TABLE.nbytes)
    assert call(*arrays, out=apart) is apart
    assert_bits(hosts(backend, apart), [want, *others])


@each_case
def test_in_place(backend: Backend, guarded: Callable[..., Array], case: Case) -> None:
    call, samples = case.on(backend), case.samples()
    want = hosts(backend, call(*case.arrays(backend)))
    allowed = call.in_place_of(*case.arrays(backend))
    if len(samples) < len(want):
        pytest.skip("there are fewer inputs than results")
    for i in range(len(samples)):
        ways = [i] if len(want) == 1 else range(len(want))  # of two results each has its input
        if not all(
            may_be_same(samples[k], result, allowed[j], k)
            for j, (k, result) in enumerate(zip(ways, want, strict=True))
        ):
            continue
        for layout in LAYOUTS:
            if layout != "contiguous" and not all(x.shape and x.size for x in samples):
                continue
            if layout != "contiguous" and samples[i].shape != want[0].shape:
                continue  # only without gaps elements lie where those of the flattened result do
            for _ in range(2):
                arrays = [guarded(x.shape, x.dtype, layout) for x in samples]
                for array, x in zip(arrays, samples, strict=True):
                    array[...] = backend.to_device(x)
                outs = tuple(
                    x if (x := arrays[k]).shape == result.shape else x.reshape(result.shape)
                    for k, result in zip(ways, want, strict=True)
                )
                out = outs if len(outs) > 1 else outs[0]
                assert call(*arrays, out=out) is out
                assert_bits(hosts(backend, out), want)


@each_case
def test_what_a_first_call_in_place_keeps_is_right_elsewhere(backend: Backend, case: Case) -> None:
    """Addresses and aliasing are each call's own: later calls read what they are given."""
    call, samples = case.on(backend), case.samples()
    others = case.arrays(backend, seed=1)
    allowed = call.in_place_of(*others)
    want = hosts(backend, call(*others)) if len(allowed) == 1 and allowed[0] else []
    found = [
        i for i, x in enumerate(samples)
        if len(want) == 1 and may_be_same(x, want[0], allowed[0], i) and x.shape == want[0].shape
    ]  # fmt: skip
    if not found:
        pytest.skip("the result does not go in place of an input")
    for i in found:
        for first in (call, call.prepare):
            forget_problems()
            arrays = [backend.to_device(x.copy()) for x in samples]
            again = first if first is call else first(*arrays)
            again(*arrays, out=arrays[i])
            for other in (again, call):
                assert_bits(hosts(backend, other(*others)), want)
                out = outputs_like(want, used(backend))
                assert other(*others, out=out) is out
                assert_bits(hosts(backend, out), want)
