"""Arrays as sets beside NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpys_own import arrays, check_same
from support import Backend, scaled

SMALL = settings(
    max_examples=scaled(40, emulated=5), deadline=None, database=None, derandomize=True
)


# Not all, as each pair of them compiles its own functions.
KINDS = [np.dtype(name) for name in (
    "bool", "int8", "int32", "int64", "uint64", "float16", "float64", "complex128",
)]  # fmt: skip


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Any, Any]:
    """Return two arrays, often of one dtype, which have elements in common."""
    first = draw(st.sampled_from(KINDS))
    second = first if draw(st.booleans()) else draw(st.sampled_from(KINDS))
    return draw(arrays([first], max_dims=2)), draw(arrays([second], max_dims=2))


@SMALL
@given(st.data())
def test_isin(backend: Backend, data: Any) -> None:
    x, others = data.draw(pairs())
    kwargs = {name: True for name in ("invert", "assume_unique") if data.draw(st.booleans())}
    if kwargs.get("assume_unique"):
        x, others = np.unique(x), np.unique(others)
    check_same(backend, "isin", x, others, **kwargs)


@SMALL
@given(st.data())
@pytest.mark.parametrize("name", ["union1d", "setdiff1d", "setxor1d", "intersect1d"])
def test_sets(backend: Backend, name: str, data: Any) -> None:
    x, others = data.draw(pairs())
    check_same(backend, name, x, others)


@SMALL
@given(st.data())
@pytest.mark.parametrize("name", ["setdiff1d", "setxor1d", "intersect1d"])
def test_sets_of_what_is_unique(backend: Backend, name: str, data: Any) -> None:
    x, others = (np.unique(one) for one in data.draw(pairs()))
    kwargs = {}
    if name == "intersect1d" and data.draw(st.booleans()):
        kwargs["return_indices"] = True
    check_same(backend, name, x[::-1], others, True, **kwargs)


@SMALL
@given(st.data())
def test_where_the_intersection_stands(backend: Backend, data: Any) -> None:
    x, others = data.draw(pairs())
    check_same(backend, "intersect1d", x, others, return_indices=True)
