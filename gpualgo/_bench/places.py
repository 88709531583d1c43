"""Where results and built peers are kept: in the user's folders, never in a checkout."""

from __future__ import annotations

import os
from pathlib import Path


def _folder(kind: str, variable: str, fallback: str) -> Path:
    try:
        import platformdirs
    except ImportError:
        base = Path(os.environ.get(variable) or Path.home() / fallback) / "gpualgo"
    else:
        base = Path(getattr(platformdirs, f"user_{kind}_dir")("gpualgo", appauthor=False))
    return base / "bench"


def results() -> Path:
    """Return the folder of results."""
    return _folder("data", "XDG_DATA_HOME", ".local/share")


def built() -> Path:
    """Return the folder of compiled peers, which nobody else may write to: they are loaded."""
    folder = _folder("cache", "XDG_CACHE_HOME", ".cache")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if os.name == "posix" and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        raise PermissionError(f"others can write to {folder}: what is built there is not loaded")
    return folder
