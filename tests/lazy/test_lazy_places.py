"""Where lazy arrays run, and whose results they give: their arrays', or what device= says."""

from __future__ import annotations

import numpy as np
import pytest
from support import Array, Backend, a_few, assert_same

import gpualgo as ga

X = np.arange(24, dtype=np.float32).reshape(4, 6)


def test_results_are_of_the_arrays_library(backend: Backend) -> None:
    x = backend.to_device(X)
    made_and_real = (
        (ga.lazy.asarray(x) + ga.lazy.arange(6), X + np.arange(6)),
        (ga.lazy.arange(6) + ga.lazy.asarray(x), X + np.arange(6)),
        (ga.lazy.asarray(x.T).reshape(24), X.T.reshape(24)),
        (ga.lazy.asarray(x)[::2, ::2].reshape(6), X[::2, ::2].reshape(6)),
        (ga.lazy.take(x, ga.lazy.arange(5) * 5), X.take(np.arange(5) * 5)),
        (ga.lazy.take(x, ga.lazy.arange(2), axis=0), X.take([0, 1], axis=0)),
        (ga.lazy.take(x, backend.to_device(np.array([3, 0])), axis=1), X.take([3, 0], axis=1)),
    )
    for made, want in a_few(made_and_real, 3):
        got = ga.copy(made)
        assert type(got) is type(x)
        assert_same(backend.to_host(got), want)
        assert_same(backend.to_host(ga.reduce(made, None, max)), want.max())


def test_a_device_that_is_asked_for(cuda: Backend) -> None:
    for device in ("cuda", "cuda:0"):
        made = ga.lazy.arange(10, device=device) * 2
        got = ga.copy(made)
        assert type(got) is ga.DeviceArray
        assert_same(got.copy_to_host(), np.arange(10) * 2)
        again = ga.copy(made.reshape(2, 5)[:, ::2].reshape(6))
        assert type(again) is ga.DeviceArray
        assert_same(again.copy_to_host(), (np.arange(10) * 2).reshape(2, 5)[:, ::2].reshape(6))
    with pytest.raises(TypeError, match="made with device='cuda:0'"):
        ga.lazy.arange(6, device="cuda") + X


def test_the_cpu_when_it_is_asked_for() -> None:
    made = ga.lazy.arange(6, device="cpu")
    assert_same(ga.copy(made + X), X + np.arange(6))
    assert_same(ga.reduce(made), np.int64(15))
    assert_same(ga.copy(made.reshape(2, 3)[:, ::2].reshape(4)), np.array([0, 2, 3, 5]))


def test_arrays_of_both_sides_do_not_meet(cuda: Backend) -> None:
    x: Array = cuda.to_device(X)
    with pytest.raises(TypeError, match="mix"):
        ga.lazy.asarray(x) + X
    with pytest.raises(TypeError, match="mix"):
        ga.lazy.take(x, [0, 1])
    with pytest.raises(TypeError, match="made with device='cpu'"):
        ga.lazy.arange(6, device="cpu") + x
