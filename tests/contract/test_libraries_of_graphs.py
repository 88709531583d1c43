"""A launch comes after what the streams of all its arrays hold, and they go on after it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from contract.case import assert_bits
from contract.libraries import Libraries, joins
from gate import Gate
from support import Backend

import gpualgo as ga


@pytest.fixture
def libraries(cuda: Backend, monkeypatch: pytest.MonkeyPatch) -> Iterator[Libraries]:
    found = Libraries(cuda, monkeypatch)
    with found.current:
        yield found
    found.synchronize()


def test_outputs(cuda: Backend, libraries: Libraries, gate: Gate) -> None:
    x, out = cuda.to_device(np.arange(3001)), cuda.xp.zeros(3001, np.int64)
    libraries.synchronize()
    with ga.graph() as g:
        ga.transform(lambda a: a + 1, x, out=libraries.given(out, 1))
    joins(libraries, gate, g.launch)
    assert_bits(libraries.hosts(out), [np.arange(3001) + 1])


def test_captured_arrays(cuda: Backend, libraries: Libraries, gate: Gate) -> None:
    x, plain = cuda.to_device(np.arange(3001)), cuda.to_device(np.arange(8) * 10)
    out, table = cuda.xp.zeros(3001, np.int64), libraries.given(plain, 1)
    libraries.synchronize()
    with ga.graph() as g:
        ga.transform(lambda a: table[a & 7], x, out=out)
    joins(libraries, gate, g.launch)
    assert_bits(libraries.hosts(out), [np.arange(3001) % 8 * 10])
    other = x + 1
    g.update((x, other))
    joins(libraries, gate, g.launch)
    assert_bits(libraries.hosts(out), [np.arange(1, 3002) % 8 * 10])
    with pytest.raises(ValueError, match=r"an operator of the graph.* reads an old array"):
        g.update((table, libraries.given(plain, 1)))


def test_arrays_of_a_protocol(cuda: Backend, libraries: Libraries, gate: Gate) -> None:
    """Their streams are joined where the launch is given another one, as in calls."""
    plain = cuda.to_device(np.arange(3001))
    libraries.synchronize()
    x = ga.copy(libraries.given(plain, 2))
    libraries.streams[1] = libraries.streams[2]  # which is held
    with ga.graph() as g:
        found = ga.transform(lambda a: a + 1, x)
    joins(libraries, gate, lambda: g.launch(libraries.current))
    assert_bits(libraries.hosts(found), [np.arange(3001) + 1])


@pytest.mark.parametrize("number", [1, 2])
def test_captures_of_others(cuda: Backend, libraries: Libraries, number: int) -> None:
    """A capture of another array's stream takes the call down where that stream is named."""
    x, plain, out = (cuda.to_device(np.arange(3001)) for _ in range(3))
    libraries.synchronize()
    y, stream = libraries.given(plain, number), libraries.streams[number]

    def call(**more: Any) -> None:
        ga.transform(lambda a, b: a + b, x, y, out=out, **more)

    with ga.graph() as g:
        call()
    g.launch()
    libraries.synchronize()
    out[...] = 0
    libraries.synchronize()
    stream.begin_capture()
    with pytest.raises(RuntimeError, match="is being captured, and the call runs on another"):
        call()
    with pytest.raises(RuntimeError, match="launch: the stream of an array's library"):
        g.launch()
    call(stream=stream)
    captured = stream.end_capture()
    assert_bits(libraries.hosts(out), [np.zeros(3001, np.int64)])
    captured.launch(libraries.current)
    assert_bits(libraries.hosts(out), [2 * np.arange(3001)])
