"""PyTorch's operators on each backend that a machine has: the tensors' device decides."""

from __future__ import annotations

import pytest
from support import Backend

pytest.importorskip("torch", reason="it comes by the extra torch")


@pytest.fixture
def device(backend: Backend) -> str:
    return "cpu" if backend.name == "cpu" else "cuda"
