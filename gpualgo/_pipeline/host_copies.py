"""Multithreaded copies between host arrays and page-locked blocks.

Imported by every module that stages host arrays to a GPU.
"""

from __future__ import annotations

from gpualgo._driver import pinned


def _copy(target: int, source: int, size: int) -> None:
    from gpualgo._cpu import copying  # deferred: programs with small arrays never need it

    pinned.copy_by(copying.copy)
    copying.copy(target, source, size)


pinned.copy_by(_copy)
