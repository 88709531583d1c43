"""Copies of a kernel for the arrays of its operator, with a driver that only takes notes."""

from __future__ import annotations

import gc
import struct
import weakref
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from fake_driver import FakeDriver, install

from gpualgo._arrays.view import View
from gpualgo._base import recording
from gpualgo._cuda import operator as bound
from gpualgo._cuda.parameters import POINTER, Parameters
from gpualgo._cuda.plan import Launch, Plan, arg_map
from gpualgo._driver import streams
from gpualgo._pipeline.problem import NO_INIT

STREAM, HOME, CODE = 5, 7, (b"machine code", "kernel")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    yield install(monkeypatch)
    bound._recent.clear()  # what is left is given back to this driver
    streams._in_use.clear()
    recording._held.clear()
    gc.collect()


class _Array:
    """An array that a library writes on its stream."""

    @staticmethod
    def stream(device: int) -> int:
        return HOME


def _launch(array: _Array, address: int, shared_bytes: int = 0) -> Callable[[int, int], None]:
    view = View(address, (4,), (8,), np.dtype("f8"), 0, _Array, False, array)
    kernel = bound.kernel("code", CODE, (view,), 0)
    packed = Parameters("Kernel", input=POINTER).pack()
    takes = {"input": arg_map(1, 0).sources[0]}
    launch = Launch(kernel, 1, 32, packed, 0, takes, shared_bytes=shared_bytes)
    plan = Plan(0, [launch])
    return lambda stream, source: plan.queue(stream, (*NO_INIT, b"", source))


def test_words_are_written_once_before_the_launch(fake: FakeDriver) -> None:
    array = _Array()
    launch = _launch(array, 4096, 100 << 10)
    for _ in range(3):
        launch(STREAM, 1)
    ((_, target, words, size, stream),) = fake.named("cuMemcpyHtoDAsync")
    assert (target, words, size) == (0xABC, struct.pack("<3q", 4096, 4, 8), 24)
    assert stream != STREAM
    names = [name for name, *_ in fake.calls]
    assert names.index("cuStreamSynchronize") < names.index("cuLaunchKernelEx")
    assert names.index("cuKernelSetAttribute") < names.index("cuLaunchKernelEx")
    assert names.count("cuLaunchKernelEx") == 3
    assert names.count("cuStreamWaitEvent") == 6  # for the array's stream, and of it for the launch
    _launch(array, 4096)(STREAM, 1)
    assert len(fake.named("cuLibraryLoadData")) == 1
    _launch(_Array(), 8192)(STREAM, 1)
    assert len(fake.named("cuLibraryLoadData")) == 2


def test_an_array_is_held_until_its_kernel_has_run(fake: FakeDriver) -> None:
    fake.is_done = False
    array = _Array()
    alive = weakref.ref(array)
    launch = _launch(array, 4096)
    launch(STREAM, 1)
    del array
    gc.collect()
    assert alive() is not None
    fake.is_done = True
    streams.keep_until_done(STREAM, 0)
    gc.collect()
    assert alive() is None
    other = _Array()
    _launch(other, 4096)(STREAM, 1)  # another array at the same place
    assert len(fake.named("cuLibraryLoadData")) == 1


def test_a_capture_holds_the_array_and_waits_for_nothing(fake: FakeDriver) -> None:
    fake.capturing = {STREAM}
    array = _Array()
    alive = weakref.ref(array)
    _launch(array, 4096)(STREAM, 1)
    del array
    gc.collect()
    assert alive() is not None
    assert len(fake.named("cuStreamWaitEvent")) == 0
    recording._held.clear()
    gc.collect()
    assert alive() is None


def test_only_so_many_stay_loaded(fake: FakeDriver) -> None:
    arrays = [_Array() for _ in range(bound.MAX_LOADED + 6)]
    launches = [_launch(array, 4096 + 64 * i) for i, array in enumerate(arrays)]
    for launch in launches:
        launch(STREAM, 1)
    streams.keep_until_done(STREAM, 0)
    gc.collect()
    assert len(fake.named("cuLibraryUnload")) == 6
    launches[-1](STREAM, 1)
    assert len(fake.named("cuLibraryLoadData")) == len(arrays)
    launches[0](STREAM, 1)
    assert len(fake.named("cuLibraryLoadData")) == len(arrays) + 1


def test_what_runs_is_not_unloaded(fake: FakeDriver) -> None:
    fake.is_done = False
    arrays = [_Array() for _ in range(bound.MAX_LOADED + 6)]
    for i, array in enumerate(arrays):
        _launch(array, 4096 + 64 * i)(STREAM, 1)
    gc.collect()
    assert len(fake.named("cuLibraryUnload")) == 0


def test_an_array_elsewhere_is_refused(fake: FakeDriver) -> None:
    view = View(4096, (4,), (8,), np.dtype("f8"), 1, _Array, False, _Array())
    with pytest.raises(
        TypeError, match=r"on cuda:1 .*runs on cuda:0; capture an array on that GPU"
    ):
        bound.kernel("code", CODE, (view,), 0)
