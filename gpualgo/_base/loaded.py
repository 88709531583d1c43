"""When this process began to load the package: what files hold later may not be what it runs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

AT = time.time_ns()


def changed_since(paths: Iterable[str]) -> bool:
    """Return whether any of these files was replaced or written after the package was loaded."""
    return any(_changed_at(path) > AT for path in paths)


def _changed_at(path: str) -> int:
    status = os.stat(path)
    if os.name == "nt":  # where the one is when the file was made
        return max(status.st_ctime_ns, status.st_mtime_ns)
    return status.st_ctime_ns  # installers set the other, to any time
