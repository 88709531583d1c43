"""merge: two sorted arrays become one, those of the first before equal ones of the second."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from support import Backend

import gpualgo as ga

Host = np.ndarray[Any, Any]
Point = namedtuple("Point", ["x", "y"])
LENGTHS = [
    (0, 0),
    (0, 5),
    (5, 0),
    (1, 1),
    (17, 16),
    (1, 2175),
    (2000, 177),
    (2176, 2177),
]


def coarse(a: Any, b: Any) -> Any:
    return a // 10 < b // 10


def sorted_keys(length: int, seed: int) -> Host:
    """Return keys in order by their tens, and in no order within them."""
    keys = np.random.default_rng(seed).integers(-300, 300, length).astype(np.int32)
    return keys[np.argsort(keys // 10, kind="stable")]


def assert_bits(got: Any, want: Host) -> None:
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    if np.ascontiguousarray(got).tobytes() != np.ascontiguousarray(want).tobytes():
        np.testing.assert_array_equal(got, want)
        raise AssertionError("equal values of different bits")


@pytest.mark.parametrize(("first", "second"), LENGTHS)
def test_every_length(backend: Backend, first: int, second: int) -> None:
    a, b = sorted_keys(first, 1), sorted_keys(second, 2)
    whole = np.concatenate([a, b])
    order = np.argsort(whole // 10, kind="stable")
    places = np.arange(whole.size, dtype=np.int32)
    given = [backend.to_device(x) for x in (a, b, places[:first], places[first:])]
    assert_bits(backend.to_host(ga.merge(*given[:2], less=coarse)), whole[order])
    keys, moved = ga.merge(*given[:2], a_values=given[2], b_values=given[3], less=coarse)
    assert_bits(backend.to_host(keys), whole[order])
    assert_bits(backend.to_host(moved), places[order])


def test_of_many(backend: Backend) -> None:
    """On the CPU in many pieces."""
    if backend.xp is not np:
        pytest.skip("of the CPU")
    a, b = sorted_keys(100_001, 1), sorted_keys(170_003, 2)
    whole = np.concatenate([a, b])
    assert_bits(ga.merge(a, b, less=coarse), whole[np.argsort(whole // 10, kind="stable")])


def test_descending(backend: Backend) -> None:
    a, b = sorted_keys(503, 1), sorted_keys(2100, 2)
    a, b = (x[np.argsort(-(x // 10), kind="stable")] for x in (a, b))
    whole = np.concatenate([a, b])
    got = ga.merge(backend.to_device(a), backend.to_device(b), less=coarse, descending=True)
    assert_bits(backend.to_host(got), whole[np.argsort(-(whole // 10), kind="stable")])


@pytest.mark.parametrize("descending", [False, True])
def test_by_value(backend: Backend, descending: bool) -> None:
    """Zeros are equal, and NaN is last in either direction."""
    pool = np.array([-np.inf, -1.5, -0.0, 0.0, 2.0, np.inf, np.nan], np.float32)
    rng = np.random.default_rng(3)

    def ordered(x: Host) -> Host:
        ranks = np.where(np.isnan(x), np.inf, np.nan_to_num(-x if descending else x, nan=0))
        return x[np.lexsort((np.isnan(x), ranks))] if not descending else x[_falling(x)]

    a, b = (ordered(rng.choice(pool, n)) for n in (700, 1900))
    whole = np.concatenate([a, b])
    want = whole[_falling(whole)] if descending else whole[np.argsort(whole, kind="stable")]
    got = ga.merge(backend.to_device(a), backend.to_device(b), descending=descending)
    assert_bits(backend.to_host(got), want)


def _falling(x: Host) -> Host:
    return np.argsort(np.where(np.isnan(x), np.nan, -x), kind="stable")


def test_tuples(backend: Backend) -> None:
    x = [sorted_keys(n, n) for n in (900, 1700)]
    y = [np.arange(n, dtype=np.float64) for n in (900, 1700)]
    a, b = (Point(backend.to_device(p), backend.to_device(q)) for p, q in zip(x, y, strict=True))
    whole, rest = np.concatenate(x), np.concatenate(y)
    order = np.argsort(whole // 10, kind="stable")
    got = ga.merge(a, b, less=lambda p, q: p.x // 10 < q.x // 10)
    assert isinstance(got, Point)
    assert_bits(backend.to_host(got.x), whole[order])
    assert_bits(backend.to_host(got.y), rest[order])


def test_values_of_any_size(backend: Backend) -> None:
    """Those that are no words are gathered, from arrays of any stride; so are many."""
    a, b = sorted_keys(600, 1), sorted_keys(1900, 2)
    whole = np.concatenate([a, b])
    order = np.argsort(whole // 10, kind="stable")
    items = np.frombuffer(np.random.default_rng(0).bytes(2500 * 6), "V3")[::2]
    host = Backend(backend.name, np)
    _, got = ga.merge(a, b, a_values=items[:600], b_values=items[600:], less=coarse)
    assert_bits(host.to_host(got), items[order])
    numbers = np.arange(2500, dtype=np.float64)
    parts = [numbers, numbers.astype(np.int16), -numbers]
    first, second = (
        tuple(backend.to_device(x[part]) for x in parts) for part in (np.s_[:600], np.s_[600:])
    )
    keys = backend.to_device(a), backend.to_device(b)
    _, found = ga.merge(*keys, a_values=first, b_values=second, less=coarse)
    for result, want in zip(found, parts, strict=True):
        assert_bits(backend.to_host(result), want[order])


@pytest.mark.parametrize(
    "dtype",
    [">i4", ">U3", "V3", np.dtype([("a", ">i4"), ("b", "f8")]),
     np.dtype({"names": ["a", "b"], "formats": ["i1", "i4"], "offsets": [0, 8], "itemsize": 20})],
    ids=str,
)  # fmt: skip
def test_values_keep_their_bytes(dtype: Any) -> None:
    """Of any byte order and any gaps, on the host."""
    kind = np.dtype(dtype)
    raw = np.random.default_rng(1).integers(1, 100, 5 * kind.itemsize).astype(np.uint8)
    if kind.kind == "U":
        raw[:] = np.frombuffer(np.array(["abc", "d", "ef", "ghi", "j"], kind).tobytes(), np.uint8)
    values = raw.view(kind)
    a, b = np.array([1, 3, 5]), np.array([2, 4])
    order = [0, 3, 1, 4, 2]
    for fields in (values, (values, np.arange(5))):
        whole = fields if isinstance(fields, tuple) else (fields,)
        first, second = ([x[part] for x in whole] for part in (slice(3), slice(3, None)))
        given = (first[0], second[0]) if len(whole) == 1 else (tuple(first), tuple(second))
        with ga.default_device("cpu"):
            got = ga.merge(a, b, a_values=given[0], b_values=given[1])[1]
        mine = got if isinstance(got, tuple) else (got,)
        for found, want in zip(mine, whole, strict=True):
            assert found.dtype == want.dtype
            for i, k in enumerate(order):
                assert found[i] == want[k]
