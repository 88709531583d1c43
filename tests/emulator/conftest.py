"""Of tests that plant bugs in kernels."""

from __future__ import annotations

from pathlib import Path

import pytest
import support


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the tests of the emulator itself to those who ask for it."""
    return None if config.getoption("--backend") == "emulated" else True


@pytest.fixture
def emulated_alone() -> None:
    """Leave a test to the emulated GPU: what it does may take a real one down."""
    if not support.is_emulated:
        pytest.skip("of the emulated GPU alone")
