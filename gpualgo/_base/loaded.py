"""When this process loaded the package; files changed later may differ from the running code."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

AT = time.time_ns()


def changed_since(paths: Iterable[str]) -> bool:
    """Return whether any of these files changed after the package was loaded."""
    return any(_changed_at(path) > AT for path in paths)


def _changed_at(path: str) -> int:
    status = os.stat(path)
    if os.name == "nt":  # there st_ctime is the time of creation
        return max(status.st_ctime_ns, status.st_mtime_ns)
    return status.st_ctime_ns  # installers set st_mtime to arbitrary times
