"""The disk cache of compiled code: files of bytes, checked on reading, replaced atomically.

A file is a magic line, the SHA-256 of the entry's key and of the rest, and the entry's fields, each
behind its length. Nothing is unpickled. Any damage is a miss, and so is another entry's file; a
folder that others can write to is not used; a folder that cannot be written to leaves the process
with its memory cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_MAGIC = b"gpualgo cache 2\n"
_SUFFIX = ".gpualgo"
FOR_CPU = "cpu-"  # what the keys of the CPU's code begin with
_MAX_ENTRIES = 8192
_PRUNED_EACH = 32  # writes of a process: to look at a full folder takes milliseconds
_warned = False
_num_written = 0


class Seen:
    """The keys of entries that were read, and of those that were written or could not be."""

    def __init__(self) -> None:
        self.read: set[str] = set()
        self.written: set[str] = set()
        self.lost: list[str] = []  # why entries were not kept, each reason once


_seen: list[Seen] = []  # by those who watch


@contextlib.contextmanager
def watched() -> Iterator[Seen]:
    """Take down the keys that are read and written within a ``with`` block, by all threads."""
    seen = Seen()
    _seen.append(seen)
    try:
        yield seen
    finally:
        _seen.remove(seen)


def folder() -> Path:
    """Return the cache's folder, from GPUALGO_CACHE_DIR, XDG_CACHE_HOME or the home folder."""
    named = os.environ.get("GPUALGO_CACHE_DIR")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "gpualgo"


def encode(key: str, fields: tuple[bytes, ...]) -> bytes:
    """Return a file's content for an entry's key and fields."""
    body = b"".join(struct.pack("<Q", len(field)) + field for field in fields)
    return _MAGIC + _digest(key, body) + body


def _digest(key: str, body: bytes) -> bytes:
    found = hashlib.sha256(key.encode() + b"\n")
    found.update(body)
    return found.digest()


def decode(key: str, content: bytes) -> tuple[bytes, ...] | None:
    """Return the fields of a file's content, None if it is damaged or not of this key."""
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
    """Return an entry's fields, None if it is not there or damaged."""
    path = folder() / (key + _SUFFIX)
    if not _is_private(path.parent):
        return None
    try:
        content = path.read_bytes()
    except OSError:
        return None
    found = decode(key, content)
    if found is not None:
        for seen in _seen:
            seen.read.add(key)
    return found


def write(key: str, fields: tuple[bytes, ...]) -> None:
    """Store an entry; where the folder cannot be written, warn once and go on."""
    global _num_written
    path = folder()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private(path):
            raise PermissionError(f"{path} belongs to another user or others can write to it")
        import tempfile  # takes milliseconds, and only a new entry asks

        descriptor, name = tempfile.mkstemp(dir=path, suffix=".part")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(encode(key, fields))
            os.replace(name, path / (key + _SUFFIX))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
        for seen in _seen:
            seen.written.add(key)
        from gpualgo._base import log  # as for this module: nothing of it is needed before

        log.tell(log.DEBUG, "kept on disk: %s", path / (key + _SUFFIX))
        _num_written += 1
        if _num_written % _PRUNED_EACH == 1:
            _prune(path)
    except OSError as error:
        message = (f"compiled kernels are not kept on disk: {error}; set GPUALGO_CACHE_DIR to a "
                   "folder of your own")  # fmt: skip
        for seen in _seen:
            if message not in seen.lost:
                seen.lost.append(message)
        _warn(message)


def _is_private(path: Path) -> bool:
    """Return whether a folder is ours alone to write: what it holds is run."""
    if os.name == "nt":
        return True
    try:
        status = path.stat()
    except OSError:
        return False
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def _prune(path: Path) -> None:
    """Drop the oldest half of an overfull cache."""
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
    except OSError:  # another process has dropped it
        return 0.0


def _warn(message: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(message, RuntimeWarning, stacklevel=3)


def info() -> dict[str, Any]:
    """Return the cache's path, numbers of entries, bytes, damaged entries and health."""
    path = folder()
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
    """Return whether entries can be kept in a folder; it is tried, and leaves nothing behind.

    Permissions do not tell: a disk may be full or take no files, and to root all seem to be given.
    """
    import tempfile

    missing = [each for each in (path, *path.parents) if not each.exists()]
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path) as file:
            file.write(_MAGIC)
            file.flush()
        return _is_private(path)
    except OSError:
        return False
    finally:
        for each in missing:
            with contextlib.suppress(OSError):  # it was not made, or holds entries by now
                each.rmdir()


def _content_of(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:  # gone meanwhile, or no file
        return b""


def clear() -> int:
    """Delete every entry and leftover; return how many entries there were.

    What cannot be deleted is an OSError, once the others are gone.
    """
    path = folder()
    count = 0
    failed: OSError | None = None
    if path.is_dir():
        for file in [*path.glob("*" + _SUFFIX), *path.glob("*.part")]:
            try:
                file.unlink()
                count += file.suffix == _SUFFIX
            except FileNotFoundError:  # another process was faster
                continue
            except OSError as error:
                failed = error
    if failed is not None:
        raise failed
    return count
