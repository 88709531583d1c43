"""A gate in a stream: what is queued behind it runs when the test opens it, and not before.

While a gate is closed, whatever waits for the stream waits for the test itself:

- Freeing memory, page-locked memory above all, may wait for every stream; so may allocating it,
  loading a kernel or a library, and a kernel's first launch. Make the very same calls once before
  the gate closes, on the same streams: then nothing is left to load, and pools have what they need.
  `hold` itself lets go of what earlier tests have left behind.
- Results on the host are waited for. Have such a call made by another thread (`blocks`), its pool
  entered before the gate, and leave CUDA alone meanwhile: it may hold the driver's lock. To open
  the gate takes no call of CUDA's.
- The legacy default stream waits for blocking streams and they for it: hold non-blocking ones.
- An array that dies while a held stream uses it holds back those that get memory next, and streams
  share queues of the GPU, where work behind a gate holds back others': inside the block let the
  host wait for no stream that must end; `settle` gives it time.

Against all else the gate gives up after a while, and then the test fails.
"""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from gpualgo._driver import streams

PATIENCE = 30.0  # seconds until a gate gives up
A_WHILE = 0.2  # seconds in which what does not wait for the gate would run

# Volatile loads and stores are seen by the whole system, and the host's stores by them.
SOURCE = r"""
extern "C" __global__ void wait_until_open(const volatile unsigned* opened,
                                           volatile unsigned* given_up, unsigned ticket,
                                           unsigned long long patience) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    while (*opened < ticket) {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        if (now - start > patience) {
            *given_up = ticket;
            return;
        }
        __nanosleep(1000);
    }
}
"""
_OPENED, _GIVEN_UP = range(2)  # words: the highest ticket that may pass, the last that gave up
_PORTABLE, _MAPPED = 1, 2  # flags of cudaHostAlloc: for every GPU, read in place


@cache
def _words(xp: Any) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Return the process's words. They are never freed: that may wait for a held stream."""
    address = xp.cuda.runtime.hostAlloc(8, _PORTABLE | _MAPPED)
    words = np.ctypeslib.as_array((ctypes.c_uint32 * 2).from_address(address))
    words[...] = 0
    return words


@cache
def _kernel(xp: Any) -> Any:
    return xp.RawKernel(SOURCE, "wait_until_open")


class Gate:
    """Holds one stream at a time, of CuPy's current device."""

    def __init__(self, xp: Any) -> None:
        self._xp = xp
        self._words = _words(xp)
        self._ticket = int(self._words[_OPENED])  # of the last gate, here: one that is open

    @contextmanager
    def hold(self, stream: Any) -> Iterator[None]:
        """Keep what a CuPy stream gets in the block from running before its end, or `open`."""
        if self.is_closed:
            raise RuntimeError("the gate holds a stream already; leave that block first")
        self._prepare(stream)
        self._ticket += 1
        self._queue(stream)
        try:
            yield
        finally:
            self.open()
        self.check()

    def open(self) -> None:
        """Let the stream go on."""
        self._words[_OPENED] = self._ticket

    @property
    def is_closed(self) -> bool:
        """Whether a stream is held."""
        return int(self._words[_OPENED]) < self._ticket

    def check(self) -> None:
        """Fail if the last gate gave up before it was opened."""
        assert int(self._words[_GIVEN_UP]) != self._ticket or not self._ticket, (
            f"the gate gave up after {PATIENCE:g} s: something in its block waits for the stream "
            "that it holds (tests/gate.py names what may)"
        )

    def close_down(self) -> None:
        """Open the gate, whatever became of the test, and see that nothing had to wait for it."""
        self.open()
        self._xp.cuda.Device().synchronize()
        self.check()

    def settle(self, stream: Any) -> bool:
        """Give a stream a while to do what does not wait for the gate; return whether it ended."""
        return _ends(stream, A_WHILE)

    def holds(self, stream: Any) -> bool:
        """Return whether a stream has not ended a while later: it waits for the closed gate."""
        return not self.settle(stream) and self.is_closed

    def passes(self, stream: Any) -> bool:
        """Return whether a stream ends while the gate is closed and nothing is queued behind it."""
        return _ends(stream, PATIENCE / 2) and self.is_closed

    def blocks(self, call: futures.Future[Any]) -> bool:
        """Return whether a call of another thread has not returned a while later."""
        return bool(futures.wait([call], A_WHILE).not_done) and self.is_closed

    def _prepare(self, stream: Any) -> None:
        """Load the kernel, by a gate that is open, and let nothing be freed late."""
        self._queue(stream)
        gc.collect()
        self._xp.cuda.Device().synchronize()
        device = self._xp.cuda.runtime.getDevice()
        streams.keep_until_done(0, device)  # lets go of what has run by now
        self._xp.cuda.Device().synchronize()

    def _queue(self, stream: Any) -> None:
        opened = self._words.ctypes.data
        given_up = opened + self._words.itemsize * _GIVEN_UP
        arguments = (
            np.uint64(opened), np.uint64(given_up), np.uint32(self._ticket),
            np.uint64(PATIENCE * 1e9),
        )  # fmt: skip
        with stream:
            _kernel(self._xp)((1,), (1,), arguments)


def _ends(stream: Any, seconds: float) -> bool:
    """Return whether a stream ends within so many seconds; the host does not wait inside CUDA."""
    deadline = time.monotonic() + seconds
    while not stream.done:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.001)
    return True
