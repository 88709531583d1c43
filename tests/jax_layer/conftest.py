"""JAX arrays on its CPU device, or with ``--backend cuda`` on its GPU; jax's 64-bit mode."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _device(request: pytest.FixtureRequest) -> Iterator[None]:
    jax = importlib.import_module("jax")
    platform = "gpu" if request.config.getoption("--backend") == "cuda" else "cpu"
    with jax.default_device(jax.devices(platform)[0]):
        yield


@pytest.fixture
def wide() -> Iterator[None]:
    """Compute with 64 bits."""
    jax = importlib.import_module("jax")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)
