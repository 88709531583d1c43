"""The kernels that sort words of several numbers, built without a GPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sass
from sass import MAIN, Capability, needs_cuobjdump
from support import sampled
from test_build_radix_sort import check_all, pass_spec, rows_spec

from gpualgo._algorithms.radix_sort import cuda_passes, problem, tuning
from gpualgo._base import records
from gpualgo._cuda import build

OTHERS: list[Capability] = [(7, 5), (12, 0)]
pytestmark = pytest.mark.usefixtures("own_cache")


def word_of(*names: str, ways: tuple[bool, ...] | None = None) -> problem.Group:
    dtypes = [sass.dtype_of(name) for name in names]
    (group,) = problem.groups_of(dtypes, ways or (False,) * len(names))
    return group


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize("capability", sampled([MAIN, *OTHERS], [MAIN]), ids=build.arch_of)
def test_kernels_of_words_with_floats(capability: Capability, tmp_path: Path) -> None:
    word, ways = word_of("float32", "int8", "float16").dtype, (False, True, True)
    small, falls = word_of("float16", "uint8").dtype, (True, False)
    cut = tuning.histogram_policy(1 << 30, 8, sass.shared_bytes(capability))
    specs = [
        tuning.histogram_spec(word, ways, 8, 4, cut, capability >= (9, 0)),
        pass_spec(word, 0, 0, capability, descending=(False,) * 3),
        pass_spec(word, 4, 8, capability, 1 << 20, True, ways),
        pass_spec(small, 8, 8, capability, descending=falls),
        rows_spec(word, 4, 300, 1000, capability, ways),
        tuning.small_rows_spec(small, falls, 8, 8),
    ]
    assert all("SideBySide" in spec.expression for spec in specs)
    check_all(dict.fromkeys(specs, True), capability, tmp_path)


@needs_cuobjdump
@pytest.mark.parametrize("capability", sampled([MAIN, *OTHERS], [MAIN]), ids=build.arch_of)
@pytest.mark.parametrize(
    "sizes",
    sampled([(4, 4), (8,), (1, 2), (4, 2, 1), (8, 4, 2, 1), (1,) * 8], [(8, 4, 2, 1), (1,) * 8]),
    ids=str,
)
def test_packing_holds_all_in_registers(
    sizes: tuple[int, ...], capability: Capability, tmp_path: Path
) -> None:
    size = next(size for size in problem.WORD_SIZES if sum(sizes) <= size)
    specs = []
    for is_dense in (True, False):
        for index_bytes in (0, 4, 8):
            index = tuning.word(index_bytes) if index_bytes else "gpualgo::InOrder"
            specs.append(cuda_passes.words_spec("pack", size, sizes, is_dense, index))
        specs.append(cuda_passes.words_spec("unpack", size, sizes, is_dense))
    check_all(dict.fromkeys(specs, False), capability, tmp_path)


def test_words_of_integers_are_sorted_as_integers() -> None:
    """They take no kernels of their own."""
    word = word_of("int8", "uint16", "bool").dtype
    plain = np.dtype("uint32")
    cut = tuning.pass_policy(1 << 20, 4, 4, 4, sass.shared_bytes(MAIN))
    ours, others = (
        tuning.pass_spec(dtype, ways, 4, 4, 4, cut, False, True)
        for dtype, ways in ((word, (False, True, True)), (plain, False))
    )
    assert ours.expression == others.expression


# --- which numbers share a word -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "sizes"),
    [
        (("u1",) * 8, [8]),
        (("u1", "f4", "f4"), [8, 4]),
        (("f8", "f8"), [8, 8]),
        (("u1", "u8", "u1"), [1, 8, 1]),
        (("u1", "u2"), [4]),
        (("u1", "u1"), [2]),
        (("f2",), [2]),
        (("f4",) * 5, [8, 8, 4]),
    ],
)
def test_groups(names: tuple[str, ...], sizes: list[int]) -> None:
    dtypes = [np.dtype(name) for name in names]
    groups = problem.groups_of(dtypes, [False] * len(names))
    assert [group.dtype.itemsize for group in groups] == sizes
    assert [place for group in groups for place in group.places] == list(range(len(names)))


def test_words_hold_numbers_apart() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        sizes = rng.choice([1, 2, 4, 8, 16, 3], rng.integers(1, 9))
        word = problem.value_word([np.dtype(f"V{size}") for size in sizes])
        fits = len(sizes) > 1 and sum(sizes) <= 16 and not {3, 16} & set(sizes)
        assert (word is not None) == fits
        if word is None:
            continue
        taken: list[int] = []
        for begin, size in zip(records.offsets(word), sizes, strict=True):
            assert begin // 8 == (begin + size - 1) // 8  # not across 8 bytes
            taken += range(begin, begin + size)
        assert sorted(taken) == list(range(sum(sizes)))  # without gaps, as kernels have them
        assert word.itemsize in problem.WORD_SIZES
