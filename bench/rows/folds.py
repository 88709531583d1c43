"""Copies, transforms, differences; reductions; scans; results by key, of segments, of runs."""

import math
import operator
from functools import partial

import numba
import numpy as np

import gpualgo as ga
from bench.inputs import COLUMNS, hashed, in_runs, integers, matrix, pair, steps, uniform
from bench.peers import CUB_ROWS, Prepared, compute, cub, gpu, jax, polars, torch
from bench.row import module_of, row

copied = lambda xp, x, out: (xp.copyto(out, x), out)[1]
# What memory allows, and the roofline of the plots.
COPY = row("copy f32", "device 16* 20* 24* 28*; cpu 16* 20* 24*", uniform, 8,
           lambda x, out: ga.copy(x, out=out), copied,
           torch=lambda x, out: out.copy_(x), expected=lambda x: x)  # fmt: skip


@numba.njit(parallel=True, fastmath=True)
def numba_affine(x, out):
    for i in numba.prange(x.size):
        out[i] = x[i] * x.dtype.type(2) + x.dtype.type(1)
    return out


def transforms(name, sizes, inputs, bytes_each, op, ufunc, *numbers, by_cub=None, **given):
    """Return rows of an operator that the libraries have as a function, before the numbers."""
    return row(f"transform{name}", sizes, inputs, bytes_each,
               lambda *x, out: ga.transform(op, *x, out=out),
               lambda xp, *x, out: getattr(xp, ufunc)(*x, *numbers, out=out),
               cub=by_cub and cub(by_cub), compute=compute(
                   f"{'binary' if inputs is pair else 'unary'}_transform", op, one_call=not by_cub),
               torch=lambda *x, out: getattr(torch(), ufunc)(*x, *numbers, out=out),
               **given)  # fmt: skip


TRANSFORM = [
    transforms(" unary f32", "10 12 14 16* 18 20* 22 24 26 28*", uniform, 8, lambda a: a * 2.0,
               "multiply", 2.0, by_cub="twice_float32"),
    transforms(", out=", "host 10*", uniform, 0, lambda a: a * 2.0, "multiply", 2.0),
    transforms(" binary f32", "28*", pair, 12, lambda a, b: a * b, "multiply",
               by_cub="product_float32"),
    transforms(" unary i8", "28*", partial(integers, low=-128, high=128, dtype="int8"), 2,
               lambda a: a + 1, "add", 1, by_cub="increment_int8"),
    row("transform, lambda a * 2.0 + 1, f32", "cpu 24*", uniform, 8,
        lambda x, out: ga.transform(lambda a: a * 2.0 + 1, x, out=out),
        lambda xp, x, out: xp.add(xp.multiply(x, 2.0, out=out), 1.0, out=out), numba=numba_affine),
]  # fmt: skip


def differences(name, sizes, axis=0, shape=(-1,), dtype="float32"):
    inputs = lambda xp, n: (  # with zeros that precede the input
        (x := integers(xp, n, 0, 100, dtype).reshape(shape)),
        xp.zeros_like(x[:1] if axis == 0 else x[:, :1]))  # fmt: skip
    return row(f"adjacent difference {name}", sizes, inputs, 2 * np.dtype(dtype).itemsize,
               lambda x, zeros: ga.adjacent_difference(x, axis=axis),
               lambda xp, x, zeros: xp.diff(x, axis=axis, prepend=zeros),
               torch=lambda x, zeros: x.diff(dim=axis, prepend=zeros))  # fmt: skip


ADJACENT_DIFFERENCE = [
    differences("f32", "cpu 16 20 22*; device 16 20* 24 28*"),
    differences("f32, axis 0", "cpu 16 20 22*; device 16 20* 24 28*", shape=(-1, COLUMNS)),
    differences("int8", "16 20* 24 28*", dtype="int8"),
    differences("f32, axis 1", "16 20* 24 28*", axis=1, shape=(-1, COLUMNS)),
]  # fmt: skip


def of_shapes(name, shapes, bytes_each, ours, **given):
    return [row(f"{name}, {shape}", f"{math.prod(shape)}*",
                lambda xp, n, shape=shape: integers(xp, n, -2, 3).reshape(shape), bytes_each, ours,
                of_its_size=True, **given) for shape in shapes]  # fmt: skip


LARGE = ((1 << 18, 1 << 10), (1 << 22, 64))
LAYOUTS = [
    [of_shapes(f"transform, x - {name}", LARGE, 8,
               lambda x, at=at: ga.transform(lambda p, q: p - q, x, x[at]),
               alike=lambda x, at=at: x - x[at])
     for name, at in (("row", np.s_[:1]), ("column", np.s_[:, :1]))],
    of_shapes("transform, x.T into C order", LARGE, 8,
              lambda x, out: ga.transform(lambda a: a, x.T, out=out),
              numpy=lambda xp, x: xp.ascontiguousarray(x.T), torch=lambda x: x.T.contiguous(),
              others={"copy": lambda x, out: copied(gpu(), x, out.reshape(x.shape)).T},
              beside="copy", expected=lambda x: x.T),
    of_shapes("sum over axis 0", ((1 << 26, 3), (1 << 10, 1 << 18)), 4,
              lambda x: ga.reduce(x, axis=0), alike=lambda x: x.sum(0)),
    of_shapes("sum over axis 1", ((1 << 24, 16), (1 << 21, 100), (1 << 20, 300)), 4,
              partial(ga.reduce, axis=1), alike=lambda x: x.sum(1)),
    of_shapes("sum of x[:, ::2]", ((1 << 18, 1 << 10), (1 << 26, 3)), 4,
              lambda x: ga.reduce(x[:, ::2]), alike=lambda x: x[:, ::2].sum()),
    of_shapes("cumsum over axis 0", ((1 << 21, 128), (1 << 22, 64), (1 << 23, 32), (1 << 24, 16)),
              8, lambda x, out: ga.inclusive_scan(x, axis=0, out=out), beside="copy",
              others={"copy": Prepared(lambda x, out: partial(copied, gpu(), x.cumsum(0), out))},
              expected=lambda x: x.cumsum(0)),
]  # fmt: skip

max_abs = lambda a, b: a if abs(a) > abs(b) else b  # no library knows it by name


@numba.njit(parallel=True, fastmath=True)
def numba_total(x):  # of a loop as one writes it; its sums are taken in any order anyway
    result = x.dtype.type(0)
    for i in numba.prange(x.size):
        result += x[i]
    return result


wide = lambda x: "float64" if x.dtype.kind == "f" else "int64"
exact_sum = lambda x, axis=None: x.sum(axis=axis, dtype=wide(x)).astype(x.dtype)
exact_scan = lambda x, axis=0: x.cumsum(axis=axis, dtype=wide(x)).astype(x.dtype)
cupy_max_abs = lambda xp, x: partial(xp.ReductionKernel(
    "T x", "T y", "x", "fabs(a) > fabs(b) ? a : b", "y = a", "0", "max_abs"), x)  # fmt: skip
REDUCE = [
    [row(f"reduce sum {name}", sizes, draw, np.dtype(dtype).itemsize, ga.reduce,
         alike=lambda x: x.sum(dtype=x.dtype), cub=cub(f"sum_{dtype}"),
         compute=compute("reduce_into"), jax=lambda jnp, x: jnp.sum(x, dtype=x.dtype),
         expected=exact_sum, tolerance=1e-4)
     for name, dtype, sizes, draw in (
         ("f32", "float32", "10 12 14 16* 18 20* 22 24 26 28*", uniform),
         ("i32", "int32", "28*", partial(integers, low=-100, high=100, dtype="int32")),
         ("f64", "float64", "28*", partial(uniform, dtype="float64")),
         ("i8", "int8", "28*", partial(integers, low=-100, high=100, dtype="int8")))],
    row("reduce, user lambda f32", "28*", uniform, 4, lambda x: ga.reduce(x, 0.0, max_abs),
        Prepared(cupy_max_abs), cub=cub("max_abs_float32"),
        compute=compute("reduce_into", max_abs), expected=lambda x: x.max()),
    [row(f"sum over axis {axis}, f32, beside CuPy", "28*", matrix, 4,
         lambda x, axis=axis: ga.reduce(x, axis=axis), alike=lambda x, axis=axis: x.sum(axis),
         cub=by_cub, beside="CuPy", tolerance=1e-3, expected=partial(exact_sum, axis=axis))
     for axis, by_cub in ((1, cub("sum_rows_float32", COLUMNS, rows=True)), (0, None))],
    row("reduce", "host 10*", uniform, 0, ga.reduce, alike=lambda x: x.sum(),
        compute=compute("reduce_into", one_call=True), tolerance=1e-4),
    row("reduce, user lambda", "host 10*", uniform, 0, lambda x: ga.reduce(x, None, max_abs),
        compute=compute("reduce_into", max_abs, one_call=True), expected=lambda x: x.max()),
    # The same two arrays again: what a loop around a plan does.
    row("prepared reduce", "host 10*", uniform, 0,
        Prepared(lambda x, out: partial(ga.prepare(ga.reduce, x), x, out=out)),
        compute=compute("reduce_into"), expected=lambda x: x.sum(), tolerance=1e-4),
    [row(name, "cpu 24*", matrix, 4,
         lambda x, axis=axis: ga.reduce(x, None, lambda a, b: a + b, axis=axis),
         lambda xp, x, axis=axis: xp.sum(x, axis=axis), numba=loop, tolerance=1e-3,
         expected=partial(exact_sum, axis=axis))
     for name, axis, loop in (
         ("reduce, lambda sum f32", None,
          lambda x: np.asarray(numba_total(x.reshape(-1)), x.dtype)),
         ("lambda sum over axis 1, f32", 1, None), ("lambda sum over axis 0, f32", 0, None))],
]  # fmt: skip

EXTREMES = [
    # CuPy's argmax need not be the first of equal ones.
    [row(name, sizes, inputs, 4, lambda x, axis=axis: ga.argmax(x, axis),
         alike=lambda x, axis=axis: x.argmax(axis), any_dtype=True, beside=beside,
         expected=lambda x, axis=axis: np.argmax(x, axis) if module_of(x) is np
         else gpu().asarray(np.argmax(x.get(), axis)))
     for name, sizes, inputs, axis, beside in (
         ("argmax f32", "16 20* 24 28*; cpu 22*", uniform, None, ""),
         ("argmax over axis 1, f32, beside torch", "28*", matrix, 1, "torch"),
         ("argmax over axis 0, f32, beside torch", "28*", matrix, 0, "torch"))],
    row("minmax f32", "28*", uniform, 4, ga.minmax, lambda xp, x: (x.min(), x.max()),
        torch=lambda x: x.aminmax()),
]  # fmt: skip


affine = lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1])  # steps x -> a x + b one after the other


def welford(a, b):
    n = a[0] + b[0]
    delta = b[1] - a[1]
    share = b[0] / n
    return n, a[1] + delta * share, a[2] + b[2] + delta * delta * a[0] * share


recurrence = lambda a, b: ((sign := gpu().cumprod(a)),
                           sign * (b * sign).cumsum(dtype="float64").astype("float32"))  # fmt: skip
copies = lambda arrays, outs: tuple(map(partial(copied, gpu()), arrays, outs))


def welford_variance(x):
    one, zero = (gpu().broadcast_to(gpu().full(1, k, "float32"), x.shape) for k in (1, 0))
    return lambda: ga.reduce((one, x, zero), None, welford)[2] / np.float32(x.size)


# Factors of 1 and -1, and small integers: what they give is exact.
signs = lambda xp, n: (integers(xp, n, 0, 2) * 2 - 1, integers(xp, n, -2, 3, seed=1))
two_passes = lambda x, y: (x.sum(), y.max())
TUPLES = [
    row("affine scan of two f32", "28*", signs, 16,
        lambda a, b, out: ga.inclusive_scan((a, b), None, affine, out=out),
        others={"copy of both": Prepared(lambda a, b, out: partial(copies, recurrence(a, b), out))},
        expected=recurrence),
    row("reduce pairs, f32, sum and max", "20* 28*; cpu 22*", signs, 8,
        lambda x, y: ga.reduce((x, y), None, lambda a, b: (a[0] + b[0], max(a[1], b[1]))),
        others=dict.fromkeys(("CuPy, two passes", "NumPy, two passes"), two_passes),
        expected=two_passes),
    row("transform, two results, f32", "28*", signs, 12,
        lambda x, y, out: ga.transform(lambda a: (a * 2, a + 1), x, out=out),
        others={"CuPy, two passes": lambda x, y, out: (
            gpu().multiply(x, 2, out=out[0]), gpu().add(x, 1, out=out[1]))},
        expected=lambda x, y: (x * 2, x + 1)),
    row("variance by Welford, f32", "28*", uniform, 4, Prepared(welford_variance),
        torch=lambda x: x.var(correction=0), tolerance=1e-3,
        expected=lambda x: x.astype("float64").var().astype("float32")),
]  # fmt: skip

MIDDLE = np.float32(0.5)  # near the mean


def moments(x):
    left = ga.lazy.transform(lambda a: (a - MIDDLE, (a - MIDDLE) * (a - MIDDLE)), x)
    return lambda: ga.reduce(left, None, lambda p, q: (p[0] + q[0], p[1] + q[1]))[1]


def pi(n):
    """Prepare points in a quarter of a circle. What CuPy draws are others."""
    drawn = ga.lazy.random((2, n), seed=1, dtype=np.float32, device="cuda")
    inside = ga.lazy.transform(lambda a, b: np.int64(a * a + b * b < 1), drawn[0], drawn[1])
    return lambda: gpu().asarray(ga.reduce(inside)) * 4.0 / n


def cupy_pi(xp, n):
    a, b = xp.random.random((2, n), dtype="float32")
    return (a * a + b * b < 1).sum() * 4.0 / n


small_pair = lambda xp, n: (integers(xp, n, -2, 3), integers(xp, n, -2, 3, seed=1))
lengths = lambda x, y: ga.lazy.transform(lambda a, b: a * a + b * b, x, y)
count = lambda x: ga.histogram(x, 100, (0.0, 2.0))
BETWEEN = "ours, by an array between"
LAZY = [
    [row(name, sizes, small_pair, 8,
         Prepared(lambda x, y, op=op: partial(ga.reduce, ga.lazy.transform(op, x, y))),
         others={"CuPy, (x * y).sum()": lambda x, y: (x * y).sum(),
                 "NumPy": lambda xp, x, y: xp.dot(x, y)}, torch=lambda x, y: torch().dot(x, y),
         expected=lambda x, y: exact_sum(x * y), tolerance=1e-5)
     for name, sizes, op in (
         ("dot f32, lazy", "20* 24* 28*", operator.mul), ("dot f32", "cpu 22*", operator.mul),
         ("dot f32, lazy, by a lambda", "20* 24* 28*", lambda a, b: a * b))],
    row("sums and squares f32, one pass", "20* 24* 28*", uniform, 4, Prepared(moments),
        tolerance=1e-3, others={"torch, its variance": lambda x: x.var(correction=0) * len(x)},
        expected=lambda x: ((x.astype("float64") - 0.5) ** 2).sum().astype("float32")),
    row("inclusive scan of x * y, f32", "20* 24* 28*", small_pair, 12,
        Prepared(lambda x, y, out: partial(ga.inclusive_scan, ga.lazy.asarray(x) * y, out=out)),
        others={BETWEEN: lambda x, y, out: ga.inclusive_scan(ga.transform(operator.mul, x, y),
                                                             out=out)},
        expected=lambda x, y: (x * y).cumsum(dtype="float64").astype("float32")),
    row("histogram of lengths f32", "device 20* 24* 28*; cpu 22*", pair, 8,
        Prepared(lambda x, y: partial(count, lengths(x, y))),
        lambda xp, x, y: xp.histogram(x * x + y * y, 100, (0.0, 2.0))[0],
        others={BETWEEN: lambda x, y: count(ga.copy(lengths(x, y)))},
        expected=lambda x, y: count(x * x + y * y)),
    row("pi, f32 points", "28*", lambda xp, n: n, 0, Prepared(pi), cupy_pi,
        expected=lambda n: gpu().asarray(np.pi), tolerance=1e-3),
]  # fmt: skip


@numba.njit(fastmath=True)
def numba_scan(x, out):
    running = x.dtype.type(0)
    for i in range(x.size):
        running += x[i]
        out[i] = running
    return out


jax_max_abs = lambda jnp, x: jax().lax.associative_scan(
    lambda a, b: jnp.where(jnp.abs(a) > jnp.abs(b), a, b), x)  # fmt: skip
# Float32 whose running extreme by magnitude grows every 64th element, and that extreme.
PEAK = "((i >> 6) & 1 ? -static_cast<float>(i >> 6) : static_cast<float>(i >> 6))"
BELOW = f"{PEAK} * (i & 63 ? static_cast<float>(z >> 40) * (0.9f / (1 << 24)) : 1.0f)"
peaks = lambda cupy, n: hashed(cupy, n, BELOW)
expected_peaks = lambda x: hashed(gpu(), x.size, PEAK)
SCAN = [
    [row(f"inclusive scan sum {name}", sizes, partial(steps, dtype=dtype),
         2 * np.dtype(dtype).itemsize, lambda x, out: ga.inclusive_scan(x, out=out),
         alike=lambda x: x.cumsum(0, dtype=x.dtype), cub=cub(f"scan_{dtype}"),
         compute=compute("inclusive_scan"), jax=lambda jnp, x: jnp.cumsum(x, dtype=x.dtype),
         expected=exact_scan)
     for name, dtype, sizes in (
         ("f32", "float32", "16* 20* 24 28* 30"), ("i64", "int64", "16 20 24 28* 30"),
         ("f64", "float64", "16 20 24 28* 30"), ("i8", "int8", "16 20 24 28* 30"))],
    row("inclusive scan, user lambda f32", "16 20 24 28* 30", peaks, 8,
        lambda x, out: ga.inclusive_scan(x, None, max_abs, out=out), jax=jax_max_abs,
        cub=cub("scan_max_abs_float32"), compute=compute("inclusive_scan", max_abs),
        expected=expected_peaks),
    [row(f"cumsum over axis {axis}, f32, beside CuPy", "28*",
         lambda xp, n: steps(xp, n).reshape(-1, COLUMNS), 8,
         lambda x, out, axis=axis: ga.inclusive_scan(x, axis=axis, out=out),
         alike=lambda x, axis=axis: x.cumsum(axis), beside="CuPy",
         expected=partial(exact_scan, axis=axis)) for axis in (1, 0)],
    row("inclusive scan", "host 10*", steps, 0, ga.inclusive_scan, alike=lambda x: x.cumsum(0),
        compute=compute("inclusive_scan", one_call=True), expected=exact_scan),
    row("inclusive scan, user lambda", "host 10*", peaks, 0,
        lambda x: ga.inclusive_scan(x, None, max_abs), expected=expected_peaks,
        compute=compute("inclusive_scan", max_abs, one_call=True)),
    row("inclusive scan, lambda sum f32", "cpu 24*", partial(integers, low=-8, high=9), 8,
        lambda x, out: ga.inclusive_scan(x, None, lambda a, b: a + b, out=out),
        lambda xp, x, out: xp.cumsum(x, out=out), numba=numba_scan),
]  # fmt: skip


keyed = lambda xp, n, length: (in_runs(xp, n, length), steps(xp, n))


def run_sums(keys, x, length):
    padded = module_of(x).zeros(-(-x.size // length) * length)
    padded[: x.size] = x
    return keys[::length].copy(), padded.reshape(-1, length).sum(axis=1).astype("float32")


numpy_run_sums = lambda xp, keys, x: (
    keys[(heads := xp.flatnonzero(xp.diff(keys, prepend=-1)))],
    xp.add.reduceat(x, heads),
)
run_scans = lambda keys, x, length: (
    (whole := x.cumsum(dtype="float64")) - (whole - x)[gpu().arange(x.size) // length * length]
).astype("float32")


def numbered(name, size, sizes, ours, **given):
    return row(name, sizes, lambda xp, n: (integers(xp, n, 0, size, "int32"), steps(xp, n)), 8,
               ours, lambda xp, keys, x: xp.bincount(keys, x, size).astype("float32"),
               torch=Prepared(lambda keys, x: partial(
                   torch().zeros(size, device=x.device).index_add, 0, keys.long(), x)),
               **given)  # fmt: skip


BY_KEY = [
    [row(f"reduce_by_key i32/f32, runs of {length}", sizes,
         partial(keyed, length=length), 8 + 8 / length,
         lambda keys, x, out, out_count: ga.reduce_by_key(
             keys, x, consecutive=True, out=out, out_count=out_count),
         cub=cub("reduce_by_key", count="int32"), expected=partial(run_sums, length=length),
         others={"NumPy": numpy_run_sums})
     for length, sizes in (
         (4, "16 20 24 28*"), (64, "16 20 24 28*; cpu 22*"), (4096, "16 20 24 28*"))],
    [row(f"scan by key i32/f32, runs of {length if length < 1 << 16 else 'all'}", sizes,
         partial(keyed, length=length), 12,
         lambda keys, x, out: ga.inclusive_scan_by_key(keys, x, consecutive=True, out=out),
         cub=cub("scan_by_key"), expected=partial(run_scans, length=length),
         of_its_size=length >= 1 << 16)
     for length, sizes in (
         (64, "16 20 24 28*"), (4096, "16 20 24 28*"), (1 << 16, "16"), (1 << 20, "20"),
         (1 << 24, "24"), (1 << 28, "28*"))],
    numbered("reduce_by_key of 1000 keys in any order", 1000, "16* 20* 24* 28*; cpu 22*",
             lambda keys, x: ga.reduce_by_key(keys, x)[1],
             polars=lambda table: table.group_by("0").agg(polars().col("1").sum()).sort("0")["1"]),
    [numbered(f"reduce_by_index i32/f32, {size} results", size, "16 20 24 28*",
              lambda keys, x, size=size: ga.reduce_by_index(keys, x, size))
     for size in (16, 1000, 4096, 100_000)],
]  # fmt: skip

GIANT = 64  # the giant segment has all elements but one in so many


def offsets_of(n, length):
    """Return the offsets of segments of one length; 0: of a giant one among segments of one."""
    if length:
        return np.arange(0, n + 1, min(length, n))
    tiny = n // GIANT
    return np.concatenate([np.arange(tiny // 2), np.arange(n - tiny // 2, n + 1)])


def segmented(name, length, sizes, bytes_each, draw, ours, **given):
    """Return rows beside calls on even rows, which are no ragged ones."""
    with_offsets = lambda xp, n: (
        (x := draw(xp, n)), xp.asarray(offsets_of(n, length)),
        x.reshape(-1, min(length or n, n)))  # fmt: skip
    return row(f"segmented {name}, {length or 'a giant one'}", sizes, with_offsets, bytes_each,
               ours, **given)  # fmt: skip


exact_segments = lambda x, offsets, even: (xp := module_of(x)).diff(xp.concatenate(
    [xp.zeros(1), x.cumsum(dtype="float64")])[offsets]).astype("float32")  # fmt: skip
bit = partial(integers, low=0, high=2)
LENGTHS = (16, 256, 1 << 16)
SEGMENTS = [
    [segmented("sum f32", length, sizes, 4, bit, lambda x, offsets, even: ga.segmented_reduce(
                   x, offsets), expected=exact_segments, others=others,
               torch=lambda x, offsets, even: torch().segment_reduce(x, "sum", offsets=offsets),
               tolerance=0 if length else 1e-6)  # the giant segment's sum is rounded
     for length, sizes, others in (
         (0, "16 20* 24 28*", {}),
         *((length, "cpu 16 20 22*; device 16 20* 24 28*", {
             "CuPy, of even rows": lambda x, offsets, even: even.sum(axis=1),
             "NumPy": lambda xp, x, offsets, even: xp.add.reduceat(x, offsets[:-1])})
           for length in LENGTHS))],
    [segmented("scan i32", length, "16 20* 24 28*", 8, partial(bit, dtype="int32"),
               lambda x, offsets, even: ga.segmented_inclusive_scan(x, offsets),
               others={"gpualgo, of even rows":
                       lambda x, offsets, even: ga.inclusive_scan(even, axis=1)},
               expected=lambda x, offsets, even: even.cumsum(axis=1, dtype="int32").ravel())
     for length in LENGTHS],
    [segmented("sort f32", length, "16 20* 24 28*", 8, uniform,
               lambda x, offsets, even: ga.segmented_sort(x, offsets), cub=CUB_ROWS, beside="CUB",
               others={"gpualgo, of even rows": lambda x, offsets, even: ga.radix_sort(even),
                       "CuPy, of even rows": lambda x, offsets, even: gpu().sort(even)},
               expected=lambda x, offsets, even: gpu().sort(even).ravel()) for length in LENGTHS],
]  # fmt: skip


def heads_and_lengths(x, length):
    heads = x[::length].copy()
    lengths = gpu().full(heads.size, length, "int64")
    lengths[-1] = x.size - (heads.size - 1) * length
    return heads, lengths


ENCODE = cub("encode", count="int64")
cub_encode = lambda x, out: ENCODE.make(x, out=(out[0], out[1].astype("int32")))  # its lengths
RUNS = [
    [row(f"consecutive unique i32, runs of {length}", sizes, partial(in_runs, length=length),
         4 + 4 / length, lambda x, out, out_count: ga.unique(
             x, consecutive=True, out=out, out_count=out_count),
         cub=cub("unique", count="int64"), torch=lambda x: x.unique_consecutive(),
         expected=lambda x, length=length: x[::length].copy())
     for length, sizes in ((1, "20 24 28"), (4, "20 24 28*"), (64, "20 24 28"))],
    [row(f"run-length encode i32, runs of {length}", sizes, partial(in_runs, length=length),
         4 + 12 / length, lambda x, out, out_count: ga.run_length_encode(
             x, out=out, out_count=out_count),
         cub=Prepared(cub_encode, ENCODE.cub_source),
         torch=lambda x: torch().unique_consecutive(x, return_counts=True),
         expected=partial(heads_and_lengths, length=length), any_dtype=True)
     for length, sizes in ((4, "20 24 28*"), (64, "20 24 28"), (4096, "20 24 28"))],
    row("unique f32", "20 24 28*", uniform, 0, ga.unique, lambda xp, x: xp.unique(x),
        torch=lambda x: x.unique()),
    row("unique of int32 below 1000", "cpu 22*", partial(integers, low=0, high=1000, dtype="int32"),
        4, ga.unique, lambda xp, x: xp.unique(x), polars=lambda series: series.unique().sort()),
]  # fmt: skip
