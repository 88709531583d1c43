"""Plans of numbers that lie together: which serve whom, alignment, results that are wide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sass
from support import Backend, assert_same, sampled

import gpualgo as ga
from gpualgo._algorithms.transform import tuning
from gpualgo._base import records
from gpualgo._operators.operator import Operator


def numbers(shape: Any, dtype: str = "i4", seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(0, 40, shape).astype(dtype)


def test_plan_of_numbers_together_behind_another_array(cuda: Backend) -> None:
    """The key tells distances from the first array alone: `together` is the later two's matter."""
    n = 1000
    w, x, y = numbers(n), numbers((n, 2), seed=1), numbers((n, 2), seed=2)
    dw, dx, dy = map(cuda.to_device, (w, x, y))

    def op(k: Any, a: Any, b: Any) -> Any:
        return k + 100 * a - b

    for h, d in ((x, dx), (y, dy)):  # together, then apart at the same alignments
        got = ga.transform(op, dw, dx[:, 0], d[:, 1])
        assert_same(cuda.to_host(got), op(w, x[:, 0], h[:, 1]))


def test_plan_behind_another_array_into_a_given_one(cuda: Backend) -> None:
    n = 1000
    w, x, y = numbers(n), numbers((n, 2), seed=1), numbers((n, 2), seed=2)
    dw, dx, dy = map(cuda.to_device, (w, x, y))
    out = cuda.to_device(np.zeros(n, "i4"))

    def op(k: Any, p: Any) -> Any:
        return k + 100 * p[0] - p[1]

    for h, d in ((x, dx), (y, dy)):
        ga.transform(op, dw, (dx[:, 0], d[:, 1]), out=out)
        assert_same(cuda.to_host(out), op(w, (x[:, 0], h[:, 1])))


def test_plan_behind_another_array_of_the_host(cuda: Backend) -> None:
    """Columns 1 and 3 of four float64 change places: their addresses are equal modulo 16."""
    n = 1000
    w, x = numbers(n, "f8"), numbers((n, 4), "f8", 1)

    def op(k: Any, a: Any, b: Any, c: Any) -> Any:
        return k + 100 * a - b + 3 * c

    with ga.default_device("cuda"):
        for i, j in ((1, 3), (3, 1)):
            got = ga.transform(op, w, x[:, 0], x[:, i], x[:, j])
            assert_same(got, op(w, x[:, 0], x[:, i], x[:, j]))


def test_plan_of_a_scan_of_what_is_computed(cuda: Backend) -> None:
    n, rows = 8, 300
    w, x, y = numbers((rows, n)), numbers((rows, n, 2), seed=1), numbers((rows, n, 2), seed=2)
    dw, dx, dy = map(cuda.to_device, (w, x, y))
    for h, d in ((x, dx), (y, dy)):
        z = ga.lazy.transform(lambda r, p, q: (r + p + q, q), dw, dx[..., 0], d[..., 1])
        got = ga.inclusive_scan(z, None, lambda a, b: (a[0] + b[0], max(a[1], b[1])), axis=0)
        assert_same(cuda.to_host(got[0]), np.cumsum(w + x[..., 0] + h[..., 1], 0, "i4"))


@pytest.mark.parametrize(("dtype", "count"), [("f8", 2), ("f4", 4), ("i8", 2)])
@pytest.mark.parametrize("into", [False, True], ids=["read", "written"])
def test_misaligned_records_of_a_vector(cuda: Backend, dtype: str, count: int, into: bool) -> None:
    """Records of 16 bytes that begin one number behind a multiple of 16: MISALIGNED on a GPU."""
    n = 5000
    flat = numbers(n * count + 1, dtype)
    d, h = cuda.to_device(flat)[1:].reshape(n, count), flat[1:].reshape(n, count)
    columns = tuple(d[:, i] for i in range(count))
    if into:
        x = cuda.to_device(h[:, 0].copy())
        ga.transform((lambda a: (a, a)) if count == 2 else (lambda a: (a, a, a, a)), x, out=columns)
        for column in columns:
            assert_same(cuda.to_host(column), h[:, 0])
    else:
        got = ga.transform(lambda p: p[0] - p[1], columns)
        assert_same(cuda.to_host(got), h[:, 0] - h[:, 1])


def test_misaligned_results_beside_records_of_a_vector(cuda: Backend) -> None:
    """Where one operand takes all of a vector, nobody asks how the others lie."""
    n = 5000
    h = numbers((n, 4), "f4")
    x, flat = cuda.to_device(h), cuda.to_device(np.zeros(5 * n + 1, "f4"))
    y = flat[1:].reshape(n, 5)

    def op(p: Any) -> Any:
        return (p[0], p[1], p[2], p[3], p[0])

    ga.transform(op, tuple(x[:, i] for i in range(4)), out=tuple(y[:, i] for i in range(5)))
    assert_same(cuda.to_host(y), h[:, [0, 1, 2, 3, 0]])


@pytest.mark.parametrize("how", ["prepare", "temp_storage_bytes", "explain"])
def test_results_that_are_not_there_yet(cuda: Backend, how: str) -> None:
    """`prepare` has outputs at address 0, all of them: they count as one piece with offsets 0, 0.

    The plan is kept for later calls of the same problem, which get it, too.
    """
    n = 3000
    h = numbers((n, 2))
    x = cuda.to_device(h)
    pair = x[:, 0], x[:, 1]
    want = h[:, 0] + 2 * h[:, 1], h[:, 1]

    # An operator of its own for each way: equal ones have one problem.
    op: Any = {
        "prepare": lambda p: (p[0] + 2 * p[1], p[1]),
        "explain": lambda p: (p[1] * 2 + p[0], p[1]),
        "temp_storage_bytes": lambda p: (p[1] + p[0] + p[1], p[1]),
    }[how]
    if how == "prepare":
        got: Any = ga.prepare(ga.transform, op, pair, dtype="i4")(pair)
    elif how == "explain":
        ga.explain(ga.transform, op, pair, dtype="i4")
        got = ga.transform(op, pair, dtype="i4")
    else:
        assert ga.temp_storage_bytes(ga.transform, op, pair, dtype="i4") == 0
        got = ga.transform(op, pair, dtype="i4")
    for a, b in zip(got, want, strict=True):
        assert_same(cuda.to_host(a), b)


@pytest.mark.parametrize("first", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("columns", ["f4", "u1"])
def test_random_numbers_beside_records(cuda: Backend, dtype: str, first: int, columns: str) -> None:
    """Packs of what is computed in blocks begin at multiples of a pack."""
    n = 5000
    z = ga.lazy.random(n + 7, seed=3, dtype=dtype)[first : first + n]
    h = numbers((n, 2), columns)
    x = cuda.to_device(h)
    want = np.random.Generator(np.random.Philox(3)).random(n + 7, dtype)[first : first + n]
    got = ga.transform(lambda r, a, b: (r, a, b), z, x[:, 0], x[:, 1])
    assert_same(cuda.to_host(got[0]), want)


@sass.needs_cuobjdump
@pytest.mark.parametrize("names", sampled(["f4 u1", "f4 u2", "f8 f4"], ["f4 u1"]))
def test_wide_results_compile(names: str, tmp_path: Any) -> None:
    """A warp's packs wait in shared memory for as many bytes as they have: above 48 KB in all."""
    output, source = names.split()
    fields = [np.dtype(output)] * 7
    result = records.record([str(i) for i in range(len(fields))], fields)
    ends = np.cumsum([field.itemsize for field in fields]).tolist()
    read = np.dtype(source)
    operands = records.Interleaved(result, ends[-1], (0, *ends[:-1])), read
    applied = tuning.Applied(Operator(lambda a: (a, a, a, a, a, a, a)), (read,), result)
    items = tuning.pack_items(tuple(operands), 16)
    spec = tuning.flat_spec(applied, items, tuning.loads_in_flight([read], items), operands)
    sass.read(spec, (9, 0), tmp_path)
