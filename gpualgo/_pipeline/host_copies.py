"""What fills and empties page-locked blocks: threads that stand by, once there is much to copy.

Whoever brings arrays of the host to a GPU imports this.
"""

from __future__ import annotations

from gpualgo._driver import stages


def _copy(target: int, source: int, size: int) -> None:
    from gpualgo._cpu import copying  # which a program of small arrays does not load

    stages.copy_by(copying.copy)
    copying.copy(target, source, size)


stages.copy_by(_copy)
