"""Of tests that plant bugs in kernels."""

from __future__ import annotations

import pytest
import support


@pytest.fixture
def emulated_alone() -> None:
    """Leave a test to the emulated GPU: what it does may take a real one down."""
    if not support.is_emulated:
        pytest.skip("of the emulated GPU alone")
