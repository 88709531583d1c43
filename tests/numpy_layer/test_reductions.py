"""Sums, products, extremes beside NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpys_own import arrays, axes, check_same
from support import Backend

SMALL = settings(max_examples=60, deadline=None, database=None, derandomize=True)


@pytest.mark.parametrize("name", ["sum", "prod"])
@SMALL
@given(st.data())
def test_sums(backend: Backend, name: str, data: Any) -> None:
    x = data.draw(arrays())
    kwargs: dict[str, Any] = {}
    if data.draw(st.booleans()):
        kwargs["axis"] = data.draw(axes(x.ndim))
    if data.draw(st.booleans()):
        kwargs["keepdims"] = data.draw(st.booleans())
    if data.draw(st.booleans()):
        kwargs["where"] = data.draw(arrays([np.dtype(bool)], shape=x.shape))
    if data.draw(st.booleans()):
        kwargs["initial"] = data.draw(st.sampled_from([0, 2]))
    check_same(backend, name, x, ulps=64, **kwargs)
