"""Folders of the user's: results, and peers that were compiled. None is in the checkout."""

from __future__ import annotations

import os
from pathlib import Path


def _folder(variable: str, fallback: str) -> Path:
    base = os.environ.get(variable) or Path.home() / fallback
    return Path(base) / "gpualgo" / "bench"


def results() -> Path:
    return _folder("XDG_DATA_HOME", ".local/share")


def built() -> Path:
    """Return the folder of compiled peers, which nobody else may write to: they are loaded."""
    folder = _folder("XDG_CACHE_HOME", ".cache")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise PermissionError(f"others can write to {folder}: what is built there is not loaded")
    return folder


def check(path: Path | None, is_file: bool = False) -> None:
    """Refuse a file or folder that cannot be written, before anything is measured for it."""
    if path is None or (is_file and path.exists() and not (path.is_dir() or path.is_file())):
        return  # nothing is kept, or it goes to a pipe or terminal
    if is_file and path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    nearest = path.parent if is_file else path
    while not nearest.exists():
        nearest = nearest.parent
    if not nearest.is_dir():
        raise NotADirectoryError(f"{path} cannot be written: {nearest} is no folder")
    if not os.access(nearest, os.W_OK):
        raise PermissionError(f"{path} cannot be written: {nearest} is not writable")
