"""Lazy arrays that read no array are in the place of the arrays that they stand beside."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from contract.libraries import Libraries, leaves
from support import Array, Backend, assert_same

import gpualgo as ga
import gpualgo.numpy as gnp

N, DEVICES = 1500, (None, "cuda", "cuda:0")
KEYS, OFFSETS = np.arange(N) // 7, np.array([0, 500, N])
X, MARKS = np.arange(N) * 37 % 101, np.arange(N) % 3 == 0
Numbers = Callable[..., tuple[Any, Any]]


def less(a: Any, b: Any) -> Any:
    return a < b


def is_small(a: Any) -> Any:
    return a < 30


def plus(a: Any, b: Any) -> Any:
    return a + b


def doubled(a: Any) -> Any:
    return a * 2


# Each gets what makes an array of the library, a lazy count of N, and as many sevens.
CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "reduce_by_key": lambda of, count, one: ga.reduce_by_key(of(KEYS), one),
    "reduce_by_key: keys": lambda of, count, one: ga.reduce_by_key(count, of(X)),
    "reduce_by_key: runs": lambda of, count, one: ga.reduce_by_key(of(KEYS), one, consecutive=True),
    "reduce_by_key: runs of keys": lambda of, count, one: ga.reduce_by_key(
        one, of(X), consecutive=True
    ),
    "reduce_by_key: eq": lambda of, count, one: ga.reduce_by_key(
        of(KEYS), one, consecutive=True, eq=operator.eq
    ),
    "scan by key": lambda of, count, one: ga.inclusive_scan_by_key(of(KEYS), one),
    "scan by key: runs": lambda of, count, one: ga.exclusive_scan_by_key(
        of(KEYS), count, consecutive=True
    ),
    "reduce_by_index": lambda of, count, one: ga.reduce_by_index(of(KEYS), one, 300),
    "reduce_by_index: many": lambda of, count, one: ga.reduce_by_index(of(KEYS), one, 30_000),
    "reduce_by_index: lazy": lambda of, count, one: ga.reduce_by_index(count, of(X), 30_000),
    "segmented_reduce": lambda of, count, one: ga.segmented_reduce(count, of(OFFSETS)),
    "segmented_reduce: offsets": lambda of, count, one: ga.segmented_reduce(of(X), count[:300]),
    "segmented_scan": lambda of, count, one: ga.segmented_inclusive_scan(count, of(OFFSETS)),
    "segmented_scan: lazy": lambda of, count, one: ga.segmented_exclusive_scan(of(X), one),
    "segmented_sort": lambda of, count, one: ga.segmented_sort(
        count, of(OFFSETS), descending=True
    ),
    "segmented_sort: values": lambda of, count, one: ga.segmented_sort(
        of(X), of(OFFSETS), values=count
    ),
    "segmented_sort: offsets": lambda of, count, one: ga.segmented_sort(of(X), count[::100]),
    "searchsorted: a": lambda of, count, one: ga.searchsorted(count, of(X)),
    "searchsorted: v": lambda of, count, one: ga.searchsorted(of(KEYS), count, side="right"),
    "radix_sort": lambda of, count, one: ga.radix_sort(of(X), count),
    "radix_sort: keys": lambda of, count, one: ga.radix_sort(one, of(X)),
    "sort": lambda of, count, one: ga.sort(of(X), count),
    "merge_sort": lambda of, count, one: ga.merge_sort(of(X), count, less=less),
    "merge": lambda of, count, one: ga.merge(of(KEYS), count),
    "merge: values": lambda of, count, one: ga.merge(
        count, of(KEYS), a_values=one, b_values=of(X)
    ),
    "transform": lambda of, count, one: ga.transform(plus, count, of(X)),
    "tuples": lambda of, count, one: ga.inclusive_scan(
        (one, of(X)), None, lambda a, b: (a[0] + b[0], max(a[1], b[1]))
    ),
    "tuples of keys": lambda of, count, one: ga.argsort((one, of(X))),
    "select: marks": lambda of, count, one: ga.select(count, of(MARKS)),
    "select: lazy marks": lambda of, count, one: ga.select(of(X), count < 30),
    "stable_partition": lambda of, count, one: ga.stable_partition(count, of(MARKS)),
    "find": lambda of, count, one: ga.find(of(X), count > 30),
    "count": lambda of, count, one: ga.count(count, of(MARKS)),
    "histogram": lambda of, count, one: ga.histogram(of(X), 10, (0, 101), weights=one),
    "histogram: lazy": lambda of, count, one: ga.histogram(count, 10, (0, N), weights=of(X)),
    "histogram: joint": lambda of, count, one: ga.histogram(
        (count, of(X)), 3, ((0, N), (0, 101)), weights=one
    ),
    "init": lambda of, count, one: ga.reduce(count.reshape(3, 500), of(OFFSETS), axis=1),
    "take": lambda of, count, one: ga.copy(ga.lazy.take(of(X), count[::2])),
    "gnp.add": lambda of, count, one: gnp.add(count, of(X)),
    "gnp.where": lambda of, count, one: gnp.where(of(MARKS), count, one),
    "gnp.searchsorted": lambda of, count, one: gnp.searchsorted(count, of(X)),
    "gnp.isin": lambda of, count, one: gnp.isin(of(X), count[:50]),
    "gnp.average": lambda of, count, one: gnp.average(of(X), weights=one),
    "gnp.bincount": lambda of, count, one: gnp.bincount(of(X), weights=one),
}  # fmt: skip

# The same with an array to write to, of so many int64, which alone is of the library.
INTO: dict[str, tuple[int, Callable[[Any, Any, Any], Any]]] = {
    "copy": (N, lambda out, count, one: ga.copy(count, out=out)),
    "transform": (N, lambda out, count, one: ga.transform(plus, count, one, out=out)),
    "inclusive_scan": (N, lambda out, count, one: ga.inclusive_scan(count, out=out)),
    "exclusive_scan": (N, lambda out, count, one: ga.exclusive_scan(count, out=out)),
    "adjacent_difference": (N, lambda out, count, one: ga.adjacent_difference(count, out=out)),
    "radix_sort": (N, lambda out, count, one: ga.radix_sort(count, out=out)),
    "argsort": (N, lambda out, count, one: ga.argsort(count, out=out)),
    "merge_sort": (N, lambda out, count, one: ga.merge_sort(count, less=less, out=out)),
    "searchsorted": (N, lambda out, count, one: ga.searchsorted(count, one, out=out)),
    "merge": (2 * N, lambda out, count, one: ga.merge(count, one + N, out=out)),
    "by key": (N, lambda out, count, one: ga.inclusive_scan_by_key(one, count, out=out)),
    "runs": (
        N, lambda out, count, one: ga.inclusive_scan_by_key(one, count, consecutive=True, out=out),
    ),
    "by index": (N, lambda out, count, one: ga.reduce_by_index(count, one, N, out=out)),
    "segments": (
        N, lambda out, count, one: ga.segmented_inclusive_scan(count, one[:2] * 0, out=out),
    ),
    "segmented_sort": (N, lambda out, count, one: ga.segmented_sort(count, one[:2] * 0, out=out)),
    "select": (30, lambda out, count, one: ga.select(count, is_small, out=out)),
    "select: marks": (30, lambda out, count, one: ga.select(count, count < 30, out=out)),
    "unique": (N, lambda out, count, one: ga.unique(count, out=out)),
    "histogram": (10, lambda out, count, one: ga.histogram(count, 10, (0, N), out=out)),
    "kth_value": (2, lambda out, count, one: ga.kth_value(count, (3, 7), out=out)),
    "gnp.multiply": (N, lambda out, count, one: gnp.multiply(count, one, out=out)),
    "gnp.cumsum": (N, lambda out, count, one: gnp.cumsum(count, out=out)),
}  # fmt: skip
NO_AXES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "reduce": lambda out, count, one: ga.reduce(count, out=out),
    "argmax": lambda out, count, one: ga.argmax(count, out=out),
    "count": lambda out, count, one: ga.count(count, is_small, out=out),
    "find": lambda out, count, one: ga.find(count, lambda a: a > 30, out=out),
}
INTO |= {name: (0, call) for name, call in NO_AXES.items()}


def numbers(device: str | None) -> tuple[Any, Any]:
    """Return the lazy arrays of all calls."""
    return ga.lazy.arange(N, device=device), ga.lazy.full(N, 7, device=device)


def on_host(call: Callable[..., Any], first: Any) -> list[np.ndarray[Any, Any]]:
    """Return what a call gives of NumPy's arrays."""
    with ga.default_device("cpu"):
        found = call(first, np.arange(N), np.full(N, 7))
    return [np.array(x) for x in leaves(found)]


@pytest.fixture
def libraries(cuda: Backend, monkeypatch: pytest.MonkeyPatch) -> Libraries:
    return Libraries(cuda, monkeypatch)


@pytest.mark.parametrize("name", CALLS)
def test_beside_arrays(cuda: Backend, libraries: Libraries, name: str) -> None:
    call = CALLS[name]
    want = on_host(call, np.asarray)
    for number, device in ((0, None), (1, None), (2, "cuda"), (0, "cuda:0")):

        def of(x: Any, number: int = number) -> Any:
            with libraries.streams[number]:  # in whose order its memory is freed
                found = libraries.given(cuda.to_device(x), number)
                # What NumPy's functions take has a shape.
                return ga.copy(found) if number == 2 and name.startswith("gnp.") else found

        with libraries.current:
            for _ in range(2):
                found = call(of, *numbers(device))
                found = ga.copy(found) if isinstance(found, ga.lazy.LazyArray) else found
                libraries.synchronize()
                assert libraries.are_of(found, number)
                for got, wanted in zip(libraries.hosts(found), want, strict=True):
                    assert_same(got, wanted)


@pytest.mark.parametrize("name", INTO)
def test_into_an_array(cuda: Backend, libraries: Libraries, name: str) -> None:
    size, call = INTO[name]

    def made() -> Array:
        return np.zeros((size,) if size else (), np.int64)

    (want,) = on_host(call, made())
    for number, device in ((0, None), (1, "cuda"), (2, None)):
        if number == 2 and name.startswith("gnp."):
            continue  # whose outputs have a shape
        plain = cuda.to_device(made())
        libraries.synchronize()
        out = libraries.given(plain, number)
        with libraries.current:
            assert call(out, *numbers(device)) is out
        libraries.synchronize()
        assert_same(cuda.to_host(plain), want)


def test_results_of_counted_lengths(cuda: Backend) -> None:
    out, count = cuda.xp.zeros(N, np.int64), cuda.xp.zeros((), np.int64)
    found = ga.select(ga.lazy.arange(N), is_small, out=out, out_count=count)
    assert found is out
    assert int(count) == 30
    assert_same(cuda.to_host(out[:30]), np.arange(30))


@pytest.mark.parametrize("device", DEVICES)
def test_plans_and_graphs(cuda: Backend, device: str | None) -> None:
    keys, (count, sevens) = cuda.to_device(KEYS), numbers(device)
    want = np.bincount(KEYS) * 7
    plan = ga.prepare(ga.reduce_by_key, keys, sevens, consecutive=True)
    for _ in range(2):
        assert_same(cuda.to_host(plan(keys, sevens).aggregates), want)
    storage = ga.temp_storage_bytes(ga.reduce_by_key, keys, sevens, consecutive=True)
    assert storage == plan.temp_storage_bytes
    assert ga.explain(ga.segmented_sort, count, keys).device == "cuda:0"
    out = cuda.xp.zeros(N, np.int64)
    assert ga.explain(ga.inclusive_scan, count, out=out).device == "cuda:0"
    with ga.graph() as g:
        ga.inclusive_scan(count, out=out)
        found = ga.segmented_reduce(count, cuda.to_device(OFFSETS))
    g.launch()
    assert_same(cuda.to_host(out), np.cumsum(np.arange(N)))
    assert_same(cuda.to_host(found), np.add.reduceat(np.arange(N), OFFSETS[:2]))


def test_another_device_is_refused(cuda: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    keys, here = cuda.to_device(KEYS), ga.lazy.full(N, 1, device="cpu")
    message = "a lazy array was made with device='cpu', but another argument is on cuda:0"
    done: tuple[Callable[[], Any], ...] = (
        lambda: ga.reduce_by_key(keys, here), lambda: ga.radix_sort(keys, here),
        lambda: ga.segmented_reduce(here, keys), lambda: ga.searchsorted(here, keys),
        lambda: ga.inclusive_scan(here, out=keys), lambda: ga.lazy.asarray(keys) + here,
        lambda: ga.histogram(keys, 3, (0, 9), weights=here),
        lambda: ga.select(keys, here > 0),
        lambda: ga.merge(ga.lazy.arange(3, device="cuda"), here),
    )  # fmt: skip
    for call in done:
        with pytest.raises(TypeError, match=message):
            call()
    message = "device='cuda:0', but another argument is on cpu; make it without device="
    with pytest.raises(TypeError, match=message):
        ga.reduce_by_key(KEYS, ga.lazy.full(N, 1, device="cuda"))


def test_beside_host_arrays(backend: Backend) -> None:
    """They are as before: NumPy's, on the default device."""
    count, sevens = numbers(None)
    found = ga.reduce_by_key(KEYS, sevens)
    assert type(found.aggregates) is np.ndarray
    assert_same(found.aggregates, np.bincount(KEYS) * 7)
    assert_same(ga.copy(count), np.arange(N))
    torch: Any = pytest.importorskip("torch")
    found = ga.segmented_reduce(count, torch.tensor(OFFSETS))
    assert type(found) is torch.Tensor
    assert found.tolist() == [int(sum(range(500))), int(sum(range(500, N)))]
