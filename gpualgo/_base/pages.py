"""Pages of memory that nobody has touched yet: the system gives them, several threads ask for them.

Whoever writes to such memory first waits for its pages, one by one: a thread writes 3 GB/s there, 6
where they are. Threads that copy neighbouring pieces wait for the same large page, besides.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from functools import cache
from typing import Any

from gpualgo._base import threads

LEAST_BYTES = 16 << 20  # memory of less than 32 MiB mostly is memory that was freed before
_PIECE_BYTES = 4 << 20
_POPULATE_WRITE = 23  # MADV_POPULATE_WRITE of Linux 5.14 and later; changes no byte


def populate(address: int, num_bytes: int) -> None:
    """Have the system give memory that is to be written its pages, if they are not there.

    What the system refuses, or does not know, is left to whoever writes there.
    """
    if num_bytes < LEAST_BYTES or (libc := _libc()) is None:
        return
    begin, end = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE, address + num_bytes
    end -= end % mmap.PAGESIZE
    if _are_there(libc, begin, end):
        return

    def body(first: int, last: int) -> None:
        start, stop = begin + first * _PIECE_BYTES, min(begin + last * _PIECE_BYTES, end)
        libc.madvise(start, stop - start, _POPULATE_WRITE)

    threads.run(body, -(-(end - begin) // _PIECE_BYTES), end - begin)


def _are_there(libc: Any, begin: int, end: int) -> bool:
    """Return whether the first, the middle and the last page are there."""
    last = end - mmap.PAGESIZE
    middle = (begin + last) // 2 // mmap.PAGESIZE * mmap.PAGESIZE
    found = ctypes.c_ubyte()
    for page in (last, middle, begin):
        if libc.mincore(page, mmap.PAGESIZE, ctypes.byref(found)) or not found.value & 1:
            return False
    return True


@cache
def _libc() -> Any:
    """Return the functions of the system; None: it has others."""
    if sys.platform != "linux":
        return None
    try:
        libc = ctypes.CDLL(None)
        libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        libc.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    except (OSError, AttributeError):
        return None
    return libc
