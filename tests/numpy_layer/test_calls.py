"""Calls beside NumPy's: `calls.txt` lists them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tables
from numpys_own import check_same
from support import Backend, a_few

TABLE = Path(__file__).with_name("calls.txt")
_NUMBERS = np.array([np.nan, 1.0, 2.0, -np.inf])
ARRAYS: dict[str, Any] = {
    "np": np,
    "X": np.array([[3.5, -1.0, 4.0], [1.5, 0.0, 9.0]]),
    "F": np.array([1, 2, 3], np.float32),
    "I8": np.array([1, -5, 100], np.int8),
    "S": np.array([1.26, -2.5, np.inf, np.nan]),
    "FLAT": np.array([3, 1, 2]),
    "RISING": np.array([1, 3, 3, 7]),
    "SQUARES": np.arange(12.0).reshape(4, 3) ** 2,
    "MARKS": np.array([True, False, True, False]),
    "MARKED": np.array([[0.0, -0.0, 2.0], [np.nan, 0.0, -1.0]]),
    "WITH_NAN": np.array([[1.0, np.nan, -2.0], [7.0, 7.0, np.nan]]),
    "PARTS": np.add.outer(_NUMBERS, 1j * _NUMBERS[1:3]).ravel(),
    "KINDS_OF_NAN": np.random.default_rng(0).permutation(
        np.array([complex(a, b) for a in _NUMBERS for b in (*_NUMBERS, 0.0, -0.0)] * 2, "c8")
    ),
}


def fault(backend: Backend, words: list[str], text: str) -> str:
    """Return how a call differs from NumPy's."""
    since = words[words.index("since") + 1] if "since" in words else "2.0"
    if np.lib.NumpyVersion(np.__version__) < f"{since}.0" or (
        "host" in words and backend.xp is not np
    ):
        return ""
    ulps = int(words[words.index("ulps") + 1]) if "ulps" in words else 0
    how: Any = {"ulps": ulps, "is_lazy": "lazy" in words, "stays_lazy": "stays" in words}
    name = text.partition("(")[0]

    def compared(*args: Any, **kwargs: Any) -> None:
        check_same(backend, name, *args, **how, **kwargs)

    try:
        eval(text, {**ARRAYS, name: compared})
    except Exception as error:
        return f"{text}\n    {error!r}"
    return ""


@pytest.mark.filterwarnings("ignore")
def test_every_call(backend: Backend) -> None:
    rows = list(tables.lines(TABLE, r"[\w$].*\)$"))
    found = [fault(backend, *row) for row in a_few(rows, len(rows) // 16)]
    assert not any(found), "\n".join(filter(None, found))
