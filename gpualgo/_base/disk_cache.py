"""The disk cache of compiled code: files of bytes, checked on reading, replaced atomically.

A file holds a magic line, the SHA-256 of the entry's key and fields, and the fields, each preceded
by its length. Nothing is unpickled. A damaged file and a file of another entry count as a miss. A
folder that other users can write to is not used. If the folder is not writable, the process uses
its memory cache alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import struct
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gpualgo._base import loaded

# --- Digests of sources and versions of tools: the common part of all keys of the disk cache.
#
# Digests are of file contents, as file times do not identify an installation.

PACKAGE = Path(__file__).resolve().parent.parent
# numba compiles bytecode, which depends on the Python version.
PYTHON = f"{sys.implementation.cache_tag} {np.__version__}"


def digest_of_sources(*sources: tuple[Path, Iterable[Path | str]]) -> str | None:
    """Return the hash of files and their paths in a folder.

    None if a file changed after the package was loaded: this process may run the old code.
    """
    digest = hashlib.blake2b()
    for folder, paths in sources:
        start = len(str(folder)) + 1
        for path in paths:
            name = str(path)[start:].replace(os.sep, "/")
            with open(path, "rb", buffering=0) as file:
                digest.update(name.encode() + b"\0" + file.read())
                if loaded.is_newer(os.fstat(file.fileno())):
                    return None
    return digest.hexdigest()


def files_of(folder: str, suffix: str, prefix: str | tuple[str, ...] = "") -> list[str]:
    if not os.path.isdir(folder):
        return []
    names = sorted(os.listdir(folder))
    return [os.path.join(folder, n) for n in names if n.startswith(prefix) and n.endswith(suffix)]


def versions_of(*packages: str) -> list[str]:
    """Return packages' versions from their dist-info folders: importing importlib.metadata takes
    20 ms.
    """
    versions = []
    for package in packages:
        spec = importlib.util.find_spec(package)
        folders = []
        if spec is not None and spec.origin is not None:
            start, names = package + "-", os.listdir(Path(spec.origin).parent.parent)
            folders = [n for n in names if n.startswith(start) and n.endswith(".dist-info")]
        versions.append(" ".join(sorted(folders)) or _version_by_metadata(package))
    return versions


def _version_by_metadata(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


_MAGIC = b"gpualgo cache 2\n"
_SUFFIX = ".gpualgo"
FOR_CPU = "cpu-"  # key prefix of CPU code
_MAX_ENTRIES = 8192
_WRITE_SECONDS = 600  # no process writes a temporary file for longer
_WRITES_PER_PRUNE = 32  # listing a full folder takes milliseconds
_warned = False
_num_written = 0


class Seen:
    """Keys of entries that were read and written, and reasons of failed writes."""

    def __init__(self) -> None:
        self.read: set[str] = set()
        self.written: set[str] = set()
        self.lost: list[str] = []  # each reason once


_watchers: list[Seen] = []


@contextlib.contextmanager
def watched() -> Iterator[Seen]:
    """Record the keys that all threads read and write within a ``with`` block."""
    seen = Seen()
    _watchers.append(seen)
    try:
        yield seen
    finally:
        _watchers.remove(seen)


def folder() -> Path:
    configured = os.environ.get("GPUALGO_CACHE_DIR")
    if configured:
        return Path(configured)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "gpualgo"


def encode(key: str, fields: tuple[bytes, ...]) -> bytes:
    body = b"".join(struct.pack("<Q", len(field)) + field for field in fields)
    return _MAGIC + _digest(key, body) + body


def _digest(key: str, body: bytes) -> bytes:
    digest = hashlib.sha256(key.encode() + b"\n")
    digest.update(body)
    return digest.digest()


def decode(key: str, content: bytes) -> tuple[bytes, ...] | None:
    """Return the fields in a file's content, None if it is damaged or belongs to another key."""
    start = len(_MAGIC) + 32
    body = content[start:]
    if not content.startswith(_MAGIC) or _digest(key, body) != content[start - 32 : start]:
        return None
    fields = []
    position = 0
    while position < len(body):
        (length,) = struct.unpack_from("<Q", body, position)
        fields.append(body[position + 8 : position + 8 + length])
        position += 8 + length
    return tuple(fields)


def read(key: str) -> tuple[bytes, ...] | None:
    path = folder() / (key + _SUFFIX)
    if not _is_private(path.parent):
        return None
    content = _content_of(path)
    fields = decode(key, content) if content else None
    if fields is not None:
        for watcher in _watchers:
            watcher.read.add(key)
    return fields


def write(key: str, fields: tuple[bytes, ...]) -> None:
    """Store an entry; warn once if the folder is not writable."""
    global _num_written
    path = folder()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private(path):
            raise PermissionError(f"{path} belongs to another user or others can write to it")
        import tempfile  # takes milliseconds; only a new entry needs it

        descriptor, name = tempfile.mkstemp(dir=path, suffix=".part")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(encode(key, fields))
            os.replace(name, path / (key + _SUFFIX))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
        for watcher in _watchers:
            watcher.written.add(key)
        from gpualgo._base import log  # only a new entry needs it

        log.log(log.DEBUG, "written to disk: %s", path / (key + _SUFFIX))
        _num_written += 1
        if _num_written % _WRITES_PER_PRUNE == 1:
            _prune(path)
    except OSError as error:
        message = (f"compiled kernels are not kept on disk: {error}; set GPUALGO_CACHE_DIR to a "
                   "folder of your own")  # fmt: skip
        for watcher in _watchers:
            if message not in watcher.lost:
                watcher.lost.append(message)
        _warn(message)


def _is_private(path: Path) -> bool:
    """Return whether only this user can write to a folder: its code is executed."""
    if os.name == "nt":
        return True
    try:
        status = path.stat()
    except OSError:
        return False
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def _prune(path: Path) -> None:
    entries = [entry for entry in os.scandir(path) if entry.name.endswith(_SUFFIX)]
    if len(entries) <= _MAX_ENTRIES:
        return
    entries.sort(key=_written_at)
    for entry in entries[: len(entries) // 2]:
        with contextlib.suppress(OSError):
            os.unlink(entry.path)


def _written_at(entry: os.DirEntry[str]) -> float:
    try:
        return entry.stat().st_mtime
    except OSError:  # another process deleted it
        return 0.0


def _warn(message: str) -> None:
    """Warn once, while no thread compiles an operator: numba suppresses warnings of all threads."""
    global _warned
    if _warned:
        return
    numba = sys.modules.get("numba.core.compiler_lock")
    with getattr(numba, "global_compiler_lock", None) or contextlib.nullcontext():
        if not _warned:
            _warned = True
            warnings.warn(message, RuntimeWarning, stacklevel=3)


def info() -> dict[str, Any]:
    """Return the cache's path, size, numbers of entries, and whether it is writable."""
    path = folder()
    files: list[Path] = []
    with contextlib.suppress(OSError):  # it cannot be reached
        files = sorted(path.glob("*" + _SUFFIX)) if path.is_dir() else []
    contents = {file.name.removesuffix(_SUFFIX): _content_of(file) for file in files}
    return {
        "path": str(path),
        "entries": len(files),
        "cpu_entries": sum(file.name.startswith(FOR_CPU) for file in files),
        "bytes": sum(map(len, contents.values())),
        "damaged": sum(decode(key, content) is None for key, content in contents.items()),
        "writable": _is_writable(path),
    }


def _is_writable(path: Path) -> bool:
    """Return whether entries can be stored in a folder, by writing a temporary file.

    Permissions are not sufficient: the disk may be full or read-only, and root has all permissions.
    """
    import tempfile

    try:
        with contextlib.suppress(FileNotFoundError):
            path.stat()  # raises for a name that is too long
        existing = next(each for each in (path, *path.parents) if each.exists())
        with tempfile.TemporaryFile(dir=existing) as file:
            file.write(_MAGIC)
            file.flush()
    except OSError:
        return False
    return existing != path or _is_private(path)


def _content_of(file: Path) -> bytes:
    try:
        return file.read_bytes() if file.is_file() else b""  # a pipe would block
    except OSError:  # deleted meanwhile
        return b""


def clear() -> int:
    """Delete all entries and abandoned temporary files; return the number of deleted entries.

    Raises OSError, after deleting the others, if a file cannot be deleted.
    """
    path = folder()
    count = 0
    last_error: OSError | None = None
    if path.is_dir():
        for file in [*path.glob("*" + _SUFFIX), *path.glob("*.part")]:
            try:
                if file.suffix != _SUFFIX and time.time() - file.stat().st_mtime < _WRITE_SECONDS:
                    continue  # another process may be writing it
                file.unlink()
                count += file.suffix == _SUFFIX
            except FileNotFoundError:  # another process deleted it
                continue
            except OSError as error:
                last_error = error
    if last_error is not None:
        raise last_error
    return count
