"""What is shipped: the wheel's files and dependencies, the examples, the README's commands."""

from __future__ import annotations

import re
import runpy
import tarfile
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
    with pytest.MonkeyPatch.context() as patch:  # compiling its kernels takes a minute
        patch.setenv("HATCH_BUILD_NO_HOOKS", "true")
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
    assert not [name for name in names if "bench" in name], "the benchmark is no part of it"
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
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Version"] == ga.__version__
    extras = set(metadata.get_all("Provides-Extra"))
    assert {"cu12", "cu13", "test", "bench", "docs", "demo", "dev"} <= extras


REPOSITORY_URL = "https://github.com/gpualgo/gpualgo"


def test_urls_and_versions_are_told(wheel: zipfile.ZipFile) -> None:
    metadata = metadata_of(wheel)
    urls = dict(url.split(", ", 1) for url in metadata.get_all("Project-URL"))
    assert {"Homepage", "Documentation", "Repository", "Issues", "Changelog"} <= set(urls)
    for url in urls.values():
        assert url.startswith(REPOSITORY_URL)
        path = re.sub(r"^/(blob|tree)/main/", "", url.removeprefix(REPOSITORY_URL))
        assert not path or path == "/issues" or (REPOSITORY / path).exists()
    classifiers = metadata.get_all("Classifier")
    python = "Programming Language :: Python :: 3"
    assert {f"{python}.{minor}" for minor in range(11, 14)} <= set(classifiers)


def test_every_dependency_has_an_upper_bound(wheel: zipfile.ZipFile) -> None:
    """But for tools, and what an extra of its own bounds."""
    tools = re.compile(r"extra == .(dev|bench|docs|test).")
    for each in metadata_of(wheel).get_all("Requires-Dist"):
        if not tools.search(each) and not each.startswith("gpualgo"):
            assert re.search(r"<|==", each.partition(";")[0]), each


def test_conda_recipe_and_citation_agree() -> None:
    recipe = (REPOSITORY / "conda" / "recipe.yaml").read_text()
    project = (REPOSITORY / "pyproject.toml").read_text()
    assert f'version: "{ga.__version__}"' in recipe
    assert f"\nversion: {ga.__version__}\n" in (REPOSITORY / "CITATION.cff").read_text()
    bounds = re.findall(r"^    - (numpy|numba|cuda-core|ml_dtypes) (\S+)", recipe, re.M)
    assert len(bounds) == 6
    for name, bound in bounds:
        assert re.search(rf'"{name}{re.escape(bound)}"', project), (name, bound)


def test_source_archive_is_complete(tmp_path: Path) -> None:
    """The wheel, the tests and the pages can be made from it."""
    builder = pytest.importorskip("hatchling.builders.sdist").SdistBuilder(str(REPOSITORY))
    with tarfile.open(next(builder.build(directory=str(tmp_path)))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = ["LICENSE", "README.md", "SECURITY.md", "CITATION.cff", "CHANGELOG.md",
              "pyproject.toml", "conda/recipe.yaml", ".importlinter",
              "hatch_build.py"]  # fmt: skip
    for folder, kind in (("gpualgo", "*.py"), ("cuda_src", "*.cuh"), ("tests", "*.py"),
                         ("docs", "*.md"), ("bench", "*.py"), ("bench", "*.cu"),
                         ("bench", "*.json")):  # fmt: skip
        found = (REPOSITORY / folder).rglob(kind)
        wanted += [path.relative_to(REPOSITORY).as_posix() for path in found]
    assert [name for name in wanted if name not in names] == []


def test_readme_has_its_two_commands() -> None:
    readme = (REPOSITORY / "README.md").read_text()
    commands = re.findall(r"^python3 -m venv .*$", readme, flags=re.MULTILINE)
    assert len(commands) == 2
    assert commands[0].endswith("gpualgo demo")
    assert "pytest" in commands[1]
