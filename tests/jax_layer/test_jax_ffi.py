"""gpualgo.jax: what XLA's programs keep and call; errors; threads."""

from __future__ import annotations

import doctest
import gc
import operator
import re
import subprocess
import sys
import textwrap
import threading
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="it comes by the extra jax")

import jax.numpy as jnp  # noqa: E402

import gpualgo as ga  # noqa: E402
import gpualgo.jax as gj  # noqa: E402
from gpualgo.jax import _ffi  # noqa: E402


def up_to(k: Any) -> Any:
    """Return a function of sums that end at k, by an operator that captures it."""
    return lambda x: gj.inclusive_scan(x, None, lambda a, b: min(a + b, k))


def test_captured_numbers_are_those_of_the_trace() -> None:
    k = 2.0
    f = jax.jit(lambda x: gj.inclusive_scan(x, None, lambda a, b: min(a + b, k)))
    x = jnp.ones(4)
    assert f(x).tolist() == [1, 2, 2, 2]
    k = 3.0
    assert f(x).tolist() == [1, 2, 2, 2]
    assert f(jnp.ones(5)).tolist() == [1, 2, 3, 3, 3]  # another trace
    found = [up_to(k)(x).tolist() for k in (1.5, 2, np.float32(4))]
    assert found == [[1, 1.5, 1.5, 1.5], [1, 2, 2, 2], [1, 2, 3, 4]]


def test_equal_code_is_one_program() -> None:
    x = jnp.ones(37)
    up_to(5.0)(x)
    before, traces = len(_ffi._calls), 0
    texts = [jax.jit(up_to(k)).lower(x).as_text() for k in (5.0, 5.0, 6.0)]
    assert texts[0] == texts[1] != texts[2]
    assert len(_ffi._calls) == before + 1

    def counted(x: Any) -> Any:
        nonlocal traces
        traces += 1
        return up_to(5.0)(x)

    f = jax.jit(counted)
    assert len([f(x) for _ in range(3)]) == 3
    assert traces == 1


def test_a_program_outlives_its_function() -> None:
    x = jnp.ones(4)
    program = jax.jit(up_to(2.5)).lower(x).compile()
    gc.collect()
    assert program(x).tolist() == [1, 2, 2.5, 2.5]


def test_shapes_of_one_operator() -> None:
    """A call with the same options for arrays of other numbers of axes is another one."""
    for shape in ((4,), (2, 4), (1, 4), (3, 1, 4)):
        x, a = np.ones(shape, np.float32), np.ones((*shape[:-1], 4), np.float32)
        np.testing.assert_array_equal(gj.linear_recurrence(a, x), np.cumsum(x, -1))
        batched = jax.vmap(gj.linear_recurrence, (None, 0))(a, np.stack([x, 2 * x]))
        np.testing.assert_array_equal(batched, np.cumsum(np.stack([x, 2 * x]), -1))
    nested = jax.vmap(jax.vmap(gj.linear_recurrence, (None, 0)), (0, None))
    a, b = np.float32([[1, 1], [2, 2]]), np.float32([[1, 1], [3, 4], [0, 1]])
    wanted = [[gj.linear_recurrence(x, y).tolist() for y in b] for x in a]
    assert nested(a, b).tolist() == wanted


def test_errors_while_it_runs() -> None:
    x = jnp.ones(4)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"INVALID_ARGUMENT: ValueError: .*mode"):
        gj.top_k(x, 2, mode="middle").values.block_until_ready()
    with pytest.raises(jax.errors.JaxRuntimeError, match="CompileError"):
        jax.jit(lambda x: gj.reduce(x, None, lambda a, b: a.nonsense + b))(x).block_until_ready()
    assert gj.reduce(x) == 4  # as before


def test_an_unknown_call_is_an_error() -> None:
    x = jnp.ones(3)
    f = jax.ffi.ffi_call("gpualgo", jax.ShapeDtypeStruct((3,), np.float32))
    with pytest.raises(jax.errors.JaxRuntimeError, match="traced no call elsewhere"):
        f(x, call="elsewhere").block_until_ready()
    for attributes in ({}, {"call": 3}, {"a": "b", "call": "c"}):
        with pytest.raises(jax.errors.JaxRuntimeError, match=r"use gpualgo\.jax"):
            f(x, **attributes).block_until_ready()


def read(i: Any) -> Any:
    """Return an element of an array that other functions reach through this one."""
    return TABLE[int(i)]


TABLE = np.arange(4.0)[::-1]


def test_operators_do_not_change() -> None:
    """Operators that are `gpualgo.Operator`, and derivatives, keep the numbers of their trace."""
    x, k = jnp.array([1.0, 3.0, 2.0]), 1.0
    f = jax.jit(lambda x: gj.sort(x, less=ga.Operator(lambda a, b: a * k < b * k)))
    assert f(x).tolist() == [1, 2, 3]
    vjp = (lambda a, b: k, lambda a, b: k)
    _, pull = jax.vjp(lambda x: gj.reduce(x, None, lambda a, b: a + b, vjp=vjp), x)
    k = -1.0
    assert f(x).tolist() == [1, 2, 3]
    assert f(x[:2]).tolist() == [3, 1]
    assert pull(jnp.float32(1))[0].tolist() == [1, 1, 1]


def test_sizes_are_checked_while_it_is_traced() -> None:
    x, index = jnp.ones(4), jnp.arange(4)
    for mistake in (
        lambda size: gj.select(x, x > 0, size=size),
        lambda size: gj.reduce_by_index(index, x, size),
        lambda size: gj.reduce_by_key(index, x, size=size),
        lambda size: gj.top_k(x, size),
        lambda size: gj.histogram(x, size, (0, 1)),
    ):
        with pytest.raises(ValueError, match="must not be negative"):
            mistake(-1)
        for size in (1.5, True):
            with pytest.raises(TypeError, match="must be an int"):
                mistake(size)
        mistake(np.int64(4))
    with pytest.raises(ValueError, match="no edges"):
        gj.histogram(x, [])
    with pytest.raises(TypeError, match="bins must be an int"):
        gj.histogram(x, [[0.0, 1.0]])


def test_errors_while_it_is_traced() -> None:
    x, table = jnp.ones(4), np.ones(3)
    traced = jnp.float32(2)
    key_of = lambda a: a * traced  # noqa: E731
    for mistake, message in (
        (lambda: gj.reduce(x, None, lambda a, b: a + key_of(b)), "captures the array traced"),
        (
            lambda: jax.jit(
                lambda traced: gj.reduce(x, None, lambda a, b: a + (lambda c: c * traced)(b))
            )(2.0),
            "captures the array traced",
        ),
        (lambda: gj.sort(x, less=lambda a, b: read(a) < read(b)), "captures the array TABLE"),
        (lambda: gj.reduce_by_key(x, x, size=4, eq=lambda a, b: read(a) == b), "array TABLE"),
        (lambda: gj.select(x, lambda a: read(a) > 2, size=4), "captures the array TABLE"),
        (lambda: gj.reduce(x, None, ga.Operator(lambda a, b: a + b, identity=x[0])), "identity"),
        (lambda: gj.reduce(x, x[0].astype(int)), "does not fit the accumulator int32"),
        (lambda: gj.reduce(x.astype(int), x[0], dtype=int), "init of dtype float32"),
        (lambda: gj.inclusive_scan(x, jnp.complex64(1j), dtype=np.float32), "does not fit"),
        (lambda: jax.jit(gj.reduce)(x.astype(int), 0.5), "does not fit int32"),
        (lambda: gj.linear_recurrence(x, x, 1j), "does not fit float32"),
        (lambda: gj.reduce(jax.random.key(0)), "which has no kernel"),
        (lambda: gj.reduce([1, 2]), "x must be a jax or NumPy array, got list"),
        (lambda: gj.reduce(x, None, lambda a, b: a + table[0] * b), "captures the array table"),
        (lambda: gj.reduce(x, None, lambda a, b: a + traced * b), "captures the array traced"),
        (lambda: gj.select(x, lambda a: a > traced, size=2), "captures the array traced"),
        (lambda: gj.reduce(x, None, operator.sub), "not associative"),
        (lambda: gj.linear_recurrence(np.arange(3), np.arange(3)), "pass floats"),
        (lambda: gj.reduce(x.astype("float8_e5m2")), "no kernel"),
        (lambda: gj.segmented_reduce(x, jnp.arange(3), x), "init must be a number"),
        (lambda: gj.inclusive_scan(x, axis=(0,)), r"^inclusive_scan: axis must be an int, got \(0"),
        (lambda: gj.reduce(x, axis=0.5), "^reduce: axis must be an int"),
        (lambda: jax.jit(lambda n: gj.histogram(x, n, (0, 1)))(3), "number of bins is static"),
        (lambda: jax.jit(lambda end: gj.histogram(x, 3, (0, end)))(3.0), "range is traced"),
    ):
        with pytest.raises(TypeError, match=message):
            mistake()
    for mistake, message in (
        (lambda: gj.segmented_reduce(jnp.ones((2, 2)), jnp.arange(3)), "must have 1"),
        (lambda: gj.reduce_by_index(jnp.arange(3), x, 3), "has shape"),
        (lambda: gj.inclusive_scan(x, axis=1), "out of bounds"),
        (lambda: gj.sort(x, x[1:]), "values"),
        (lambda: gj.sort(x[0]), "^sort: axis -1 is out of bounds"),
        (lambda: gj.reduce(jnp.ones((2, 3)), jnp.zeros(3), axis=1), "^reduce: init has shape"),
        (lambda: gj.linear_recurrence(x, x[:2]), "do not broadcast together"),
        (lambda: gj.sort(x, x.reshape(2, 2)), "values"),
    ):
        with pytest.raises(ValueError, match=message):
            mistake()

    def f(x: Any) -> Any:
        total = x.sum()
        return gj.reduce(x, None, lambda a, b: a + total * b)

    with pytest.raises(TypeError, match="captures the array total"):
        jax.jit(f)(x)


def test_indices_fit_their_dtype(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ffi, "_MAX_INT32", 3)
    assert gj.argsort(jnp.arange(3.0)).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match=r"^argsort: arrays of more than 3 elements"):
        gj.argsort(jnp.arange(4.0))


def test_a_coefficient_of_zero_begins_anew() -> None:
    a, b = np.float32([3e38, 3e38, 0, 1, 1]), np.float32([1, 1, 1, 2, 3])
    for n in (1, 2000):  # of one step, and of blocks
        h = gj.linear_recurrence(np.tile(a, n), np.tile(b, n))
        assert h.reshape(n, 5)[:, 2:].tolist() == [[1, 3, 6]] * n


def test_threads() -> None:
    """Several programs run at once, and new operators are compiled in several threads."""
    x = jnp.arange(20_000.0)
    wanted = [np.minimum(np.cumsum(np.arange(20_000.0)), k * 1000) for k in range(1, 5)]
    failures: list[Any] = []

    def work(k: int) -> None:
        f = jax.jit(up_to(k * 1000.0))
        try:
            for _ in range(10):
                np.testing.assert_array_equal(f(x), wanted[k - 1])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failures
    many = jax.jit(lambda x: [up_to(float(k))(x * k).sum() for k in range(6)])
    assert len(many(x)) == 6  # XLA may run these at once


def test_loops_and_branches() -> None:
    x = jnp.arange(6.0)
    looped = jax.lax.fori_loop(0, 3, lambda _, x: gj.inclusive_scan(x) / 2, x)
    wanted = np.arange(6.0)
    for _ in range(3):
        wanted = np.cumsum(wanted) / 2
    np.testing.assert_allclose(looped, wanted, 1e-6)
    _, rows = jax.lax.scan(lambda c, row: (c, gj.sort(row)), 0, -x.reshape(2, 3))
    assert rows.tolist() == [[-2, -1, 0], [-5, -4, -3]]
    kept = jax.grad(lambda x: jax.checkpoint(up_to(2.0))(x).sum())(x)
    np.testing.assert_allclose(kept, jax.grad(lambda x: up_to(2.0)(x).sum())(x))


def test_within_a_graph_calls_are_not_recorded() -> None:
    x, out = np.arange(5.0), np.zeros(5)
    with ga.default_device("cpu"), ga.graph() as graph:
        found = gj.inclusive_scan(jnp.arange(5.0))
        ga.inclusive_scan(x, out=out)
    assert found.tolist() == [0, 1, 3, 6, 10]
    graph.launch() if hasattr(graph, "launch") else graph()


def test_other_packages_stay_unimported() -> None:
    code = "import gpualgo, sys; gpualgo.reduce; assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_shards() -> None:
    """Of two devices: within `shard_map` each computes its rows; outside of it all rows."""
    code = """
        import os
        os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
        import jax, jax.numpy as jnp, numpy as np, gpualgo.jax as gj
        from jax.sharding import NamedSharding, PartitionSpec as P

        mesh = jax.make_mesh((2,), ("d",), devices=jax.devices("cpu"))  # of explicit axes
        x = jax.device_put(jnp.arange(16.0).reshape(4, 4), NamedSharding(mesh, P("d", None)))
        w = jnp.full(4, 0.5)
        rows = lambda w, x: gj.linear_recurrence(w, x, axis=1)
        specs = {"in_specs": (P(None), P("d", None)), "out_specs": P("d", None)}
        both = jax.shard_map(rows, mesh=mesh, **specs)
        wanted = rows(w, np.asarray(x))
        for found in (jax.jit(both)(w, x), jax.jit(rows)(w, x)):
            np.testing.assert_array_equal(found, wanted)
        weigh = lambda f: lambda w, x: jnp.sin(f(w, x)).sum()
        found = jax.jit(jax.grad(weigh(both), (0, 1)))(w, x)
        for a, b in zip(found, jax.grad(weigh(rows), (0, 1))(w, np.asarray(x))):
            np.testing.assert_allclose(a, b, 1e-5, 1e-5)
        square = lambda x: (rows(w, x) ** 2).sum()
        with jax.set_mesh(mesh):
            found = jax.jit(jax.grad(square))(x)
        np.testing.assert_allclose(found, jax.grad(square)(np.asarray(x)), 1e-5)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def test_a_process_ends_while_a_program_runs() -> None:
    code = """
        import jax, jax.numpy as jnp, gpualgo.jax as gj
        op = lambda a, b: max(a, b) + 0.0
        f = jax.jit(lambda x: gj.inclusive_scan(gj.sort(jnp.sin(x)), None, op))
        x = jnp.arange(1e6)
        f(x)
        for _ in range(5):
            y = f(x)
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], timeout=120, check=False, capture_output=True
    )
    assert not run.returncode
    assert not re.search(b"Traceback|Fatal", run.stderr)


@pytest.mark.parametrize("name", gj.__all__)
def test_docstrings(name: str) -> None:
    for test in doctest.DocTestFinder().find(getattr(gj, name), name):
        assert not doctest.DocTestRunner().run(test).failed


def test_on_a_gpu() -> None:
    """With ``--backend cuda``: results are computed on XLA's GPU, in the order of its stream."""
    platform = jnp.ones(1).devices().pop().platform
    if platform != "gpu":
        pytest.skip("jax has no GPU here")
    x = jnp.arange(1_000_000.0) % 17
    f = jax.jit(lambda x: gj.inclusive_scan(gj.sort(jnp.sqrt(x * x) - 3), None, max) + 1)
    found = f(x)
    assert found.devices().pop().platform == "gpu"
    np.testing.assert_array_equal(found, np.sort(np.asarray(x) - 3) + 1)
    a = jnp.full(x.shape, 0.5)
    grad = jax.jit(jax.grad(lambda x: gj.linear_recurrence(a, x).sum()))
    np.testing.assert_allclose(grad(x)[:3], [2, 2, 2], 1e-6)
    rows = jax.vmap(gj.segmented_reduce)(x.reshape(4, -1), jnp.array([[0, 10]] * 4))
    np.testing.assert_array_equal(rows[:, 0], np.asarray(x).reshape(4, -1)[:, :10].sum(1))
    with pytest.raises(jax.errors.JaxRuntimeError, match="CompileError"):
        gj.reduce(x, None, lambda a, b: a.nonsense + b).block_until_ready()
