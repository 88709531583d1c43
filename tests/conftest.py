"""Fixtures: every backend that this machine has, and outputs between guard bytes."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import math
import os
import tempfile
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sampling
import support
from _pytest.compat import NOTSET
from emulator import plugin
from gate import Gate
from support import LAYOUTS, Array, Backend, count_gpus

import gpualgo as ga

GUARD_BYTES = 256  # keeps the alignment that a fresh allocation has
GUARD = 0xA5
_NO_CASE = SimpleNamespace(params={})
EMULATED = "emulated"  # a backend that is tested when it is named, and alone


@functools.cache
def backends_present() -> dict[str, str]:
    """Return the backends to test, each with the library that its arrays come from."""
    present = {"cpu": "numpy"}
    if count_gpus():
        try:
            import cupy  # noqa: F401
        except ImportError:
            present["cuda"] = "numpy"  # no device arrays here: NumPy's are staged
        else:
            present["cuda"] = "cupy"
    return present


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--backend", choices=["cpu", "cuda", EMULATED], help="test this backend alone")
    parser.addoption(
        "--without-pool", action="store_true",
        help="allocate each array of CuPy's by itself, so that compute-sanitizer knows its ends",
    )  # fmt: skip
    plugin.add_options(parser)
    sampling.add_options(parser)
    parser.addoption(
        "--exhaustive", action="store_true", help="walk over every dtype where machine code is read"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave exhaustive walks to those who ask for them; take a sample of the rest.

    Of a test that is skipped, as nothing is there to run it on, one case tells so for all.
    """
    kept, skipped = [], set()
    for item in items:
        if item.get_closest_marker("exhaustive") and not config.getoption("--exhaustive"):
            continue
        if any(value is NOTSET for value in getattr(item, "callspec", _NO_CASE).params.values()):
            test = item.path, getattr(item, "originalname", item.name)
            if test in skipped:
                continue
            skipped.add(test)
        kept.append(item)
    kept = sampling.sample(config, kept)
    chosen = set(map(id, kept))
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in chosen])
    items[:] = kept


def pytest_configure(config: pytest.Config) -> None:
    """Put the emulated GPU in before anything looks for one; let all processes share one cache."""
    support.is_exhaustive = config.getoption("--exhaustive")
    support.takes_sample = sampling.configure(config)
    # Files go to workers in their order. By the number of tests, files of one long test come last.
    config.option.loadscopereorder = False
    if not count_gpus() and "GPUALGO_CACHE_DIR" not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="gpualgo-tests-")  # workers inherit it
        os.environ["GPUALGO_CACHE_DIR"] = folder.name
        config.add_cleanup(folder.cleanup)
    if config.getoption("--backend") == EMULATED:
        plugin.check(config)
        config.pluginmanager.register(plugin.Plugin(config), EMULATED)


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_configure_node(node: Any) -> None:
    sampling.configure_worker(node.config, node.workerinput)


def _chosen(config: pytest.Config) -> dict[str, str]:
    """Return the backends that this session tests, each with its arrays' library."""
    named = config.getoption("--backend")
    if named == EMULATED:
        return {EMULATED: "cupy"}  # the emulator's own, by CuPy's name
    present = backends_present()
    if named and named not in present:
        raise pytest.UsageError(f"--backend {named}: this machine has no GPU that can be used")
    return {named: present[named]} if named else present


def pytest_report_header(config: pytest.Config) -> str:
    chosen = (f"{name} ({library} arrays)" for name, library in _chosen(config).items())
    told = "gpualgo backends: " + ", ".join(chosen)
    if count_gpus() or config.getoption("--backend"):
        return told
    return f"{told}; {plugin.how_to_ask()}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    chosen = _chosen(metafunc.config)
    if "backend" in metafunc.fixturenames:
        metafunc.parametrize("backend", list(chosen), indirect=True, scope="session")
    if "cuda" in metafunc.fixturenames:  # tests that need device arrays
        devices = [name for name, library in chosen.items() if library == "cupy"]
        metafunc.parametrize("cuda", devices, indirect=True, scope="session")


@pytest.fixture(scope="session")
def backend(request: pytest.FixtureRequest) -> Backend:
    """Every backend present in turn; NumPy arrays go to it too (see `on_backend`)."""
    return _backend(request.param, request.config)


@pytest.fixture(scope="session")
def cuda(request: pytest.FixtureRequest) -> Backend:
    """The CUDA backend, with CuPy's arrays."""
    return _backend(request.param, request.config)


@pytest.fixture(scope="module", autouse=True)
def _short_collections() -> None:
    """Keep what the tests before have left for good out of each collection, or it takes seconds."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let a file's tests find nothing on disk that others compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUALGO_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def monkeypatch(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Let no call under a test's patches take what one without them decided, nor the reverse."""
    support.forget_problems()
    yield monkeypatch
    support.forget_problems()


@pytest.fixture
def gate(cuda: Backend) -> Iterator[Gate]:
    """A gate that holds a stream; it is open when the test has ended, however it ended."""
    made = Gate(cuda.xp)
    try:
        yield made
    finally:
        made.close_down()


def _backend(name: str, config: pytest.Config) -> Backend:
    library = importlib.import_module(_chosen(config)[name])
    if name == "cuda" and config.getoption("--without-pool"):
        library.cuda.set_allocator(None)
    return Backend("cuda" if name == EMULATED else name, library)


@pytest.fixture(autouse=True)
def on_backend(request: pytest.FixtureRequest) -> Iterator[None]:
    """Make the backend under test the one that NumPy arrays run on."""
    named = {"backend", "cuda"}.intersection(request.fixturenames)
    device = request.getfixturevalue(named.pop()).name if named else None
    with ga.default_device(device) if device else contextlib.nullcontext():
        yield


Make = Callable[..., Array]


@pytest.fixture
def guarded(request: pytest.FixtureRequest) -> Iterator[Make]:
    """Make outputs amid guard bytes, which must be as they were when the test ends.

    Of the test's own backend: `cuda`, for tests of that alone, or `backend`.
    """
    name = "cuda" if "cuda" in request.fixturenames else "backend"
    backend: Backend = request.getfixturevalue(name)
    made: list[tuple[Array, np.ndarray[Any, Any]]] = []

    def make(shape: tuple[int, ...], dtype: Any, layout: str = "contiguous") -> Array:
        dtype = np.dtype(dtype)
        view, buffer = _amid_guards(backend.xp, shape, dtype, layout)
        mirror, written = _amid_guards(np, shape, dtype, layout)
        mirror[...] = np.frombuffer(bytes([255 - GUARD]) * dtype.itemsize, dtype)[0]
        made.append((buffer, written == GUARD))
        return view

    yield make
    for buffer, is_guard in made:
        touched = np.flatnonzero((backend.to_host(buffer) != GUARD) & is_guard)
        assert touched.size == 0, f"wrote outside the output: bytes {touched[:8] - GUARD_BYTES}"


def _amid_guards(
    xp: Any, shape: tuple[int, ...], dtype: np.dtype[Any], layout: str
) -> tuple[Array, Array]:
    buffers: list[Array] = []

    def new(full: tuple[int, ...]) -> Array:
        nbytes = math.prod(full) * dtype.itemsize
        buffers.append(xp.full(nbytes + 2 * GUARD_BYTES, GUARD, np.uint8))
        return buffers[0][GUARD_BYTES : GUARD_BYTES + nbytes].view(dtype).reshape(full)

    return LAYOUTS[layout](new, shape), buffers[0]


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The types of the GPU's kernels that are asked for."""
    from gpualgo._cuda import build

    found: list[str] = []
    kernel = build.kernel

    def asked(spec: Any, device: int) -> Any:
        found.append(spec.expression)
        return kernel(spec, device)

    monkeypatch.setattr(build, "kernel", asked)
    return found
