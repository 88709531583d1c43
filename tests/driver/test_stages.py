"""Stages: their blocks, and the pages of what arrives by them."""

from __future__ import annotations

import numpy as np
import pytest
from support import Backend, assert_same


@pytest.mark.parametrize("most", [1, 2, 8])
def test_blocks_are_made_as_they_are_needed(
    cuda: Backend, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """And fewer of them carry everything where no more memory can be locked."""
    from gpualgo._driver import device as gpu
    from gpualgo._driver import driver, pinned, staging

    add = pinned.PinnedRing._add

    def limited(stage: pinned.PinnedRing) -> None:
        if len(stage.blocks) == most:
            raise MemoryError("planted")
        add(stage)

    monkeypatch.setattr(pinned.PinnedRing, "_add", limited)
    monkeypatch.setattr(pinned, "BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr(pinned, "FIRST_BYTES", 1 << 10)
    device = gpu.get(0)
    monkeypatch.setattr(device, "stages", pinned.Lender(device.context, device.stages._make, 1))
    monkeypatch.setattr(staging, "DIRECT_BYTES", 1)
    random = np.random.default_rng(3)
    with device.current(), staging.device_buffers(0, 0, [50_000]) as (memory,):
        for size in (1000, 9000, 50_000, 4097):
            x = random.integers(0, 256, size).astype(np.uint8)
            staging.upload(x, memory, 0, 0)
            out = np.zeros_like(x)
            staging.download(memory, out, 0, 0)
            driver.synchronize(0)
            assert_same(out, x)
            with device.stages.lend() as stage:
                needed = {1000: 1, 9000: 3}.get(size, 8)
                assert len(stage.blocks) == min(most, needed)


def test_pages_are_asked_for_as_their_turn_comes(
    cuda: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a result larger than the host's memory would else be gone when they are written."""
    from gpualgo._driver import device as gpu
    from gpualgo._driver import driver, pinned, staging

    monkeypatch.setattr(pinned, "BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(pinned, "FIRST_BYTES", 1 << 10)
    monkeypatch.setattr(staging, "PAGES_BYTES", 1 << 12)
    monkeypatch.setattr(staging, "DIRECT_BYTES", 1)
    size, under_way = 10 << 12 | 100, pinned.MOST_BLOCKS << 10
    x, out = np.arange(size, dtype=np.uint8) | np.uint8(1), np.zeros(size, np.uint8)
    asked: list[tuple[int, int]] = []

    def populate(place: int, num_bytes: int) -> None:
        offset = place - out.ctypes.data
        assert not out[offset:].any()
        assert out[: max(0, offset - under_way)].all()
        asked.append((offset, num_bytes))

    monkeypatch.setattr(staging.threads, "populate", populate)
    device = gpu.get(0)
    monkeypatch.setattr(device, "stages", pinned.Lender(device.context, device.stages._make, 1))
    with device.current(), staging.device_buffers(0, 0, [size]) as (memory,):
        staging.upload(x, memory, 0, 0)
        staging.download(memory, out, 0, 0)
        driver.synchronize(0)
    assert_same(out, x)
    assert asked == [(i << 12, 1 << 12) for i in range(10)] + [(10 << 12, 100)]
