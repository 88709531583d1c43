"""Page-locked and managed memory of the host: recognised, and read and written in place."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from support import BFLOAT16, LAYOUTS, Backend, assert_same, random_array, scaled

import gpualgo as ga
from gpualgo._arrays import page_locked
from gpualgo._arrays.view import NumPy

GUARD, GUARD_BYTES = 0xA5, 256
RECORD = np.dtype([("key", "i4"), ("weight", "f8")])

RUNS: dict[str, Callable[..., Any]] = {
    "reduce": lambda x, **k: ga.reduce(x, 0.5, lambda a, b: a + b, **k),
    "reduce_rows": lambda x, **k: ga.reduce(x, None, max, axis=1, **k),
    "reduce_columns": lambda x, **k: ga.reduce(x, axis=0, keepdims=True, **k),
    "inclusive_scan": lambda x, **k: ga.inclusive_scan(x, **k),
    "exclusive_scan": lambda x, **k: ga.exclusive_scan(x, axis=0, reverse=True, **k),
    "scan_rows": lambda x, **k: ga.inclusive_scan(x, 1.0, lambda a, b: a + b, axis=1, **k),
    "transform": lambda x, **k: ga.transform(lambda a: a * 2 + 1, x, **k),
    "histogram": lambda x, **k: ga.histogram(x, 50, (-9, 9), **k),
    "histogram_rows": lambda x, **k: ga.histogram(x, [-9, 0, 1, 9], axis=1, dtype=np.int16, **k),
    "histogram_large": lambda x, **k: ga.histogram(x, 30_000, (-9, 9), **k),
    "radix_sort": lambda x, **k: ga.radix_sort(x, **k),
    "argsort": lambda x, **k: ga.argsort(x, axis=0, dtype=np.int32, **k),
}
SHAPE = (scaled(61, emulated=13), 1003)
VALUES = random_array(SHAPE, np.dtype("float32"))

Place = Callable[..., Any]  # (values, layout) -> those values in page-locked memory


def _cupy(size: int) -> Any:
    return importlib.import_module("cupyx").empty_pinned(size, np.uint8)


def _cupy_block(size: int) -> Any:
    return np.frombuffer(importlib.import_module("cupy").cuda.alloc_pinned_memory(size), np.uint8)


def _torch(size: int) -> Any:
    torch = pytest.importorskip("torch")
    return torch.empty(size, dtype=torch.uint8, pin_memory=True).numpy()


def _numba(size: int) -> Any:
    return pytest.importorskip("numba.cuda").pinned_array(size, np.uint8)


def _managed(size: int) -> Any:
    return np.asarray(pytest.importorskip("numba.cuda").managed_array(size, np.uint8))


def _cuda_core(size: int) -> Any:
    core = pytest.importorskip("cuda.core")
    core.Device().set_current()
    buffer = core.LegacyPinnedMemoryResource().allocate(size)
    memory = (ctypes.c_ubyte * size).from_address(int(buffer.handle))
    memory.owner = buffer
    return np.frombuffer(memory, np.uint8)


def _registered(size: int) -> Any:
    raw = np.empty(size + 2 * 4096, np.uint8)  # pages that no other array has a part of
    return raw[-raw.ctypes.data % 4096 :]  # `allocate` registers it


ALLOCATORS: dict[str, Callable[[int], Any]] = {
    "gpualgo": lambda size: ga.empty_pinned(size, np.uint8),
    "cupy": _cupy, "cupy_block": _cupy_block, "torch": _torch, "numba": _numba,
    "managed": _managed, "cuda_core": _cuda_core, "registered": _registered,
}  # fmt: skip


@pytest.fixture
def allocate(cuda: Backend) -> Iterator[Callable[[str, int], Any]]:
    """Allocate page-locked bytes; what has to be registered is until the test ends."""
    with contextlib.ExitStack() as stack:

        def make(kind: str, size: int) -> Any:
            found = ALLOCATORS[kind](size)[:size]
            if kind == "registered":
                runtime = cuda.xp.cuda.runtime
                runtime.hostRegister(found.ctypes.data, size, 0)
                stack.callback(runtime.hostUnregister, found.ctypes.data)
            return found

        yield make


@pytest.fixture
def guarded(allocate: Callable[[str, int], Any]) -> Iterator[Place]:
    """Put values amid guard bytes, which must be as they were when the test ends."""
    made: list[tuple[Any, Any]] = []

    def fill(values: Any, layout: str, new_bytes: Callable[[int], Any]) -> tuple[Any, Any]:
        buffers: list[Any] = []

        def new(full: tuple[int, ...]) -> Any:
            nbytes = math.prod(full) * values.itemsize
            buffers.append(new_bytes(nbytes + 2 * GUARD_BYTES))
            buffers[0][...] = GUARD
            inner = buffers[0][GUARD_BYTES : GUARD_BYTES + nbytes]
            return inner.view(values.dtype).reshape(full)

        view = LAYOUTS[layout](new, values.shape) if values.ndim else new(())
        view[...] = values
        return view, buffers[0]

    def place(values: Any, layout: str = "contiguous", kind: str = "gpualgo") -> Any:
        view, buffer = fill(values, layout, lambda size: allocate(kind, size))
        inverted = np.frombuffer(bytes([255 - GUARD]) * values.nbytes, values.dtype)
        _, mirror = fill(inverted.reshape(values.shape), layout, lambda n: np.empty(n, np.uint8))
        made.append((buffer, mirror == GUARD))
        return view

    yield place
    for buffer, is_guard in made:
        touched = np.flatnonzero((buffer != GUARD) & is_guard)
        assert touched.size == 0, f"wrote outside the array: bytes {touched[:8] - GUARD_BYTES}"


def on_device(cuda: Backend, run: Callable[..., Any], *arrays: Any) -> Any:
    """Return what a run gives for arrays on the device."""
    return cuda.to_host(run(*map(cuda.to_device, arrays)))


def seen_in_place(array: Any) -> bool:
    from gpualgo._driver import device as gpu

    with gpu.get(0).current():
        return page_locked.view(NumPy.view(array), 0) is not None


def test_a_step_need_not_end_within_the_memory(allocate: Callable[[str, int], Any]) -> None:
    x = allocate("gpualgo", 5 * 4).view(np.float32)[::2]
    assert seen_in_place(x)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("kind", ALLOCATORS)
def test_every_kind_of_memory(cuda: Backend, guarded: Place, kind: str, run: Any) -> None:
    want = on_device(cuda, run, VALUES)
    x = guarded(VALUES, "padded", kind)
    out = guarded(np.zeros_like(want), "contiguous", kind)
    assert seen_in_place(x)
    assert seen_in_place(out)
    assert run(x, out=out) is out
    assert_same(out, want)
    assert_same(run(x), want)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(cuda: Backend, guarded: Place, layout: str, run: Any) -> None:
    x = guarded(VALUES, layout)
    x.flags.writeable = False
    arranged = cuda.arrange(layout, VALUES)  # the association is that of the layout
    want = cuda.to_host(run(arranged))
    for kind in (layout, "contiguous") if want.ndim else ("contiguous",):
        out = guarded(np.zeros_like(want), kind)
        assert run(x, out=out) is out
        place = cuda.arrange(kind, np.zeros_like(want)) if want.ndim else None
        assert_same(out, cuda.to_host(run(arranged, out=place)))


@pytest.mark.parametrize("dtype", [BFLOAT16, np.dtype("complex128"), np.dtype("uint8")])
def test_dtypes(cuda: Backend, guarded: Place, dtype: np.dtype[Any]) -> None:
    values = random_array(5000, dtype)
    for run in (RUNS["inclusive_scan"], RUNS["transform"]):
        x, want = guarded(values), on_device(cuda, run, values)
        assert_same(run(x), want)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_beside_pageable_memory(cuda: Backend, guarded: Place, run: Any) -> None:
    """Each array goes by its own kind."""
    want = on_device(cuda, run, VALUES)
    out = np.zeros_like(want)
    assert_same(run(guarded(VALUES, "step"), out=out), want)
    assert_same(run(VALUES, out=guarded(out)), want)
    stream = cuda.xp.cuda.Stream(non_blocking=True)
    assert_same(run(guarded(VALUES), stream=stream), want)
    assert_same(run(VALUES, out=guarded(out), stream=stream), want)


def test_transform_of_mixed_blocks(cuda: Backend, guarded: Place) -> None:
    values = random_array((3, scaled(7_000_001, emulated=7001)), np.dtype("float32"))
    x = guarded(values, "padded")

    def run(a: Any, b: Any, **k: Any) -> Any:
        return ga.transform(lambda a, b: a * 2 + b, a, b, **k)

    assert_same(run(x, values), values * 2 + values)
    out = guarded(np.zeros_like(values), "offset")
    assert_same(run(x, values, out=out), values * 2 + values)
    row = guarded(values[0])
    assert_same(run(row, values), values[0] * 2 + values)
    assert_same(run(row, x, out=out), values[0] * 2 + values)


@pytest.mark.parametrize("layout", ["contiguous", "step"])
@pytest.mark.parametrize("name", ["inclusive_scan", "transform", "radix_sort"])
def test_out_is_the_input(cuda: Backend, guarded: Place, name: str, layout: str) -> None:
    values = random_array(scaled(70_001, emulated=20_001), np.dtype("int64"))
    x = guarded(values, layout)
    assert RUNS[name](x, out=x) is x
    assert_same(x, on_device(cuda, RUNS[name], values))


@pytest.mark.parametrize("layout", ["contiguous", "step", "reversed"])
def test_sort_of_pairs(cuda: Backend, guarded: Place, layout: str) -> None:
    keys = random_array(20_011, np.dtype("uint16"))
    for dtype in (np.dtype("int64"), RECORD, np.dtype("S3")):
        values = np.arange(keys.size).astype(dtype)
        order = np.argsort(keys, kind="stable")
        out = guarded(np.zeros_like(keys), layout), guarded(np.zeros_like(values), layout)
        ga.radix_sort(guarded(keys, layout), guarded(values, layout), out=out)
        assert np.array_equal(out[0], keys[order])
        assert np.array_equal(out[1], values[order])


def test_misaligned_arrays_are_staged(cuda: Backend) -> None:
    x = ga.empty_pinned(8 * 1000 + 1, np.uint8)[1:].view(np.float64)
    x[...] = 2.0
    assert not seen_in_place(x)
    assert float(ga.reduce(x)) == 2000
    assert ga.transform(lambda a: a + 1, x, out=x) is x
    assert np.all(x == 3)


def test_partly_registered_arrays_are_staged(cuda: Backend) -> None:
    x = np.ones(scaled(1 << 20, emulated=1 << 14))
    runtime = cuda.xp.cuda.runtime
    runtime.hostRegister(x.ctypes.data, x.nbytes // 2, 0)
    try:
        assert not seen_in_place(x)
        assert seen_in_place(x[: x.size // 4])
        assert float(ga.reduce(x)) == x.size
    finally:
        runtime.hostUnregister(x.ctypes.data)


def test_memory_of_a_gpu_is_no_host_array(cuda: Backend) -> None:
    device = cuda.xp.zeros(100)

    class Wrong:
        __array_interface__ = {  # noqa: RUF012
            "version": 3, "shape": (100,), "typestr": "<f8", "data": (device.data.ptr, False),
        }  # fmt: skip

    with pytest.raises(ValueError, match=r"reduce: .* GPU memory; pass gpualgo\.from_pointer"):
        ga.reduce(np.asarray(Wrong()))


def test_torch_tensors(cuda: Backend) -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(10_000, dtype=torch.float32).pin_memory()
    out = torch.empty_like(x, pin_memory=True)
    assert ga.transform(lambda a: a + 1, x, out=out) is out
    assert torch.equal(out, x + 1)
    assert float(ga.reduce(x.to(torch.bfloat16).pin_memory(), None, max)) == 9984
