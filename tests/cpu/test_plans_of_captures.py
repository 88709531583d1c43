"""Plans on the CPU of operators that capture arrays: cached, and right at new distances."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import gpualgo as ga
from gpualgo._pipeline import planners


def test_later_calls_plan_nothing_and_read_current_values(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = np.array([2.0, 5.0])
    x = np.arange(1000.0)

    def weigh(a: Any) -> Any:
        return a * weights[0] + weights[1]

    ga.transform(weigh, x)

    def refuse(*_: Any) -> None:
        raise AssertionError("planned again")

    monkeypatch.setattr(planners, "for_cpu", refuse)
    for scale in (3.0, 7.0):
        weights[0] = scale
        np.testing.assert_array_equal(ga.transform(weigh, x), x * scale + 5)


def test_interleaved_fields_at_new_distances() -> None:
    size = 40_000
    scale = np.array([3.0])

    def make() -> Any:
        def scaled(a: Any, b: Any) -> Any:
            return a * scale[0], b

        return scaled

    for names in ("ab", "ba", "apb"):
        pairs = np.zeros(size, [(name, np.float64) for name in names])
        pairs["a"] = np.arange(size)
        outs = pairs["a"], pairs["b"]
        ga.transform(make(), *outs, out=outs)
        np.testing.assert_array_equal(pairs["a"], 3.0 * np.arange(size))
        gc.collect()
