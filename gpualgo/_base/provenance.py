"""Digests of sources and versions of tools: the common part of all keys of the disk cache.

Digests are of file contents, as file times do not identify an installation.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from gpualgo._base import loaded

PACKAGE = Path(__file__).resolve().parent.parent


def digest_of_sources(*sources: tuple[Path, Iterable[Path | str]]) -> str | None:
    """Return the hash of files, their paths in a folder, and Python's and NumPy's versions.

    None if a file changed after the package was loaded: this process may run the old code.
    """
    digest = hashlib.blake2b()
    for folder, paths in sources:
        start = len(str(folder)) + 1
        for path in paths:
            name = str(path)[start:].replace(os.sep, "/")
            with open(path, "rb", buffering=0) as file:
                digest.update(name.encode() + b"\0" + file.read())
                if loaded.is_newer(os.fstat(file.fileno())):
                    return None
    # numba compiles bytecode, which depends on the Python version.
    digest.update(f"{sys.implementation.cache_tag} {np.__version__}".encode())
    return digest.hexdigest()


def files_of(folder: str, suffix: str, prefix: str = "") -> list[str]:
    if not os.path.isdir(folder):
        return []
    names = sorted(os.listdir(folder))
    return [os.path.join(folder, n) for n in names if n.startswith(prefix) and n.endswith(suffix)]


def versions_of(*packages: str) -> list[str]:
    """Return packages' versions from their dist-info folders: importing importlib.metadata takes
    20 ms.
    """
    return [_version_of(package) for package in packages]


def _version_of(package: str) -> str:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return "none"
    start, end = package + "-", ".dist-info"
    names = os.listdir(Path(spec.origin).parent.parent)
    folders = sorted(name for name in names if name.startswith(start) and name.endswith(end))
    return " ".join(folders) or _version_by_metadata(package)


def _version_by_metadata(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
