"""Memory that has its pages before it is written."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest

from gpualgo._base import threads

BYTES = 3 << 20


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "LEAST_BYTES", 1)
    monkeypatch.setattr(threads, "_POPULATED_BYTES", 1 << 20)


def _mapped() -> tuple[mmap.mmap, int]:
    memory = mmap.mmap(-1, BYTES)
    return memory, ctypes.addressof(ctypes.c_char.from_buffer(memory))


def _num_there(address: int) -> int:
    libc = threads._libc()
    found = (ctypes.c_ubyte * (BYTES // mmap.PAGESIZE))()
    assert libc.mincore(address, BYTES, found) == 0
    return sum(each & 1 for each in found)


@pytest.mark.skipif(threads._libc() is None, reason="another system")
def test_pages_are_there_then() -> None:
    memory, address = _mapped()
    if threads._libc().madvise(address, mmap.PAGESIZE, threads._POPULATE_WRITE):
        pytest.skip("a Linux before 5.14")
    threads.populate(address, BYTES)
    assert _num_there(address) == BYTES // mmap.PAGESIZE
    assert memory[:] == bytes(BYTES)


@pytest.mark.parametrize("offset", [0, 1, 4095])
@pytest.mark.parametrize("size", [1, 4096, 4097, BYTES - 4095])
def test_no_byte_changes(offset: int, size: int) -> None:
    x = np.random.default_rng(0).integers(0, 256, BYTES).astype(np.uint8)
    was = x.copy()
    threads.populate(x.ctypes.data + offset, min(size, BYTES - offset))
    assert (x == was).all()


def test_what_may_not_be_written_stays_as_it_is(tmp_path: object) -> None:
    memory = mmap.mmap(-1, BYTES, prot=mmap.PROT_READ)
    view = np.frombuffer(memory, np.uint8)
    threads.populate(view.ctypes.data, BYTES)
    assert not view.any()


def test_memory_that_has_its_pages_wakes_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    if threads._libc() is None:
        pytest.skip("another system")
    x = np.ones(BYTES, np.uint8)
    monkeypatch.setattr(threads, "run", lambda *args: pytest.fail("woken"))
    threads.populate(x.ctypes.data, x.nbytes)
