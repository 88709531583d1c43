"""python -m bench: time gpualgo beside its peers and write the table of ratios.

On a machine without a GPU it times the CPU rows, beside NumPy.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time

from bench import (
    bench_adjacent_difference,
    bench_by_key,
    bench_extremes,
    bench_histogram,
    bench_layouts,
    bench_lazy,
    bench_merge_sort,
    bench_numpy,
    bench_radix_sort,
    bench_reduce,
    bench_runs,
    bench_scan,
    bench_searchsorted,
    bench_segments,
    bench_select,
    bench_small,
    bench_top_k,
    bench_transform,
    bench_tuples,
    startup,
    table,
)
from bench.peers import cub
from bench.support import Result, Row, free_memory, gpu, run

MODULES = (
    bench_reduce, bench_transform, bench_scan, bench_radix_sort, bench_merge_sort,
    bench_searchsorted, bench_histogram, bench_extremes, bench_lazy, bench_select, bench_runs,
    bench_by_key, bench_adjacent_difference, bench_top_k, bench_segments, bench_tuples,
    bench_layouts, bench_small, bench_numpy,
)  # fmt: skip


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="the sizes with targets, fewer samples"
    )
    parser.add_argument("--rows", default="", help="only rows whose title contains this text")
    parser.add_argument("--no-write", action="store_true", help="print the table, write no file")
    return parser.parse_args()


def _chosen(text: str, quick: bool) -> list[Row]:
    """Return the rows asked for; the peers that they need are compiled now, side by side."""
    found: list[Row] = []
    sources: set[str] = set()
    for module in MODULES:
        rows = [row for row in module.rows() if text in str(row) and (row.quick or not quick)]
        found += rows
        sources |= set(module.CUB if rows else ())
    if gpu() is not None:
        cub.build(sources)
    return found


def main() -> int:
    """Run the rows asked for, print the table, and return 1 if a row failed its check."""
    chosen = _arguments()
    results: list[Result] = []
    failed = False
    began = time.perf_counter()
    for row in _chosen(chosen.rows, chosen.quick):
        try:
            results.append(run(row, rounds=2 if chosen.quick else 5))
        except Exception as error:  # the other rows are worth having
            failed = True
            print(f"FAILED {row}: {type(error).__name__}: {error}", file=sys.stderr)
        gc.collect()
        free_memory()
        print(f"{time.perf_counter() - began:6.1f} s  {row}", file=sys.stderr)
    results += startup.results(chosen.rows)
    print(table.markdown(results))
    if not chosen.no_write:
        print(f"written to {table.write(results)}", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
