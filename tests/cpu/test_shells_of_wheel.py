"""Kernels that a wheel holds as bitcode: used if they are of these sources, compiled otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support import REPOSITORY, run_python

from gpualgo._base import disk_cache

# Compiles on the CPU; prints how many kernels numba compiled, and the results.
CALLS = """if True:
    import sys
    from pathlib import Path
    import numpy as np
    import gpualgo as ga
    from gpualgo._cpu import compiler, kernels
    compile_shell, compiled = compiler.compile_shell, []
    compiler.compile_shell = lambda function: compiled.append(1) or compile_shell(function)
    kernels.WHEEL_FILE = Path(sys.argv[1])
    x = (np.arange(100_000) * 37 % 1000).astype(np.float32) / 7
    ga.reduce(x, 0.0, lambda a, b: a + b)  # compiled by numba: the operator alone, with a wheel
    results = [ga.reduce(x), ga.inclusive_scan(x, op=max)]
    if {full}:
        results += [ga.argsort(x), ga.top_k(x, 3)]
    digests = [hash(np.asarray(result).tobytes()) for result in results]
    print(len(compiled), *digests)
"""
ALL_CALLS, TWO_CALLS = CALLS.format(full=True), CALLS.format(full=False)
COLLECT = """
    kernels.write_shells(Path(sys.argv[1]), kernels.collected)
"""


def run(tmp_path: Path, file: Path, code: str, **env: str) -> list[str]:
    env = {"PYTHONHASHSEED": "0", "GPUALGO_DEVICE": "cpu", **env}
    folder = tmp_path / f"cache-{len(list(tmp_path.iterdir()))}"
    path = os.pathsep.join(filter(None, (str(REPOSITORY), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": path, "GPUALGO_CACHE_DIR": str(folder), **env},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Return a file of shells, and what the process printed that compiled them."""
    folder = tmp_path_factory.mktemp("wheel")
    code = ALL_CALLS.replace("kernels.WHEEL_FILE", "kernels.collected = {}; kernels.WHEEL_FILE")
    return folder / "shells.bin", run(folder, folder / "shells.bin", code + COLLECT)


def test_kernels_come_from_the_wheel(collected: tuple[Path, list[str]], tmp_path: Path) -> None:
    file, (count, *results) = collected
    assert int(count) >= 8
    assert run(tmp_path, file, ALL_CALLS) == ["0", *results]


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content[:-100] + bytes([content[-100] ^ 1]) + content[-99:],
        lambda content: content[: len(content) // 2],
        lambda content: b"",
        lambda content: disk_cache.encode("shells of other sources", (b"key", b"shell")),
    ],
)
def test_another_file_is_not_used(
    collected: tuple[Path, list[str]], tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    file, (_, *results) = collected
    other = tmp_path / "shells.bin"
    other.write_bytes(change(file.read_bytes()))
    count, *found = run(tmp_path, other, TWO_CALLS)
    assert int(count) >= 2
    assert found == results[:2]


def test_settings_of_numba_count(collected: tuple[Path, list[str]], tmp_path: Path) -> None:
    file, _ = collected
    assert int(run(tmp_path, file, TWO_CALLS, NUMBA_OPT="1")[0]) >= 2


def test_a_file_is_complete_however_often_it_is_written(tmp_path: Path) -> None:
    """Its kernels may be on disk, or in an earlier file in its place."""
    pytest.importorskip("hatchling")
    code = """if True:
        import sys
        from pathlib import Path
        import hatch_build
        import gpualgo as ga
        from gpualgo._api import prepare
        from gpualgo._base import disk_cache
        from gpualgo._cpu import kernels
        prepare.known, prepare.SIZES = lambda: [], [1000]
        prepare.DTYPES = prepare.DTYPES[:2]
        hatch_build.calls = lambda x: [lambda: ga.inclusive_scan(x)]
        kernels.WHEEL_FILE = file = Path(sys.argv[1])
        hatch_build.write(file)
        key = f"shells {kernels.origin_of_shells()}"
        print(len(disk_cache.decode(key, file.read_bytes())))
    """
    file, folder = tmp_path / "shells.bin", str(tmp_path / "cache")
    first, second = (run(tmp_path, file, code, GPUALGO_CACHE_DIR=folder) for _ in range(2))
    assert first == second
    assert int(first[0]) >= 8


def test_doctor_says_whether_they_are_used() -> None:
    done = run_python("from gpualgo._cli.doctor import _wheel_check; print(_wheel_check())")
    assert "this installation holds none" in done.stdout
