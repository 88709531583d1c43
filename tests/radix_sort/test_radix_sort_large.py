"""The passes of very many keys: large tiles, values behind their keys, keys brought to L2 early."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import support
from support import BFLOAT16, Backend, a_few, random_array
from test_radix_sort import assert_bits, check_pairs, stable_order

import gpualgo as ga

pytestmark = pytest.mark.usefixtures("large")
TILES = {0: 192, 4: 192, 8: 128, 16: 128}  # keys of an emulated tile, by the bytes of a value


@pytest.fixture(params=["joined", "behind keys"])
def large(
    cuda: Backend, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Sort few keys as if they were very many; on an emulated GPU in tiles of a few warps."""
    from gpualgo._algorithms.radix_sort import tuning
    from gpualgo._algorithms.radix_sort.problem import Sort

    monkeypatch.setattr(tuning, "MIDDLE_KEYS", 0)
    monkeypatch.setattr(tuning, "SMALLER", {})
    monkeypatch.setattr(tuning, "MAX_ROW_WARPS", 0)  # no row is short
    monkeypatch.setattr(Sort, "problems", type(Sort.problems)(64))
    if support.is_emulated:
        cuts = {
            (key, value): tuning.Policy(64, tile // 64, 2, 2, True, value > 0)
            for key in (4, 8)
            for value, tile in TILES.items()
        }
        monkeypatch.setattr(tuning, "LARGE", cuts)
        joined = {size: tuning.Policy(64, 3, 2, 2, True, joins=True) for size in (1, 2, 4, 8)}
        monkeypatch.setattr(tuning, "JOINED", joined)
        monkeypatch.setattr(tuning, "RING", 16)
    if request.param == "behind keys":
        monkeypatch.setattr(tuning, "JOINED", {})
    with ga.default_device("cuda"):
        yield


def _sizes(value_bytes: int) -> list[int]:
    """Return sizes at a tile's edges, and one of several tiles."""
    from gpualgo._algorithms.radix_sort import tuning

    tile = tuning.LARGE[(4, value_bytes)].tile_items
    if support.is_emulated:
        return [tile + 1, 3 * tile + 5]
    return [tile - 1, tile, tile + 1, 2 * tile, 7 * tile + 5]


@pytest.mark.parametrize("dtype", ["uint32", "float32", "int64", "float64", "uint16", BFLOAT16])
def test_keys_and_values_at_the_edges_of_tiles(cuda: Backend, dtype: Any) -> None:
    for n in _sizes(4):
        keys = random_array(n, np.dtype(dtype))
        check_pairs(cuda, keys, np.arange(n, dtype=np.uint32))


@pytest.mark.parametrize("value_bytes", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("key", ["int32", "uint64"])
def test_values_of_every_size(cuda: Backend, key: str, value_bytes: int) -> None:
    n = _sizes(8)[-1]
    values = np.random.default_rng(n).bytes(n * value_bytes)
    kind = "c16" if value_bytes == 16 else f"u{value_bytes}"
    as_bytes = np.frombuffer(values, np.uint8).reshape(n, value_bytes)
    moved = np.arange(n).astype(kind) if value_bytes == 16 else as_bytes.view(kind)[:, 0]
    for descending in (False, True)[: 1 if support.is_emulated else 2]:
        check_pairs(
            cuda, random_array(n, np.dtype(key)), np.ascontiguousarray(moved), descending=descending
        )


@pytest.mark.parametrize("distinct", [1, 2, 300])
def test_few_distinct_keys_keep_their_order(cuda: Backend, distinct: int) -> None:
    """Runs of one digit that cover whole tiles, and passes that have nothing to do."""
    for n in _sizes(4):
        keys = np.random.default_rng(n).integers(0, distinct, n).astype(np.uint32) * 70_001
        check_pairs(cuda, keys, np.arange(n, dtype=np.int32))
        order = cuda.to_host(ga.argsort(cuda.to_device(keys)))
        assert_bits(order, stable_order(keys).astype(order.dtype))


@pytest.mark.parametrize("offset", [1, 3])
def test_rows_and_addresses_without_alignment(cuda: Backend, offset: int) -> None:
    n = _sizes(4)[-1]
    keys = random_array(3 * n + offset, np.dtype(np.uint32))
    device = cuda.to_device(keys)[offset:].reshape(3, n)
    values = np.arange(3 * n, dtype=np.int32).reshape(3, n)
    order = stable_order(keys[offset:].reshape(3, n))
    out = cuda.to_device(np.full(3 * n + offset + 2, 77, np.uint32))
    moved_out = cuda.to_device(np.full((3, n), -1, np.int32))
    ga.radix_sort(device, cuda.to_device(values), out=(out[offset:-2].reshape(3, n), moved_out))
    want = np.take_along_axis(keys[offset:].reshape(3, n), order, 1)
    assert_bits(cuda.to_host(out)[offset:-2], want.reshape(-1))
    assert_bits(cuda.to_host(moved_out), np.take_along_axis(values, order, 1))
    assert (cuda.to_host(out)[:offset] == 77).all()
    assert (cuda.to_host(out)[-2:] == 77).all()
    assert_bits(cuda.to_host(ga.radix_sort(device)), want)


@pytest.mark.parametrize("bits", [(0, 8), (3, 14), (0, 32)])
def test_ranges_of_bits_in_place(cuda: Backend, bits: tuple[int, int]) -> None:
    n = _sizes(4)[-1]
    keys = np.random.default_rng(7).integers(0, 1 << 32, n, dtype=np.uint32)
    part = keys >> np.uint32(bits[0]) & np.uint32((1 << bits[1] - bits[0]) - 1)
    order = np.argsort(part, kind="stable")
    both = cuda.to_device(keys), cuda.to_device(np.arange(n, dtype=np.uint64))
    ga.radix_sort(*both, begin_bit=bits[0], end_bit=bits[1], out=both)
    assert_bits(cuda.to_host(both[0]), keys[order])
    assert_bits(cuda.to_host(both[1]), order.astype(np.uint64))


@pytest.mark.parametrize("counts", ["of four bytes", "of eight bytes"])
@pytest.mark.parametrize("distinct", [100, 1 << 24])
def test_pairs_of_one_size_in_place(
    cuda: Backend, counts: str, distinct: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys or values or both, in rows, with passes that are left out; counts as of very long rows.

    The second place of an order lies in the output as far as it fits there.
    """
    from gpualgo._algorithms.radix_sort.cuda_passes import Job

    if counts == "of eight bytes":
        monkeypatch.setattr(Job, "index_bytes", property(lambda job: 8))
    n = _sizes(4)[-1] // 2
    keys = np.random.default_rng(n).integers(0, distinct, (3, n)).astype(np.float32)
    values = np.arange(keys.size, dtype=np.uint32).reshape(keys.shape)
    order = stable_order(keys, descending=True)
    want = [np.take_along_axis(x, order, 1) for x in (keys, values)]
    for in_place in ((True, True), (True, False), (False, True)):
        given = [cuda.to_device(x) for x in (keys, values)]
        outs = [
            x if is_same else cuda.to_device(np.zeros_like(cuda.to_host(x)))
            for x, is_same in zip(given, in_place, strict=True)
        ]
        ga.radix_sort(*given, descending=True, out=tuple(outs))
        for x, was, out, expected, is_same in zip(
            given, (keys, values), outs, want, in_place, strict=True
        ):
            assert_bits(cuda.to_host(out), expected)
            assert is_same or cuda.to_host(x).tobytes() == was.tobytes()
    for dtype in a_few((np.uint32, np.int64)):
        found = ga.argsort(cuda.to_device(keys), descending=True, dtype=dtype)
        assert_bits(cuda.to_host(found), order.astype(dtype))


def test_rows_in_batches(cuda: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """48 rows, whose tables are all that there may be, then one, whose tables lie elsewhere."""
    from gpualgo._algorithms.radix_sort import cuda_passes, tuning

    per_row = 8 * 2 * tuning.TABLE_BYTES
    monkeypatch.setattr(cuda_passes, "_TABLE_BYTES", 48 * per_row)
    keys = np.random.default_rng(1).integers(0, 1 << 32, (49, _sizes(4)[0]), dtype=np.uint32)
    values = np.arange(keys.size, dtype=np.uint32).reshape(keys.shape)
    order = stable_order(keys)
    found = ga.radix_sort(cuda.to_device(keys), cuda.to_device(values))
    for got, want in zip(found, (keys, values), strict=True):
        assert_bits(cuda.to_host(got), np.take_along_axis(want, order, 1))
