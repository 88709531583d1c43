"""What calls on columns of one array keep, by how far the columns are apart, is bounded."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import assert_same

import gpualgo as ga
from gpualgo._cpu.launch import Launch

MOST = 2


def _transformed(x: Any, y: Any) -> Any:
    return ga.transform(lambda a, b: a - b, x, y)


def _reduced(x: Any, y: Any) -> Any:
    return ga.reduce((x, y), None, lambda p, q: (p[0] + q[0], p[1] ^ q[1]))


def _expected_of_transform(x: Any, y: Any) -> Any:
    return x - y


def _expected_of_reduce(x: Any, y: Any) -> Any:
    return x.sum(dtype=x.dtype), np.bitwise_xor.reduce(y)


@pytest.mark.parametrize(
    ("module", "call", "expected"),
    [
        ("gpualgo._algorithms.transform.cpu", _transformed, _expected_of_transform),
        ("gpualgo._algorithms.reduce.cpu", _reduced, _expected_of_reduce),
    ],
)
def test_columns_at_many_distances(
    module: str, call: Callable[..., Any], expected: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(f"{module}.MOST_OFFSETS", MOST)
    table = np.random.default_rng(0).integers(0, 99, (20_000, 8)).astype(np.int32)

    def launches(columns: range) -> int:
        for k in columns:
            for _ in range(2):
                assert_same(call(table[:, 0], table[:, k]), expected(table[:, 0], table[:, k]))
        gc.collect()
        return sum(type(each) is Launch for each in gc.get_objects())

    with ga.default_device("cpu"):
        assert launches(range(1, 2 + MOST)) == launches(range(1, 8))
