"""Dask arrays of CuPy chunks: computed where they lie, results CuPy's, bits those of one call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from support import count_gpus

import gpualgo as ga
import gpualgo.dask as gd

cupy = pytest.importorskip("cupy", reason="it makes the chunks")
pytestmark = pytest.mark.skipif(not count_gpus(), reason="needs a GPU")

RNG = np.random.default_rng(2)
N = 1000
CHUNKS = (300, 1, 0, 400, 299)
X = RNG.integers(0, 50, N).astype(np.int32)  # of functions: 0 or 1 times x, and so many
KEYS = np.where(RNG.random(N) < 0.1, np.nan, RNG.integers(0, 9, N)).astype(np.float32)


@pytest.fixture(autouse=True)
def _where_chunks_lie() -> Iterator[None]:
    with ga.default_device("auto"):
        yield


def composed(a: Any, b: Any) -> Any:
    """Return one function after another, each ``m·x + c`` modulo 31, as the number ``m·31 + c``."""
    m, c = a // 31 % 31, a % 31
    n, d = b // 31 % 31, b % 31
    return m * n % 31 * 31 + (c * n + d) % 31


def cut(x: np.ndarray[Any, Any], chunks: Any = CHUNKS) -> Any:
    return da.from_array(cupy.asarray(x), chunks=(tuple(chunks),), asarray=False)


def check(got: Any, want: Any) -> None:
    """Compare dask arrays with CuPy's, or tuples of both: the library, and all bits."""
    if isinstance(want, tuple):
        for one, other in zip(got, want, strict=True):
            check(one, other)
        return
    assert isinstance(got._meta, cupy.ndarray)
    found = got.compute()
    assert isinstance(found, cupy.ndarray)
    wanted = cupy.asarray(want)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    assert cupy.asnumpy(found).tobytes() == cupy.asnumpy(wanted).tobytes()


CALLS = {
    "reduce": lambda x, keys: ga.reduce(x, np.int32(1), composed),
    "inclusive_scan": lambda x, keys: ga.inclusive_scan(x, None, composed),
    "exclusive_scan": lambda x, keys: ga.exclusive_scan(x, np.int32(7), composed),
    "transform": lambda x, keys: ga.transform(lambda a, b: a * 2 + b, x, keys),
    "histogram": lambda x, keys: ga.histogram(x, 10, (0, 50)),
    "radix_sort": lambda x, keys: ga.radix_sort(keys, x, descending=True),
    "argsort": lambda x, keys: ga.argsort(keys),
    "top_k": lambda x, keys: ga.top_k(x, 17),
    "searchsorted": lambda x, keys: ga.searchsorted(ga.radix_sort(x), x, side="right"),
    "select": lambda x, keys: ga.select(x, lambda a: a > 20),
    "unique": lambda x, keys: ga.unique(keys, return_counts=True),
    "reduce_by_key": lambda x, keys: ga.reduce_by_key(keys, x),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_every_function(name: str, scheduler: str) -> None:
    with dask.config.set(scheduler=scheduler, num_workers=3):
        got = CALLS[name](cut(X), cut(KEYS))
        check(got, CALLS[name](cupy.asarray(X), cupy.asarray(KEYS)))


def test_large_chunks_give_the_same_bits() -> None:
    """What is grouped otherwise would show: sums of floats, cut alike, by many threads."""
    x = cupy.asarray(RNG.standard_normal(1 << 22).astype(np.float32))
    lazy = da.from_array(x, chunks=1 << 19, asarray=False)
    found = set()
    for workers in (1, 4, 8):
        with dask.config.set(scheduler="threads", num_workers=workers):
            total, scan = dask.compute(ga.reduce(lazy), ga.inclusive_scan(lazy))
        found.add((cupy.asnumpy(total).tobytes(), cupy.asnumpy(scan).tobytes()))
    assert len(found) == 1


def test_what_is_no_chunk_of_the_library_is_named() -> None:
    def changed(block: Any) -> Any:
        return cupy.asnumpy(block)

    lazy = cut(X).map_blocks(changed, dtype=X.dtype, meta=cupy.empty(0, X.dtype))
    with pytest.raises(TypeError, match=r"(?i)numpy"):
        gd.reduce(lazy).compute()
