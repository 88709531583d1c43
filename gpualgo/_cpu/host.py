"""Which CPU this is, as far as machine code depends on it, whose settings made it, and its file."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from functools import cache

from gpualgo._base import disk_cache as disk
from gpualgo._base import loaded
from gpualgo._base.provenance import PACKAGE, digest_of_sources, files_of, versions_of

# What tells models of CPUs apart; the other lines change from core to core, or as time goes by.
_LINES = (
    "vendor_id", "cpu family", "model", "model name", "stepping", "flags",
    "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features",
)  # fmt: skip
_CPUINFO = "/proc/cpuinfo"
_unchanged: set[str] = set()  # modules that were loaded from the sources that were read


@cache
def provenance() -> str | None:
    """Return what all kept code of this process depends on: sources, versions, settings, CPU.

    None if the sources are no files, or others than those which this process has loaded.
    """
    before = set(sys.modules)
    try:
        digest = digest_of_sources((PACKAGE, source_files()))
    except OSError:  # they are in an archive, or there is their bytecode alone
        return None
    if digest is None:
        return None
    _unchanged.update(before)
    settings = sorted((k, v) for k, v in os.environ.items() if k.startswith("NUMBA_"))
    made_by = (
        digest,
        versions_of("numba", "llvmlite"),
        settings,
    )
    return repr((made_by, cpu(), sys.platform, platform.machine(), sys.maxsize))


def source_files() -> list[str]:
    """Return the sources that make code, or decide what code is made."""
    names = ("_base/dtypes.py", "_base/records.py", "_arrays/view.py")
    found = [os.path.join(PACKAGE, name) for name in names]
    for folder in ("_cpu", "_operators", "_operators/numpy_rules"):
        found += files_of(os.path.join(PACKAGE, folder), ".py")
    algorithms = [each.path for each in os.scandir(PACKAGE / "_algorithms") if each.is_dir()]
    for folder in sorted(algorithms):
        found += files_of(folder, ".py", "cpu")
    return found


def cpu() -> str:
    """Return the CPU's model and features: from the system where it tells, else from LLVM."""
    try:
        with open(_CPUINFO, "rb", buffering=0) as file:
            text = file.read(1 << 14).decode(errors="replace")  # of all cores it would take long
    except OSError:
        text = ""
    first = text.partition("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    found = {name.strip(): value.strip() for name, _, value in pairs}
    if "flags" in found or "Features" in found:
        return repr([found.get(name) for name in _LINES])
    from gpualgo._cpu import llvm

    return repr(llvm.host_cpu())


def read(*parts: str) -> tuple[bytes, ...] | None:
    """Return the fields of the entry on disk for what these parts name, None if there is none."""
    key = key_of(*parts)
    return None if key is None else disk.read(key)


def write(fields: tuple[bytes, ...], *parts: str) -> None:
    """Keep an entry on disk for what these parts name.

    Not once a module was loaded from a source that had changed: this process runs both versions.
    """
    key = key_of(*parts)
    if key is not None and not loaded.has_newer_modules(_unchanged):
        disk.write(key, fields)


def key_of(*parts: str) -> str | None:
    """Return the key of an entry on disk, None where nothing is kept."""
    known = provenance()
    if known is None:
        return None
    return disk.FOR_CPU + hashlib.sha256("\0".join((known, *parts)).encode()).hexdigest()
