"""JAX arrays on its CPU device, or with ``--backend cuda`` on the current GPU; 32 or 64 bits."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pytest
from support import jax_of_32_bits


@pytest.fixture(autouse=True)
def _device(request: pytest.FixtureRequest) -> Iterator[None]:
    jax = importlib.import_module("jax")
    device = jax.devices("cpu")[0]
    if request.config.getoption("--backend") == "cuda":
        cupy = importlib.import_module("cupy")
        device = jax.devices("gpu")[cupy.cuda.Device().id]
    with jax.default_device(device), jax_of_32_bits():
        yield


@pytest.fixture
def wide() -> Iterator[None]:
    """Compute with 64 bits."""
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)
