"""Plans of selections by rank on a GPU that is not there."""

from __future__ import annotations

import fake_driver
import numpy as np
import pytest
from fake_driver import FakeArray

import gpualgo as ga


def test_more_rows_than_a_launch_has_blocks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_driver.install(monkeypatch)
    fake_driver.stub_kernels(monkeypatch)
    fake_driver.register_arrays(monkeypatch)
    assert ga.temp_storage_bytes(ga.top_k, FakeArray((1 << 32, 1), np.int8), 1) >= 0
    with pytest.raises(ValueError, match=r"blocks in one launch, of which a GPU takes 2147483647"):
        ga.temp_storage_bytes(ga.top_k, FakeArray((9 << 30, 1), np.int8), 1)
