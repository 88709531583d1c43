"""Compiled code on disk: what its keys hold, and when a process may keep its own."""

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
    """Return where the .cuh files are: in the installed package, else in the source tree."""
    installed = PACKAGE / "cuda_src"
    return installed if installed.is_dir() else PACKAGE.parent / "cuda_src"


@cache
def provenance() -> str | None:
    """Return what all kept code of this process depends on: sources, and who compiles them.

    None if the sources are no files, or others than those which this process has loaded.
    """
    before = set(sys.modules)
    try:
        kernels, rules = source_files()
        digest = digest_of_sources((source_folder(), kernels), (PACKAGE, rules))
    except OSError:  # the modules are in an archive, or there is their bytecode alone
        return None
    if digest is None:
        return None
    _unchanged.update(before)
    settings = sorted((k, v) for k, v in os.environ.items() if k.startswith("NUMBA_"))
    return repr((digest, versions_of("numba_cuda", "numba", "llvmlite"), settings))


def source_files() -> tuple[list[str], list[str]]:
    """Return the kernels' sources, and the modules that decide what an operator compiles to."""
    folder = str(source_folder())
    below = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    kernels = files_of(folder, ".cuh")
    for name in below:
        kernels += files_of(os.path.join(folder, name), ".cuh")
    rules = [
        os.path.join(PACKAGE, *name.split("/"))
        for name in ("_arrays/view.py", "_cuda/operator.py", "_cuda/toolchain.py")
    ]
    for name in ("_base", "_operators", "_operators/numpy_rules"):
        rules += files_of(os.path.join(PACKAGE, *name.split("/")), ".py")
    return kernels, rules


def key_of(*parts: str) -> str:
    """Return the key of what these parts name."""
    return hashlib.sha256("\0".join((provenance() or "", *parts)).encode()).hexdigest()


def read(key: str) -> tuple[bytes, ...] | None:
    """Return the fields of an entry on disk, None if there is none."""
    return None if provenance() is None else disk.read(key)


def write(key: str, fields: tuple[bytes, ...]) -> None:
    """Keep an entry on disk.

    Not once a kernel's source has changed, which is read at each compilation, or a module was
    loaded from a source that had: this process may have compiled either version.
    """
    if provenance() is not None and not _has_changed():
        disk.write(key, fields)


def _has_changed() -> bool:
    try:
        kernels, _ = source_files()
        return loaded.has_newer_modules(_unchanged) or loaded.changed_since(kernels)
    except OSError:  # one has gone
        return True
