"""Seventeen plausible mistakes for type checkers, never run, and the same calls without them.

Each mistake stands on a line that ends in the comment `error`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import gpualgo as ga
import gpualgo.numpy as gnp

x: NDArray[np.float64] = np.arange(6.0)
keys: NDArray[np.int64] = np.arange(6)


def score(a: float) -> float:
    return a * 0.5


def distance(a: float, b: float) -> float:
    return abs(a - b)


def total(a: float, b: float, c: float) -> float:
    return a + b + c


ga.top_k(x, 3, mode="max")  # error
ga.searchsorted(x, x, side="before")  # error
with ga.default_device("gpu"):  # error
    ga.reduce(x)
ga.select(x, score)  # error
ga.run_length_encode(x, eq=distance)  # error
ga.merge_sort(x, less=distance)  # error
ga.reduce(x)[0]  # error
ga.reduce(x, ax=0)  # error
values, lengths, more = ga.run_length_encode(x)  # error
ga.run_length_encode(x).counts.sum()  # error
ga.reduce(x, 0.0, total)  # error
ga.reduce(x, 0.0, lambda a: a)  # error
ga.lazy.take(x, keys, mode="raise")  # error
gnp.mean(x).tolist()[0]  # error
gnp.sort(x).values.sum()  # error
counts, edges, more = gnp.histogram(x, 10)  # error
ga.reduce_by_key(x, op=max)  # error

# The same calls, right.
ga.top_k(x, 3, mode="smallest").values.sum()
ga.searchsorted(x, x, side="right")
with ga.default_device("cuda:1"):
    ga.reduce(x)
ga.select(x, lambda a: a > 0.5)
ga.select(x, np.isfinite)
ga.run_length_encode(x, eq=lambda a, b: abs(a - b) < 1)
ga.merge_sort(x, less=lambda a, b: a < b)
ga.merge_sort(x, less=lambda a, b: np.abs(a) < np.abs(b))
one: np.float64 = ga.reduce(x)
number: float = ga.reduce(x, 0.0, lambda a, b: a + b)
whole: np.int64 = ga.reduce(x > 0, np.int64(0))
narrow: np.float32 = ga.reduce(x, dtype=np.float32)
rows: Any = ga.reduce(x.reshape(2, 3), axis=0)
rows[0]
first, runs = ga.run_length_encode(x)
ga.run_length_encode(x).lengths.sum()
ga.lazy.take(x, keys, mode="clip")
average: float = gnp.mean(x)
gnp.mean([1, 2, 3])
gnp.sort(x).tolist()
gnp.sort([3, 1, 2], axis=0)
counts, edges = gnp.histogram(x, 10)
ga.reduce_by_key(keys, x, op=max)
