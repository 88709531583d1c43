"""What is around a call: a forked process, a damaged or unwritable cache, two processes at once."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from support import REPOSITORY, Backend, run_python

from gpualgo._base import disk_cache as cache

needs_compilers = pytest.mark.skipif(
    importlib.util.find_spec("cuda") is None,
    reason="needs the CUDA wheels (extra cu12 or cu13) to compile with; no GPU",
)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_use_after_fork(backend: Backend) -> None:
    """The CPU backend works in the child; CUDA cannot, and says so instead of crashing."""
    code = """if True:
        import os, sys, numpy as np, gpualgo as ga
        x = np.arange(1 << 20)
        def total(): return int(ga.reduce(x, None, lambda a, b: a + b))
        want = total()
        child = os.fork()
        if child == 0:
            try:
                new = int(ga.reduce(x, None, lambda a, b: a ^ b))
                os._exit(0 if total() == want and new == 0 else 1)
            except RuntimeError as error:
                print(error, file=sys.stderr, flush=True)
                os._exit(42)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert total() == want
        sys.exit(status)
    """
    done = run_python(code, GPUALGO_DEVICE=backend.name)
    if backend.name == "cpu":
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode == 42, done.stderr
        assert "fork" in done.stderr


# Fills the cache as a call on an H200 does. The linker's output differs from run to run, so two
# equal hashes mean that the second came from the cache.
FILL = """if True:
    import hashlib, numpy as np, gpualgo as ga
    from gpualgo._cuda import build
    from gpualgo._api.warm_up import probe_spec
    code, name = build.cubin(probe_spec(), (9, 0))
    print(name, hashlib.sha256(code).hexdigest())
"""


def _entries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


DAMAGES: list[Callable[[bytes], bytes]] = [
    lambda content: b"",
    lambda content: content[: len(content) // 2],
    lambda content: content[:-100] + bytes([content[-100] ^ 1]) + content[-99:],
    lambda content: content + b"x",
    lambda content: os.urandom(len(content)),
]


@needs_compilers
def test_an_unwritable_cache_costs_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    done = run_python(FILL, GPUALGO_CACHE_DIR=str(tmp_path / "file" / "cache"))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("RuntimeWarning") == 1
    assert "GPUALGO_CACHE_DIR" in done.stderr


@needs_compilers
@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_a_folder_open_to_others_is_not_trusted(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    done = run_python(FILL, GPUALGO_CACHE_DIR=str(shared))
    assert done.returncode == 0, done.stderr
    assert "RuntimeWarning" in done.stderr
    assert not _entries(shared)


def test_a_warning_is_seen_while_another_thread_compiles(tmp_path: Path) -> None:
    """Until Python 3.14, what suppresses warnings in one thread suppresses those of all."""
    code = """if True:
        import threading, time
        from gpualgo._base import disk_cache
        from gpualgo._operators.numpy_rules.errors import translate_errors
        is_compiling = threading.Event()
        def compile():
            with translate_errors(compile, ()):
                is_compiling.set()
                time.sleep(0.3)
        thread = threading.Thread(target=compile)
        thread.start()
        is_compiling.wait()
        disk_cache.write("key", (b"content",))
        thread.join()
    """
    (tmp_path / "file").touch()
    done = run_python(code, GPUALGO_CACHE_DIR=str(tmp_path / "file"))
    assert done.stderr.count("RuntimeWarning") == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_only_regular_files_are_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe would block, and a device might never end."""
    monkeypatch.setenv("GPUALGO_CACHE_DIR", str(tmp_path))
    os.mkfifo(tmp_path / "pipe.gpualgo")
    (tmp_path / "folder.gpualgo").mkdir()
    (tmp_path / "device.gpualgo").symlink_to("/dev/zero")
    found: list[object] = []

    def look() -> None:
        found.extend(map(cache.read, ("pipe", "folder", "device", "nothing")))
        found.append(cache.info()["damaged"])

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(20)
    assert found == [None] * 4 + [3]
    cache.write("pipe", (b"content",))  # replaces the pipe
    cache.write("device", (b"content",))
    assert cache.read("pipe") == cache.read("device") == (b"content",)


@needs_compilers
def test_processes_fill_one_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a new folder, which is private; entries that are damaged later are not there."""
    folder = tmp_path / "deep" / "cache"
    monkeypatch.setenv("GPUALGO_CACHE_DIR", str(folder))
    path = os.pathsep.join(filter(None, (str(REPOSITORY), os.environ.get("PYTHONPATH"))))
    env = os.environ | {"PYTHONPATH": path}
    running = [
        subprocess.Popen([sys.executable, "-c", FILL], env=env, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    printed = [process.communicate(timeout=120)[0] for process in running]
    assert all(process.returncode == 0 for process in running)
    assert not folder.stat().st_mode & 0o077
    files = _entries(folder)
    assert files
    assert not any(path.stat().st_mode & 0o022 for path in files)
    assert all(path.suffix == ".gpualgo" for path in files), "leftovers of unfinished writes"
    assert cache.info()["damaged"] == 0
    known = run_python(FILL).stdout
    assert known in printed
    for start in range(2):
        for index, path in enumerate(files, start):
            content = path.read_bytes()
            assert all(cache.decode(path.stem, damage(content)) is None for damage in DAMAGES)
            path.write_bytes(DAMAGES[index % len(DAMAGES)](content))
        assert cache.info()["damaged"] == len(files)
        again = run_python(FILL)
        assert again.returncode == 0, again.stderr
        assert again.stdout.split()[0] == known.split()[0]
    assert run_python(FILL).stdout == again.stdout
