"""Plant the changes of mutations.txt, one at a time: ``python tests/mutations.py [NAME ...]``.

Each is made in a copy of the checkout, in which its tests run until the first that fails. Prints
whether it is caught; the exit status is 1 if one survives. Without names all are planted; a name is
any part of a mutation's. ``--unchanged`` runs the tests without the change: they have to pass.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).with_name("mutations.txt")
PATIENCE = 900  # seconds; what takes longer hangs, and is caught
FAILED = (1, 2)  # pytest's exit status: a test failed, or none could be loaded


@dataclass(frozen=True)
class Change:
    """One change of a file that makes it wrong."""

    name: str
    file: str
    old: str
    new: str

    def planted(self, text: str) -> str:
        """Return the file's text with it."""
        count = text.count(self.old)
        assert count == 1, f"{self.name}: its text occurs {count} times in {self.file}"
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Mutation(Change):
    """A change of a file below gpualgo/."""

    kind: str  # what is wrong then
    tests: str  # arguments of pytest
    backend: str = "cpu"


def changes(table: Path) -> Iterator[dict[str, str]]:
    """Yield the facts of a table's changes.

    ``# FILE`` holds for all below it. A change is ``## NAME``, lines ``key: value``, and a piece
    of the file as a diff: lines after ``-`` go, those after ``+`` come, those after a space stay.
    """
    file = {}
    for part in table.read_text(encoding="utf-8").split("\n\n"):
        lines = part.rstrip("\n").split("\n")
        mark, _, name = lines[0].partition(" ")
        if mark == "#":
            file = {"file": name}
        elif mark == "##":
            facts = dict(line.split(": ", 1) for line in lines[1:] if line[:1] not in " -+")
            old, new = (
                "\n".join(line[1:] for line in lines[1:] if line[:1] in kept)
                for kept in (" -", " +")
            )
            yield {**file, "name": name, **facts, "old": old, "new": new}


def mutations() -> list[Mutation]:
    """Return all of the table."""
    return [Mutation(**facts) for facts in changes(TABLE)]


def copy_to(folder: Path) -> None:
    """Copy what git knows, as it is now, and what it would add."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    for name in names.stdout.splitlines():
        if (REPOSITORY / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, folder / name)


def verdict(mutation: Mutation, folder: Path) -> str:
    """Run a mutation's tests in a copy; return what came of it."""
    tests = [*shlex.split(mutation.tests), "--backend", mutation.backend]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    cache = folder.parent / "cache"
    env = {**os.environ, "PYTHONPATH": str(folder), "GPUALGO_CACHE_DIR": str(cache)}
    try:
        done = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, timeout=PATIENCE,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "caught: the tests do not end"
    if done.returncode == 0:
        return "SURVIVED"
    if done.returncode < 0:
        return f"caught: the process ends by signal {-done.returncode}"
    last = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if done.returncode not in FAILED or not last:
        return f"NO VERDICT: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return f"caught: {last[0].partition(' - ')[0]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--unchanged", action="store_true", help="run the tests without changes")
    args = parser.parse_args()
    chosen = [each for each in mutations()
              if not args.names or any(name in each.name for name in args.names)]  # fmt: skip
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="gpualgo-mutations-") as scratch:
        folder = Path(scratch) / "checkout"
        copy_to(folder)
        for mutation in chosen:
            path = folder / "gpualgo" / mutation.file
            text = path.read_text(encoding="utf-8")
            if not args.unchanged:
                path.write_text(mutation.planted(text), encoding="utf-8")
            start = time.monotonic()
            try:
                found = verdict(mutation, folder)
            finally:
                path.write_text(text, encoding="utf-8")
            wrong += found != "SURVIVED" if args.unchanged else not found.startswith("caught")
            seconds = time.monotonic() - start
            print(f"{seconds:5.0f} s  {mutation.backend:8}  {mutation.name}: {found}", flush=True)
    print(f"{len(chosen)} tried, {wrong} not as they should be")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
