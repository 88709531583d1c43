"""Entries of the disk cache for CPU code: keyed by the CPU, the settings and the sources."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from functools import cache

from gpualgo._base import disk_cache as disk
from gpualgo._base import loaded
from gpualgo._base.disk_cache import PACKAGE, digest_of_sources, files_of, versions_of

# Lines of /proc/cpuinfo that identify a CPU model; others vary by core or over time.
_LINES = (
    "vendor_id", "cpu family", "model", "model name", "stepping", "flags",
    "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features",
)  # fmt: skip
_CPUINFO = "/proc/cpuinfo"
# How the names of those files of an algorithm begin whose constants and functions kernels use.
_KERNEL_FILES = ("cpu", "digits", "problem", "sums")
_unchanged: set[str] = set()  # modules that were loaded from the sources that were read


@cache
def provenance() -> str | None:
    """Return a text of all that cached code depends on: sources, versions, settings, CPU.

    None if the sources are not files or differ from those that this process has loaded.
    """
    before = set(sys.modules)
    try:
        digest = digest_of_sources((PACKAGE, source_files()))
    except OSError:  # the sources are in an archive, or only bytecode exists
        return None
    if digest is None:
        return None
    _unchanged.update(before)
    settings = sorted((k, v) for k, v in os.environ.items() if k.startswith("NUMBA_"))
    toolchain = (
        digest,
        versions_of("numba", "llvmlite"),
        settings,
    )
    return repr((toolchain, cpu(), sys.platform, platform.machine(), sys.maxsize))


def source_files() -> list[str]:
    """Return the source files that decide which code is generated."""
    names = ("_base/dtypes.py", "_base/records.py", "_arrays/view.py")
    paths = [os.path.join(PACKAGE, name) for name in names]
    for folder in ("_cpu", "_operators", "_operators/numpy_rules"):
        paths += files_of(os.path.join(PACKAGE, folder), ".py")
    algorithms = [each.path for each in os.scandir(PACKAGE / "_algorithms") if each.is_dir()]
    for folder in sorted(algorithms):
        paths += files_of(folder, ".py", _KERNEL_FILES)
    return paths


def cpu() -> str:
    """Return the CPU's model and features, from /proc/cpuinfo if possible, else from LLVM."""
    try:
        with open(_CPUINFO, "rb", buffering=0) as file:
            text = file.read(1 << 14).decode(errors="replace")  # reading all cores is slow
    except OSError:
        text = ""
    first = text.partition("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    fields = {name.strip(): value.strip() for name, _, value in pairs}
    if "flags" in fields or "Features" in fields:
        return repr([fields.get(name) for name in _LINES])
    from gpualgo._cpu import llvm

    return repr(llvm.host_cpu())


def read(*parts: str) -> tuple[bytes, ...] | None:
    """Return the fields of the disk entry for these parts, None if there is none."""
    key = key_of(*parts)
    return None if key is None else disk.read(key)


def write(fields: tuple[bytes, ...], *parts: str) -> None:
    """Write the disk entry for these parts.

    Nothing is written once a module was loaded from a changed source: this process runs both
    versions.
    """
    key = key_of(*parts)
    if key is not None and not loaded.has_newer_modules(_unchanged):
        disk.write(key, fields)


def key_of(*parts: str) -> str | None:
    """Return the key of a disk entry, None if nothing can be cached."""
    dependencies = provenance()
    if dependencies is None:
        return None
    return disk.FOR_CPU + hashlib.sha256("\0".join((dependencies, *parts)).encode()).hexdigest()
