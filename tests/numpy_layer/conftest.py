"""What tests of NumPy's functions share: few elements stay ours, or NumPy would meet itself."""

from __future__ import annotations

import pytest

from gpualgo.numpy import _call


@pytest.fixture(autouse=True)
def ours(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave no array to NumPy, but in tests marked ``few``."""
    if request.node.get_closest_marker("few") is None:
        monkeypatch.setattr(_call, "is_few", lambda size, few: False)
