"""When this process began to load the package: what files hold later may not be what it runs."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable

AT = time.time_ns()


def is_newer(status: os.stat_result) -> bool:
    """Return whether a file was replaced or written after the package was loaded."""
    if os.name == "nt":  # where the one is when the file was made
        return max(status.st_ctime_ns, status.st_mtime_ns) > AT
    return status.st_ctime_ns > AT  # installers set the other, to any time


def changed_since(paths: Iterable[str]) -> bool:
    """Return whether any of these files was replaced or written after the package was loaded."""
    return any(is_newer(os.stat(path)) for path in paths)


def has_newer_modules(unchanged: set[str]) -> bool:
    """Return whether a module of the package was loaded from a file that had changed before.

    `unchanged` has the names of modules that are known not to be; it takes those that are found.
    Each module's file is looked at once: it is loaded by then, and may change later.
    """
    for name in set(sys.modules) - unchanged:  # other threads may import meanwhile
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is not None and name.startswith("gpualgo.") and is_newer(os.stat(file)):
            return True
        unchanged.add(name)
    return False
