"""Streams of every library, and the order of work on several of them."""

from __future__ import annotations

import ctypes
import gc
import types
import weakref
from typing import Any

import numpy as np
import pytest
from fake_driver import FakeDriver, install

from gpualgo._arrays import ordering
from gpualgo._arrays.device_array import DeviceArray
from gpualgo._arrays.view import as_view
from gpualgo._driver import driver, streams
from gpualgo._driver import streams as lifetime


class Stream:
    """What libraries' stream classes are called."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class Method:
    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 0x70


class Property:
    __cuda_stream__ = (0, 0x71)


class CUstream:
    def __int__(self) -> int:
        return 0x72


class DeviceBufferLike:
    """Has a pointer and a handle, and is no stream."""

    ptr = handle = 0x1000


@pytest.mark.parametrize(
    ("stream", "handle"),
    [
        (0, 0),
        (1, 1),
        (2, 2),
        (0x7F00, 0x7F00),
        (np.int64(9), 9),
        (Method(), 0x70),
        (Property(), 0x71),
        (CUstream(), 0x72),
        (ctypes.c_void_p(0x73), 0x73),
        (ctypes.c_void_p(None), 0),
        (Stream(cuda_stream=0x74), 0x74),
        (Stream(ptr=0x75), 0x75),
        (Stream(handle=ctypes.c_void_p(0x76)), 0x76),
        (Stream(handle=ctypes.c_void_p(None)), 0),
        (Stream(handle=CUstream()), 0x72),
    ],
)
def test_handles(stream: Any, handle: int) -> None:
    found = streams.handle_of(stream, "reduce")
    assert type(found) is int
    assert found == handle


@pytest.mark.parametrize("stream", [True, 1.0, "0", DeviceBufferLike(), object(), np.zeros(1)])
def test_no_streams(stream: Any) -> None:
    with pytest.raises(TypeError, match="reduce: stream must be a CUDA stream"):
        streams.handle_of(stream, "reduce")


@pytest.mark.parametrize("answer", [(1, 5), (0,), None, 7, (0, None)])
def test_other_protocols(answer: Any) -> None:
    stream = types.SimpleNamespace(__cuda_stream__=lambda: answer)
    with pytest.raises(TypeError, match="__cuda_stream__"):
        streams.handle_of(stream, "reduce")


def test_negative_handles() -> None:
    for stream in (-1, Stream(ptr=-5)):
        with pytest.raises(ValueError, match="negative"):
            streams.handle_of(stream, "reduce")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    return install(monkeypatch)


class Owner:
    """What an array's memory belongs to."""


def array(home: int, owner: Any = None, device: int = 0) -> Any:
    """Return the view of an array that is used on a stream."""
    made = DeviceArray(0x1000, (4,), (4,), np.dtype("f4"), device, home, False, owner)
    return as_view(made, "x")


def waits(fake: FakeDriver) -> list[tuple[int, int]]:
    """Return which stream waits for which, in order."""
    records = fake.named("cuEventRecord", "cuStreamWaitEvent")
    assert len(fake.named("cuEventCreate")) == len(fake.named("cuEventDestroy"))
    pairs = zip(records[::2], records[1::2], strict=True)
    assert all(record[1] == wait[2] for record, wait in pairs)
    return [(wait[1], record[2]) for record, wait in zip(records[::2], records[1::2], strict=True)]


def joined(stream: Any, *arrays: Any) -> tuple[int, set[int]]:
    """Return where a call on arrays runs, and the streams that it is joined with."""
    streams = ordering.streams_of(arrays)
    return ordering.handle_for(stream, arrays[0], "reduce", streams), streams


def test_one_home_waits_for_nothing(fake: FakeDriver) -> None:
    for home in (0, 2, 0x10):
        x = array(home)
        for stream in (None, home):
            handle, streams = joined(stream, x, array(home), array(home))
            assert (handle, streams) == (home, {home})
            ordering.keep(home, streams, (x,))
    assert ordering.handle_for(1, array(0), "reduce") == 1
    assert not fake.calls


def test_a_given_stream_waits_for_every_home(fake: FakeDriver) -> None:
    handle, _ = joined(0x40, array(0x10), array(0x20), array(0x10), array(0x30))
    assert handle == 0x40
    assert sorted(waits(fake)) == [(0x40, 0x10), (0x40, 0x20), (0x40, 0x30)]


def test_the_first_home_waits_for_the_others(fake: FakeDriver) -> None:
    assert joined(None, array(0x10), array(0), array(0x20))[0] == 0x10
    assert sorted(waits(fake)) == [(0x10, 0), (0x10, 0x20)]


@pytest.mark.parametrize("refused", ["cuEventRecord", "cuStreamWaitEvent"])
def test_an_event_is_destroyed_whatever_fails(
    fake: FakeDriver, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    monkeypatch.setattr(fake, refused, lambda *_: (906,), raising=False)
    for name in ("cuGetErrorName", "cuGetErrorString"):
        monkeypatch.setattr(fake, name, lambda _: (0, b"planted"), raising=False)
    with pytest.raises(RuntimeError, match="planted"):
        streams.wait_for(0x10, 0x20, 0)
    assert len(fake.named("cuEventCreate")) == len(fake.named("cuEventDestroy")) == 1


def test_a_capture_waits_for_what_it_records_alone(fake: FakeDriver) -> None:
    fake.capturing = {0x40, 0x20}
    joined(0x40, array(0x10), array(0x20))
    assert waits(fake) == [(0x40, 0x20)]


class Library:
    """A library whose arrays are used on its current stream."""

    name, has_producers = "another", False

    def __init__(self, current: int) -> None:
        self.current = current

    def stream(self, device: int) -> int:
        return self.current


def test_arrays_of_one_library_are_not_joined(fake: FakeDriver) -> None:
    """With a current stream: who gives another one orders them."""
    x = array(0)._replace(library=Library(0x10))
    assert joined(None, x, x) == (0x10, set())
    assert joined(0x40, x, x) == (0x40, set())
    assert not fake.calls


def test_libraries_are_joined(fake: FakeDriver, monkeypatch: Any) -> None:
    monkeypatch.setattr(lifetime, "keep_until_done", lambda *_: None)
    x, y = (array(0)._replace(library=Library(stream)) for stream in (0x10, 0x20))
    for stream, handle in ((None, 0x10), (0x40, 0x40)):
        fake.calls.clear()
        found, streams = joined(stream, x, y, array(0x30))
        assert (found, streams) == (handle, {0x10, 0x20, 0x30})
        others = sorted(streams - {handle})
        assert sorted(waits(fake)) == [(handle, other) for other in others]
        fake.calls.clear()
        ordering.keep(found, streams, (x, y, array(0x30)))
        assert sorted(waits(fake)) == [(other, handle) for other in others]


def test_arrays_of_other_streams_are_held(fake: FakeDriver, monkeypatch: Any) -> None:
    held: list[Any] = []
    monkeypatch.setattr(lifetime, "keep_until_done", lambda *args: held.append(args))
    first, second = array(0x10), array(0x40)
    ordering.keep(0x40, (), (first, second))
    assert held == [(0x40, 0, first.owner)]


def test_what_is_made_on_a_stream_holds_it(fake: FakeDriver, monkeypatch: Any) -> None:
    stream = Stream(ptr=0x40)
    handle = ordering.handle_for(stream, array(0), "reduce")
    assert handle == 0x40
    freed: list[Any] = []
    monkeypatch.setattr(lifetime, "allocate_array", lambda *args: 0x9000)
    monkeypatch.setattr(lifetime, "release", lambda *args: freed.append(args))
    result = array(0).library.empty((4,), np.dtype("f4"), 0, handle)
    assert (type(result.stream), result.stream) == (int, 0x40)
    seen = weakref.ref(stream)
    part = result[1:]
    del stream, handle, result
    fake.calls.clear()
    gc.collect()
    assert seen() is not None
    del part
    gc.collect()
    assert seen() is None
    assert freed == [(0x9000, 0, {})]


def test_streams_of_a_device(fake: FakeDriver, monkeypatch: Any) -> None:
    fake.device_of_stream = {0x40: 0, 0x50: 1}
    assert ordering.handle_for(0x50, array(0), "reduce") == 0x50  # one GPU: nobody asks
    monkeypatch.setattr(driver, "is_simple", False)
    fake.current = 55
    for stream, device in ((0x40, 0), (0x50, 1), (0, 1), (1, 1), (2, 1)):
        assert ordering.handle_for(stream, array(0, device=device), "reduce") == stream
    for fake.current in (55, 100):  # another's context, and that of cuda:0
        before = fake.current
        with pytest.raises(
            ValueError, match="reduce: stream= is of cuda:1 but the arrays are on cuda:0"
        ):
            ordering.handle_for(0x50, array(0), "reduce")
        assert fake.current == before


def test_exports_make_the_consumer_wait(fake: FakeDriver) -> None:
    x = DeviceArray(0x1000, (4,), (4,), np.dtype("f4"), 0, 0x10, False, None)
    for stream in (None, 1, 2, 0x20, 0x10, -1):
        assert x.__dlpack__(stream=stream) is not None
    assert waits(fake) == [(0, 0x10), (1, 0x10), (2, 0x10), (0x20, 0x10)]


def test_producers_are_asked_for_the_default_stream(fake: FakeDriver) -> None:
    asked: list[Any] = []

    class Producer:
        def __dlpack__(self, *, stream: Any, max_version: Any = None) -> Any:
            asked.append(stream)
            x = DeviceArray(0x1000, (4,), (4,), np.dtype("f4"), 0, 0, False, None)
            return x.__dlpack__(stream=-1, max_version=max_version)

        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

    view = as_view(Producer(), "x")
    assert (view.ptr, view.shape, view.device, view.library.producer_stream) == (0x1000, (4,), 0, 0)
    assert as_view(view.owner, "x")[:-1] == view[:-1]
    assert asked == [1]
    fake.calls.clear()
    del view
    gc.collect()
    assert [call[2] for call in fake.named("cuEventRecord")] == [0]  # given back when it is done
    fake.capturing = {0}
    as_view(Producer(), "x")
    assert asked == [1, -1]


def test_what_comes_next_at_home_is_in_order(fake: FakeDriver) -> None:
    """What reads a result where it is at home, or overwrites an input, comes after the call."""
    arrays = (array(0), array(0x20))
    ordering.keep(0x40, (0, 0x20), arrays)
    assert sorted([call[1] for call in fake.named("cuStreamWaitEvent")]) == [0, 0x20]
    fake.calls.clear()
    fake.capturing.add(0x40)
    ordering.keep(0x40, (0, 0x20), arrays)
    assert not fake.named("cuStreamWaitEvent")
