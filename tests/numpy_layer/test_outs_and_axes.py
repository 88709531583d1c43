"""Reductions compute in the dtype of a wider ``out=``, and look at axes, as NumPy's do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Backend

import gpualgo.numpy as gnp


@pytest.mark.parametrize("name", ["sum", "nansum", "mean", "nanmean"])
def test_short_floats_are_added_up_in_those_of_out(backend: Backend, name: str) -> None:
    x = (np.arange(500) % 7 + 1.1).astype(np.float32)
    out: Any = backend.to_device(np.zeros((), np.float64))
    getattr(gnp, name)(backend.to_device(x), out=out)
    expected = getattr(np, name)(x.astype(np.float64))
    assert float(backend.to_host(out)) == pytest.approx(float(expected), rel=1e-14)
