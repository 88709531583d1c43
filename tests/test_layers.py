"""Import rules in addition to the contracts in .importlinter: no files import in a circle."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from support import REPOSITORY

if TYPE_CHECKING:
    from grimp import ImportGraph

ANNOTATIONS = "gpualgo._base.annotations"


def build(*, has_annotations: bool) -> ImportGraph:
    """Return the graph of all imports, also of those within functions."""
    grimp = pytest.importorskip("grimp", reason="it is installed by the extra dev")
    built: ImportGraph = grimp.build_graph(
        "gpualgo", cache_dir=None, exclude_type_checking_imports=not has_annotations
    )
    return built


@pytest.fixture(scope="module")
def graph() -> ImportGraph:
    """The imports that run."""
    return build(has_annotations=False)


def circles_of(names: set[str], imported_by: Callable[[str], set[str]]) -> list[list[str]]:
    """Return the sets of modules each of which imports each other, directly or not."""
    reached: dict[str, set[str]] = {}
    for name in names:
        seen: set[str] = set()
        waiting = [name]
        while waiting:
            for other in imported_by(waiting.pop()) - seen:
                seen.add(other)
                waiting.append(other)
        reached[name] = seen
    found = {
        frozenset(other for other in reached[name] if name in reached[other])
        for name in names
        if name in reached[name]
    }
    return sorted(sorted(circle) for circle in found)


def test_no_file_imports_itself_by_way_of_others() -> None:
    """Imports for annotations count."""
    graph = build(has_annotations=True)
    assert len(graph.modules) > 100, "the graph is not that of this package"
    circles = circles_of(graph.modules, graph.find_modules_directly_imported_by)
    assert not circles, "\n".join(map(" <-> ".join, circles))


def test_circles_are_found() -> None:
    imports = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": set()}
    assert circles_of(set(imports), imports.__getitem__) == [["a", "b", "c"]]


def test_annotations_are_for_type_checkers_alone(graph: ImportGraph) -> None:
    assert ANNOTATIONS in graph.modules
    assert not graph.find_modules_that_directly_import(ANNOTATIONS)


def test_the_root_has_public_modules_alone() -> None:
    files = {path.name for path in (REPOSITORY / "gpualgo").iterdir() if path.is_file()}
    private = {name for name in files if name.startswith("_") and not name.startswith("__")}
    assert {"__init__.py", "__main__.py", "py.typed"} <= files
    assert not private
