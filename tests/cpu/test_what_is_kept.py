"""When code is kept on disk and when not, and what an operator that raises does to a call."""

from __future__ import annotations

import os
import struct
import sys
import time
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpualgo as ga
from gpualgo._base import disk_cache, loaded
from gpualgo._cpu import kernels
from gpualgo._operators.operator import Operator


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return an empty cache folder."""
    monkeypatch.setenv("GPUALGO_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_nothing_is_kept_once_a_module_is_of_a_changed_source(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else an upgrade, or an editor, under a process that runs makes entries that lie."""
    monkeypatch.setattr(kernels, "provenance", lambda: "known")
    monkeypatch.setattr(kernels, "_unchanged", set(sys.modules))
    monkeypatch.setattr(loaded, "AT", time.time_ns() + 10**12)  # all is older than the process
    late = _loaded_from(folder / "late.py", monkeypatch)
    kernels.write_entry((b"content",), "one")
    assert kernels.read_entry("one") == (b"content",)
    monkeypatch.setattr(loaded, "AT", 0)
    os.utime(late, (1, 1))  # what was loaded before stays what it was, whatever happens to its file
    kernels.write_entry((b"content",), "two")
    assert kernels.read_entry("two") == (b"content",)
    later = _loaded_from(folder / "later.py", monkeypatch)
    os.utime(later, (1, 1))  # as an installer gives it the time that it has in an archive
    for name in ("three", "four"):  # for good
        kernels.write_entry((b"content",), name)
        assert kernels.read_entry(name) is None


def test_nothing_is_kept_once_a_module_has_no_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while another version is installed: the call works, and leaves no entry."""
    monkeypatch.setattr(kernels, "provenance", lambda: "known")
    monkeypatch.setattr(kernels, "_unchanged", set(sys.modules))
    _loaded_from(folder / "gone.py", monkeypatch).unlink()
    kernels.write_entry((b"content",), "one")
    assert kernels.read_entry("one") is None


def _loaded_from(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand for a module of the package that is loaded from a file."""
    path.write_text("content")
    module = types.ModuleType(f"gpualgo.{path.stem}")
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return path


def test_a_process_with_changed_sources_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaded, "AT", 0)
    assert kernels.origin_of_shells.__wrapped__() is None


@pytest.mark.parametrize("error", [NotADirectoryError, FileNotFoundError])
def test_without_sources_as_files_nothing_is_kept(
    folder: Path, error: type[OSError], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a zip, a frozen program, or where there is bytecode alone."""

    def fails() -> list[str]:
        raise error("gpualgo.zip/gpualgo/_algorithms")

    monkeypatch.setattr(kernels, "source_files", fails)
    for name in ("origin_of_shells", "provenance"):
        monkeypatch.setattr(kernels, name, getattr(kernels, name).__wrapped__)
    assert kernels.read_entry("one") is None
    kernels.write_entry((b"content",), "one")
    assert not list(folder.iterdir())


def _sum_of_range(a: Any, b: Any) -> Any:
    total = a
    for i in range(0, 5, b):  # numba's own function raises for a step of 0
        total += i
    return total


@pytest.mark.parametrize("length", [300, 140_000])  # a row as a whole, and in links
def test_an_operator_that_raises_ends_a_scan(length: int) -> None:
    x = np.full(length, 9)
    with ga.default_device("cpu"):
        assert (ga.inclusive_scan(x, None, _sum_of_range) == 9).all()
        x[-1] = 0
        with pytest.raises(RuntimeError, match="op raised an exception"):
            ga.inclusive_scan(x, None, _sum_of_range)


def test_each_nan_is_a_constant_of_its_own() -> None:
    def bits_of(kind: Any, bits: int) -> bytes:
        (value,) = struct.unpack("<d", struct.pack("<Q", bits))
        captured = kind(value)
        with ga.default_device("cpu"):
            return ga.transform(lambda a: captured, np.zeros(1)).tobytes()

    numbers = 0x7FF8_0000_0000_0000, 0xFFF8_0000_0000_0000, 0x7FF8_0000_0000_1234
    for bits in numbers:
        assert bits_of(float, bits) == struct.pack("<Q", bits)

    def key_of(imag: float) -> Any:
        captured = (complex(1, imag),)
        return Operator(lambda a: captured[0] + a).key

    assert key_of(float("nan")) is key_of(float("nan"))
    assert key_of(float("nan")) is not key_of(-float("nan"))


def test_what_is_no_file_of_ours_does_not_disturb(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "cpu-one.gpualgo").mkdir()
    (folder / "cpu-two.gpualgo").symlink_to(folder / "nowhere")
    found = disk_cache.info()
    assert (found["entries"], found["damaged"], found["writable"]) == (2, 2, True)
    monkeypatch.setattr(disk_cache, "_MAX_ENTRIES", 1)
    monkeypatch.setattr(disk_cache, "_num_written", 0)
    disk_cache.write("three", (b"content",))  # drops the older half, and does not warn
    (folder / "file").touch()
    monkeypatch.setenv("GPUALGO_CACHE_DIR", str(folder / "file"))
    assert not disk_cache.info()["writable"]
