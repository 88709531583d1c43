"""Results as a table of ratios in Markdown."""

from __future__ import annotations

import importlib.metadata
import platform
import re
from pathlib import Path

from bench.support import OURS, Result, gpu

RESULTS = Path(__file__).with_name("results")
PEERS = ("CUB", "cuda.compute", "CuPy", "torch", "NumPy")
TITLES = {
    "device": "Device time",
    "host": "Host time per call, nothing awaited",
    "cpu": "CPU backend, time to the result",
    "start": "Start-up",
}


def machine() -> str:
    """Return the GPU's name, else the processor's."""
    if gpu() is not None:
        return str(gpu().cuda.runtime.getDeviceProperties(0)["name"].decode())
    try:
        cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    named = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return named[1] if named else platform.machine()


def _versions() -> str:
    found = []
    for package in ("numpy", "numba", "numba-cuda", "cuda-cccl", "cupy-cuda13x", "torch"):
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join([f"Python {platform.python_version()}", *found])


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 0.995:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e6:.2g} µs"


def _size(n: int) -> str:
    power = n.bit_length() - 1
    return f"2^{power}" if n == 1 << power else str(n)


def _line(result: Result, peers: list[str]) -> list[str]:
    row, ours = result.row, result.seconds[OURS]
    rate = f"{row.bytes_moved / ours / 1e9:.0f}" if row.bytes_moved else ""
    ratio = "" if result.ratio is None else f"{result.ratio:.2f}"
    target = ""
    if row.target is not None:
        absolute = row.clock in ("host", "start")
        target = f"≤ {_time(row.target) if absolute else f'{row.target:.2f}'}"
        target += "" if result.met is None else " ✓" if result.met else " ✗"
    times = [_time(result.seconds[who]) if who in result.seconds else "" for who in peers]
    return [row.name, _size(row.n), _time(ours), rate, *times, ratio, target]


def markdown(results: list[Result]) -> str:
    """Return one table for each clock; ratio is our time over the best peer's."""
    text = [
        f"# Benchmarks on {machine()}",
        "",
        f"{_versions()}. Medians; every result was checked.",
    ]
    text.append("Ratio: gpualgo's time over the best peer's, in the same run.")
    for clock, title in TITLES.items():
        chosen = [r for r in results if r.row.clock == clock]
        if not chosen:
            continue
        peers = [who for who in PEERS if any(who in r.seconds for r in chosen)]
        head = ["work", "n", OURS, "GB/s", *peers, "ratio", "target"]
        lines = [head, ["---", *["---:"] * (len(head) - 1)]]
        lines += [_line(result, peers) for result in chosen]
        text += ["", f"## {title}", ""]
        text += ["| " + " | ".join(cells) + " |" for cells in lines]
    return "\n".join(text) + "\n"


def write(results: list[Result]) -> Path:
    """Write the table to results/, in a file named after the machine."""
    RESULTS.mkdir(exist_ok=True)
    name = re.sub(r"[^a-z0-9]+", "-", machine().lower()).strip("-")
    path = RESULTS / f"{name}.md"
    path.write_text(markdown(results), encoding="utf-8")
    return path
