"""Compare two checkouts' warm calls: ``python bench/warm_calls.py PATH_BEFORE PATH_AFTER``.

Each call is made on arrays of 16, 10^3, 10^4 and 2^20 elements on the CPU by one thread, and on
the fake GPU of tests/fake_driver.py, where its time is the host's before the launch. The two
versions run in processes of their own on one core, in turns, and a row's time is the minimum of 60
rounds. A row that is slower by more than 5 % and 0.3 µs is measured again in new processes. The
table ends with the rows that are slower each time; the exit status is 1 if there is one.
"""

from __future__ import annotations

import argparse
import json
import operator
import os
import subprocess
import sys
import timeit
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

SIZES = {"cpu": (16, 1_000, 10_000, 1 << 20), "gpu": (1 << 16,)}
SHAPES = {16: (4, 4), 1_000: (10, 100), 10_000: (100, 100), 1 << 20: (1 << 10, 1 << 10)}
ROUND = 200e-6  # seconds that a round takes at least
WARM_UP = 20  # calls
MARGIN, MARGIN_US = 0.05, 0.3
TIMES = 3  # a row is measured until it is not slower, so often at most


def cpu_arrays(n: int) -> Any:
    import numpy as np

    rng = np.random.default_rng(1)
    x, y = rng.random(n), rng.random(n)
    return SimpleNamespace(
        x=x, y=y, out=np.empty(n), rows=rng.random(SHAPES[n]), mask=x < 0.5,
        keys=rng.integers(0, 1 << 32, n, np.uint32), values=np.arange(n, dtype=np.int32),
        few=rng.integers(0, 10, n), runs=np.sort(rng.integers(0, 1 + n // 4, n)),
        ordered=np.sort(x), other=np.sort(y), offsets=np.arange(0, n + 1, max(n // 10, 1)),
    )  # fmt: skip


def gpu_arrays(n: int) -> Any:
    """Return the fake GPU's arrays."""
    import fake_driver
    import numpy as np
    import pytest

    patch = pytest.MonkeyPatch()
    made = fake_driver.install(patch)
    fake_driver.stub_kernels(patch)
    fake_driver.register_arrays(patch)
    made.on_launch = made.calls.clear  # or they would be kept
    shapes = {
        "x": (n, "float32"), "y": (n, "float32"), "rows": ((64, n // 64), "float32"),
        "keys": (n, "uint32"), "values": (n, "int32"), "mask": (n, "bool"),
        "lengths": (n, "int64"), "count": ((), "int64"), "total": ((), "float32"),
        "offsets": (65, "int64"),
    }  # fmt: skip
    return SimpleNamespace(**{
        name: fake_driver.FakeArray(shape if isinstance(shape, tuple) else (shape,), np.dtype(kind))
        for name, (shape, kind) in shapes.items()
    })  # fmt: skip


def calls_on(d: Any, kind: str) -> dict[str, Callable[[], Any]]:
    """Return the calls on arrays, which stay."""
    import gpualgo as ga
    import gpualgo.numpy as gnp

    def add(a: Any, b: Any) -> Any:
        return a + b

    factor = 2.5
    reduced = ga.prepare(ga.reduce, d.x, 0.0, add)
    doubled = ga.prepare(ga.transform, lambda a: a * 2, d.x)
    both: dict[str, Callable[[], Any]] = {
        "reduce": lambda: ga.reduce(d.x),
        "reduce, lambda": lambda: ga.reduce(d.x, 0.0, lambda a, b: a + b),
        "reduce, lazy product": lambda: ga.reduce(ga.lazy.transform(operator.mul, d.x, d.y)),
        "inclusive_scan": lambda: ga.inclusive_scan(d.x),
        "transform": lambda: ga.transform(lambda a: a * 2, d.x),
        "radix_sort": lambda: ga.radix_sort(d.keys),
        "radix_sort, pairs": lambda: ga.radix_sort(d.keys, d.values),
        "histogram": lambda: ga.histogram(d.x, 50, (0.0, 1.0)),
        "argmin": lambda: ga.argmin(d.x),
        "minmax": lambda: ga.minmax(d.x),
        "segmented_reduce": lambda: ga.segmented_reduce(d.x, d.offsets),
        "gnp.sum": lambda: gnp.sum(d.x),
    }
    if kind == "gpu":
        return both | {
            "reduce, out": lambda: ga.reduce(d.x, out=d.total),
            "reduce, rows": lambda: ga.reduce(d.rows, 0, max, axis=1),
            "reduce, prepared": lambda: reduced(d.x, out=d.total),
            "merge_sort": lambda: ga.merge_sort(d.keys),
            "top_k": lambda: ga.top_k(d.rows, 8),
            "searchsorted": lambda: ga.searchsorted(d.keys, d.keys),
            "select": lambda: ga.select(d.x, d.mask, out=d.y, out_count=d.count),
            "reduce_by_index": lambda: ga.reduce_by_index(d.keys, d.x, 64),
            "run_length_encode": lambda: ga.run_length_encode(
                d.x, out=(d.y, d.lengths), out_count=d.count),
        }  # fmt: skip
    return both | {
        "reduce, max": lambda: ga.reduce(d.x, None, max),
        "reduce, out": lambda: ga.reduce(d.rows, axis=0, out=d.out[: d.rows.shape[1]]),
        "reduce, rows": lambda: ga.reduce(d.rows, 0.0, add, axis=1),
        "reduce, tuples":
            lambda: ga.reduce((d.x, d.y), None, lambda a, b: (a[0] + b[0], a[1] * b[1])),
        "reduce, prepared": lambda: reduced(d.x),
        "inclusive_scan, rows": lambda: ga.inclusive_scan(d.rows, axis=1),
        "exclusive_scan, lambda": lambda: ga.exclusive_scan(d.x, 0.0, lambda a, b: a + b),
        "transform, captured number": lambda: ga.transform(lambda a: a * factor, d.x),
        "transform, out": lambda: ga.transform(lambda a, b: a * b + 1, d.x, d.y, out=d.out),
        "transform, prepared": lambda: doubled(d.x, out=d.out),
        "copy, reversed": lambda: ga.copy(d.x[::-1]),
        "adjacent_difference": lambda: ga.adjacent_difference(d.x),
        "argsort": lambda: ga.argsort(d.keys),
        "sort": lambda: ga.sort(d.x),
        "merge_sort, less": lambda: ga.merge_sort(d.x, less=lambda a, b: a < b),
        "merge": lambda: ga.merge(d.ordered, d.other),
        "segmented_sort": lambda: ga.segmented_sort(d.x, d.offsets),
        "top_k": lambda: ga.top_k(d.x, 5),
        "kth_value": lambda: ga.kth_value(d.x, 5),
        "searchsorted": lambda: ga.searchsorted(d.ordered, d.y),
        "argmax, rows": lambda: ga.argmax(d.rows, 1),
        "select": lambda: ga.select(d.x, lambda a: a < 0.5),
        "stable_partition": lambda: ga.stable_partition(d.x, d.mask),
        "find": lambda: ga.find(d.x, lambda a: a > 2),
        "count": lambda: ga.count(d.x, lambda a: a < 0.5),
        "unique": lambda: ga.unique(d.few),
        "run_length_encode": lambda: ga.run_length_encode(d.runs),
        "reduce_by_key": lambda: ga.reduce_by_key(d.few, d.x),
        "reduce_by_key, runs": lambda: ga.reduce_by_key(d.runs, d.x, consecutive=True),
        "inclusive_scan_by_key":
            lambda: ga.inclusive_scan_by_key(d.runs, d.x, consecutive=True),
        "exclusive_scan_by_key":
            lambda: ga.exclusive_scan_by_key(d.runs, d.x, 0.0, consecutive=True),
        "reduce_by_index": lambda: ga.reduce_by_index(d.few, d.x, 10, 0.0),
        "segmented_inclusive_scan": lambda: ga.segmented_inclusive_scan(d.x, d.offsets),
        "segmented_exclusive_scan": lambda: ga.segmented_exclusive_scan(d.x, d.offsets, 0.0),
        "gnp.mean, rows": lambda: gnp.mean(d.rows, axis=1),
        "gnp.var": lambda: gnp.var(d.x),
        "gnp.exp": lambda: gnp.exp(d.x),
        "gnp.sort": lambda: gnp.sort(d.x),
        "gnp.cumsum": lambda: gnp.cumsum(d.x),
    }  # fmt: skip


def serve(kind: str, n: int) -> None:
    """Answer the name of a call, and how often it is made, with seconds a call."""
    import gpualgo

    calls = calls_on(cpu_arrays(n) if kind == "cpu" else gpu_arrays(n), kind)
    print(json.dumps([gpualgo.__file__, *calls]), flush=True)
    for line in sys.stdin:
        name, count = json.loads(line)
        print(timeit.timeit(calls[name], number=count) / count, flush=True)


def started(checkout: Path, kind: str, n: int) -> tuple[Any, list[str]]:
    """Return a process that makes one checkout's calls on arrays of one size, and their names."""
    one = ("GPUALGO_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    paths = [str(checkout), str(checkout / "tests")]
    env = {
        **os.environ, **dict.fromkeys(one, "1"), "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONHASHSEED": "0", "GPUALGO_DEVICE": "cpu" if kind == "cpu" else "auto",
    }  # fmt: skip
    process: Any = subprocess.Popen(
        [sys.executable, __file__, "--serve", kind, str(n)],
        env=env, cwd=checkout, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    file, *names = json.loads(process.stdout.readline())
    if not Path(file).is_relative_to(checkout):
        raise SystemExit(f"{file} was loaded instead of {checkout}")
    return process, names


def seconds(process: Any, name: str, count: int) -> float:
    process.stdin.write(json.dumps([name, count]) + "\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def measured(
    checkouts: list[Path], kind: str, n: int, rounds: int, is_chosen: Callable[[str], bool]
) -> dict[str, list[float]]:
    """Return the least microseconds of both versions, by call."""
    (first, names), (second, others) = (started(path, kind, n) for path in checkouts)
    found = {}
    for name in names:
        if is_chosen(name) and name in others:
            least = [seconds(each, name, WARM_UP) for each in (first, second)]
            count = max(1, round(ROUND / min(least)))
            for i in range(rounds):
                for k in (0, 1) if i % 2 else (1, 0):
                    least[k] = min(least[k], seconds((first, second)[k], name, count))
            found[name] = [1e6 * each for each in least]
    for process in (first, second):
        process.communicate()  # ends it
    return found


def is_slower(before: float, after: float) -> bool:
    return after - before > max(MARGIN * before, MARGIN_US)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", type=Path, nargs=2, metavar=("PATH_BEFORE", "PATH_AFTER"))
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--sizes", type=int, nargs="*", default=[], help=f"of {SIZES}; else all")
    parser.add_argument("--only", default="", help="only calls whose names contain this")
    args = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):  # of both versions, as cores differ
        os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
    print(f"    {'call':26} {'elements':>9} {'before, µs':>12} {'after, µs':>12}  change")
    paths, slower = [path.resolve() for path in args.checkouts], []
    for kind, n in [(kind, n) for kind, sizes in SIZES.items() for n in sizes]:
        if args.sizes and n not in args.sizes:
            continue
        rows = measured(paths, kind, n, args.rounds, lambda name: args.only in name)
        for _ in range(TIMES - 1):
            again = {name for name, pair in rows.items() if is_slower(*pair)}
            rows |= measured(paths, kind, n, args.rounds, again.__contains__) if again else {}
        for name, (before, after) in rows.items():
            numbers = f"{n:9,} {before:12,.2f} {after:12,.2f} {100 * (after / before - 1):+7.1f} %"
            line = f"{kind} {name:26} {numbers}{'  slower' if is_slower(before, after) else ''}"
            slower += [line] if is_slower(before, after) else []
            print(line, flush=True)
    print("slower:" if slower else "No row is slower.", *slower, sep="\n")
    return bool(slower)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        del sys.path[0]  # files of bench/ may have any name
        serve(sys.argv[2], int(sys.argv[3]))
    else:
        sys.exit(main())
