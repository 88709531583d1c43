"""reduce_by_index from a start for each result; tests/contract/test_starts.py has more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Backend, affine, assert_same, compose

import gpualgo as ga
from gpualgo._algorithms.by_index import problem


def _wanted(indices: Any, x: Any, init: Any) -> Any:
    found = init.copy()
    for k, element in zip(indices, x, strict=True):
        found[k] = compose(found[k], element)
    return found


@pytest.mark.parametrize("most_direct", [0, 1, 16])
def test_cpu_has_tables_or_none(monkeypatch: pytest.MonkeyPatch, most_direct: int) -> None:
    """On the CPU elements are folded in tables of shares, or into what results start from."""
    monkeypatch.setattr(problem, "SHARE", 64)
    monkeypatch.setattr(problem, "DIRECT_SHARES", most_direct)
    indices = np.random.default_rng(5).integers(0, 35, 3001)
    x, init = affine(3001), affine(40, seed=3)
    with ga.default_device("cpu"):
        assert_same(ga.reduce_by_index(indices, x, 40, init, compose), _wanted(indices, x, init))
        wide = np.zeros((40, 2), np.uint64)[:, 0]
        ga.reduce_by_index(indices, x, 40, init[0], compose, out=wide)
        assert_same(wide.copy(), _wanted(indices, x, np.repeat(init[:1], 40)))


def test_starts_of_another_part(backend: Backend) -> None:
    x, init, out = (backend.to_device(np.arange(5)) for _ in range(3))
    with pytest.raises(ValueError, match=r"^reduce_by_index: out\[1\] overlaps init\[0\]"):
        ga.reduce_by_index(
            x, (x, x), 5, (init, out), lambda p, q: (q[0], p[1]), out=(x.copy(), init)
        )
    assert backend.to_host(init).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("size", [40, 5000])
def test_outputs_that_op_captures(backend: Backend, size: int) -> None:
    """Are refused, with one start and with many, wherever results are made."""
    out = backend.to_device(np.zeros(size, np.int64))

    def op(a: Any, b: Any) -> Any:
        return a + b + out[0]

    given = backend.to_device(np.array([0, 1, 1])), backend.to_device(np.ones(3, np.int64)), size
    for init in (1, backend.to_device(np.ones(size, np.int64))):
        with pytest.raises(ValueError, match=r"^reduce_by_index: out .* that op captures"):
            ga.reduce_by_index(*given, init, op, out=out)
    assert not backend.to_host(out).any()


def test_no_elements(backend: Backend) -> None:
    """Their indices are computed from arrays whose axes do not merge."""
    starts, rows, columns = map(
        backend.to_device, (np.arange(4), np.zeros((0, 1), np.int64), np.arange(3))
    )
    indices = ga.lazy.asarray(rows) + columns
    result = ga.reduce_by_index(indices, indices, 4, starts)
    assert backend.to_host(result).tolist() == [0, 1, 2, 3]


def test_no_results() -> None:
    with pytest.raises(ValueError, match=r"^reduce_by_index: indices hold 1"):
        ga.reduce_by_index(np.array([0, 1]), np.ones(2), 0, np.ones(0))
