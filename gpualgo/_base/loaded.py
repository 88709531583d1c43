"""When this process loaded the package; files changed later may differ from the running code."""

from __future__ import annotations

import os
import sys
import time

AT = time.time_ns()


def is_newer(status: os.stat_result) -> bool:
    if os.name == "nt":  # there st_ctime is the time of creation
        return max(status.st_ctime_ns, status.st_mtime_ns) > AT
    return status.st_ctime_ns > AT  # installers set st_mtime to arbitrary times


def has_newer_modules(unchanged: set[str]) -> bool:
    """Return whether a module of the package was loaded from a file that had changed before.

    `unchanged` holds the names of modules that were checked; this function adds to it. Each
    module's file is checked once, after the module was loaded: it may change later.
    """
    for name in set(sys.modules) - unchanged:  # other threads may import meanwhile
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is not None and name.startswith("gpualgo."):
            try:
                if is_newer(os.stat(file)):
                    return True
            except OSError:  # another version is being installed
                return True
        unchanged.add(name)
    return False
