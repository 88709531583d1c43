"""PyTorch's operators on each backend that a machine has: the tensors' device decides."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="it comes by the extra torch")
