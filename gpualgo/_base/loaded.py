"""When this process began to load the package: what files hold later may not be what it runs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

AT = time.time_ns()


def changed_since(paths: Iterable[str]) -> bool:
    """Return whether any of these files was replaced or written after the package was loaded.

    By the time of the change in the folder, too: installers give files the times they have in an
    archive.
    """
    return any(max((s := os.stat(path)).st_mtime_ns, s.st_ctime_ns) > AT for path in paths)
