"""Of tests of the benchmark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench import peers


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    """No test leaves notes or chosen peers to the next."""
    peers.taken_notes()
    yield
    peers.want([])
    peers.taken_notes()
