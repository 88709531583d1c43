"""Whether two checkouts make the same machine code; no tests, a tool for changes of layout.

    .venv/bin/python tests/same_machine_code.py CHECKOUT_BEFORE CHECKOUT_AFTER [-k EXPRESSION]

Each checkout runs its own tests that build machine code (those of sm_90), in a process of its own,
and every machine code that NVRTC or nvJitLink returns meanwhile is taken down: of recognised
operators and of operators in Python. Nothing is asked of the checkouts but that their tests are
named test_build*.py, and call an architecture other than sm_90 `capability`: modules and headers
may have moved. A kernel is known by its name with template arguments. What is compared of it: its
instructions, the data that they read, shared memory, registers and the sizes of its parameters.

The tests' own results do not count here, but a test that fails early asks for fewer kernels; so
failures are told, and so are kernels that only one checkout asked for. -k is pytest's.
To go without the first half of the time the next time, keep what a checkout makes:

    .venv/bin/python tests/same_machine_code.py --record BEFORE.json CHECKOUT_BEFORE

and give BEFORE.json instead of the checkout. Exit status: 0 if all that both asked for is the
same, 1 if not or if they have nothing in common.
"""

from __future__ import annotations

import argparse
import collections
import importlib.util
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cubin import Cubin, digest_of

MAIN = (9, 0)
TESTS = "test_build*.py"
Codes = dict[str, list[str]]  # kernel -> digests; more than one where Python operators differ


# --- one checkout, in a process of its own ----------------------------------------------------


class Recorder:
    """A plugin of pytest that takes down what the compilers return."""

    def __init__(self) -> None:
        self.codes: collections.defaultdict[str, set[str]] = collections.defaultdict(set)
        self.expressions: dict[str, str] = {}  # by mangled name
        self.failed: list[str] = []

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave out the tests of other architectures."""
        given = [getattr(getattr(item, "callspec", None), "params", {}) for item in items]
        wanted = [params.get("capability", MAIN) == MAIN for params in given]
        items[:] = itertools.compress(items, wanted)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def watch_compilers(self) -> None:
        """Put functions that listen in front of NVRTC's and nvJitLink's."""
        nvjitlink: Any = importlib.import_module("cuda.bindings.nvjitlink")
        name = "compilers" if importlib.util.find_spec("gpualgo._cuda.compilers") else "build"
        toolchain: Any = importlib.import_module(f"gpualgo._cuda.{name}")
        toolchain.compiled = self._listening(toolchain.compiled)
        linked = nvjitlink.get_linked_cubin

        def get_linked_cubin(linker: Any, cubin: bytearray) -> Any:
            result = linked(linker, cubin)
            self._keep("linked", bytes(cubin))
            return result

        nvjitlink.get_linked_cubin = get_linked_cubin

    def _listening(self, compiled: Callable[..., Any]) -> Callable[..., Any]:
        def listening(source: str, expression: str, *others: Any, **named: Any) -> Any:
            code, name = compiled(source, expression, *others, **named)
            self.expressions[name] = expression
            if code.startswith(b"\x7fELF"):  # LTO-IR is not
                self._keep("compiled", code)
            return code, name

        return listening

    def _keep(self, how: str, code: bytes) -> None:
        name = Cubin(code).kernel
        self.codes[f"{how}: {self.expressions.get(name, name)}"].add(digest_of(code))


def record(checkout: Path, only: str) -> dict[str, Any]:
    """Run a checkout's tests in this process, and return what they built."""
    import pytest

    os.chdir(checkout)
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    sys.path[0] = str(checkout)
    files = sorted(map(str, (checkout / "tests").rglob(TESTS)))
    recorder = Recorder()
    recorder.watch_compilers()
    quiet = ["-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", "-o", "addopts="]
    with tempfile.TemporaryDirectory() as cache:  # so that all is compiled here
        os.environ["GPUALGO_CACHE_DIR"] = cache
        pytest.main([*quiet, "-k", only, *files], plugins=[recorder])
    used = Path(str(importlib.import_module("gpualgo").__file__)).resolve()
    if checkout not in used.parents:
        raise SystemExit(f"{checkout} was to be tested, but {used} was imported")
    codes = {label: sorted(digests) for label, digests in recorder.codes.items()}
    return {"codes": codes, "failed": recorder.failed}


def codes_of(place: str, only: str) -> Codes:
    """Return a checkout's kernels, or those that a file from --record holds."""
    path = Path(place).resolve()
    with tempfile.TemporaryDirectory() as scratch:
        if path.is_dir():
            written = Path(scratch) / "record.json"
            command = [sys.executable, str(Path(__file__).resolve()), "--record", str(written)]
            subprocess.run([*command, "-k", only, str(path)], check=True)
            path = written
        recorded = json.loads(path.read_text())
    print(f"{place}: {len(recorded['codes'])} kernels asked for", end="")
    print(f", {len(recorded['failed'])} tests failed" if recorded["failed"] else "")
    codes: Codes = recorded["codes"]
    return codes


# --- both -------------------------------------------------------------------------------------


def compare(before: Codes, after: Codes) -> int:
    """Print which kernels differ; return the exit status."""
    common = sorted(before.keys() & after.keys())
    # Where operators in Python were added or taken away, the others must have remained.
    differ = [
        kernel
        for kernel in common
        if set(before[kernel]) - set(after[kernel]) and set(after[kernel]) - set(before[kernel])
    ]
    for kernel in differ:
        print(f"differs: {kernel}")
    for where, more, fewer in (("before", before, after), ("after", after, before)):
        for kernel in sorted(more.keys() - fewer.keys()):
            print(f"only {where}: {kernel}")
    linked = [kernel for kernel in common if kernel.startswith("linked")]
    codes = sum(len(after[kernel]) for kernel in linked)
    print(
        f"{len(common)} kernels ({len(linked)} linked with Python operators, to {codes} machine "
        f"codes): {len(common) - len(differ)} the same, {len(differ)} differ; "
        f"{len(before.keys() ^ after.keys())} in only one checkout"
    )
    return int(bool(differ) or not common)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("places", nargs="+", help="one or two checkouts, or files of --record")
    parser.add_argument("--record", type=Path, help="write what the one checkout makes")
    parser.add_argument("-k", default="", metavar="EXPRESSION", help="only these tests")
    given = parser.parse_args()
    if len(given.places) != (1 if given.record else 2):
        parser.error("give two checkouts to compare, or one and --record FILE")
    if given.record:
        file = given.record.resolve()
        file.write_text(json.dumps(record(Path(given.places[0]).resolve(), given.k), indent=1))
        return 0
    return compare(*(codes_of(place, given.k) for place in given.places))


if __name__ == "__main__":
    sys.exit(main())
