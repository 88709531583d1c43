"""Operators see elements, init and their own results, and nothing else: anything else would fault.

The operator looks results up in a table at a place that only elements lead to; padding, or what a
lane without elements happens to hold, leads far outside. In a process of its own, which may crash.
"""

from __future__ import annotations

import pytest
from support import Backend, is_emulated, run_python

SIZES: tuple[int, ...] = (1, 2, 5, 31, 33, 100, 257, 1000, 3073, 5000, 33_333)
SHAPES: tuple[tuple[int, ...], ...] = ((3, 5), (7, 33), (33, 7), (70, 3, 51))
if not is_emulated:
    SIZES += (150_001, 1_000_003)
    SHAPES += ((300, 301), (5, 10_007), (10_007, 5))

CODE = """
import numpy as np, {library} as xp, gpualgo as ga

BASE = 1 << 40
table = xp.asarray(np.add.outer(np.arange(7), np.arange(7)).reshape(-1) % 7)
op = lambda a, b: table[(a - BASE) * 7 + (b - BASE)] + BASE
rng = np.random.default_rng(0)


def same(got, want):
    got = got.get() if hasattr(got, "get") else np.asarray(got)
    assert (got == want % 7 + BASE).all()


def check(shape, wraps=lambda x: x):
    h = rng.integers(0, 7, shape)
    x = wraps(xp.asarray(h + BASE))
    h = wraps(h)
    same(ga.reduce(x, None, op), h.sum())
    for init in (None, np.int64(BASE + 3)):
        first = 0 if init is None else 3
        same(ga.inclusive_scan(x, init, op), h.reshape(-1).cumsum() + first)
        for axis in range(h.ndim):
            same(ga.reduce(x, init, op, axis=axis), h.sum(axis) + first)
            same(ga.inclusive_scan(x, init, op, axis=axis), h.cumsum(axis) + first)
            backward = np.flip(np.flip(h, axis).cumsum(axis), axis) + first
            same(ga.inclusive_scan(x, init, op, axis=axis, reverse=True), backward)
    before = h.cumsum(-1) - h + 3
    same(ga.exclusive_scan(x, np.int64(BASE + 3), op, axis=-1), before)


for n in {sizes}:
    check(n)
    if n < 10_000:
        check(2 * n, lambda x: x[::2])
for shape in {shapes}:
    check(shape)
    check(shape, lambda x: x.T)
print("all of them")
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_nothing_but_elements(backend: Backend) -> None:
    done = run_python(
        CODE.format(library=backend.xp.__name__, sizes=SIZES, shapes=SHAPES), timeout=300,
        GPUALGO_DEVICE="cpu" if backend.name == "cpu" else "cuda",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert "all of them" in done.stdout
