"""What type checkers say of a user's scripts, tests/typed_*.py, and no line more or less."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from support import REPOSITORY

import gpualgo.numpy as gnp

# With the development tools both checkers are there; else a missing one fails.
pytestmark = pytest.mark.skipif(
    find_spec("importlinter") is None,
    reason="type checkers come with the extra dev",
)

SCRIPTS = sorted((REPOSITORY / "tests").glob("typed_*.py"))
Place = tuple[str, int]  # a script, and the number of a line

# What PyTorch's own types say of what the script uses; CuPy's say nothing.
TORCH = """
from enum import IntEnum
from typing import Any
from torch import cuda as cuda

class dtype:
    is_floating_point: bool
    is_complex: bool
    is_signed: bool
    itemsize: int

float32: dtype

class Tensor:
    requires_grad: bool
    def data_ptr(self) -> int: ...
    def is_floating_point(self) -> bool: ...
    @property
    def __cuda_array_interface__(self): ...
    def __dlpack__(
        self, *, stream: Any | None = -1, max_version: tuple[int, int] | None = None,
        dl_device: tuple[IntEnum, int] | None = None, copy: bool | None = None,
    ): ...
    def __dlpack_device__(self) -> tuple[IntEnum, int]: ...

def arange(end: int) -> Tensor: ...
"""
TORCH_CUDA = """
class Stream:
    cuda_stream: int
    def synchronize(self) -> None: ...
"""


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the types of libraries that are not installed here."""
    folder = tmp_path_factory.mktemp("stubs")
    for path, text in (
        ("torch/__init__.pyi", TORCH),
        ("torch/cuda.pyi", TORCH_CUDA),
        ("cupy/__init__.pyi", "from typing import Any\ndef __getattr__(name: str) -> Any: ...\n"),
    ):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    return folder


def marked() -> set[Place]:
    """Return the lines that are wrong."""
    found = {
        (script.name, number)
        for script in SCRIPTS
        for number, line in enumerate(script.read_text(encoding="utf-8").splitlines(), 1)
        if line.endswith("  # error")
    }
    assert len(found) > 50
    return found


def check(reported: dict[Place, str]) -> None:
    missed = sorted(marked() - set(reported))
    wrong = {line: text for line, text in sorted(reported.items()) if line not in marked()}
    assert (missed, wrong) == ([], {})


def test_mypy(stubs: Path, tmp_path: Path) -> None:
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nstrict = true\n[mypy-numba.*]\nignore_missing_imports = true\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(config), "--no-error-summary",
         "--hide-error-context", "--cache-dir", str(REPOSITORY / ".mypy_cache" / "script"),
         "--follow-imports", "silent", *map(str, SCRIPTS)],
        cwd=REPOSITORY, env={**os.environ, "MYPYPATH": str(stubs)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    pattern = re.compile(r"^(?:.*[/\\])?(\w+\.py):(\d+): error: (.*)$", re.MULTILINE)
    found = pattern.findall(done.stdout)
    assert {name for name, _, _ in found} == {script.name for script in SCRIPTS}
    check({(name, int(line)): text for name, line, text in found})


def test_pyright(stubs: Path, tmp_path: Path) -> None:
    """Its wheel, with that of node, is all that pyright needs: see `pyright[nodejs]`."""
    config = tmp_path / "pyrightconfig.json"
    settings = {
        "include": [os.path.relpath(script, tmp_path) for script in SCRIPTS],
        "extraPaths": [str(stubs), str(REPOSITORY)],
        "reportMissingModuleSource": False,
        "reportUnusedExpression": False,
    }
    config.write_text(json.dumps(settings))
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--project", str(config),
         "--pythonpath", sys.executable],
        cwd=REPOSITORY, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout.startswith("{"), done.stdout + done.stderr
    found = json.loads(done.stdout)["generalDiagnostics"]
    places = [(Path(each["file"]).name, each["range"]["start"]["line"] + 1) for each in found]
    assert {name for name, _ in places} == {script.name for script in SCRIPTS}
    check({place: each["message"] for place, each in zip(places, found, strict=True)})


def test_stub_of_numpys_names() -> None:
    """gpualgo/numpy/__init__.pyi has all names, and the parameters of the functions."""
    text = (REPOSITORY / "gpualgo" / "numpy" / "__init__.pyi").read_text(encoding="utf-8")
    names, wrong = set[str](), []
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom):
            names |= {alias.name for alias in node.names if alias.name == alias.asname}
        elif isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "UFunc":
            names.add(ast.unparse(node.target))
        elif isinstance(node, ast.FunctionDef):
            names.add(node.name)
            given = inspect.signature(getattr(gnp, node.name)).parameters.values()
            expected = [(one.name, one.kind, one.default is one.empty) for one in given]
            if _parameters(node.args) != expected:
                wrong.append(node.name)
    assert (sorted(names), wrong) == (sorted(gnp.__all__), [])


def _parameters(args: ast.arguments) -> list[tuple[str, Any, bool]]:
    """Return each parameter's name and kind, and whether it has no default."""
    kinds = inspect.Parameter
    positional = [
        *((one.arg, kinds.POSITIONAL_ONLY) for one in args.posonlyargs),
        *((one.arg, kinds.POSITIONAL_OR_KEYWORD) for one in args.args),
    ]
    num_required = len(positional) - len(args.defaults)
    found = [(name, kind, i < num_required) for i, (name, kind) in enumerate(positional)]
    for one, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        found.append((one.arg, kinds.KEYWORD_ONLY, default is None))
    return found
