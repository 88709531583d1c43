"""What is shipped: the wheel's files and dependencies, the examples, the README's commands."""

from __future__ import annotations

import re
import runpy
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest
from support import REPOSITORY

import gpualgo as ga

EXAMPLES = sorted((REPOSITORY / "docs" / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example_runs(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    builder = pytest.importorskip("hatchling.builders.wheel").WheelBuilder(str(REPOSITORY))
    built = next(builder.build(directory=str(tmp_path_factory.mktemp("dist"))))
    return zipfile.ZipFile(built)


def metadata_of(wheel: zipfile.ZipFile) -> Any:
    name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


def test_wheel_holds_kernels_types_and_licence(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    kernels = (REPOSITORY / "cuda_src").rglob("*.cuh")
    sources = {f"gpualgo/{path.relative_to(REPOSITORY).as_posix()}" for path in kernels}
    assert "gpualgo/cuda_src/parts/types.cuh" in sources
    assert sources <= names
    peers = (REPOSITORY / "gpualgo" / "_bench" / "peers").glob("*.cu")
    assert {f"gpualgo/_bench/peers/{path.name}" for path in peers} | {
        "gpualgo/_bench/targets.json"
    } <= names
    assert "gpualgo/py.typed" in names
    assert f"gpualgo-{ga.__version__}.dist-info/licenses/LICENSE" in names
    assert {name.partition("/")[0] for name in names} == {
        "gpualgo",
        f"gpualgo-{ga.__version__}.dist-info",
    }


def test_wheel_needs_only_numpy_and_numba(wheel: zipfile.ZipFile) -> None:
    metadata = metadata_of(wheel)
    base = [each for each in metadata.get_all("Requires-Dist") if "extra ==" not in each]
    assert {re.split(r"[^\w-]", each)[0] for each in base} == {"numpy", "numba"}
    assert metadata["Requires-Python"] == ">=3.10"
    assert metadata["Version"] == ga.__version__
    extras = set(metadata.get_all("Provides-Extra"))
    assert {"cu12", "cu13", "test", "bench", "docs", "demo", "dev"} <= extras


def test_readme_has_its_two_commands() -> None:
    readme = (REPOSITORY / "README.md").read_text()
    commands = re.findall(r"^python3 -m venv .*$", readme, flags=re.MULTILINE)
    assert len(commands) == 2
    assert commands[0].endswith("gpualgo demo")
    assert "pytest" in commands[1]
