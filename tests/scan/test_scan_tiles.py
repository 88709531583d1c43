"""Long lines on a GPU: the kernel for what does not fit in registers at once, made small."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support import DTYPES, LAYOUTS, Backend, affine, assert_same, compose, random_array
from test_scan import check_order, scanned

import gpualgo as ga
from gpualgo._algorithms.scan.problem import Scan

TILE = 192 * 11 * 2  # of 8-byte types
LAST_EPOCH = (1 << 30) - (1 << 24)  # of parts/lookback.cuh


@pytest.fixture
def tiles_only(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let no line count as small."""
    from gpualgo._algorithms.scan import tuning as scan_policy

    monkeypatch.setattr(scan_policy, "WAVES", {})
    Scan.problems.clear()
    yield
    Scan.problems.clear()


@pytest.mark.usefixtures("tiles_only")
@pytest.mark.parametrize("n", [1, 33, *(k * TILE + d for k in (1, 2, 9, 40) for d in (-1, 0, 1))])
def test_order_at_every_size(cuda: Backend, n: int) -> None:
    x = affine(n)
    check_order(cuda, x, cuda.to_device(x))


@pytest.mark.usefixtures("tiles_only")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(70_001,), (3, 14_097), (40, 4_300)], ids=str)
def test_order_in_every_layout(cuda: Backend, layout: str, shape: tuple[int, ...]) -> None:
    x = affine(shape)
    check_order(cuda, x, cuda.arrange(layout, x))
    check_order(cuda, x, cuda.arrange(layout, x), -1)


@pytest.mark.usefixtures("tiles_only")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype(cuda: Backend, dtype: np.dtype[Any]) -> None:
    x = random_array(40_009, dtype)
    device = cuda.to_device(x)
    assert_same(cuda.to_host(ga.inclusive_scan(device, None, lambda a, b: b)), x)
    got = ga.exclusive_scan(device, x[7], lambda a, b: b, reverse=True)
    assert_same(cuda.to_host(got), np.append(x[1:], x[7]))


def test_tags_begin_anew(cuda: Backend) -> None:
    """Look-back states outlive a thousand million launches."""
    from gpualgo._driver import device as gpu
    from gpualgo._driver.device import KEPT_BYTES, TICKET_BYTES

    cp = cuda.xp
    x = affine(60_000)
    device, keys = cuda.to_device(x), cuda.to_device(x.view(np.uint32))
    square = x.reshape(-1, 20)
    ga.inclusive_scan(device, None, compose)
    kept = gpu.get(cp.cuda.Device().id).kept_workspace(cp.cuda.get_current_stream().ptr)
    assert kept
    address = kept + TICKET_BYTES + KEPT_BYTES
    raw = cp.cuda.MemoryPointer(cp.cuda.UnownedMemory(address, 256, None), 0)
    epoch = cp.ndarray((64,), np.uint32, raw)[2:3]
    want, want_square = scanned(compose, x), scanned(compose, square, 0)
    for start in range(LAST_EPOCH - 3, LAST_EPOCH + 1):
        epoch[...] = start
        for _ in range(3):
            assert_same(cuda.to_host(ga.inclusive_scan(device, None, compose)), want)
            got = ga.inclusive_scan(cuda.to_device(square), None, compose, axis=0)
            assert_same(cuda.to_host(got), want_square)
            got = ga.inclusive_scan(device.reshape(2, -1), None, compose, axis=1)
            assert_same(cuda.to_host(got), scanned(compose, x.reshape(2, -1), 1))
        assert_same(cuda.to_host(ga.radix_sort(keys)), np.sort(x.view(np.uint32)))
        assert int(epoch[0]) < LAST_EPOCH


@pytest.fixture(params=[64 << 10, 99 << 10], ids=["64KB", "99KB"])
def small_blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let blocks have as much shared memory as those of sm_75, or of sm_86 and sm_120."""
    from gpualgo._driver import device as gpu

    monkeypatch.setitem(gpu.get(0).__dict__, "shared_limit", request.param)


@pytest.mark.usefixtures("tiles_only", "small_blocks")
@pytest.mark.parametrize("layout", ["contiguous", "step", "reversed"])
def test_order_with_little_shared_memory(cuda: Backend, layout: str) -> None:
    for n in (TILE - 1, 9 * TILE + 1, 40 * TILE):
        x = affine(n)
        check_order(cuda, x, cuda.arrange(layout, x))


@pytest.mark.usefixtures("tiles_only")
def test_shared_memory_does_not_change_bits(cuda: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpualgo._driver import device as gpu

    x = cuda.to_device(random_array(100_003, np.dtype("float32")))
    pairs = x, x[::-1].copy()
    found = []
    for limit in (227 << 10, 99 << 10, 64 << 10):
        monkeypatch.setitem(gpu.get(0).__dict__, "shared_limit", limit)
        Scan.problems.clear()
        steps = ga.inclusive_scan(pairs, None, lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]))
        found.append([cuda.to_host(got) for got in (ga.inclusive_scan(x), *steps)])
    for other in found[1:]:
        for got, want in zip(other, found[0], strict=True):
            assert_same(got, want)


@pytest.mark.usefixtures("tiles_only")
@pytest.mark.parametrize("reverse", [False, True])
def test_walks_do_not_change_bits(
    cuda: Backend, monkeypatch: pytest.MonkeyPatch, reverse: bool
) -> None:
    """Of lines that a block walks, and of lines whose tiles look back."""
    from gpualgo._algorithms.scan import tuning

    x = cuda.to_device(random_array((9, 10_004), np.dtype("float32")))
    pairs = x, x[::-1].copy()
    found = []
    for many in (0, 1 << 20):
        monkeypatch.setattr(tuning, "MANY_LINES", many)
        Scan.problems.clear()
        one = ga.exclusive_scan(x, 0.5, axis=1, reverse=reverse)
        steps = ga.inclusive_scan(
            pairs, None, lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), axis=1, reverse=reverse
        )
        found.append([cuda.to_host(got) for got in (one, *steps)])
    for got, want in zip(*found, strict=True):
        assert_same(got, want)
