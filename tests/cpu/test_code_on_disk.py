"""The CPU's code on disk: what one process compiled, the next runs without numba."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import REPOSITORY, run_python

import gpualgo as ga
from gpualgo._algorithms.reduce.problem import Reduction
from gpualgo._base import disk_cache
from gpualgo._base.errors import CompileError
from gpualgo._cpu import image, kernels
from gpualgo._cpu.kernels import Applied
from gpualgo._operators.operator import Operator

START = """if True:
    import math, operator, sys
    import numpy as np
    import gpualgo as ga

    {extra}

    def bits(array):
        return np.asarray(array).tobytes().hex()

    x = (np.arange(70_000) % 97 / np.float32(7)).astype(np.float32)
    table, other = np.arange(9.0) ** 2, np.arange(9.0) * 3
    look_up = lambda i: table[i] + 1
    with ga.default_device("cpu"):
"""

# Results are printed to the bit, and then what was loaded for them.
FEW = (
    START
    + """
        print(bits(ga.transform(lambda a: math.erf(a) + math.exp(a), x[:50])))
        print(bits(ga.transform(look_up, np.arange(9))))
        table = other
        print(bits(ga.transform(look_up, np.arange(9))))
    print(sorted({{"numba", "llvmlite"}} & set(sys.modules)))
"""
)

MANY = (
    START
    + """
        def even(n):
            return True if n == 0 else odd(n - 1)

        def odd(n):
            return False if n == 0 else even(n - 1)

        print(ga.reduce(x), ga.reduce(x, 0.0, lambda a, b: a + b), ga.inclusive_scan(x[:50]))
        print(ga.transform(lambda a: a * 2.0 + 1, x[-5:]), ga.transform(even, np.arange(5)))
        print(ga.radix_sort(x[:50]), ga.histogram(x, 16, (0.0, 9.0)))
        print(ga.transform(lambda a: a * (1 + 2j), x[:5]))
    print(sorted({{"numba", "llvmlite"}} & set(sys.modules)))
"""
)


def _run(calls: str, extra: str = "", **env: str) -> tuple[list[str], str]:
    """Return what a process prints of its results, and what it loads."""
    done = run_python(calls.format(extra=extra), **env)
    assert done.returncode == 0, done.stderr
    *lines, loaded = done.stdout.splitlines()
    return lines, loaded


NOTHING = "[]" if image.SUPPORTED else "['llvmlite']"


def test_a_new_process_runs_known_code_without_numba(tmp_path: Path) -> None:
    # One thread: with more, a clock decides whether others' code is asked for. A cache of its own:
    # the one of all tests drops code once it is full.
    alone = {"GPUALGO_NUM_THREADS": "1", "GPUALGO_CACHE_DIR": str(tmp_path / "cache")}
    want, _ = _run(MANY, **alone)
    lines, loaded = _run(MANY, **alone)
    assert lines == want
    assert "28" in lines[1]  # 13.857 * 2 + 1
    assert loaded == NOTHING


def test_two_processes_at_once_and_damaged_code(tmp_path: Path) -> None:
    """Two processes fill one cache; the next one loads it; damaged code is never run."""
    cache = str(tmp_path / "cache")
    with ThreadPoolExecutor(2) as pool:
        (want, loaded), (two, _) = pool.map(lambda _: _run(FEW, GPUALGO_CACHE_DIR=cache), range(2))
    assert want == two
    assert "numba" in loaded
    assert disk_cache_info(cache)["damaged"] == 0
    assert _run(FEW, GPUALGO_CACHE_DIR=cache) == (want, NOTHING)
    for number, path in enumerate(sorted((tmp_path / "cache").iterdir())):
        content = bytearray(path.read_bytes())
        content[-1 - number % 40] ^= 1
        path.write_bytes(content)
    assert disk_cache_info(cache)["damaged"] == number + 1
    lines, loaded = _run(FEW, GPUALGO_CACHE_DIR=cache)
    assert lines == want
    assert "numba" in loaded  # all was compiled anew


def disk_cache_info(folder: str) -> dict[str, Any]:
    """Return what the cache tells of a folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUALGO_CACHE_DIR", folder)
        return disk_cache.info()


def test_objects_for_systems_without_images(tmp_path: Path) -> None:
    """There LLVM loads the code; numba is not needed either."""
    extra = "from gpualgo._cpu import image; image.SUPPORTED = False"
    cache = str(tmp_path / "cache")
    first, _ = _run(FEW, extra, GPUALGO_CACHE_DIR=cache)
    assert _run(FEW, extra, GPUALGO_CACHE_DIR=cache) == (first, "['llvmlite']")


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return an empty cache; nothing is in memory either, and nothing stays there."""
    monkeypatch.setenv("GPUALGO_CACHE_DIR", str(tmp_path / "cache"))
    _forget(monkeypatch)
    return tmp_path / "cache"


def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, name in ((kernels, "_kernels"), (kernels, "_shells"), (kernels, "_compiled")):
        monkeypatch.setattr(owner, name, type(getattr(owner, name))(8))
    Reduction.problems.clear()  # which hold the kernels of warm calls


def _total(x: Any) -> Any:
    with ga.default_device("cpu"):
        return ga.reduce(x, 0, lambda a, b: a + b)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """List the kernels that are compiled, but for what calls them."""
    kernels._method("call_kernel")
    kernels._method("launch_kernel", kernels.OFFSET, kernels._MOST_WORDS)
    made: list[Any] = []
    Reduction.problems.clear()
    compile_one = kernels._compile

    def counted(*args: Any) -> Any:
        made.append(args)
        return compile_one(*args)

    monkeypatch.setattr(kernels, "_compile", counted)
    return made


def test_code_for_another_cpu_is_a_miss(
    fresh: Path, compiled: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.arange(5)
    try:
        for model, count in (("one", 1), ("one", 1), ("another", 2)):
            monkeypatch.setattr(kernels, "cpu", lambda model=model: model)
            kernels.provenance.cache_clear()
            _forget(monkeypatch)
            assert _total(x) == 10
            assert len(compiled) == count
    finally:
        kernels.provenance.cache_clear()


@pytest.mark.parametrize(
    "change",
    [
        lambda patch: patch.setenv("NUMBA_OPT", "1"),
        lambda patch: patch.setattr(kernels, "versions_of", lambda *_: ["another"]),
        lambda patch: patch.setattr(kernels, "digest_of_sources", lambda *_: "another"),
        lambda patch: patch.setattr(kernels.platform, "machine", lambda: "another"),
    ],
)
def test_what_code_depends_on(change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = kernels.provenance()
    monkeypatch.setattr(kernels, "origin_of_shells", kernels.origin_of_shells.__wrapped__)
    assert kernels.provenance.__wrapped__() == before
    change(monkeypatch)
    assert kernels.provenance.__wrapped__() != before


IMPORTED = re.compile(r"^from gpualgo\._algorithms\.(\w+)(?: import |\.)(\w+)", re.MULTILINE)


def test_all_sources_of_code_count() -> None:
    """A module that imports numba makes code, or decides what code is made."""
    names = {str(path) for path in kernels.source_files()}
    package = REPOSITORY / "gpualgo"
    assert str(package / "_base" / "records.py") in names  # how an element lies in memory
    for path in package.rglob("*.py"):
        if path.parent.name in ("_cuda", "_base"):
            continue
        text = path.read_text()
        if "from numba" in text or "import numba" in text or "from llvmlite" in text:
            assert str(path) in names, path
        if path.name.startswith("cpu") and "kernels" in path.name:  # its constants are compiled in
            for algorithm, module in IMPORTED.findall(text):
                imported = package / "_algorithms" / algorithm / f"{module}.py"
                assert str(imported) in names, (path, imported)


def test_symbols_that_are_gone_are_a_miss(
    fresh: Path, compiled: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _total(np.arange(5)) == 10
    load = image.Loaded.__init__

    def fails_once(self: Any, *args: Any) -> None:
        monkeypatch.setattr(image.Loaded, "__init__", load)
        raise RuntimeError("compiled code needs numba_something")

    monkeypatch.setattr(image.Loaded, "__init__", fails_once)
    _forget(monkeypatch)
    assert _total(np.arange(5)) == 10
    assert len(compiled) == 2


def test_what_is_refused_is_refused_again(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = set()
    with ga.default_device("cpu"):
        for _ in range(3):
            with pytest.raises(CompileError) as caught:
                ga.transform(lambda a: a.nothing, np.arange(3))
            texts.add(str(caught.value))
            _forget(monkeypatch)
    assert len(texts) == 1
    assert not list(fresh.glob("*"))


def test_a_new_operator_reuses_the_shell(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpualgo._cpu import compiler

    shells: list[Any] = []
    compile_one = compiler.compile_shell
    monkeypatch.setattr(
        compiler,
        "compile_shell",
        lambda function: (shells.append(1), compile_one(function))[1],
    )
    with ga.default_device("cpu"):
        for number in range(3):
            got = ga.transform(eval(f"lambda a: a + {number}"), np.arange(3))
            assert got.tolist() == [number, number + 1, number + 2]
            monkeypatch.setattr(kernels, "_shells", type(kernels._shells)(8))
    assert len(shells) == 1


def test_keys_are_plain() -> None:
    f4, i8 = np.dtype("float32"), np.dtype("int64")
    keys = [("a", 1), ("a", True), ("a", "1"), ("a", (1,)), ("a", f4), ("a", i8), ("a", None)]
    assert len({kernels.stable_key(key) for key in keys}) == len(keys)
    with pytest.raises(TypeError, match="other processes"):
        kernels.stable_key(("a", object()))
    by_dtype = {Applied(Operator(max), (dtype,) * 2, dtype).parts for dtype in (f4, i8)}
    assert len(by_dtype) == 2


def test_the_older_half_of_a_full_cache_goes(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "_MAX_ENTRIES", 8)
    monkeypatch.setattr(disk_cache, "_WRITES_PER_PRUNE", 9)
    monkeypatch.setattr(disk_cache, "_num_written", 1)
    for number in range(9):
        disk_cache.write(f"{number}", (b"content",))
    assert len(list(fresh.iterdir())) == 5
