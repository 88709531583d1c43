"""The same input gives the same bits: on every run, on any number of cores, however aligned."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from support import (
    Backend,
    assert_same,
    assert_same_on_one_core,
    random_array,
    scaled,
)

import gpualgo as ga


def test_the_same_bits_every_time(backend: Backend) -> None:
    x = backend.to_device(random_array(scaled(1_234_567, emulated=123_457), np.dtype("float32")))
    rounds = scaled(20, emulated=5)
    for op in (operator.add, lambda a, b: a * 0.5 + b):
        first = backend.to_host(ga.reduce(x, None, op))
        assert all(backend.to_host(ga.reduce(x, None, op)) == first for _ in range(rounds))


def test_the_same_bits_on_one_core() -> None:
    assert_same_on_one_core("""if True:
        import zlib, numpy as np, gpualgo as ga
        x = np.random.default_rng(0).standard_normal((1201, 1201)).astype(np.float32)
        print([float(ga.reduce(x, None, op)).hex() for op in (max, np.add, lambda a, b: a + b)])
        for axis in (0, 1):
            print(zlib.crc32(ga.reduce(x, 0.0, lambda a, b: a + b, axis=axis).tobytes()))
    """)


def test_alignment_does_not_group_partials(backend: Backend) -> None:
    """Columns of computed tuples, of which more are read at once where they are aligned."""
    x = random_array(1 + 1024 * 68, np.dtype(np.float32), seed=0)
    x[~(abs(x) < 100)] = 0.1
    whole, shifted = backend.to_device(x[1:].copy()), backend.to_device(x)[1:]
    sums = [
        ga.reduce(
            ga.lazy.transform(lambda v: (v, v * v, v * 3), a.reshape(1024, 68)), None,
            lambda p, q: (p[0] + q[0], p[1] + q[1], p[2] + q[2]), axis=0,
        )
        for a in (whole, shifted)
    ]  # fmt: skip
    for one, other in zip(*sums, strict=True):
        assert_same(backend.to_host(one), backend.to_host(other))


def _sum(a: float, b: float) -> float:
    return a + b


@pytest.mark.parametrize("layout", ["step", "padded", "offset", "reversed"])
@pytest.mark.parametrize("op", [np.add, _sum])
def test_gaps_do_not_group_rows_or_columns(backend: Backend, layout: str, op: Any) -> None:
    """Arrays of two dimensions in C order, then in F order."""
    for shape in ((100, 64), (1025, 16), (64, 100)):
        x = np.random.default_rng(0).normal(size=shape)
        array, view = backend.to_device(x), backend.arrange(layout, x)
        for axis in (0, 1, None):
            if axis != 0 and layout == "reversed" and op is np.add:
                continue  # what commutes is added in memory order
            for a, b in ((array, view), (array.T, view.T)):
                of = None if axis is None else axis if a is array else 1 - axis
                one, other = (ga.reduce(given, None, op, axis=of) for given in (a, b))
                assert_same(backend.to_host(one), backend.to_host(other))
