"""Disk cache of compiled code: what its keys depend on, and when entries may be written."""

from __future__ import annotations

import hashlib
import os
import sys
from functools import cache
from pathlib import Path

from gpualgo._base import disk_cache as disk
from gpualgo._base import loaded
from gpualgo._base.provenance import PACKAGE, digest_of_sources, files_of, versions_of

_unchanged: set[str] = set()  # modules that were loaded from the sources that were read


def source_folder() -> Path:
    """Return the folder of the .cuh files: in the installed package, else in the source tree."""
    installed = PACKAGE / "cuda_src"
    return installed if installed.is_dir() else PACKAGE.parent / "cuda_src"


@cache
def provenance() -> str | None:
    """Return what all cached code depends on: sources, compiler versions and numba's settings.

    None if the sources cannot be read, or differ from those that this process has loaded.
    """
    before = set(sys.modules)
    try:
        kernels, rules = source_files()
        digest = digest_of_sources((source_folder(), kernels), (PACKAGE, rules))
    except OSError:  # the modules are in an archive, or only bytecode exists
        return None
    if digest is None:
        return None
    _unchanged.update(before)
    settings = sorted((k, v) for k, v in os.environ.items() if k.startswith("NUMBA_"))
    return repr((digest, versions_of("numba_cuda", "numba", "llvmlite"), settings))


def source_files() -> tuple[list[str], list[str]]:
    """Return the kernels' sources, and the modules that determine how operators are compiled."""
    folder = str(source_folder())
    subfolders = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    kernels = files_of(folder, ".cuh")
    for name in subfolders:
        kernels += files_of(os.path.join(folder, name), ".cuh")
    rules = [
        os.path.join(PACKAGE, *name.split("/"))
        for name in ("_arrays/view.py", "_cuda/operator.py", "_cuda/toolchain.py")
    ]
    for name in ("_base", "_operators", "_operators/numpy_rules"):
        rules += files_of(os.path.join(PACKAGE, *name.split("/")), ".py")
    return kernels, rules


def key_of(*parts: str) -> str:
    """Return the cache key for these parts and the provenance."""
    return hashlib.sha256("\0".join((provenance() or "", *parts)).encode()).hexdigest()


def read(key: str) -> tuple[bytes, ...] | None:
    """Return the fields of a disk entry; None if there is none."""
    return None if provenance() is None else disk.read(key)


def write(key: str, fields: tuple[bytes, ...]) -> None:
    """Write a disk entry, unless a source file has changed.

    NVRTC reads the kernels' sources at each compilation, so each write checks them again. After a
    change it is unknown whether this process compiled the old or the new source.
    """
    if provenance() is not None and not _has_changed():
        disk.write(key, fields)


def _has_changed() -> bool:
    try:
        kernels, _ = source_files()
        return loaded.has_newer_modules(_unchanged) or loaded.changed_since(kernels)
    except OSError:  # a source file is missing
        return True
