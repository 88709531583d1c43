"""Operators: integers that range, enumerate and zip count are as weak as Python's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Backend, assert_same

import gpualgo as ga


def _enumerates(a: Any) -> Any:
    for i, x in enumerate((1.5, 2.5), start=1):
        a = a + x * i
    return a


def _counts_one_of_two(a: Any) -> Any:
    for i in range(2) if a > 1 else range(3):
        a = a + i
    return a


def _enumerates_a_range(a: Any) -> Any:
    for i, x in enumerate(range(3, 9, 2), 2):
        a = a + i * x
    return a


_TABLE = np.float32([1, 2])


def _zips_numbers_and_a_range(a: Any) -> Any:
    for p, i in zip((1, 2, 3), range(3)):  # noqa: B905
        a = a + p * i
    return a


def _zips_a_table_and_ranges(a: Any) -> Any:
    for x, i, (j, k) in zip(_TABLE, range(3), enumerate(range(5))):  # noqa: B905
        a = a + x * i + j * k
    return a


def _enumerates_a_zip(a: Any) -> Any:
    for i, (x, j) in enumerate(zip((a, a), range(2))):  # noqa: B905
        a = a + x * i + j
    return a


def _zips_a_counted_table(a: Any) -> Any:
    for i, (j, x) in zip(range(3), enumerate(_TABLE)):  # noqa: B905
        a = a + x * i + j
    return a


def _zips_ranges(a: Any) -> Any:
    for i, j in zip(range(3), range(1, 9)):  # noqa: B905
        a = a + i * j
    for i, x in zip(range(1), (1.5,)):  # noqa: B905
        a = a + i + int(x)
    return a


@pytest.mark.parametrize(
    ("op", "given", "wanted"),
    [
        (_enumerates, np.float32([1, 2]), np.float32([7.5, 8.5])),
        (_counts_one_of_two, np.int8([1, 2]), np.int8([4, 3])),
        (_enumerates_a_range, np.uint8([1]), np.uint8([50])),
        (_zips_ranges, np.float32([1]), np.float32([10])),
        (_zips_numbers_and_a_range, np.int8([1]), np.int8([9])),
        (_zips_a_table_and_ranges, np.int8([1]), np.float32([4])),
        (_enumerates_a_zip, np.int16([3]), np.int16([7])),
        (_zips_a_counted_table, np.float16([1]), np.float32([4])),
    ],
)
def test_counters_are_weak(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, op: Any, given: Any, wanted: Any
) -> None:
    monkeypatch.setitem(globals(), "_TABLE", backend.to_device(_TABLE))
    assert_same(backend.to_host(ga.transform(op, backend.to_device(given))), wanted)
