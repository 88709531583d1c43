"""Sharded arrays on several GPUs of one host beside one array on one of them.

    python -m bench.scaling --gpus 1,2,4,8 --sizes 26,28,30 --budget 600

Each size is 2^k elements on each GPU (weak scaling), and the same in all (strong scaling). Time is
from an event on the first GPU, for which the others wait, to one that waits for all of them; what
peer copies take of it stands between events around each. Bytes that arrive at a GPU are counted and
stand beside what a model says. Each result is compared with one GPU's where that has room for it.
Without a GPU the same runs on the CPU under several names, with small arrays: only its results mean
anything.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import gpualgo as ga
from bench.scaling_clock import exchange, seconds
from gpualgo._bench import data
from gpualgo._bench import environment as machine
from gpualgo._bench.support import free_memory, gpu


def _larger(a: Any, b: Any) -> Any:
    return a if abs(a) > abs(b) else b


def _positive(a: Any) -> Any:
    return a > 0


def _axpy(a: Any) -> Any:
    return a * 2.0 + 1.0


@dataclass(frozen=True)
class Case:
    """What is timed: the inputs, the call, and how many bytes a model lets arrive at a GPU."""

    name: str
    made: str  # which elements
    call: Callable[[Any], Any]
    arrives: Callable[[int, int], float]  # of G GPUs with n elements each: bytes, at the busiest


def _cases() -> list[Case]:
    """Return the cases; of random keys (G - 1) / G come from elsewhere."""

    def counts(bins: int) -> Callable[[int, int], float]:
        return lambda g, n: 8 * bins * (g - 1)

    def moved(item: int) -> Callable[[int, int], float]:
        return lambda g, n: item * n * (g - 1) / g

    def words(g: int, n: int) -> float:
        return 4 * (g - 1)

    return [
        Case("reduce", "steps", lambda x: ga.reduce(x), words),
        Case("inclusive_scan, sum", "steps", lambda x: ga.inclusive_scan(x), words),
        Case("inclusive_scan, lambda", "unit",
             lambda x: ga.inclusive_scan(x, None, _larger), words),
        Case("transform", "unit", lambda x: ga.transform(_axpy, x), lambda g, n: 0),
        Case("histogram, 256", "unit", lambda x: ga.histogram(x, 256, (0, 1)), counts(256)),
        Case("histogram, 65536", "unit", lambda x: ga.histogram(x, 65536, (0, 1)), counts(65536)),
        Case("sort, float32", "floats", lambda x: ga.radix_sort(x), moved(4)),
        Case("sort, uint64", "bits", lambda x: ga.radix_sort(x), moved(8)),
        Case("argsort, float32", "floats", lambda x: ga.argsort(x), moved(8)),
        Case("select, half", "floats", lambda x: ga.select(x, _positive),
             lambda g, n: 4 * math.sqrt(n * g) * (g > 1)),
        Case("reduce, max", "unit", lambda x: ga.reduce(x, None, max), words),
    ]  # fmt: skip


@dataclass
class Measured:
    """One row."""

    case: str
    gpus: int
    per_gpu: int
    seconds: float
    one_gpu_seconds: float | None = None
    scaling: str = "weak"
    efficiency: float | None = None  # of all GPUs
    exchange_share: float | None = None
    arrived_bytes: int | None = None  # at the busiest GPU
    model_bytes: float | None = None
    checked: bool = False
    samples: list[float] = field(default_factory=list)


# --- GPUs, or the CPU under several names -------------------------------------------------------


def _shard(made: str, rank: int, n: int) -> Any:
    """Return the elements of a shard, on its GPU."""
    if gpu() is None:
        rng = np.random.default_rng(rank)
        if made == "bits":
            return rng.integers(0, 1 << 63, n, dtype=np.uint64)
        x = rng.random(n, np.float32)
        return np.floor(x * 16) - 8 if made == "steps" else x - (made == "floats") / 2
    with gpu().cuda.Device(rank):
        if made == "bits":
            return data.bits(n, "uint64", rank)
        if made == "floats":
            words = data.bits(n, "uint32", rank)
            words &= np.uint32(0xBFFFFFFF)
            return words.view("float32")
        if made == "unit":
            return data.unit(n, rank)
        return data.steps(n, "float32")


def _has_room(nbytes: int) -> bool:
    """Return whether the first GPU has room for another copy of all, its result and a sort's."""
    if gpu() is None:
        return True
    free_memory()
    with gpu().cuda.Device(0):
        free, _ = gpu().cuda.runtime.memGetInfo()
    return bool(8 * nbytes < free)


def _is_right(case: Case, x: Any) -> bool:
    """Compare a result with one GPU's; return False where that has no room for it."""
    if not _has_room(x.nbytes):
        return False
    got, want = case.call(x), case.call(x.gather())
    if isinstance(got, ga.ShardedArray):
        got = got.gather()
    xp = np if gpu() is None else gpu()
    with gpu().cuda.Device(0) if gpu() is not None else nullcontext():
        same = bool((xp.asarray(got) == xp.asarray(want)).all())
    assert same, f"{case.name}: {len(x.shards)} shards give another result than one array"
    return True


# --- rows ---------------------------------------------------------------------------------------


def measure(case: Case, count: int, per_gpu: int, rounds: int) -> Measured:
    """Time a case on so many GPUs; on one of them as an array of one device."""
    shards = [_shard(case.made, rank, per_gpu) for rank in range(count)]
    x = ga.ShardedArray.from_shards(shards)
    given = shards[0] if count == 1 else x

    def call() -> Any:
        return case.call(given)

    samples = seconds(call, count, rounds)
    row = Measured(case.name, count, per_gpu, statistics.median(samples), samples=samples)
    row.checked = _is_right(case, x)
    row.model_bytes = case.arrives(count, per_gpu)
    if gpu() is not None and count > 1:
        row.exchange_share, row.arrived_bytes = exchange(call, count, row.seconds)
    return row


def rows(
    counts: list[int], sizes: list[int], rounds: int, budget: float, names: str = ""
) -> Iterator[Measured]:
    """Yield all rows as far as the time goes; of cases whose names begin as one of `names` does."""
    ends = time.perf_counter() + budget
    for size in sizes:
        for case in _cases():
            if not case.name.startswith(tuple(names.split(","))):
                continue
            alone: dict[int, float] = {}
            for count in [1, *(c for c in counts if c > 1)]:
                for scaling, per_gpu in (("weak", size), ("strong", size // count)):
                    if scaling == "strong" and count == 1:
                        continue
                    if time.perf_counter() > ends:
                        print("the time is over", file=sys.stderr)
                        return
                    try:
                        row = measure(case, count, per_gpu, rounds)
                    except MemoryError as error:
                        print(f"{case.name}, {count} x {per_gpu}: {error}", file=sys.stderr)
                        continue
                    finally:
                        gc.collect()
                        free_memory()
                    row.scaling = scaling
                    if count == 1:
                        alone[size] = row.seconds
                    row.one_gpu_seconds = alone.get(size)
                    if row.one_gpu_seconds:
                        ideal = row.one_gpu_seconds / (count if scaling == "strong" else 1)
                        row.efficiency = ideal / row.seconds
                    yield row


def environment(count: int) -> dict[str, Any]:
    """Return what times depend on."""
    found: dict[str, Any] = {
        **machine.describe(), "gpus": count,
        "gpualgo": ga.__version__, "host": platform.platform(),
    }  # fmt: skip
    if gpu() is not None:
        from gpualgo._driver import peers

        runtime = gpu().cuda.runtime
        found |= {"driver": runtime.driverGetVersion(), "runtime": runtime.runtimeGetVersion()}
        found["peers"] = [[peers.can_reach(a, b) for b in range(count)] for a in range(count)]
    return found


def _line(row: Measured) -> str:
    def shown(value: float | None, form: str) -> str:
        return "" if value is None else format(value, form)

    return (
        f"{row.case:24} {row.gpus:2} {row.per_gpu:11} {row.scaling:6} {row.seconds * 1e3:10.3f} ms"
        f" {shown(row.efficiency, '7.1%'):>7} {shown(row.exchange_share, '7.1%'):>7}"
        f" {shown(row.arrived_bytes, 'd'):>12} {shown(row.model_bytes, '.0f'):>12}"
        f" {'checked' if row.checked else 'unchecked'}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.scaling", description=__doc__)
    parser.add_argument("--gpus", default="1,2,4,8", help="numbers of GPUs; those there are")
    parser.add_argument("--sizes", default="", help="exponents of 2: elements on each GPU")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--budget", type=float, default=600, help="seconds for all rows")
    parser.add_argument("--cases", default="", help="beginnings of names; all cases without")
    parser.add_argument("--out", default="", help="the JSON file; none without")
    chosen = parser.parse_args()
    is_host = gpu() is None
    there = 8 if is_host else gpu().cuda.runtime.getDeviceCount()
    counts = sorted(c for c in map(int, chosen.gpus.split(",")) if c <= there)
    sizes = [1 << int(k) for k in (chosen.sizes or ("16" if is_host else "26,28,30")).split(",")]
    print("case                     GPUs   each GPU            time  effic.  exchange   arrived"
          "        model")  # fmt: skip
    found = []
    with ga.default_device("cpu") if is_host else nullcontext():
        for row in rows(counts, sizes, chosen.rounds, chosen.budget, chosen.cases):
            print(_line(row), flush=True)
            found.append(asdict(row))
    if chosen.out:
        result = {"environment": environment(there), "rows": found}
        Path(chosen.out).write_text(json.dumps(result, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
