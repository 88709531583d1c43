"""The gate of the GPU's tests, without a GPU: who passes when, and that no test can hang on it."""

from __future__ import annotations

import threading
import types
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gate as gates
import numpy as np
import pytest
from fake_driver import install
from gate import Gate


class Stream:
    """Ends when every ticket that is queued on it may pass."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self.tickets: list[int] = []

    def __enter__(self) -> None:
        self._library.current = self

    def __exit__(self, *error: object) -> None:
        self._library.current = None

    @property
    def done(self) -> bool:
        return all(ticket <= self._library.words[0] for ticket in self.tickets)


class Library:
    """What the gate uses of CuPy; a kernel that was launched is done once its ticket may pass."""

    def __init__(self) -> None:
        self.words = np.full(2, 99, np.uint32)  # not zero, as allocated memory may be
        self.current: Stream | None = None
        self.synchronized = 0
        runtime = types.SimpleNamespace(
            hostAlloc=lambda size, flags: self.words.ctypes.data, getDevice=lambda: 0
        )
        self.cuda = types.SimpleNamespace(runtime=runtime, Device=lambda: self)

    def synchronize(self) -> None:
        self.synchronized += 1

    def RawKernel(self, source: str, name: str) -> Any:
        assert f"void {name}(" in source

        def launch(grid: Any, block: Any, arguments: tuple[Any, ...]) -> None:
            opened, given_up, ticket, patience = arguments
            assert (opened, given_up - opened) == (self.words.ctypes.data, 4)
            assert patience == gates.PATIENCE * 1e9
            assert self.current is not None
            self.current.tickets.append(int(ticket))

        return launch


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    install(monkeypatch)
    monkeypatch.setattr(gates, "A_WHILE", 0.01)
    monkeypatch.setattr(gates, "PATIENCE", 1.0)
    return Library()


def test_a_stream_is_held_within_the_block(library: Library) -> None:
    gate, stream, other = Gate(library), Stream(library), Stream(library)
    for turn in (1, 2):
        with gate.hold(stream):
            assert gate.is_closed
            assert gate.holds(stream)
            assert gate.passes(other)
            assert not gate.holds(other)
        assert not gate.is_closed
        assert not gate.holds(stream)
        assert stream.tickets == [0, 1, 1, 2][: 2 * turn]  # each time an open gate came first
    assert library.synchronized == 4
    with Gate(library).hold(other):  # another test's
        assert other.tickets == [2, 3]
        assert gate.settle(stream)


def test_an_error_opens_it(library: Library) -> None:
    gate, stream = Gate(library), Stream(library)
    with pytest.raises(ZeroDivisionError), gate.hold(stream):
        raise ZeroDivisionError
    assert stream.done
    gate.close_down()


def test_whoever_waits_in_another_thread_goes_on(library: Library) -> None:
    gate, stream, began = Gate(library), Stream(library), threading.Event()

    def wait() -> bool:
        began.set()
        return gates._ends(stream, 30)

    with ThreadPoolExecutor(1) as pool:
        with gate.hold(stream):
            call = pool.submit(wait)
            began.wait()
            assert gate.blocks(call)
        assert call.result()
        with gate.hold(stream):
            gate.open()
            assert pool.submit(wait).result()
            assert not gate.holds(stream)
            assert not gate.passes(stream)
        assert not gate.blocks(call)


def test_one_stream_at_a_time(library: Library) -> None:
    gate, stream = Gate(library), Stream(library)
    with gate.hold(stream):
        with pytest.raises(RuntimeError, match="holds a stream already"), gate.hold(stream):
            pass
        assert gate.holds(stream)
    assert stream.done


def test_giving_up_fails_the_test(library: Library) -> None:
    gate, stream = Gate(library), Stream(library)
    gate.close_down()

    def hold() -> None:
        with gate.hold(stream):
            library.words[1] = stream.tickets[-1]

    with pytest.raises(AssertionError, match="something in its block waits for the stream"):
        hold()
    with pytest.raises(AssertionError, match="gave up"):
        gate.close_down()
    with gate.hold(stream):  # the next one is another's
        pass
    gate.close_down()


@pytest.mark.parametrize("architecture", ["compute_75", "compute_90"])
def test_the_kernel_compiles_and_looks_again_each_time(architecture: str) -> None:
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc")
    try:
        status, program = nvrtc.nvrtcCreateProgram(gates.SOURCE.encode(), b"gate.cu", 0, [], [])
    except Exception as error:  # cuda.bindings raises when the library is not there
        pytest.skip(f"no NVRTC: {error}")
    assert status == 0
    options = [f"--gpu-architecture={architecture}".encode()]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    assert status == 0
    _, size = nvrtc.nvrtcGetPTXSize(program)
    text = bytes(size)  # which NVRTC fills
    assert nvrtc.nvrtcGetPTX(program, text)[0] == 0
    ptx = text.decode()
    assert "wait_until_open" in ptx
    assert ptx.count("ld.volatile") >= 1
    assert "st.volatile" in ptx
    assert "nanosleep" in ptx
