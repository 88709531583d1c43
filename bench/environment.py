"""The machine, the software and the commit that a run's figures belong to."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import re
import subprocess
from itertools import chain
from pathlib import Path
from typing import Any

import gpualgo as ga
from bench.peers import cub_version, gpu

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {  # by which a peer's version is known, the first that is there
    "NumPy": ("numpy",), "CuPy": ("cupy-cuda13x", "cupy-cuda12x"), "torch": ("torch",),
    "JAX": ("jaxlib", "jax"), "cuda.compute": ("cuda-cccl",), "numba": ("numba",),
    "polars": ("polars",), "CUB": ("CUB",),
}  # fmt: skip


def describe(commit: str | None = None) -> dict[str, Any]:
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8") if info.exists() else ""
    named = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": commit or _commit(),
        **_gpu(),
        "cpu": named[1] if named else platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 2),  # processes that wanted a core in the last minute
        "system": platform.platform(),
        "versions": _versions(),
    }


def is_busy(told: dict[str, Any]) -> bool:
    """Return whether others used a run's cores: before it, or beside it, which takes them all."""
    cores = told.get("cores") or 1
    before, after = told.get("load") or 0.0, told.get("load_after") or 0.0
    return bool(before > 0.5 * cores or after > 1.5 * cores)


def is_one_machine(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return all(a.get(name) == b.get(name) for name in ("gpu", "cpu", "cores"))


def version_of(peer: str, told: dict[str, Any]) -> str | None:
    versions = told.get("versions", {})
    packages = next((each for name, each in PACKAGES.items() if peer.startswith(name)), ())
    return next((versions[name] for name in packages if name in versions), None)


def title(told: dict[str, Any]) -> str:
    machine = told.get("gpu") or told.get("cpu") or "an unknown machine"
    cores = f", {told['cores']} cores" if told.get("cores") else ""
    driver = f", driver {told['driver']}" if told.get("driver") else ""
    made = told.get("commit") or f"gpualgo {told['versions'].get('gpualgo', '?')}"
    return f"{machine}{cores}{driver}; {made}; {str(told.get('date', ''))[:10]}"


def _output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def _gpu() -> dict[str, Any]:
    if gpu() is None:
        return {"gpu": None, "driver": None}
    runtime = gpu().cuda.runtime
    found = runtime.getDeviceProperties(0)
    asked = _output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    return {
        "gpu": found["name"].decode(),
        "compute_capability": f"{found['major']}.{found['minor']}",
        "gpu_memory": int(found["totalGlobalMem"]),
        "driver": asked.split("\n")[0] or "unknown",
        "cuda": runtime.driverGetVersion(),
    }


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "gpualgo": ga.__version__, "CUB": cub_version()}
    for name in ("numba-cuda", "cuda-core", "cuda-bindings", *chain(*PACKAGES.values())):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {name: version for name, version in found.items() if version is not None}


def _commit() -> str | None:
    """Return the checkout's commit, marked where files differ; None where git does not know it."""
    if not (ROOT / ".git").exists():
        return None
    name = _output("git", "rev-parse", "--short=10", "HEAD")
    changed = _output("git", "status", "--porcelain", "--untracked-files=no")
    return f"{name}+changes" if name and changed else name or None
