"""Dask arrays on the synchronous scheduler; and a scheduler that must not be asked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

dask = pytest.importorskip("dask", reason="it comes by the extra dask")

import gpualgo as ga  # noqa: E402


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with dask.config.set(scheduler="synchronous"), ga.default_device("cpu"):
        yield
