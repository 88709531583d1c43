"""Graphs: names that tell contents, operators as they stood, chunks that are not what was told."""

from __future__ import annotations

import operator
import os
import sys
import types
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from chunked import Computed, built, check, cut, first
from support import run_python

import gpualgo as ga
import gpualgo.dask as gd
from gpualgo._base import threads

RNG = np.random.default_rng(14)
H = RNG.integers(0, 6, 100)
X = cut(H, (30, 0, 70))


def test_the_check_of_laziness_finds_what_is_computed() -> None:
    with pytest.raises(Computed):
        built(lambda: X.compute())


def test_equal_calls_have_equal_names() -> None:
    def made(scale: float, table: Any, other: Any = 1) -> Any:
        return ga.transform(lambda a: table[a] * scale + other, X)

    table = np.arange(6.0)
    assert made(2.0, table).name == made(2.0, table.copy()).name
    names = {
        made(2.0, table).name, made(3.0, table).name, made(2.0, table + 1).name,
        made(2.0, table.astype(np.float32)).name, made(2.0, table, 2).name,
        ga.transform(lambda a: table[a] * 2.0 - 1, X).name,
        ga.transform(lambda a: table[a] * 2.0 + 1, X + 1).name,
        ga.transform(lambda a: table[a] * 2.0 + 1, X.rechunk((50, 50))).name,
    }  # fmt: skip
    assert len(names) == 8
    reductions = [
        ga.reduce(X, *rest)
        for rest in (
            (), (None, operator.mul), (None, max), (0,), (1,), (np.int64(0),), (np.float32(0),),
            (None, ga.Operator(lambda a, b: a + b)), (None, lambda a, b: a + b),
            (None, ga.Operator(lambda a, b: a + b, identity=0)),
            (None, ga.Operator(lambda a, b: a + b, commutative=True)),
        )
    ]  # fmt: skip
    assert len({lazy.name for lazy in reductions}) == len(reductions) - 1  # Operator(f) is f
    assert ga.reduce(X).name == gd.reduce(X, None, np.add).name


def test_names_are_the_same_in_every_process() -> None:
    code = """if True:
        import dask.array as da, gpualgo as ga, numpy as np
        table = np.arange(6.0)
        x = da.zeros(10, chunks=3, dtype=np.int64)
        print(ga.transform(lambda a: table[a] * 2.0, x).name, ga.argsort(x).name)
    """
    first, second = (run_python(code, PYTHONHASHSEED=seed) for seed in ("1", "2"))
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout
    assert first.stdout.count("ga-") == 2


def test_names_say_what_tasks_do() -> None:
    from dask.utils import key_split

    shown = {key_split(key) for key in ga.argsort(X).__dask_graph__() if "ga-" in str(key)}
    assert shown == {
        f"ga-argsort{step}"
        for step in ("-run", "-sample", "-spans", "-candidates", "-cuts", "-piece", "")
    }


def test_operators_stand_as_they_stood() -> None:
    module = types.ModuleType("settings_of_a_program")
    module.bound = 3
    sys.modules[module.__name__] = module
    scale = 2
    try:

        def helper(a: Any) -> Any:
            return a * scale

        def op(a: Any) -> Any:
            return helper(a) if a > module.bound else 0

        want = ga.transform(op, H)
        lazy = built(ga.transform, op, X)
        module.bound, scale = 0, 5
        del sys.modules[module.__name__]  # as on a worker, where it is not
        check(lazy, want)
    finally:
        sys.modules.pop(module.__name__, None)


def test_what_cannot_travel_is_told_at_the_call() -> None:
    class Unwilling(np.ndarray):
        def __reduce__(self) -> Any:
            raise ValueError("it stays at home")

    table = np.arange(6.0).view(Unwilling)
    with pytest.raises(TypeError, match=r"transform: op cannot be sent to workers.*stays at home"):
        built(ga.transform, lambda a: table[a], X)
    with pytest.raises(TypeError, match="captures a value of type Array"):
        built(ga.transform, lambda a: X[a], X)


def test_large_captured_arrays_are_tasks_of_their_own() -> None:
    table = np.arange(100_000)
    graph = dict(ga.transform(lambda a: table[a], X).__dask_graph__())
    assert sum("ga-transform-op-" in str(key) for key in graph) == 1
    small = dict(ga.transform(lambda a: a, X).__dask_graph__())
    assert not any("ga-transform-op-" in str(key) for key in small)


def test_chunks_that_are_not_what_the_array_says() -> None:
    wrong = X.map_blocks(lambda c: c.astype(np.float32), dtype=np.int64, meta=np.zeros(0, np.int64))
    for call in (ga.reduce, ga.inclusive_scan, ga.argsort, ga.unique):
        with pytest.raises(TypeError, match=r"chunk \(\d,\) of \w+ has dtype float32.*says int64"):
            built(call, wrong).compute()
    with pytest.raises(TypeError, match=r"chunk \(\d,\).*dtype float32"):
        ga.transform(lambda a: a, wrong).compute()


CALLS: list[Callable[[Any], Any]] = [
    ga.reduce, lambda x: ga.inclusive_scan(x, axis=0), ga.inclusive_scan, ga.argsort, ga.unique,
    lambda x: ga.transform(lambda a: a, x), lambda x: ga.select(x, lambda a: a > 1),
    lambda x: ga.histogram(x, 3), lambda x: ga.histogram(da.ones_like(x), 3, weights=x),
    lambda x: ga.reduce((x, x[:1]), None, first), lambda x: ga.reduce_by_key(x, x),
    lambda x: ga.top_k(x, 1),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_masked_chunks(call: Callable[[Any], Any]) -> None:
    """In any order of memory; at the call if the array says that they are masked."""
    grid, masked = cut(H.reshape(10, 10), (4, 6), (5, 5)), "is a masked array"
    for order in ("C", "F"):

        def hidden(chunk: Any, order: Any = order) -> Any:
            return np.ma.masked_greater(chunk, 3).copy(order)

        with pytest.raises(TypeError, match=masked):
            dask.compute(call(grid.map_blocks(hidden, dtype=H.dtype, meta=np.zeros((0, 0), int))))
    told = grid.map_blocks(np.ma.masked_greater, 3, meta=np.ma.zeros((0, 0), int))
    with pytest.raises(TypeError, match=masked):
        built(call, told)


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_chunks_that_are_matrices() -> None:
    x = X.reshape(10, 10) if hasattr(X, "reshape") else cut(H.reshape(10, 10), (4, 6), (10,))
    x = x.map_blocks(np.asmatrix, dtype=H.dtype)
    for call in (ga.inclusive_scan, ga.unique, lambda x: ga.argsort(x, axis=None)):
        check(built(call, x), call(H.reshape(10, 10)))


def test_libraries_of_chunks() -> None:
    class Sparse:
        ndim, dtype, shape = 1, np.dtype(np.int64), (0,)

    Sparse.__module__ = "sparse"
    odd = X.map_blocks(lambda c: c, dtype=np.int64)
    if hasattr(odd, "reshape"):
        odd = da.Array(X.dask, X.name, X.chunks, meta=X._meta)
        odd._meta = Sparse()
        with pytest.raises(TypeError, match="chunks of sparse"):
            gd.reduce(odd)
    other = X.map_blocks(lambda c: list(c), dtype=np.int64, meta=np.zeros(0, np.int64))
    with pytest.raises(TypeError, match=r"chunk .* is an array of builtins.*says numpy"):
        ga.reduce(other).compute()


def test_a_device_is_fixed_when_the_graph_is_built() -> None:
    with ga.default_device("auto"):
        assert "cpu" in str(next(t for k, t in _tasks(ga.reduce(X)) if "ga-" in str(k)).args)
    with pytest.raises(ga.NoDeviceError), ga.default_device("cuda:99"):
        ga.reduce(X)


def _tasks(x: Any) -> Any:
    return dict(x.__dask_graph__()).items()


def test_other_functions_say_what_to_do() -> None:
    with pytest.raises(TypeError, match=r"count: x is a dask array.*x\.compute\(\)"):
        ga.count(X, lambda a: a > 0)
    with pytest.raises(TypeError, match="stream= is not supported with a dask array"):
        ga.inclusive_scan(X, stream=1)
    with pytest.raises(TypeError, match="out= is not supported"):
        ga.select(X, lambda a: a > 0, out_count=np.zeros(1, np.int64))


def test_import_of_gpualgo_loads_no_dask() -> None:
    code = "import gpualgo, sys; gpualgo.reduce; print('dask' in sys.modules)"
    assert run_python(code).stdout.strip() == "False"
    blocked = "import sys; sys.modules['dask'] = None; import gpualgo.dask"
    assert "pip install 'gpualgo[dask]'" in run_python(blocked).stderr


def test_threads_are_bounded_within_a_task() -> None:
    before = threads.num_threads()
    with threads.at_most(1):
        assert threads.num_threads() == 1
        with threads.at_most(None):
            assert threads.num_threads() == before
    assert threads.num_threads() == before


def test_the_threaded_scheduler_gives_the_same_bits() -> None:
    x = da.from_array(RNG.standard_normal(20_000).astype(np.float32), chunks=1500)
    calls = [
        ga.reduce(x), ga.inclusive_scan(x, None, lambda a, b: a + b * np.float32(0.5)),
        ga.argsort(x), ga.unique(x), ga.histogram(x, 9, weights=x),
    ]  # fmt: skip
    want = [part.tobytes() for part in dask.compute(*calls)]
    for workers in (1, 3):
        with dask.config.set(scheduler="threads", num_workers=workers):
            assert [part.tobytes() for part in dask.compute(*calls)] == want


PLANNED = """if True:
    import numpy as np, dask.array as da, gpualgo as ga
    from chunked import affine, built, check, compose, cut
    assert da.array_expr_enabled()
    h = np.random.default_rng(0).integers(0, 6, (12, 10))
    x = cut(h, (5, 7), (3, 3, 4))
    y = x + 1  # an expression that is optimised under other names
    for axis in (None, 0, 1):
        check(built(ga.reduce, y, None, max, axis=axis), ga.reduce(h + 1, None, max, axis=axis))
        scanned = ga.inclusive_scan(h, None, compose, axis=axis)
        check(built(ga.inclusive_scan, x, None, compose, axis=axis), scanned)
        check(built(ga.argsort, y, axis=axis), ga.argsort(h, axis=axis))
    check(built(ga.reduce, (y, x), None, affine), ga.reduce((h + 1, h), None, affine))
    check(built(ga.transform, lambda a, b: a + b, y, x[:1]), h + 1 + h[:1])
    check(built(ga.reduce, (y, x[:1]), None, affine), ga.reduce((h + 1, h[:1]), None, affine))
    check(built(ga.histogram, y, 3), ga.histogram(h + 1, 3))
    pairs = np.zeros(h.shape, [("a", "i4"), ("b", "f8")])
    check(built(ga.histogram, cut(pairs, (5, 7), (3, 7)), 3), ga.histogram(pairs, 3))
    some, other = ga.select(x, lambda a: a > 2), ga.select(y, lambda a: a > 3)
    assert np.array_equal(ga.transform(lambda a, b: b - a, some, other).compute(), h[h > 2] * 0 + 1)
    try:
        ga.transform(lambda a, b: b - a, some, ga.select(x, lambda a: a > 3)).compute()
    except ValueError as error:
        assert "compute_chunk_sizes()" in str(error)
    else:
        raise AssertionError("chunks of several sizes were combined")
    check(built(ga.select, y, lambda a: a > 2), ga.select(h + 1, lambda a: a > 2))
    check(built(ga.unique, y, return_counts=True), ga.unique(h + 1, return_counts=True))
    check(built(ga.reduce_by_key, y, x), ga.reduce_by_key(h + 1, h))
    check(built(ga.top_k, y, 3), ga.top_k(h + 1, 3))
    check(built(ga.searchsorted, np.arange(9), y), ga.searchsorted(np.arange(9), h + 1))
    both = ga.reduce(ga.inclusive_scan(y) + 1)  # ours, dask's and ours
    check(both, ga.reduce(ga.inclusive_scan(h + 1) + 1))
    print("planned")
"""


def test_query_planning() -> None:
    """Dask's expressions: the configuration is read once in a process."""
    path = os.pathsep.join([__file__.rpartition("/")[0], *filter(None, sys.path)])
    environment = {"DASK_ARRAY__QUERY_PLANNING": "True", "PYTHONPATH": path}
    done = run_python(PLANNED, DASK_SCHEDULER="synchronous", **environment)
    assert done.stdout.strip() == "planned", done.stderr
