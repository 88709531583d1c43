"""NumPy's own tests with its functions answered here: a plugin of pytest, and what runs it.

Of a module of NumPy's tests the globals alone are replaced as they are imported: the module
`numpy` by ``gpualgo.numpy.wrap(numpy)``, and functions of NumPy's by those. NumPy itself stays as
it is. Run as a script with the names of modules and classes it prints what fails:

    python tests/numpy_layer/numpys_tests.py lib/tests/test_histograms.py -k stone
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gpualgo.numpy as gnp
from gpualgo.numpy import _call
from gpualgo.numpy._call import TABLE

NUMPY = Path(np.__file__).parent
REPOSITORY = Path(__file__).resolve().parents[2]
REPORT = "GPUALGO_NUMPYS_REPORT"  # where the plugin writes what came of each test
_REPLACE = "__replaced_by_ours__"


# --- in the process that runs NumPy's tests ---------------------------------------------------


class Module(pytest.Module):
    """A module of NumPy's tests, imported with our functions for NumPy's."""

    def _getobj(self) -> ModuleType:
        name = ".".join(("numpy", *self.path.relative_to(NUMPY).with_suffix("").parts))
        return imported(self.path, name)


def imported(path: Path, name: str) -> ModuleType:
    """Import a file, each of whose imports at its top is followed by replacing what it brought."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    body = list[ast.stmt]()
    for statement in tree.body:
        body.append(statement)
        is_future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if isinstance(statement, (ast.Import, ast.ImportFrom)) and not is_future:
            body.extend(ast.parse(f"{_REPLACE}()").body)
    tree.body = body
    module = ModuleType(name)
    module.__file__, module.__package__ = str(path), name.rpartition(".")[0]
    vars(module)[_REPLACE] = replacing(vars(module))
    sys.modules[name] = module
    exec(compile(ast.fix_missing_locations(tree), str(path), "exec"), vars(module))
    return module


def replacing(names: dict[str, Any]) -> Callable[[], None]:
    """Return what puts ours in the place of NumPy and its functions in a module's globals."""
    ours = gnp.wrap(np)
    known = {id(getattr(np, name)): name for name in TABLE if hasattr(np, name)}

    def replace() -> None:
        for name, value in list(names.items()):
            if value is np:
                names[name] = ours
            elif id(value) in known:
                names[name] = getattr(ours, known[id(value)])

    return replace


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> Module | None:
    """Import NumPy's test modules in our way."""
    return Module.from_parent(parent, path=module_path) if NUMPY in module_path.parents else None


def pytest_configure(config: pytest.Config) -> None:
    """Leave no array to NumPy, which would test itself."""
    _call.is_few = lambda size, few: False


_found: dict[str, list[str]] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember what came of a test: the worst of its set-up, call and tear-down."""
    if report.failed or (report.when == "call" and report.nodeid not in _found) or report.skipped:
        crash = getattr(report.longrepr, "reprcrash", None)
        text = str(crash.message if crash else report.longrepr or "")
        _found[report.nodeid] = [report.outcome, text[:600]]


def pytest_sessionfinish() -> None:
    """Write what came of each test."""
    if REPORT in os.environ:
        Path(os.environ[REPORT]).write_text(json.dumps(_found), encoding="utf-8")


# --- in the process that asks for it ----------------------------------------------------------


def outcomes(
    chosen: Sequence[str], options: Sequence[str] = (), *, theirs: bool = False, limit: float = 3600
) -> dict[str, tuple[str, str]]:
    """Return what came of NumPy's tests: ``test_x.py::TestY::test_z`` -> (outcome, message).

    ``theirs``: with NumPy's own functions, to tell whether a failure is ours.
    """
    folder = os.pathsep.join([str(REPOSITORY), str(Path(__file__).parent), *_path()])
    with tempfile.TemporaryDirectory() as scratch:
        report, ini = Path(scratch, "report.json"), Path(scratch, "pytest.ini")
        ini.write_text("[pytest]\nfilterwarnings =\n", encoding="utf-8")
        plugins = () if theirs else ("-p", "numpys_tests")
        if theirs:
            plugins = ("-p", "numpys_tests_plain")
            Path(scratch, "numpys_tests_plain.py").write_text(_PLAIN, encoding="utf-8")
        command = [
            sys.executable, "-m", "pytest", "-q", "-c", str(ini), "--rootdir", str(NUMPY),
            "--tb=line", "-p", "no:cacheprovider", "-p", "no:xdist", *plugins, *options,
            *(str(NUMPY / one) for one in chosen),
        ]  # fmt: skip
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([scratch, folder]), REPORT: str(report)}
        env.pop("PYTEST_ADDOPTS", None)
        done = subprocess.run(
            command,
            env=env,
            cwd=scratch,
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
        if not report.exists():
            raise AssertionError(f"NumPy's tests did not end:\n{done.stdout}\n{done.stderr}")
        found = json.loads(report.read_text(encoding="utf-8"))
        if not found:
            raise AssertionError(f"none of NumPy's tests ran:\n{done.stdout}\n{done.stderr}")
    return {_short(name): (outcome, text) for name, (outcome, text) in found.items()}


_PLAIN = "from numpys_tests import pytest_runtest_logreport, pytest_sessionfinish\n"


def _path() -> list[str]:
    return [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]


def _short(nodeid: str) -> str:
    return nodeid.rpartition("/")[2] if "/" in nodeid.partition("::")[0] else nodeid


if __name__ == "__main__":
    is_theirs = "--theirs" in sys.argv
    words = [word for word in sys.argv[1:] if word != "--theirs"]
    modules = [word for word in words if ".py" in word]
    told = outcomes(modules, [word for word in words if ".py" not in word], theirs=is_theirs)
    bad = {name: text for name, (outcome, text) in told.items() if outcome == "failed"}
    for key, text in sorted(bad.items()):
        print(f"{key}\n    {' '.join(text.split())[:300]}")
    print(f"{len(told)} ran, {len(bad)} failed")
