"""What rolling refuses, before anything is written."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from support import Backend

import gpualgo as ga


@pytest.mark.parametrize("window", [0, -1])
@pytest.mark.parametrize("n", [0, 5])
def test_window_is_positive(backend: Backend, window: int, n: int) -> None:
    with pytest.raises(ValueError, match=f"rolling: window is {window}; pass a positive number"):
        ga.rolling(backend.to_device(np.ones(n)), window)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_window_is_not_too_long(backend: Backend, n: int) -> None:
    x = backend.to_device(np.ones((9, n)))
    text = f"rolling: window is {n + 1}, and axis 1 has {n} elements"
    with pytest.raises(ValueError, match=text):
        ga.rolling(x, n + 1)
    if n:
        got = ga.rolling(x, np.int8(n))
        np.testing.assert_array_equal(backend.to_host(got), np.full((9, 1), n))


def test_op(backend: Backend) -> None:
    x = backend.to_device(np.ones(5))
    with pytest.raises(TypeError, match=r"rolling: op .* is not associative"):
        ga.rolling(x, 2, operator.sub)
    with pytest.raises(TypeError, match="rolling: op takes 1 argument"):
        ga.rolling(x, 2, lambda a: a)
    with pytest.raises(TypeError, match="rolling: op add takes numbers"):
        ga.rolling((x, x), 2)
    with pytest.raises(ga.CompileError, match="rolling: op"):
        ga.rolling(x, 2, lambda a, b: a.no_such_thing(b))


def test_checked_operators(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUALGO_CHECK", "1")
    x = backend.to_device(np.arange(50.0))
    with pytest.raises(ValueError, match=r"rolling: op .*associat"):
        ga.rolling(x, 3, lambda a, b: a - b)
