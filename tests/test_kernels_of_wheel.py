"""Machine code that a wheel holds: used by calls on a GPU if it is of these sources."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cubin
import fake_driver
import numpy as np
import pytest
from fake_driver import FakeArray, FakeDriver
from sass import needs_compilers

import gpualgo as ga
from gpualgo._base import disk_cache, loaded
from gpualgo._cuda import build, compilers

CALLS: dict[str, Callable[[FakeArray], object]] = {
    "radix_sort": ga.radix_sort,
    "argsort": ga.argsort,
    "values": lambda x: ga.radix_sort(x, values=FakeArray(x.shape, np.int32)),
    "reduce": ga.reduce,
    "inclusive_scan": ga.inclusive_scan,
}
REFUSED = b"code that the driver refuses"

hatch_build: Any = None
if importlib.util.find_spec("hatchling") is not None:
    import hatch_build

needs_hatchling = pytest.mark.skipif(hatch_build is None, reason="needs hatchling")


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    """Return a fake driver that refuses some code; nothing is on disk, and there is no wheel."""
    made = fake_driver.install(monkeypatch)
    monkeypatch.setattr(made, "cuLibraryLoadData", lambda code, *_: (int(code == REFUSED), 1))
    monkeypatch.setattr(made, "cuGetErrorName", lambda _: (0, b"CUDA_ERROR_INVALID_IMAGE"))
    monkeypatch.setattr(made, "cuGetErrorString", lambda _: (0, b"too new"))
    fake_driver.register_arrays(monkeypatch)
    monkeypatch.setenv("GPUALGO_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(build, "WHEEL_FILE", tmp_path / "kernels.bin")
    _reread()
    yield made
    _reread()


def _reread() -> None:
    for known in (build.origin, build.provenance, build.wheel_index):
        known.cache_clear()


def _compiled(patch: pytest.MonkeyPatch, call: Callable[[], object]) -> build.Group:
    """Make a call as a new process does; return what NVRTC would compile, by its keys."""
    built: dict[str, tuple[bytes, str]] = {}

    def compiled(spec: build.Spec, capability: tuple[int, int], *ltoir_options: str) -> Any:
        name = spec.expression
        return built.setdefault(build._cubin_key(spec, capability), (name.encode(), name))

    patch.setattr(build, "_compile", compiled)
    for name, value in list(vars(build).items()):
        if isinstance(value, build.Memo):
            patch.setattr(build, name, build.Memo(value.limit))
    fake_driver.register_arrays(patch)  # without the plans of earlier calls
    _reread()
    call()
    return built


def _sort() -> None:
    ga.radix_sort(FakeArray((1 << 17,), np.float32))


def _in_wheel(patch: pytest.MonkeyPatch) -> build.Group:
    """Put the kernels of a sort into the wheel's file, and return them; none is on disk."""
    compiled = _compiled(patch, _sort)
    disk_cache.clear()
    build.write_kernels(build.WHEEL_FILE, [compiled])
    return compiled


def test_a_first_sort_compiles_nothing(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = _compiled(monkeypatch, _sort)
    assert len(compiled) == 2
    disk_cache.clear()
    build.write_kernels(build.WHEEL_FILE, [compiled, {"ab" * 32: (b"code", "another")}])
    monkeypatch.setattr(build, "PYTHON", "another one")
    assert not _compiled(monkeypatch, _sort)
    assert len(build.wheel_index()) == 2
    assert not list(disk_cache.folder().glob("*"))
    monkeypatch.setattr(fake_driver.gpu(0), "capability", (10, 3))
    assert _compiled(monkeypatch, _sort)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content[:-9] + bytes([content[-9] ^ 1]) + content[-8:],
        lambda content: content[:-100],
        lambda content: content[:50] + bytes([content[50] ^ 1]) + content[51:],
        lambda content: b"\xff" * 8 + content[8:],
        lambda content: content[:5],
        lambda content: b"",
        None,
    ],
)
def test_a_damaged_file_is_not_used(
    driver: FakeDriver, monkeypatch: pytest.MonkeyPatch, change: Callable[[bytes], bytes] | None
) -> None:
    compiled = _in_wheel(monkeypatch)
    if change is None:
        build.WHEEL_FILE.unlink()
    else:
        build.WHEEL_FILE.write_bytes(change(build.WHEEL_FILE.read_bytes()))
    assert _compiled(monkeypatch, _sort) == compiled


def test_a_group_of_another_wheel_is_not_used(
    driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upgrade may replace the file after a process has read its index."""
    compiled = _in_wheel(monkeypatch)
    index = build.wheel_index()
    with monkeypatch.context() as patch:
        patch.setattr(build, "origin", functools.cache(lambda: "other sources"))
        build.write_kernels(build.WHEEL_FILE, [compiled])
    monkeypatch.setattr(build, "wheel_index", functools.cache(lambda: index))
    assert _compiled(monkeypatch, _sort) == compiled


def test_changed_sources_are_compiled(
    driver: FakeDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loaded, "AT", time.time_ns() + 10**12)  # all is older than the process
    compiled = _in_wheel(monkeypatch)
    folder = tmp_path / "cuda_src"
    shutil.copytree(build.source_folder(), folder)
    monkeypatch.setattr(build, "source_folder", lambda: folder)
    assert not _compiled(monkeypatch, _sort)
    header = next(folder.rglob("*.cuh"))
    header.write_text(header.read_text() + "\n")
    changed = _compiled(monkeypatch, _sort)
    assert len(changed) == 2
    assert not changed.keys() & compiled.keys()


def test_the_code_is_for_one_major_version_of_cuda(
    driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver for CUDA 12 may refuse code for CUDA 13; the extra cu12 has bindings for 12."""
    compiled = _in_wheel(monkeypatch)
    monkeypatch.setattr(driver, "CUDA_VERSION", 12090)
    assert _compiled(monkeypatch, _sort) == compiled


def test_options_of_nvrtc_count(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = _compiled(monkeypatch, _sort)
    build.write_kernels(build.WHEEL_FILE, [compiled])
    monkeypatch.setattr(compilers, "OPTIONS", (*compilers.OPTIONS, "--use_fast_math"))
    assert not _compiled(monkeypatch, _sort).keys() & compiled.keys()


def test_what_the_driver_refuses_is_compiled_once(
    driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = _compiled(monkeypatch, _sort)
    disk_cache.clear()
    refused = {key: (REFUSED, name) for key, (_, name) in compiled.items()}
    build.write_kernels(build.WHEEL_FILE, [refused])
    assert _compiled(monkeypatch, _sort) == compiled
    assert not _compiled(monkeypatch, _sort)


@needs_hatchling
@pytest.mark.parametrize("capability", sorted(fake_driver.SHARED_BYTES))
def test_the_wheel_has_the_kernels_of_common_calls(
    driver: FakeDriver, monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int]
) -> None:
    assert capability in hatch_build.ARCHITECTURES
    _reread()
    groups = hatch_build.planned(capability)
    planned = {build._cubin_key(spec, capability) for group in groups.values() for spec in group}
    fake_driver.gpu(0).become(capability)
    for name, dtype in itertools.product(CALLS, ("float32", "float64", "int32", "int64")):
        for size in (1000, 1 << 20, 1 << 24):
            x = FakeArray((size,), dtype)
            compiled = _compiled(monkeypatch, lambda call=CALLS[name], x=x: call(x))
            assert compiled.keys() <= planned, (name, size, dtype, compiled)
            disk_cache.clear()
    for dtype, size in itertools.product(
        ("float32", "uint32", "uint64"), (1 << 16, 1 << 18, 1 << 22)
    ):
        x = FakeArray((size,), dtype)
        assert _compiled(monkeypatch, lambda x=x: ga.radix_sort(x)).keys() <= planned


@needs_hatchling
@needs_compilers
def test_the_code_is_that_of_nvrtc(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hatch_build, "ARCHITECTURES", [(8, 0)])
    monkeypatch.setattr(hatch_build, "GPU_SIZES", [1000])
    monkeypatch.setattr(hatch_build, "gpu_calls", lambda x: [lambda: ga.radix_sort(x)])
    hatch_build.write_gpu(build.WHEEL_FILE)
    _reread()
    specs = [spec for group in hatch_build.planned((8, 0)).values() for spec in group]
    assert len(specs) == 4
    for spec in specs:
        code, name = build._code_of_wheel(build._cubin_key(spec, (8, 0))) or (b"", "")
        want, wanted_name = build._compile(spec, (8, 0))
        assert (cubin.digest_of(code), name) == (cubin.digest_of(want), wanted_name)


@needs_hatchling
def test_without_nvrtc_no_file_is_written(
    driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> str:
        raise RuntimeError("no NVRTC")

    monkeypatch.setattr(compilers, "nvrtc_version", missing)
    hatch_build.write_gpu(build.WHEEL_FILE)
    assert not build.WHEEL_FILE.exists()
