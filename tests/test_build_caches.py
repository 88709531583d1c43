"""Compiled kernels in processes and caches, without a GPU or a driver."""

from __future__ import annotations

import itertools
import operator
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fake_driver
import numpy as np
import pytest
from sass import Capability, Dtype, needs_compilers
from support import run_python

from gpualgo._algorithms.reduce import tuning as rows
from gpualgo._base import disk_cache, loaded, threads
from gpualgo._cuda import build
from gpualgo._operators.operator import Operator

MAIN: Capability = (9, 0)  # every dtype is compiled for this architecture, some for the others
FLOAT32 = np.dtype("float32")


pytestmark = pytest.mark.usefixtures("own_cache")


# --- processes ----------------------------------------------------------------------------

PROCESS = """if True:
    import hashlib, operator, sys
    import numpy as np
    from gpualgo._algorithms.reduce import tuning as rows
    from gpualgo._cuda import build
    from gpualgo._operators.operator import Operator
    def halved(a): return a * 0.5
    def joined(a, b): return halved(a) + halved(b)
    op, dtype = Operator({op}), np.dtype(np.float32)
    if op.name is None:
        assert build.result_dtype(op, (dtype, dtype), None, (9, 0)) == dtype
    cut = rows.tile_rows(op, 1, 1 << 20, dtype)
    access = rows.flat(dtype, rows.row_items(dtype))
    code, name = build.cubin(rows.rows_spec(op, dtype, dtype, access, cut), (9, 0))
    print(name, hashlib.sha256(code).hexdigest())
    print(*sorted({{"numba", "cuda.core", "cuda.bindings"}} & sys.modules.keys()))
"""


def _in_new_process(op: str, folder: Path) -> tuple[str, set[str]]:
    """Build a kernel where no GPU can be seen; return its name and hash, and what was loaded."""
    code = PROCESS.format(op=op)
    done = run_python(code, GPUALGO_CACHE_DIR=str(folder), CUDA_VISIBLE_DEVICES="-1")
    assert done.returncode == 0, done.stderr
    built, loaded = done.stdout.splitlines()
    return built, set(loaded.split())


@needs_compilers
def test_recognised_operators_need_no_numba(tmp_path: Path) -> None:
    _, loaded = _in_new_process("operator.add", tmp_path)
    assert loaded == {"cuda.bindings"}


@needs_compilers
def test_a_known_kernel_loads_no_compiler(tmp_path: Path) -> None:
    """Nor does it ask a driver, though the operator calls functions."""
    first, loaded = _in_new_process("joined", tmp_path)
    assert loaded >= {"numba", "cuda.bindings"}
    assert _in_new_process("joined", tmp_path) == (first, set())


# --- caches -------------------------------------------------------------------------------


def _forget(patch: pytest.MonkeyPatch) -> None:
    """Empty the memory caches, as in a new process."""
    for name, value in list(vars(build).items()):
        if isinstance(value, build.Memo):
            patch.setattr(build, name, build.Memo(value.limit))


def _spec(fn: Callable[..., Any], dtype: Dtype = FLOAT32, **options: Any) -> build.Spec:
    op = Operator(fn, **options)
    cut = rows.tile_rows(op, 1, 1 << 20, dtype)
    return rows.rows_spec(op, dtype, dtype, rows.flat(dtype, rows.row_items(dtype)), cut)


@needs_compilers
def test_a_new_lambda_runs_no_nvrtc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUALGO_CACHE_DIR", str(tmp_path))
    _forget(monkeypatch)
    first = build.cubin(_spec(lambda a, b: a * 2 + b), MAIN)

    def nvrtc(*_: Any) -> Any:
        raise AssertionError("NVRTC ran")

    monkeypatch.setattr(build, "_compile", nvrtc)
    assert build.cubin(_spec(lambda a, b: a * 3 + b), MAIN)[1] == first[1]
    _forget(monkeypatch)
    assert build.cubin(_spec(lambda a, b: a * 2 + b), MAIN) == first
    assert build.cubin(_spec(lambda a, b: a * 4 + b), MAIN)[1] == first[1]


Built = list[tuple[build.Spec, Capability]]


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Built:
    """Start with empty caches and list what is built, without building it."""
    made: Built = []

    def fake(spec: build.Spec, capability: Capability) -> tuple[bytes, str]:
        time.sleep(0.01)  # for other threads to come by
        made.append((spec, capability))
        return bytes(100), "kernel"

    monkeypatch.setattr(build, "_build", fake)
    monkeypatch.setenv("GPUALGO_CACHE_DIR", str(tmp_path / "cache"))
    _forget(monkeypatch)
    return made


def test_what_shares_a_cubin(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    def scaled(k: Any) -> Callable[..., Any]:
        return lambda a, b: a * k + b

    specs = [
        *map(_spec, (lambda a, b: a + b * 2, scaled(2), scaled(2.0), operator.add, max)),
        _spec(lambda a, b: a + b * 3),
        _spec(lambda a, b: a + b * 3, commutative=True),
        _spec(lambda a, b: a + b * 3, np.dtype("float64")),
    ]
    for _ in range(2):
        for spec, capability in itertools.product(specs, [MAIN, (8, 0)]):
            build.cubin(spec, capability)
        assert len(built) == 2 * len(specs)
        for equal in (lambda a, b: a + b * 2, scaled(2), np.add, np.maximum):
            build.cubin(_spec(equal), MAIN)
        assert len(built) == 2 * len(specs)
        _forget(monkeypatch)


def _reread() -> None:
    """Read the sources again, as a new process does."""
    for known in (build.origin, build.provenance, build.wheel_index):
        known.cache_clear()


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a copy of the kernels' sources, which the package takes for its own."""
    folder = tmp_path / "cuda_src"
    shutil.copytree(build.source_folder(), folder)
    monkeypatch.setattr(build, "source_folder", lambda: folder)
    monkeypatch.setattr(loaded, "AT", time.time_ns() + 10**12)  # all is older than the process
    _reread()
    yield folder
    _reread()


def test_a_changed_source_is_another_kernel(built: Built, sources: Path) -> None:
    for count, path in enumerate(sorted(sources.rglob("*.cuh")), 1):
        _reread()
        build.cubin(_spec(operator.add), MAIN)
        assert len(built) == count
        path.write_text(path.read_text() + "\n")
    for name in ("parts", "pieces"):  # where a header lies counts, too
        (sources / "parts").rename(sources / name)
        _reread()
        build.cubin(_spec(operator.add), MAIN)
    assert len(built) == count + 2
    assert len(list(disk_cache.folder().iterdir())) == count + 2


def test_nothing_is_kept_once_a_source_has_changed(
    built: Built, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an upgrade under a running process: what it compiles may be of either version."""
    build.cubin(_spec(operator.add), MAIN)
    monkeypatch.setattr(loaded, "AT", time.time_ns())
    header = next(sources.rglob("*.cuh"))
    time.sleep(0.02)  # the clock of files is a coarse one
    header.write_text(header.read_text() + "\n")
    build.cubin(_spec(operator.mul), MAIN)  # by the key of what it was
    _forget(monkeypatch)
    build.cubin(_spec(operator.add), MAIN)  # which is what is on disk
    assert len(built) == 2
    assert len(list(disk_cache.folder().iterdir())) == 1
    _forget(monkeypatch)
    _reread()  # a process that looks at last when it has happened
    build.cubin(_spec(operator.add), MAIN)
    assert build.cubin(_spec(operator.add), MAIN)
    assert len(built) == 3
    assert len(list(disk_cache.folder().iterdir())) == 1


def test_nothing_is_kept_of_modules_that_are_no_files(
    built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone() -> Any:
        raise FileNotFoundError

    _reread()
    monkeypatch.setattr(build, "source_files", gone)
    for _ in range(2):
        build.cubin(_spec(operator.add), MAIN)
    _reread()
    assert len(built) == 1
    assert not disk_cache.folder().exists()


def test_a_damaged_entry_is_written_anew(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    want = build.cubin(_spec(operator.add), MAIN)
    (path,) = disk_cache.folder().iterdir()
    content, key = path.read_bytes(), path.stem
    fields = disk_cache.decode(key, content)
    assert fields
    few = disk_cache.encode(key, (b"one field",))
    for damaged in (
        b"", content[:-1], content[:-1] + b"x", few, disk_cache.encode("another", fields)
    ):  # fmt: skip
        built.clear()
        path.write_bytes(damaged)
        for _ in range(2):
            _forget(monkeypatch)
            assert build.cubin(_spec(operator.add), MAIN) == want
        assert len(built) == 1
        assert path.read_bytes() == content


def test_threads_build_once(built: Built) -> None:
    ready = threading.Barrier(4)

    def ask(_: int) -> tuple[bytes, str]:
        ready.wait()
        return build.cubin(_spec(operator.add), MAIN)

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(ask, range(4)))) == 1
    assert len(built) == 1


def test_kernels_of_one_call_are_built_side_by_side(
    built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_driver.install(monkeypatch)
    both = threading.Barrier(2, timeout=30)
    specs = [_spec(operator.add), _spec(operator.mul)]

    def fake(spec: build.Spec, capability: Capability) -> tuple[bytes, str]:
        both.wait()
        built.append((spec, capability))
        return bytes(100), spec.expression

    monkeypatch.setattr(build, "_build", fake)
    monkeypatch.setattr(threads, "_num_cores", lambda: 2)
    names = [kernel.name for kernel in build.kernels(specs, 0)]
    assert names == [spec.expression for spec in specs]
    assert [kernel.name for kernel in build.kernels(specs, 0)] == names
    assert len(built) == 2


def test_a_failure_is_not_kept(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(build, "_build", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            build.cubin(_spec(operator.add), MAIN)
    build.cubin(_spec(operator.add), MAIN)
    assert len(built) == 1
