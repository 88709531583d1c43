"""`empty_pinned`, and what is decided about host arrays before anything runs on a GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import fake_driver
import ml_dtypes
import numpy as np
import pytest
from support import BFLOAT16, Backend, run_python

import gpualgo as ga
from gpualgo._arrays import page_locked
from gpualgo._arrays.view import NumPy, View
from gpualgo._driver import driver, staging, streams
from gpualgo._pipeline import host_whole as whole

RECORD = np.dtype([("key", "i4"), ("weight", "f8")])


@pytest.mark.parametrize("dtype", [np.float32, "bfloat16", ml_dtypes.bfloat16, RECORD, "S3", bool])
@pytest.mark.parametrize("shape", [7, (2, 3), [4, 0], (), np.int64(3)])
def test_empty_pinned(backend: Backend, shape: Any, dtype: Any) -> None:
    x = ga.empty_pinned(shape, dtype)
    want = np.empty(shape, BFLOAT16 if dtype == "bfloat16" else dtype)
    assert type(x) is np.ndarray
    assert (x.shape, x.dtype) == (want.shape, want.dtype)
    assert x.flags.c_contiguous
    assert x.flags.writeable
    x[...] = np.zeros((), x.dtype)


def test_empty_pinned_in_calls(backend: Backend) -> None:
    x, out = ga.empty_pinned(1000, np.int64), ga.empty_pinned((), np.int64)
    x[...] = np.arange(1000)
    assert ga.reduce(x, out=out) is out
    assert int(out) == 499_500
    assert ga.empty_pinned(3).dtype == np.float64


def test_more_than_the_machine_has(backend: Backend) -> None:
    with pytest.raises(MemoryError):
        ga.empty_pinned(1 << 50, np.int8)


@pytest.mark.parametrize(
    ("shape", "dtype", "error", "message"),
    [
        ("3", np.int8, TypeError, "shape must be an int or a sequence of ints, got '3'"),
        (2.0, np.int8, TypeError, "shape must be an int"),
        ((2, -1), np.int8, ValueError, r"shape \(2, -1\) has a negative extent"),
        (3, object, TypeError, "dtype object has Python objects"),
        (3, "S0", TypeError, "dtype .* has Python objects"),
        (3, "no", TypeError, "dtype 'no' is not a dtype of NumPy"),
        ((1 << 40, 1 << 40), np.int8, MemoryError, f"{1 << 80} bytes exceed the address space"),
    ],
)
def test_empty_pinned_refuses(shape: Any, dtype: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=f"empty_pinned: {message}"):
        ga.empty_pinned(shape, dtype)


def test_the_cpu_looks_at_no_pointer() -> None:
    code = """if True:
        import numpy as np, gpualgo as ga
        from gpualgo._arrays import page_locked
        page_locked._attributes = None  # what asks for a pointer's attributes fails
        x = ga.empty_pinned(1000)
        x[...] = 1
        assert ga.reduce(x, out=ga.empty_pinned(())) == 1000
        assert ga.radix_sort(x).sum() == ga.histogram(x, 4).sum() == 1000
        print("no pointer is asked for")
    """
    done = run_python(code, CUDA_VISIBLE_DEVICES="")
    assert done.stdout.strip() == "no pointer is asked for", done.stderr


START, SIZE = 1 << 40, 4096


class _At:
    def __init__(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...] | None):
        self.__array_interface__ = {
            "version": 3, "shape": shape, "typestr": "<f8", "data": (address, False),
            "strides": strides,
        }  # fmt: skip


def _found(
    monkeypatch: pytest.MonkeyPatch, array: Any, kind: int = 1, managed: bool = False
) -> Any:
    def attributes(address: int) -> Any:
        inside = START <= address < START + SIZE
        return (kind, managed, address + 0x1000, START, SIZE) if inside else (0, False, 0, 0, 0)

    monkeypatch.setattr(page_locked, "_attributes", attributes)
    return page_locked.view(NumPy.view(np.asarray(array)), 3, "reduce")


@pytest.mark.parametrize(
    ("address", "shape", "strides"),
    [
        (START, (512,), None),
        (START + SIZE - 8, (512,), (-8,)),
        (START + 8, (3, 5), (0, 16)),
        (START + 4088, (), None),
        (START + 40, (2, 2, 2), (-32, 16, -8)),
    ],
)
@pytest.mark.parametrize(("kind", "managed"), [(1, False), (2, True), (1, True)])
def test_arrays_within_the_range(
    monkeypatch: pytest.MonkeyPatch, address: int, shape: Any, strides: Any, kind: int,
    managed: bool,
) -> None:  # fmt: skip
    array = np.asarray(_At(address, shape, strides))
    view = _found(monkeypatch, array, kind, managed)
    assert (view.ptr, view.device) == (address + 0x1000, 3)
    assert (view.shape, view.strides, view.dtype) == (array.shape, array.strides, array.dtype)
    assert view.owner is array


@pytest.mark.parametrize(
    ("address", "shape", "strides"),
    [
        (START, (513,), None),
        (START - 8, (2,), None),
        (START + SIZE, (4,), None),
        (START + SIZE, (512,), (-8,)),
        (START, (512,), (-8,)),
        (START + 4, (2,), None),
        (START, (2,), (12,)),
        (START, (2, 0), None),
        (START, (1,) * 13, None),
    ],
)
def test_arrays_to_be_staged(
    monkeypatch: pytest.MonkeyPatch, address: int, shape: Any, strides: Any
) -> None:
    assert _found(monkeypatch, _At(address, shape, strides)) is None


def test_pageable_and_device_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _found(monkeypatch, _At(START, (8,), None), kind=0) is None
    with pytest.raises(ValueError, match=r"^reduce: .* has address 0x10000000000, .* GPU memory"):
        _found(monkeypatch, _At(START, (8,), None), kind=2)


class Recorder:
    """Stands in for the driver: says what would be done, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, locked: list[Any]) -> None:
        self.done: list[Any] = []
        self.locked = {id(array): number for number, array in enumerate(locked)}
        self.is_capturing = False
        fake_driver.install(monkeypatch)
        monkeypatch.setattr(driver, "synchronize", lambda stream: self.log("wait", stream))
        monkeypatch.setattr(driver, "refuse_capture", self.refuse)
        monkeypatch.setattr(streams, "keep_until_done", lambda *given: self.log("keep", given))
        monkeypatch.setattr(page_locked, "view", self.view)
        monkeypatch.setattr(
            staging, "copy_all", lambda *given: self.log("stage" if given[-1] else "unstage")
        )
        monkeypatch.setattr(staging, "device_buffers", self.buffers)
        monkeypatch.setattr(staging, "move", lambda *given: self.log("copy", given[2]))

    def log(self, *what: Any) -> None:
        self.done.append(what)

    def refuse(self, stream: int, reason: str) -> None:
        if self.is_capturing:
            raise RuntimeError(reason)

    def view(self, view: View, device: int, where: str, is_aligned: bool) -> View | None:
        number = self.locked.get(id(view.owner))
        return None if number is None else view._replace(ptr=4096 * (1 + number), device=device)

    @contextlib.contextmanager
    def buffers(self, device: int, stream: int, sizes: list[int]) -> Iterator[list[int]]:
        self.log("allocate", *sizes)
        yield [1 << 30] * len(sizes)
        self.log("free")


X, OUT = np.zeros((4, 6)), np.zeros((2, 6))[:, ::2]


def _done(recorder: Recorder, stream: Any, is_copied: bool = False) -> list[Any]:
    with whole.on_device(0, stream, [X], [OUT], "reduce", is_copied) as (_, (x,), (out,)):
        recorder.log("run", x.ptr, out.strides)
    return recorder.done


def test_page_locked_calls_on_a_stream_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(monkeypatch, [X, OUT])
    recorder.is_capturing = True
    *rest, (last, given) = _done(recorder, 2)
    assert rest == [("allocate",), ("run", 4096, OUT.strides), ("free",)]
    assert last == "keep"
    assert given[:2] == (2, 0)
    assert given[2] is X
    assert given[3] is OUT


def test_calls_without_a_stream_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(monkeypatch, [X, OUT])
    assert _done(recorder, None)[-2:] == [("free",), ("wait", 0)]


def test_pageable_arrays_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(monkeypatch, [X])
    run = ("run", 4096, (24, 8))
    room = ("allocate", OUT.nbytes)
    assert _done(recorder, 2) == [("wait", 2), room, run, ("unstage",), ("free",), ("wait", 2)]
    recorder.is_capturing = True
    with pytest.raises(RuntimeError, match=r"reduce: the result is pageable .*empty_pinned"):
        _done(recorder, 2)


def test_pageable_inputs_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(monkeypatch, [OUT])
    assert _done(recorder, None)[0] == ("allocate", X.nbytes)
    recorder.is_capturing = True
    with pytest.raises(RuntimeError, match=r"reduce: an array is pageable .*empty_pinned"):
        _done(recorder, 2)


def test_sorts_copy_what_has_no_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(monkeypatch, [X, OUT])
    assert _done(recorder, 2, is_copied=True)[:3] == [
        ("allocate", X.nbytes), ("copy", X.nbytes), ("run", 1 << 30, OUT.strides),
    ]  # fmt: skip


def test_copies_of_turned_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes travel as they lie: strides stay, and the first element need not come first."""
    turned = X.T[::-1]
    recorder = Recorder(monkeypatch, [turned, OUT])
    with whole.on_device(0, 2, [turned], [OUT], "argsort", is_copied=True) as (_, (x,), _):
        assert (x.shape, x.strides) == (turned.shape, turned.strides)
        assert x.ptr == (1 << 30) + 5 * 8
    assert ("copy", X.nbytes) in recorder.done


def test_arrays_are_kept_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(monkeypatch, [X, OUT])
    with (
        pytest.raises(MemoryError),
        whole.on_device(0, None, [X], [OUT], "reduce"),
    ):
        raise MemoryError
    assert recorder.done[-1][0] == "keep"
