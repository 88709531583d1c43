"""A plan of `prepare` gives what the call gives, bit for bit, and takes arrays of its layout."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from contract.case import TABLE, Case, assert_bits, hosts, outputs_like, used
from contract.cases import each_capturing, each_case, each_case_from_the_end
from support import Array, Backend

import gpualgo as ga

GUARD = 256
GUARD_BYTE = 0xA5


def roomy(backend: Backend, case: Case, want: list[np.ndarray[Any, Any]]) -> Any:
    """Return outputs for such results, or for others that are as long as they can be."""
    if case.has_dynamic_length:
        shape = np.broadcast_shapes(*(shape for shape, _ in case.inputs))
        want = [np.empty(math.prod(shape), x.dtype) for x in want]
    return outputs_like(want, used(backend))


@each_case_from_the_end
def test_as_the_call(backend: Backend, case: Case) -> None:
    call = case.on(backend)
    plan = call.prepare(*case.arrays(backend))
    assert plan.temp_storage_bytes == 0 or backend.xp is not np
    for seed in (0, 1):
        arrays = case.arrays(backend, seed)
        want = hosts(backend, call(*arrays))
        assert_bits(hosts(backend, plan(*arrays)), want)
        assert_bits(hosts(backend, plan(*arrays)), want)
        out = outputs_like(want, used(backend))
        for _ in range(3):  # a plan remembers the last arrays
            assert plan(*arrays, out=out) is out
            assert_bits(hosts(backend, out), want)
        assert_bits(hosts(backend, call(*arrays, out=outputs_like(want, used(backend)))), want)
    assert case.name in repr(plan)


@each_case
def test_the_same_arrays_with_other_elements(backend: Backend, case: Case) -> None:
    call, arrays = case.on(backend), case.arrays(backend)
    plan = call.prepare(*arrays)
    out = roomy(backend, case, hosts(backend, plan(*arrays)))
    plan(*arrays, out=out)
    for seed in (1, 2):
        for array, other in zip(arrays, case.arrays(backend, seed), strict=True):
            array[...] = other
        want = hosts(backend, call(*case.arrays(backend, seed)))
        assert_bits(hosts(backend, plan(*arrays, out=out)), want)


@each_capturing
def test_captured_values_may_change(backend: Backend, case: Case) -> None:
    call, arrays = case.on(backend), case.arrays(backend)
    plan = call.prepare(*arrays)
    first = hosts(backend, plan(*arrays))
    out = roomy(backend, case, first)
    plan(*arrays, out=out)
    for change in ({"table": backend.to_device(TABLE * 5)}, {"number": 9}):
        call.capture(**change)
        want = hosts(backend, call(*arrays))
        assert any(x.tobytes() != y.tobytes() for x, y in zip(want, first, strict=True))
        assert_bits(hosts(backend, plan(*arrays)), want)
        assert_bits(hosts(backend, plan(*arrays, out=out)), want)
        first = want


@each_case
def test_other_layouts_are_refused(backend: Backend, case: Case) -> None:
    call, arrays = case.on(backend), case.arrays(backend)
    plan = call.prepare(*arrays)
    for i, x in enumerate(case.samples()):
        if case.reads_last_alone and i == 0:
            continue

        def refused(kind: type[Exception], message: str, other: Array, i: int = i) -> None:
            given = [*arrays[:i], other, *arrays[i + 1 :]]
            others = (
                "|.* not? .*broadcast|predicate (has shape|is an array)|(keys|indices) have shape"
            )
            others = others if case.puts_together else ""
            with pytest.raises(kind, match=rf"^{case.name}: (the plan is for {message}{others})"):
                plan(*given)

        longer = np.zeros((x.shape[0] + 1, *x.shape[1:]) if x.ndim else (1,), x.dtype)
        refused(ValueError, r"shape \(.*\) with strides", backend.to_device(longer))
        if x.size > 1 and not (case.is_tuple and x.shape[-1] == 1):  # which is broadcast anyway
            refused(ValueError, r"shape \(.*\) with strides", backend.arrange("reversed", x))
        other = np.zeros(x.shape, "int64" if x.dtype != np.int64 else "int32")
        refused(TypeError, f"dtype {x.dtype}, got {other.dtype}", backend.to_device(other))
    for given in ([*arrays, arrays[0]], arrays[1:]):
        message = rf"^{case.name}: the plan takes {len(arrays)} array\(s\), got {len(given)}"
        with pytest.raises(TypeError, match=message):
            plan(*given)
    with pytest.raises(TypeError, match=rf"^({case.name}|lazy).* (must be an|or an) array"):
        plan(*arrays[1:], [1, 2])


@each_case
def test_host_arrays_are_not_device_arrays(cuda: Backend, case: Case) -> None:
    plan = case.on(cuda).prepare(*case.arrays(cuda))
    with pytest.raises(TypeError, match=rf"^{case.name}: the plan is for arrays of cupy"):
        plan(*case.samples())
    plan = case.on(Backend("cuda", np)).prepare(*case.samples())
    with pytest.raises(TypeError, match=rf"^{case.name}: the plan is for arrays of numpy"):
        plan(*case.arrays(cuda))


@each_case
def test_host_arrays_take_no_storage(backend: Backend, case: Case) -> None:
    call, arrays = case.on(Backend(backend.name, np)), case.samples()
    plan = call.prepare(*arrays)
    assert plan.temp_storage_bytes == 0
    args, options = call.arguments(arrays)
    if backend.name == "cpu":  # none is needed, so any will do
        want = hosts(backend, call(*arrays))
        got = plan(*arrays, temp_storage=np.zeros(plan.temp_storage_bytes, np.uint8))
        assert_bits(hosts(backend, got), want)
        assert ga.temp_storage_bytes(case.function, *args, **options) == 0
        return
    with pytest.raises(ValueError, match=rf"^{case.name}: temp_storage must be on the arrays"):
        plan(*arrays, temp_storage=np.zeros(100, np.uint8))
    with pytest.raises(TypeError, match="copied to a GPU; pass arrays on it"):
        ga.temp_storage_bytes(case.function, *args, **options)


@each_case
def test_storage_of_the_caller(cuda: Backend, case: Case) -> None:
    """It is exactly as long as is said, what is in it does not matter, and no call reads it."""
    call, arrays = case.on(cuda), case.arrays(cuda)
    want, before = hosts(cuda, call(*arrays)), [cuda.to_host(x).tobytes() for x in arrays]
    plan = call.prepare(*arrays)
    size = plan.temp_storage_bytes
    args, options = call.arguments(arrays)
    assert ga.temp_storage_bytes(case.function, *args, **options) == size
    assert [cuda.to_host(x).tobytes() for x in arrays] == before  # nothing is run
    memory = cuda.to_device(np.full(size + 2 * GUARD, GUARD_BYTE, np.uint8))
    storage = memory[GUARD : GUARD + size]
    for content in (GUARD_BYTE, 0xFF, 0):
        storage[...] = content
        out = outputs_like(want, used(cuda))
        for _ in range(2):  # the second time as the last call left it
            plan(*arrays, out=out, temp_storage=storage)
            assert_bits(hosts(cuda, out), want)
    guards = np.delete(cuda.to_host(memory), np.s_[GUARD : GUARD + size])
    assert (guards == GUARD_BYTE).all()
    if size:
        refused_storage(plan, arrays, storage[: size - 1], f"has {size - 1} bytes, {size}")
        refused_storage(plan, arrays, np.zeros(size, np.uint8), "must be on the arrays")
        refused_storage(plan, arrays, memory[GUARD + 1 : GUARD + 1 + size], "aligned to 256 bytes")


def refused_storage(plan: Any, arrays: list[Array], storage: Array, message: str) -> None:
    with pytest.raises(ValueError, match=f"temp_storage .*{message}"):
        plan(*arrays, temp_storage=storage)
