"""Compare two checkouts' warm calls: ``python bench/warm_calls.py PATH_BEFORE PATH_AFTER``.

Each call is made on arrays of 16, 10^3, 10^4 and 2^20 elements on the CPU by one thread, and on
the fake GPU of tests/fake_driver.py, where its time is the host's before the launch. The two
versions run in processes of their own on one core, in turns, and a row's time is the minimum of 60
rounds. A row that is slower by more than 5 % and 0.3 µs is measured again in new processes. The
table ends with the rows that are slower each time; the exit status is 1 if there is one.
"""

from __future__ import annotations

import argparse
import gc
import operator
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SIZES = (16, 1_000, 10_000, 1 << 20)
SHAPES = {16: (4, 4), 1_000: (10, 100), 10_000: (100, 100), 1 << 20: (1 << 10, 1 << 10)}
ROUND = 200e-6  # seconds that a round takes at least
WARM_UP = 20  # calls
MARGIN, MARGIN_US = 0.05, 0.3
TIMES = 3  # a row is measured until it is not slower, so often at most

Calls = dict[str, Callable[[], Any]]


def cpu_calls(n: int) -> Calls:
    """Return the calls on arrays of n elements, which stay."""
    import numpy as np

    import gpualgo as ga
    import gpualgo.numpy as gnp

    rng = np.random.default_rng(1)
    x, y, out = rng.random(n), rng.random(n), np.empty(n)
    rows = rng.random(SHAPES[n])
    keys = rng.integers(0, 1 << 32, n, np.uint32)
    values = np.arange(n, dtype=np.int32)
    few, runs = rng.integers(0, 10, n), np.sort(rng.integers(0, 1 + n // 4, n))
    ordered, other = np.sort(x), np.sort(y)
    offsets, factor = np.arange(0, n + 1, max(n // 10, 1)), 2.5
    mask = x < 0.5

    def add(a: Any, b: Any) -> Any:
        return a + b

    reduced = ga.prepare(ga.reduce, x, 0.0, add)
    doubled = ga.prepare(ga.transform, lambda a: a * 2, x)
    return {
        "reduce": lambda: ga.reduce(x),
        "reduce, lambda": lambda: ga.reduce(x, 0.0, lambda a, b: a + b),
        "reduce, max": lambda: ga.reduce(x, None, max),
        "reduce, out": lambda: ga.reduce(rows, axis=0, out=out[: rows.shape[1]]),
        "reduce, rows": lambda: ga.reduce(rows, 0.0, add, axis=1),
        "reduce, lazy product": lambda: ga.reduce(ga.lazy.transform(operator.mul, x, y)),
        "reduce, tuples": lambda: ga.reduce((x, y), None, lambda a, b: (a[0] + b[0], a[1] * b[1])),
        "reduce, prepared": lambda: reduced(x),
        "inclusive_scan": lambda: ga.inclusive_scan(x),
        "inclusive_scan, rows": lambda: ga.inclusive_scan(rows, axis=1),
        "exclusive_scan, lambda": lambda: ga.exclusive_scan(x, 0.0, lambda a, b: a + b),
        "transform": lambda: ga.transform(lambda a: a * 2, x),
        "transform, captured number": lambda: ga.transform(lambda a: a * factor, x),
        "transform, out": lambda: ga.transform(lambda a, b: a * b + 1, x, y, out=out),
        "transform, prepared": lambda: doubled(x, out=out),
        "copy, reversed": lambda: ga.copy(x[::-1]),
        "adjacent_difference": lambda: ga.adjacent_difference(x),
        "radix_sort": lambda: ga.radix_sort(keys),
        "radix_sort, pairs": lambda: ga.radix_sort(keys, values),
        "argsort": lambda: ga.argsort(keys),
        "sort": lambda: ga.sort(x),
        "merge_sort, less": lambda: ga.merge_sort(x, less=lambda a, b: a < b),
        "merge": lambda: ga.merge(ordered, other),
        "segmented_sort": lambda: ga.segmented_sort(x, offsets),
        "top_k": lambda: ga.top_k(x, 5),
        "kth_value": lambda: ga.kth_value(x, 5),
        "searchsorted": lambda: ga.searchsorted(ordered, y),
        "argmin": lambda: ga.argmin(x),
        "argmax, rows": lambda: ga.argmax(rows, 1),
        "minmax": lambda: ga.minmax(x),
        "histogram": lambda: ga.histogram(x, 50, (0.0, 1.0)),
        "select": lambda: ga.select(x, lambda a: a < 0.5),
        "stable_partition": lambda: ga.stable_partition(x, mask),
        "find": lambda: ga.find(x, lambda a: a > 2),
        "count": lambda: ga.count(x, lambda a: a < 0.5),
        "unique": lambda: ga.unique(few),
        "run_length_encode": lambda: ga.run_length_encode(runs),
        "reduce_by_key": lambda: ga.reduce_by_key(few, x),
        "reduce_by_key, runs": lambda: ga.reduce_by_key(runs, x, consecutive=True),
        "inclusive_scan_by_key": lambda: ga.inclusive_scan_by_key(runs, x, consecutive=True),
        "exclusive_scan_by_key": lambda: ga.exclusive_scan_by_key(runs, x, 0.0, consecutive=True),
        "reduce_by_index": lambda: ga.reduce_by_index(few, x, 10, 0.0),
        "segmented_reduce": lambda: ga.segmented_reduce(x, offsets),
        "segmented_inclusive_scan": lambda: ga.segmented_inclusive_scan(x, offsets),
        "segmented_exclusive_scan": lambda: ga.segmented_exclusive_scan(x, offsets, 0.0),
        "gnp.sum": lambda: gnp.sum(x),
        "gnp.mean, rows": lambda: gnp.mean(rows, axis=1),
        "gnp.var": lambda: gnp.var(x),
        "gnp.exp": lambda: gnp.exp(x),
        "gnp.sort": lambda: gnp.sort(x),
        "gnp.cumsum": lambda: gnp.cumsum(x),
    }


def device_calls(n: int) -> Calls:
    """Return the calls on the fake GPU's arrays."""
    import fake_driver
    import numpy as np
    import pytest
    from fake_driver import FakeArray

    import gpualgo as ga
    import gpualgo.numpy as gnp

    patch = pytest.MonkeyPatch()
    made = fake_driver.install(patch)
    fake_driver.stub_kernels(patch)
    fake_driver.register_arrays(patch)
    made.on_launch = made.calls.clear  # or they would be kept
    x, y, rows = (FakeArray(shape, np.float32) for shape in ((n,), (n,), (64, n // 64)))
    keys, values = FakeArray((n,), np.uint32), FakeArray((n,), np.int32)
    mask, lengths = FakeArray((n,), np.bool_), FakeArray((n,), np.int64)
    count, total = FakeArray((), np.int64), FakeArray((), np.float32)
    offsets = FakeArray((65,), np.int64)
    plan = ga.prepare(ga.reduce, x, 0.0, lambda a, b: a + b)
    return {
        "reduce": lambda: ga.reduce(x),
        "reduce, lambda": lambda: ga.reduce(x, 0.0, lambda a, b: a + b),
        "reduce, out": lambda: ga.reduce(x, out=total),
        "reduce, rows": lambda: ga.reduce(rows, 0, max, axis=1),
        "reduce, lazy product": lambda: ga.reduce(ga.lazy.transform(operator.mul, x, y)),
        "reduce, prepared": lambda: plan(x, out=total),
        "inclusive_scan": lambda: ga.inclusive_scan(x),
        "transform": lambda: ga.transform(lambda a: a * 2, x),
        "radix_sort": lambda: ga.radix_sort(keys),
        "radix_sort, pairs": lambda: ga.radix_sort(keys, values),
        "merge_sort": lambda: ga.merge_sort(keys),
        "histogram": lambda: ga.histogram(x, 50, (0.0, 1.0)),
        "argmin": lambda: ga.argmin(x),
        "minmax": lambda: ga.minmax(x),
        "top_k": lambda: ga.top_k(rows, 8),
        "searchsorted": lambda: ga.searchsorted(keys, keys),
        "select": lambda: ga.select(x, mask, out=y, out_count=count),
        "segmented_reduce": lambda: ga.segmented_reduce(x, offsets),
        "reduce_by_index": lambda: ga.reduce_by_index(keys, x, 64),
        "run_length_encode": lambda: ga.run_length_encode(x, out=(y, lengths), out_count=count),
        "gnp.sum": lambda: gnp.sum(x),
    }


CALLS = {"cpu": cpu_calls, "gpu": device_calls}
SIZES_OF = {"cpu": SIZES, "gpu": (1 << 16,)}


def serve(kind: str, n: int) -> None:
    """Answer the names of calls, and how often each is made, with seconds a call."""
    calls = CALLS[kind](n)
    import gpualgo

    print(gpualgo.__file__, *calls, sep="\t", flush=True)
    gc.disable()
    for line in sys.stdin:
        name, count = line.rstrip("\n").split("\t")
        call, numbers = calls[name], range(int(count))
        start = time.perf_counter()
        for _ in numbers:
            call()
        taken = time.perf_counter() - start
        print(taken / int(count), flush=True)
        if int(count) == WARM_UP:  # between rows
            gc.collect()


@dataclass
class Worker:
    """A process that makes one checkout's calls on arrays of one size."""

    checkout: Path
    kind: str
    n: int
    process: Any = field(init=False)
    names: list[str] = field(init=False)

    def __post_init__(self) -> None:
        one = ("GPUALGO_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        paths = [str(self.checkout), str(self.checkout / "tests")]
        env = {
            **os.environ, **dict.fromkeys(one, "1"), "PYTHONPATH": os.pathsep.join(paths),
            "PYTHONHASHSEED": "0", "GPUALGO_DEVICE": "cpu" if self.kind == "cpu" else "auto",
        }  # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", self.kind, str(self.n)],
            env=env, cwd=self.checkout, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        file, *self.names = self._answer().split("\t")
        if not Path(file).is_relative_to(self.checkout):
            raise SystemExit(f"{file} was loaded instead of {self.checkout}")

    def seconds(self, name: str, count: int) -> float:
        self.process.stdin.write(f"{name}\t{count}\n")
        self.process.stdin.flush()
        return float(self._answer())

    def _answer(self) -> str:
        line: str = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"a call of {self.checkout} failed; its error is above")
        return line.rstrip("\n")

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


@dataclass(frozen=True)
class Row:
    """What one call took, in microseconds: the minimum of all rounds."""

    kind: str
    name: str
    n: int
    before: float
    after: float

    @property
    def is_slower(self) -> bool:
        return self.after - self.before > max(MARGIN * self.before, MARGIN_US)

    def __str__(self) -> str:
        change = 100 * (self.after / self.before - 1)
        told = "  slower" if self.is_slower else ""
        numbers = f"{self.n:9,} {self.before:12,.2f} {self.after:12,.2f} {change:+7.1f} %"
        return f"{self.kind} {self.name:26} {numbers}{told}"


def measured(
    checkouts: list[Path], kind: str, n: int, rounds: int, names: set[str] | str
) -> Iterator[Row]:
    """Return the rows of one size, of calls with these names, or with a text in their names."""
    workers = [Worker(path, kind, n) for path in checkouts]
    try:
        for name in workers[0].names:
            is_chosen = names in name if isinstance(names, str) else name in names
            if is_chosen and name in workers[1].names:
                warm = [worker.seconds(name, WARM_UP) for worker in workers]
                count = max(1, round(ROUND / min(warm)))
                least = warm
                for i in range(rounds):
                    for k in (0, 1) if i % 2 else (1, 0):
                        least[k] = min(least[k], workers[k].seconds(name, count))
                yield Row(kind, name, n, *(1e6 * seconds for seconds in least))
    finally:
        for worker in workers:
            worker.close()


def compare(checkouts: list[Path], rounds: int, sizes: list[int], only: str) -> list[Row]:
    """Print the table; return the rows that are slower each time that they are measured."""
    found: list[Row] = []
    for kind, all_sizes in SIZES_OF.items():
        for n in (n for n in all_sizes if not sizes or n in sizes):
            rows = {row.name: row for row in measured(checkouts, kind, n, rounds, only)}
            for _ in range(TIMES - 1):
                again = {row.name for row in rows.values() if row.is_slower}
                if again:
                    anew = measured(checkouts, kind, n, rounds, again)
                    rows.update((row.name, row) for row in anew)
            print(*rows.values(), sep="\n", flush=True)
            found += [row for row in rows.values() if row.is_slower]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", type=Path, nargs=2, metavar=("PATH_BEFORE", "PATH_AFTER"))
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--sizes", type=int, nargs="*", default=[], help=f"of {SIZES}; else all")
    parser.add_argument("--only", default="", help="calls with this in their names")
    args = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):  # of both versions, as cores differ
        os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
    print(f"    {'call':26} {'elements':>9} {'before, µs':>12} {'after, µs':>12}  change")
    paths = [path.resolve() for path in args.checkouts]
    slower = compare(paths, args.rounds, args.sizes, args.only)
    print("slower:" if slower else "No row is slower.", *slower, sep="\n")
    return bool(slower)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        del sys.path[0]  # files of bench/ may have any name
        serve(sys.argv[2], int(sys.argv[3]))
    else:
        sys.exit(main())
