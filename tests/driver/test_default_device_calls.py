"""What choosing the default device asks."""

from __future__ import annotations

import ctypes

import fake_driver
import pytest

import gpualgo as ga
from gpualgo._driver import driver


def test_the_driver_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    is_installed = driver.is_installed
    fake_driver.install(monkeypatch)
    monkeypatch.setattr(driver, "is_installed", is_installed)
    is_installed()
    monkeypatch.setattr(ctypes, "CDLL", lambda *args: pytest.fail("looked for again"))
    for _ in range(2):
        with ga.default_device("auto"):
            pass
