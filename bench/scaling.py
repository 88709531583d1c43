"""Sharded arrays on several GPUs of one host beside one array on one of them.

    python -m bench.scaling --gpus 1,2,4,8 --sizes 26,28,30 --budget 600 --out found.json
    python -m bench.scaling --show found.json

Each size is 2^k elements on each GPU (weak scaling), and the same in all (strong scaling). Time is
from an event on the first GPU, for which the others wait, to one that waits for all of them.
Events around each peer copy give the share of copies. The bytes that copies bring to a GPU stand
beside what a model says; sorts copy nothing, as their kernels read the other GPUs' memory. Each
result is compared with one GPU's where that has room for it. Without a GPU the CPU stands for
several devices, with small arrays: only its results mean anything.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np

import gpualgo as ga
from bench import environment
from bench.inputs import bits, floats, integers, uniform
from bench.peers import free_memory, gpu
from bench.timing import cpu_seconds, device_seconds
from gpualgo._driver import peers

WARM_SECONDS = 0.2  # in which GPUs that stood still raise their clocks
SPIN = 1_000_000  # cycles, about 0.5 ms, in which the calls of all GPUs are queued
Row = dict[str, Any]
small, wide = partial(integers, low=-8, high=9), partial(bits, dtype="uint64")
# By name: the elements of a shard, the call, and the bytes that arrive at the busiest of g GPUs
# with n elements each: (g - 1) / g of the random keys of a sort come from elsewhere.
CASES: dict[str, tuple[Any, Callable[[Any], Any], Callable[[int, int], float]]] = {
    "reduce": (small, ga.reduce, lambda g, n: 4 * (g - 1)),
    "inclusive_scan, sum": (small, ga.inclusive_scan, lambda g, n: 4 * (g - 1)),
    "inclusive_scan, lambda": (
        uniform, lambda x: ga.inclusive_scan(x, None, lambda a, b: a if abs(a) > abs(b) else b),
        lambda g, n: 4 * (g - 1)),
    "transform": (uniform, lambda x: ga.transform(lambda a: a * 2.0 + 1.0, x), lambda g, n: 0),
    "histogram, 256": (
        uniform, lambda x: ga.histogram(x, 256, (0, 1)), lambda g, n: 8 * 256 * (g - 1)),
    "histogram, 65536": (
        uniform, lambda x: ga.histogram(x, 65536, (0, 1)), lambda g, n: 8 * 65536 * (g - 1)),
    "sort, float32": (floats, ga.radix_sort, lambda g, n: 4 * n * (g - 1) / g),
    "sort, uint64": (wide, ga.radix_sort, lambda g, n: 8 * n * (g - 1) / g),
    "argsort, float32": (floats, ga.argsort, lambda g, n: 8 * n * (g - 1) / g),
    "select, half": (
        floats, lambda x: ga.select(x, lambda a: a > 0),
        lambda g, n: 4 * math.sqrt(n * g) * (g > 1)),
    "reduce, max": (uniform, lambda x: ga.reduce(x, None, max), lambda g, n: 4 * (g - 1)),
}  # fmt: skip


def on(device: int) -> Any:
    return gpu().cuda.Device(device) if gpu() is not None else nullcontext()


def seconds(call: Callable[[], Any], count: int, rounds: int) -> list[float]:
    call()  # compiles
    if gpu() is None:
        return [cpu_seconds(call, 0.0)[0] for _ in range(rounds)]
    until = time.perf_counter() + WARM_SECONDS
    while time.perf_counter() < until:
        device_seconds(call, count, SPIN)
    return [device_seconds(call, count, SPIN) for _ in range(rounds)]


def exchange(call: Callable[[], Any], count: int) -> tuple[float, int]:
    found: dict[int, list[tuple[int, Any, Any]]] = defaultdict(list)
    move = peers.move

    def watched(copy: Any) -> None:
        target, source, size = copy
        if target.device == source.device:
            return move(copy)
        with on(target.device):
            stream = gpu().cuda.ExternalStream(target.stream, target.device)
            events = gpu().cuda.Event(), gpu().cuda.Event()
            events[0].record(stream)
            move(copy)
            events[1].record(stream)
        found[target.device].append((size, *events))

    peers.move = watched
    try:
        device_seconds(call, count, SPIN)
    finally:
        peers.move = move
    elapsed = gpu().cuda.get_elapsed_time
    times = [sum(float(elapsed(*events)) / 1e3 for _, *events in each) for each in found.values()]
    arrived = (sum(size for size, *_ in each) for each in found.values())
    return max(times, default=0.0), max(arrived, default=0)


def is_right(name: str, x: Any, call: Callable[[Any], Any]) -> bool:
    """Compare with one array's result, which raises if it is another; False without room for it."""
    if gpu() is not None:
        free_memory()
        with on(0):
            if 8 * x.nbytes > gpu().cuda.runtime.memGetInfo()[0]:
                return False
    got, want = call(x), call(x.gather())
    got = got.gather() if isinstance(got, ga.ShardedArray) else got
    with on(0):
        xp = np if gpu() is None else gpu()
        same = bool((xp.asarray(got) == xp.asarray(want)).all())
    assert same, f"{name}: {len(x.shards)} shards give another result than one array"
    return True


def measure(name: str, count: int, per_gpu: int, rounds: int) -> Row:
    make, function, arrives = CASES[name]
    shards = []
    for rank in range(count):
        with on(rank):
            shards.append(make(np if gpu() is None else gpu(), per_gpu, seed=rank))
    x = ga.ShardedArray.from_shards(shards)
    call = partial(function, shards[0] if count == 1 else x)
    samples = seconds(call, count, rounds)
    median, copied, arrived = statistics.median(samples), None, None
    if gpu() is not None and count > 1:
        copied, arrived = exchange(call, count)
    return {
        "case": name, "gpus": count, "per_gpu": per_gpu, "seconds": median,
        "one_gpu_seconds": None, "scaling": "weak", "efficiency": None,
        "exchange_share": None if copied is None else copied / median, "arrived_bytes": arrived,
        "model_bytes": arrives(count, per_gpu), "checked": is_right(name, x, function),
        "samples": samples,
    }  # fmt: skip


def rows(counts: list[int], sizes: list[int], rounds: int, names: str) -> Iterator[Row]:
    """Yield the rows of cases whose names begin as one of `names` does."""
    chosen = [name for name in CASES if name.startswith(tuple(names.split(",")))]
    for size, name in product(sizes, chosen):
        alone = None
        for count, scaling in product(counts, ("weak", "strong")):
            if (count, scaling) == (1, "strong"):
                continue
            per_gpu = size // count if scaling == "strong" else size
            try:
                row = measure(name, count, per_gpu, rounds)
            except MemoryError as error:
                print(f"{name}, {count} x {per_gpu}: {error}", file=sys.stderr)
                continue
            finally:
                gc.collect()
                free_memory()
            alone = row["seconds"] if count == 1 else alone
            row |= {"scaling": scaling, "one_gpu_seconds": alone}
            if alone:
                ideal = alone / (count if scaling == "strong" else 1)
                row["efficiency"] = ideal / row["seconds"]
            yield row


def table(found: list[Row]) -> str:
    """Return the table of docs/scale.md: milliseconds, by numbers of GPUs; elements in its head."""
    by_key = {(row["case"], row["gpus"], row["scaling"]): row for row in found}
    size, several = found[0]["per_gpu"], sorted({row["gpus"] for row in found} - {1})
    shares = [(f"{count} GPUs", "weak scaling", "share of peer copies") for count in several]
    lines = [[f"2^{size.bit_length() - 1} elements on each GPU, ms", "1 GPU", *chain(*shares),
              *(f"same total on {count} GPUs" for count in several)]]  # fmt: skip
    for case in dict.fromkeys(row["case"] for row in found):
        cells = {key[1:]: (f"{row['seconds'] * 1e3:#.3g}".rstrip("."), row)
                 for key, row in by_key.items() if key[0] == case}  # fmt: skip
        weak = [(cells[count, "weak"][0], *(f"{cells[count, 'weak'][1][name]:.0%}"
                 for name in ("efficiency", "exchange_share"))) for count in several]  # fmt: skip
        strong = (cells[count, "strong"][0] for count in several)
        lines.append([case, cells[1, "weak"][0], *chain(*weak), *strong])
    head, *rest = ("| " + " | ".join(line) + " |" for line in lines)
    return "\n".join([head, "|---|" + "---:|" * (len(lines[0]) - 1), *rest])


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.scaling", description=__doc__)
    add = parser.add_argument
    add("--gpus", default="1,2,4,8", help="numbers of GPUs; those there are")
    add("--sizes", default="", help="exponents of 2: elements on each GPU")
    add("--rounds", type=int, default=7)
    add("--budget", type=float, default=600, help="seconds for all rows")
    add("--cases", default="", help="beginnings of names; all cases without")
    add("--out", type=Path, help="the JSON file; none without")
    add("--show", type=Path, help="print a file's table")
    given = parser.parse_args()
    if given.show:
        print(table(json.loads(given.show.read_text(encoding="utf-8"))["rows"]))
        return
    until = time.perf_counter() + given.budget
    there = 8 if gpu() is None else gpu().cuda.runtime.getDeviceCount()
    counts = sorted({1, *(count for count in map(int, given.gpus.split(",")) if count <= there)})
    exponents = given.sizes or ("16" if gpu() is None else "26,28,30")
    sizes = [1 << int(k) for k in exponents.split(",")]
    found: list[Row] = []
    with ga.default_device("cpu") if gpu() is None else nullcontext():
        for row in rows(counts, sizes, given.rounds, given.cases):
            shown = {name: value for name, value in row.items() if name != "samples"}
            print(json.dumps(shown), flush=True)
            found.append(row)
            if time.perf_counter() > until:
                print("the time is over", file=sys.stderr)
                break
    if given.out:
        told = environment.describe() | {"gpus": there}
        if gpu() is not None:
            told["peers"] = [[peers.can_reach(a, b) for b in range(there)] for a in range(there)]
        result = {"environment": told, "rows": found}
        given.out.write_text(json.dumps(result, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
