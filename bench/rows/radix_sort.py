"""Sorting.

The bytes of a rate are those of 8-bit digits sorted one after the other, so that the rate of a
counting sort may pass the memory's.
"""

from functools import partial

import numpy as np

import gpualgo as ga
from bench.inputs import COLUMNS, bits, common_bits, floats, uniform
from bench.peers import cub, gpu
from bench.peers.functions import jax, polars
from bench.row import row

# How many random words are ANDed for an entropy: of thirty-two all keys are equal.
WORDS = {1.0: 1, 0.811: 2, 0.544: 3, 0.337: 4, 0.201: 5, 0.0: 32}


def moved(key_bytes, value_bytes=0):
    """Return the bytes moved for a key: one reading, then a pass for each of its digits."""
    return key_bytes + 2 * key_bytes * (key_bytes + value_bytes)


def keys(name, dtype, sizes, inputs=None, **given):
    in_torch = dtype in ("uint8", "int64", "float32")  # it sorts no wider unsigned integers
    return row(f"radix sort keys {name}", sizes, inputs or partial(bits, dtype=dtype),
               moved(np.dtype(dtype).itemsize), lambda x, out: ga.radix_sort(x, out=out),
               lambda xp, x: xp.sort(x), cub=cub.function("cub_sort_keys", f"sort_{dtype}"),
               jax=jax(lambda jnp, x: jnp.sort(x)),
               torch=(lambda x: x.sort()[0]) if in_torch else None,  # it finds the indices as well
               **given)  # fmt: skip


def entropic(entropy, words):
    inputs = partial(common_bits, dtype="uint32", words=words)
    name = f"u32, entropy {entropy}" if entropy else "u32, all equal"
    return keys(name, "uint32", "28", inputs, entropy=entropy)


def pairs(name, dtype, sizes):
    def in_order(x, values):
        order = gpu().argsort(x)
        return x[order], values[order]

    size = np.dtype(dtype).itemsize
    return row(f"radix sort pairs {name}", sizes,
               lambda xp, n: (bits(xp, n, dtype), bits(xp, n, dtype, seed=1)), moved(size, size),
               lambda x, values, out: ga.radix_sort(x, values, out=out),
               cub=cub.function("cub_sort_pairs", f"sort_pairs_{dtype}_{dtype}"),
               expected=in_order)  # fmt: skip


def numpy_bits(xp, n, words):
    draw = partial(xp.random.default_rng(0).integers, 0, 1 << 32, n, "uint32")
    return xp.bitwise_and.reduce([draw() for _ in range(words)])


def on_cpu(name, size, inputs, **given):
    return row(name, f"cpu {size}", inputs, moved(4), lambda x, out: ga.radix_sort(x, out=out),
               lambda xp, x: xp.sort(x), polars=polars(lambda series: series.sort()),
               **given)  # fmt: skip


ROWS = [
    *keys("u32", "uint32", "16* 20* 24 28* 30", entropy=1.0),
    *[row for each in list(WORDS.items())[1:] for row in entropic(*each)],
    *keys("f32", "float32", "16 20 24 28* 30", floats),
    *keys("u64", "uint64", "16 20 24 28* 30"),
    *keys("u16", "uint16", "16 20 24 28* 30"),
    *keys("u8", "uint8", "16 20 24 28* 30"),
    *keys("i64, below 2^32", "int64", "28", lambda xp, n: bits(xp, n, "uint32").astype("int64")),
    *pairs("u32/u32", "uint32", "16* 20* 24 28* 30"),
    # At 2^30 inputs, outputs and both libraries' temporary storage pass 100 GB.
    *pairs("u64/u64", "uint64", "16 20 24 28*"),
    *row("argsort f32", "16 20 24 28* 30", floats, moved(4, 8),
         lambda x, out: ga.argsort(x, out=out), lambda xp, x: xp.argsort(x),
         torch=lambda x: x.argsort(stable=True)),
    *row("sort over axis 1, f32, beside CuPy", "28*",
         lambda xp, n: floats(xp, n).reshape(-1, COLUMNS), moved(4),
         lambda x, out: ga.radix_sort(x, axis=1, out=out), lambda xp, x: xp.sort(x, axis=1),
         cub=cub.SORT_ROWS, torch=lambda x: x.sort(dim=1)[0], beside="CuPy"),
    *on_cpu("radix sort f32", "24*", uniform),
    *row("argsort f32, NumPy's stable", "cpu 24*", uniform, moved(4, 8),
         lambda x, out: ga.argsort(x, out=out), lambda xp, x: xp.argsort(x, kind="stable")),
    *[
        row
        for entropy, words in WORDS.items()
        for row in on_cpu(f"radix sort u32, entropy {entropy}", "22",
                          partial(numpy_bits, words=words), entropy=entropy)
    ],
]  # fmt: skip
