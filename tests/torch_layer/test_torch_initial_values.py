"""gpualgo.torch: initial values of any kind, and those that a dtype cannot hold."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import gpualgo.torch as gt


@pytest.mark.parametrize("init", [np.float32(1), np.int8(1), np.bool_(1), np.float64(1)])
def test_initial_values_may_be_numpys(device: str, init: Any) -> None:
    x, ends = torch.ones(3, device=device), torch.tensor([0, 3], device=device)
    index = torch.tensor([0, 1, 1], device=device, dtype=torch.int32)
    assert gt.reduce(x, init).item() == 4
    assert gt.segmented_reduce(x, ends, init).tolist() == [4]
    assert gt.segmented_exclusive_scan(x, ends, init).tolist() == [1, 2, 3]
    assert gt.reduce_by_index(index, x, 2, init).tolist() == [2, 3]


@pytest.mark.parametrize(
    ("init", "dtype", "error"),
    [
        (1e10, torch.float16, ValueError), (300, torch.uint8, ValueError),
        (-1, torch.uint64, ValueError), (10**400, torch.float32, ValueError),
        (2, torch.bool, TypeError), (1.5, torch.int32, TypeError), ("a", torch.int8, TypeError),
        ((None,), torch.float32, TypeError),
    ],
)  # fmt: skip
def test_initial_values_that_x_cannot_hold(
    device: str, init: Any, dtype: torch.dtype, error: type[Exception]
) -> None:
    x = torch.ones(2, device=device).to(dtype)
    with pytest.raises(error, match="init"):
        gt.reduce(x, init)


def test_initial_values_at_the_ends_of_a_dtype(device: str) -> None:
    for init, dtype in ((2**63, torch.uint64), (float("inf"), torch.float16), (1, torch.bool)):
        x = torch.zeros(2, device=device).to(dtype)
        assert gt.reduce(x, init, max).item() == init
    assert math.isnan(gt.reduce(torch.zeros(2, device=device), math.nan).item())
