"""Inputs are left as they are, and their layout makes no difference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from contract.case import TABLE, Call, Case, Shown, assert_bits, hosts, outputs_like
from contract.cases import CASES, cases_of, each_case
from support import LAYOUTS, Array, Backend, is_emulated, other_spelling

import gpualgo as ga
from gpualgo._algorithms import ALGORITHMS


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
def test_repeated_along_an_axis(backend: Backend, case: Case) -> None:
    """Elements that lie in memory once are as many as there are."""
    case = case.in_any_order()
    call, (first, *rest) = case.on(backend), case.samples()
    others = [backend.to_device(x) for x in rest]
    for axis in range(first.ndim if first.size and not (case.is_merged or case.is_searched) else 0):
        part = first.take([0], axis)
        whole = np.repeat(part, first.shape[axis], axis)
        want = hosts(backend, call(backend.to_device(whole), *others))
        spread = backend.xp.broadcast_to(backend.to_device(part), first.shape)
        assert_bits(hosts(backend, call(spread, *others)), want)


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


@pytest.mark.parametrize("case", CASES[::-1], ids=str)
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


# Of each function the first call of integers.
OF_INTEGERS = [
    next(c for c in cases_of(f) if "int" in str(c.inputs) and c.inputs[0][0]) for f in ALGORITHMS
]


@pytest.mark.parametrize("case", OF_INTEGERS, ids=str)
def test_other_names_of_a_dtype(backend: Backend, case: Case) -> None:
    """np.longlong is int64: of arrays, starts and captures, in dtype= and in out=."""
    own = np.dtype(np.int64)
    long = other_spelling(own)
    call, other = _naming(case, backend, own), _naming(case, backend, long)
    samples = [x.astype(own) if x.dtype.kind in "iu" else x for x in case.samples()]
    want = hosts(backend, call(*map(backend.to_device, samples)))
    given = [backend.to_device(_named(x, long)) for x in samples]
    assert_bits(hosts(backend, other(*given)), want)
    if not case.has_dynamic_length:
        out = outputs_like(want, lambda s, d: backend.to_device(_named(np.zeros(s, d), long)))
        assert_bits(hosts(backend, other(*given, out=out)), want)


def _naming(case: Case, backend: Backend, long: np.dtype[Any]) -> Call:
    """Return the call with a dtype wherever its int64 are named, or numbers of it are given."""
    options = {
        name: _named(value, long) if name in ("init", "dtype") else value
        for name, value in case.options.items()
    }
    call = Call(replace(case, options=options), backend.to_device(TABLE.astype(long)))
    if case.captures:
        call.capture(number=long.type(1))
    return call


def _named(value: Any, long: np.dtype[Any]) -> Any:
    if isinstance(value, tuple):
        return tuple([_named(one, long) for one in value])
    if isinstance(value, (np.ndarray, np.generic)):
        return value.astype(long) if value.dtype == long else value
    if isinstance(value, int):
        return long.type(value)
    return long if isinstance(value, str) and np.dtype(value) == long else value


@pytest.mark.parametrize("function", ALGORITHMS, ids=lambda f: f.__name__)
def test_lazy_arrays(backend: Backend, function: Any) -> None:
    """What computes the first array's elements, along rows and down columns, is as the array."""
    for case in [c for c in cases_of(function) if c.about in ("several tiles", "rows", "columns")]:
        call, arrays = case.on(backend), case.arrays(backend)
        want = hosts(backend, call(*arrays))
        made = ga.lazy.transform(lambda a: a, arrays[0])
        assert_bits(hosts(backend, call(made, *arrays[1:])), want)
