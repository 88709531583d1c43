"""Compare two checkouts' warm calls: ``python bench/warm_calls.py BEFORE AFTER``.

Each call is made on arrays of 16, 10^3, 10^4 and 2^20 elements on the CPU by one thread, and on
the fake GPU of tests/fake_driver.py, where its time is the host's before the launch. The two
versions run in turns on one core, each in four processes, and a row's time is the minimum of 60
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
from pathlib import Path
from subprocess import PIPE
from typing import Any

SIZES = {"cpu": (16, 1_000, 10_000, 1 << 20), "gpu": (1 << 16,)}
SHAPES = {16: (4, 4), 1_000: (10, 100), 10_000: (100, 100), 1 << 20: (1 << 10, 1 << 10)}
ROUND = 200e-6  # seconds that a round takes at least
WARM_UP = 20  # calls
MARGIN, MARGIN_US = 0.05, 0.3
TURNS = 4  # processes of each version that share the rounds
MEASURE = "--measure"  # marks such a process
TIMES = 3  # a row is measured until it is not slower, so often at most
BOTH = [  # statements, which name their rows
    "ga.reduce(x)", "ga.reduce(x, 0.0, lambda a, b: a + b)",
    "ga.reduce(x, None, largest)", "ga.reduce(halves)",
    "ga.reduce(ga.lazy.transform(operator.mul, x, y))", "ga.inclusive_scan(x)",
    "ga.transform(lambda a: a * 2, x)", "ga.radix_sort(keys)", "ga.radix_sort(keys, values)",
    "ga.histogram(x, 50, (0.0, 1.0))", "ga.argmin(x)", "ga.minmax(x)",
    "ga.segmented_reduce(x, offsets)", "gnp.sum(x)",
]  # fmt: skip
CALLS = {
    "gpu": [
        *BOTH, "ga.reduce(x, out=total)", "ga.reduce(rows, 0, max, axis=1)",
        "reduced(x, out=total)", "ga.merge_sort(keys)", "ga.top_k(rows, 8)",
        "ga.searchsorted(keys, keys)", "ga.select(x, mask, out=y, out_count=count)",
        "ga.reduce_by_index(keys, x, 64)",
        "ga.run_length_encode(x, out=(y, lengths), out_count=count)",
    ],
    "cpu": [
        *BOTH, "ga.reduce(x, None, max)", "ga.reduce(rows, axis=0, out=out[: rows.shape[1]])",
        "ga.reduce(rows, 0.0, add, axis=1)",
        "ga.reduce((x, y), None, lambda a, b: (a[0] + b[0], a[1] * b[1]))", "reduced(x)",
        "ga.inclusive_scan(rows, axis=1)", "ga.exclusive_scan(x, 0.0, lambda a, b: a + b)",
        "scaled(2.5)", "ga.transform(lambda a, b: a * b + 1, x, y, out=out)",
        "doubled(x, out=out)", "ga.copy(x[::-1])", "ga.adjacent_difference(x)", "ga.argsort(keys)",
        "ga.sort(x)", "ga.merge_sort(x, less=lambda a, b: a < b)", "ga.merge(ordered, other)",
        "ga.segmented_sort(x, offsets)", "ga.top_k(x, 5)", "ga.kth_value(x, 5)",
        "ga.searchsorted(ordered, y)", "ga.argmax(rows, 1)", "ga.select(x, lambda a: a < 0.5)",
        "ga.stable_partition(x, mask)", "ga.find(x, lambda a: a > 2)",
        "ga.count(x, lambda a: a < 0.5)", "ga.unique(few)", "ga.run_length_encode(runs)",
        "ga.reduce_by_key(few, x)", "ga.reduce_by_key(runs, x, consecutive=True)",
        "ga.inclusive_scan_by_key(runs, x, consecutive=True)",
        "ga.exclusive_scan_by_key(runs, x, 0.0, consecutive=True)",
        "ga.reduce_by_index(few, x, 10, 0.0)", "ga.segmented_inclusive_scan(x, offsets)",
        "ga.segmented_exclusive_scan(x, offsets, 0.0)", "gnp.mean(rows, axis=1)", "gnp.var(x)",
        "gnp.exp(x)", "gnp.sort(x)", "gnp.cumsum(x)",
    ],
}  # fmt: skip


def add(a: Any, b: Any) -> Any:
    return a + b


def cpu_names(n: int) -> dict[str, Any]:
    import numpy as np

    import gpualgo as ga

    rng = np.random.default_rng(1)
    x, y, out, rows = rng.random(n), rng.random(n), np.empty(n), rng.random(SHAPES[n])
    keys, values = rng.integers(0, 1 << 32, n, np.uint32), np.arange(n, dtype=np.int32)
    few, runs = rng.integers(0, 10, n), np.sort(rng.integers(0, 1 + n // 4, n))
    ordered, other, mask = np.sort(x), np.sort(y), x < 0.5
    offsets = np.arange(0, n + 1, max(n // 10, 1))
    doubled = ga.prepare(ga.transform, lambda a: a * 2, x)
    scaled = lambda factor: ga.transform(lambda a: a * factor, x)  # noqa: E731
    return locals()


def gpu_names(n: int) -> dict[str, Any]:
    import fake_driver
    import numpy as np
    import pytest
    from fake_driver import FakeArray

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
    x.ndim = 1  # which gpualgo.numpy reads
    return locals()


def measure(kind: str, n: int, rounds: int, statements: list[str]) -> None:
    """Print each statement's least time in microseconds, after the file of the package."""
    import gpualgo as ga
    import gpualgo.numpy as gnp

    names = cpu_names(n) if kind == "cpu" else gpu_names(n)
    names |= {"ga": ga, "gnp": gnp, "operator": operator, "add": add}
    names["reduced"] = ga.prepare(ga.reduce, names["x"], 0.0, add)
    names["largest"] = ga.Operator(lambda a, b: a if a > b else b)
    names["halves"] = ga.lazy.transform(lambda a: a * MARGIN, names["x"])
    found = {}
    for statement in statements:
        timer = timeit.Timer(statement, globals=names)
        count = max(1, round(ROUND * WARM_UP / timer.timeit(WARM_UP)))
        found[statement] = 1e6 * min(timer.repeat(rounds, count)) / count
    print(json.dumps([ga.__file__, found]))


def measured(checkout: Path, kind: str, *given: Any) -> dict[str, float]:
    one = ("GPUALGO_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    env = {
        **os.environ, **dict.fromkeys(one, "1"), "PYTHONHASHSEED": "0",
        "PYTHONPATH": f"{checkout}{os.pathsep}{checkout / 'tests'}",
        "GPUALGO_DEVICE": "cpu" if kind == "cpu" else "auto",
    }  # fmt: skip
    command = [sys.executable, __file__, MEASURE, json.dumps([kind, *given])]
    done = subprocess.run(command, env=env, cwd=checkout, text=True, stdout=PIPE, check=True)
    file, found = json.loads(done.stdout.splitlines()[-1])
    if not Path(file).is_relative_to(checkout):
        raise SystemExit(f"{file} was loaded instead of {checkout}")
    return dict(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs=2, type=Path, metavar="CHECKOUT", help="before, after")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--sizes", type=int, nargs="*", default=[], help=f"of {SIZES}; else all")
    parser.add_argument("--only", default="", help="only calls that contain this")
    args = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):  # of both versions, as cores differ
        os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
    print(f"    {'call':64} {'elements':>9} {'before, µs':>12} {'after, µs':>12}  change")
    slower = []
    for kind, n in [(kind, n) for kind, sizes in SIZES.items() for n in args.sizes or sizes]:
        names = [name for name in CALLS[kind] if args.only in name and n in SIZES[kind]]
        rows: dict[str, list[float]] = {}
        for _ in range(TIMES if names else 0):
            turns = [[measured(path.resolve(), kind, n, max(1, args.rounds // TURNS), names)
                      for path in args.paths] for _ in range(TURNS)]  # fmt: skip
            rows |= {name: [min(each[name] for each in found) for found in zip(*turns, strict=True)]
                     for name in names}  # fmt: skip
            names = [
                name
                for name in names
                if rows[name][1] > rows[name][0] + max(MARGIN * rows[name][0], MARGIN_US)
            ]
        for name, (before, after) in rows.items():
            numbers = f"{n:9,} {before:12,.2f} {after:12,.2f} {100 * (after / before - 1):+7.1f} %"
            line = f"{kind} {name:64} {numbers}{'  slower' if name in names else ''}"
            slower += [line] if name in names else []
            print(line, flush=True)
    print("slower:" if slower else "No row is slower.", *slower, sep="\n")
    return bool(slower)


if __name__ == "__main__":
    if sys.argv[1:2] == [MEASURE]:
        del sys.path[0]  # files of bench/ may have any name
        measure(*json.loads(sys.argv[2]))
    else:
        sys.exit(main())
