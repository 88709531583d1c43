"""Where calls that look for no problem run: those whose like was answered before on the CPU."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from gpualgo._driver.default_device import AUTO


def is_for_cpu(array: np.ndarray[Any, Any], device: int) -> bool:
    """Return whether it is known that "auto" leaves what no GPU takes for its size to the CPU."""
    auto = sys.modules.get("gpualgo._pipeline.auto")
    return device == AUTO and auto is not None and bool(auto.is_known_pageable(array))
