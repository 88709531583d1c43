"""JAX arrays on its CPU device, or with ``--backend cuda`` on the current GPU; 32 or 64 bits."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

import pytest
from support import jax_of_32_bits


@pytest.fixture(autouse=True)
def _device(request: pytest.FixtureRequest) -> Iterator[None]:
    jax = importlib.import_module("jax")
    is_on_gpu = request.config.getoption("--backend") == "cuda"
    current: Any = contextlib.nullcontext()
    if is_on_gpu:
        current = importlib.import_module("cupy").cuda.Device()
    with current:  # JAX selects another GPU as it starts
        device = jax.devices("gpu")[current.id] if is_on_gpu else jax.devices("cpu")[0]
        with current, jax.default_device(device), jax_of_32_bits():
            yield


@pytest.fixture
def wide() -> Iterator[None]:
    """Compute with 64 bits."""
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)
