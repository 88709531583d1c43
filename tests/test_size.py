"""How large the package may be: ceilings of lines and of files, which hold in every change.

Numbers are only lowered: a change that makes a folder smaller writes the smaller number here, and
one that needs more room takes it from the same folder.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support import REPOSITORY

# Lines of Python below each folder of gpualgo/ and in bench/, and of CUDA below cuda_src/.
LINES = {
    "bench": 3_000,
    "gpualgo": 64_769,
    "gpualgo/_algorithms": 22_342,
    "gpualgo/_api": 2_574,
    "gpualgo/_arrays": 1_809,
    "gpualgo/_base": 2_431,
    "gpualgo/_cli": 1_149,
    "gpualgo/_cpu": 2_948,
    "gpualgo/_cuda": 2_874,
    "gpualgo/_distributed": 300,
    "gpualgo/_driver": 1_951,
    "gpualgo/_lazy": 2_377,
    "gpualgo/_operators": 6_710,
    "gpualgo/_pipeline": 3_186,
    "gpualgo/dask": 1_861,
    "gpualgo/jax": 1_411,
    "gpualgo/lazy": 820,
    "gpualgo/numpy": 6_113,
    "gpualgo/torch": 1_687,
    "gpualgo/shards": 2_071,
    "cuda_src": 18_069,
}
FILES = 247  # of Python below gpualgo/
LINES_OF_A_FILE = 600


def files_below(folder: str) -> list[Path]:
    suffix = ".cuh" if folder == "cuda_src" else ".py"
    return sorted((REPOSITORY / folder).rglob("*" + suffix))


def lines_of(path: Path) -> int:
    return path.read_bytes().count(b"\n")


@pytest.mark.parametrize("folder", LINES)
def test_folder_is_not_too_large(folder: str) -> None:
    assert sum(map(lines_of, files_below(folder))) <= LINES[folder]


def test_every_folder_has_a_ceiling() -> None:
    paths = (path.relative_to(REPOSITORY) for path in files_below("gpualgo"))
    assert {path.parent.parts[:2] for path in paths} == {
        tuple(name.split("/")) for name in LINES if name not in ("bench", "cuda_src")
    }


def test_files_are_not_too_many() -> None:
    assert len(files_below("gpualgo")) <= FILES


def test_no_file_is_too_long() -> None:
    paths = files_below("gpualgo") + files_below("bench") + files_below("cuda_src")
    assert not [str(path) for path in paths if lines_of(path) > LINES_OF_A_FILE]
