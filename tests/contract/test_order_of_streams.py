"""A call comes after the work that its arrays' streams hold, and waits for nothing itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from contract.case import Shown, assert_bits, hosts, outputs_like, used
from contract.cases import cases_of, each_function
from gate import Gate
from support import Array, Backend


def on_host(results: Any) -> list[np.ndarray[Any, Any]]:
    """Return results that are this package's own device arrays."""
    found = results if isinstance(results, tuple) else (results,)
    return [np.asarray(array.copy_to_host()) for array in found]


@each_function
def test_a_stream_that_is_given(cuda: Backend, gate: Gate, function: Callable[..., Any]) -> None:
    case = cases_of(function)[0]
    call, arrays, later = case.on(cuda), case.arrays(cuda), case.arrays(cuda, 1)
    stream = cuda.xp.cuda.Stream(non_blocking=True)
    want = hosts(cuda, call(*later))
    out = outputs_like(want, used(cuda))

    def run() -> Any:
        with stream:
            fill(arrays, later)
        return call(*arrays, out=out, stream=stream)

    cuda.xp.cuda.Device().synchronize()
    run()
    stream.synchronize()
    fill(arrays, case.arrays(cuda))
    outputs = out if isinstance(out, tuple) else (out,)
    fill(list(outputs), [cuda.xp.ones_like(x) for x in outputs])
    with gate.hold(stream):
        assert run() is out
        assert gate.holds(stream)
    stream.synchronize()
    assert_bits(hosts(cuda, out), want)


@each_function
def test_the_stream_of_an_array(cuda: Backend, gate: Gate, function: Callable[..., Any]) -> None:
    """The call's stream waits for the one that an array is used on."""
    case = cases_of(function)[0]
    if case.has_dynamic_length:
        pytest.skip("without out= it waits for the length of the result")
    call, arrays, later = case.on(cuda), case.arrays(cuda), case.arrays(cuda, 1)
    home, other = (cuda.xp.cuda.Stream(non_blocking=True) for _ in range(2))
    shown = [Shown(x, home) for x in arrays]
    want = hosts(cuda, call(*later))

    def run() -> Any:
        with home:
            fill(arrays, later)
        return call(*shown, stream=other)

    cuda.xp.cuda.Device().synchronize()
    assert_bits(on_host(run()), want)
    cuda.xp.cuda.Device().synchronize()
    fill(arrays, case.arrays(cuda))
    with gate.hold(home):
        results = run()
        assert gate.holds(other)
    assert_bits(on_host(results), want)


def fill(arrays: list[Array], others: list[Array]) -> None:
    for array, other in zip(arrays, others, strict=True):
        array[...] = other
