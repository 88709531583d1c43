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
    known = {"python": platform.python_version(), "gpualgo": ga.__version__, "CUB": cub_version()}
    for name in ("numba-cuda", "cuda-core", "cuda-bindings", *chain(*PACKAGES.values())):
        try:
            known[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": commit or _commit(),
        **_gpu(),
        "cpu": named[1] if named else platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 2),  # processes that wanted a core in the last minute
        "system": platform.platform(),
        "versions": {name: version for name, version in known.items() if version is not None},
    }


def is_busy(told: dict[str, Any]) -> bool:
    """Return whether others used a run's cores: before it, or beside it, which takes them all."""
    cores = told.get("cores") or 1
    before, after = told.get("load") or 0.0, told.get("load_after") or 0.0
    return bool(before > 0.5 * cores or after > 1.5 * cores)


def is_one_machine(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return all(a.get(name) == b.get(name) for name in ("gpu", "cpu", "cores"))


def version_of(peer: str, told: dict[str, Any]) -> str | None:
    packages = next((each for name, each in PACKAGES.items() if peer.startswith(name)), ())
    return next((version for name in packages if (version := told["versions"].get(name))), None)


def title(told: dict[str, Any]) -> str:
    machine = told.get("gpu") or told.get("cpu") or "an unknown machine"
    cores = f", {told['cores']} cores" if told.get("cores") else ""
    driver = f", driver {told['driver']}" if told.get("driver") else ""
    made = told.get("commit") or f"gpualgo {told['versions'].get('gpualgo', '?')}"
    return f"{machine}{cores}{driver}; {made}; {str(told.get('date', ''))[:10]}"


def _gpu() -> dict[str, Any]:
    if gpu() is None:
        return {"gpu": None, "driver": None}
    runtime = gpu().cuda.runtime
    found = runtime.getDeviceProperties(0)
    return {
        "gpu": found["name"].decode(), "compute_capability": f"{found['major']}.{found['minor']}",
        "gpu_memory": int(found["totalGlobalMem"]), "gpus": runtime.getDeviceCount(),
        "cuda": runtime.driverGetVersion(),
        "driver": _output("nvidia-smi --query-gpu=driver_version --format=csv,noheader")[:20],
    }  # fmt: skip


def _output(command: str) -> str:
    """Return the first line that a command prints; "" if it fails."""
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True)
    return "" if done.returncode else done.stdout.partition("\n")[0]


def _commit() -> str | None:
    """Return the checkout's commit, marked where files differ; None where git does not know it."""
    name = _output("git rev-parse --short=10 HEAD") if (ROOT / ".git").exists() else ""
    changed = _output("git status --porcelain --untracked-files=no")
    return f"{name}+changes" if name and changed else name or None
