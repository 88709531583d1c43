"""The machine, the software and the commit that a run's figures belong to."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

import gpualgo as ga
from gpualgo._bench import support
from gpualgo._bench.peers import cub

PACKAGES = (
    "numpy", "numba", "numba-cuda", "cuda-core", "cuda-bindings", "cuda-cccl", "cupy-cuda12x",
    "cupy-cuda13x", "torch", "jax", "jaxlib", "polars",
)  # fmt: skip
# By which package a peer's version is known.
OF_PEER = {
    "NumPy": ("numpy",), "CuPy": ("cupy-cuda13x", "cupy-cuda12x"), "torch": ("torch",),
    "JAX": ("jaxlib",), "cuda.compute": ("cuda-cccl",), "numba": ("numba",), "polars": ("polars",),
    "CUB": ("CUB",),
}  # fmt: skip


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _output(*command: str, cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=cwd, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def cpu() -> str:
    named = re.search(r"^model name\s*:\s*(.+)$", _text("/proc/cpuinfo"), re.MULTILINE)
    return named[1] if named else platform.processor() or platform.machine()


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _gpu() -> dict[str, Any]:
    cupy = support.gpu()
    if cupy is None:
        return {"gpu": None, "driver": None}
    found = cupy.cuda.runtime.getDeviceProperties(0)
    told = re.search(r"Module\s+(?:for \S+\s+)?([\d.]+)", _text("/proc/driver/nvidia/version"))
    asked = _output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    return {
        "gpu": found["name"].decode(),
        "compute_capability": f"{found['major']}.{found['minor']}",
        "gpu_memory": int(found["totalGlobalMem"]),
        "driver": asked.split("\n")[0] or (told[1] if told else "unknown"),
        "cuda": cupy.cuda.runtime.driverGetVersion(),
    }


def versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "gpualgo": ga.__version__}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    compiled = cub.version()
    return found | ({"CUB": compiled} if compiled else {})


def commit() -> str | None:
    """Return the checkout's commit, marked where files differ; None of an installed wheel."""
    root = Path(ga.__file__).resolve().parents[1]
    if not (root / ".git").exists():
        return None
    name = _output("git", "rev-parse", "--short=10", "HEAD", cwd=root)
    changed = _output("git", "status", "--porcelain", "--untracked-files=no", cwd=root)
    return f"{name}+changes" if name and changed else name or None


def load() -> float | None:
    """Return how many processes wanted a core in the last minute, None where it is not told."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def is_busy(told: dict[str, Any]) -> bool:
    """Return whether others used a run's cores: before it, or beside it, which takes them all."""
    cores_there = told.get("cores") or 1
    before, after = told.get("load") or 0.0, told.get("load_after") or 0.0
    return bool(before > 0.5 * cores_there or after > 1.5 * cores_there)


def describe(known_commit: str | None = None) -> dict[str, Any]:
    """Return what a report says of where it was made."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return {
        "date": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": known_commit or commit(),
        **_gpu(),
        "cpu": cpu(),
        "cores": cores(),
        "load": load(),
        "system": platform.platform(),
        "versions": versions(),
    }


def version_of(peer: str, environment: dict[str, Any]) -> str | None:
    """Return a peer's version in a report, None where it is not known."""
    for start, packages in OF_PEER.items():
        if peer.startswith(start):
            known = environment.get("versions", {})
            return next((known[name] for name in packages if name in known), None)
    return None


def title(environment: dict[str, Any]) -> str:
    """Return in one line what was measured where."""
    machine = environment.get("gpu") or environment.get("cpu") or "an unknown machine"
    cores_told = f", {environment['cores']} cores" if environment.get("cores") else ""
    driver = f", driver {environment['driver']}" if environment.get("driver") else ""
    made = environment.get("commit") or f"gpualgo {environment['versions'].get('gpualgo', '?')}"
    return f"{machine}{cores_told}{driver}; {made}; {str(environment.get('date', ''))[:10]}"
