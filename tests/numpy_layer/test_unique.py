"""Distinct elements beside NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpys_own import arrays, check_same
from support import Backend, scaled

SMALL = settings(
    max_examples=scaled(60, emulated=6), deadline=None, database=None, derandomize=True
)
FEWER = settings(SMALL, max_examples=scaled(40, emulated=4))


def stable(name: str) -> Any:
    """Return NumPy's function, which sorts stably where it is asked for indices."""

    def call(x: Any) -> Any:
        values, index, inverse, counts = np.unique(x, True, True, True, equal_nan=False)
        found = {"values": values, "counts": (values, counts), "inverse": (values, inverse)}
        return found.get(name, (values, index, inverse, counts))

    return call


@SMALL
@given(st.data())
def test_unique(backend: Backend, data: Any) -> None:
    x = data.draw(arrays())
    kwargs = {name: True for name in ("return_index", "return_inverse", "return_counts")
              if data.draw(st.booleans())}  # fmt: skip
    if data.draw(st.booleans()):
        kwargs["equal_nan"] = data.draw(st.booleans())
    if kwargs.get("return_inverse"):  # NumPy's indices alone come of a stable sort
        kwargs["return_index"] = True
    check_same(backend, "unique", x, **kwargs)


@FEWER
@given(st.data())
def test_unique_along_an_axis(backend: Backend, data: Any) -> None:
    x = data.draw(arrays(max_side=4))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1)) if x.ndim else 0
    flags = [data.draw(st.booleans()) for _ in range(3)]
    check_same(backend, "unique", x, *flags, axis=axis)


@FEWER
@given(st.data())
@pytest.mark.parametrize("name", ["values", "counts", "inverse", "all"])
def test_array_api(backend: Backend, name: str, data: Any) -> None:
    x = data.draw(arrays())
    check_same(backend, f"unique_{name}", x, theirs=stable(name))
