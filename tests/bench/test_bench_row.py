"""A row's calls get the inputs, the library and outputs that they ask for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bench import peers
from bench.peers import OURS, Prepared
from bench.row import POISON, Row, row


def _ones(xp: Any, n: int) -> Any:
    return xp.ones(n, "float32")


def test_sizes_by_clock() -> None:
    calls = {"cub": Prepared(len), "torch": len, "numba": Prepared(len), "others": {"else": len}}
    found = row("a f32", "cpu 1000 20*; device 28", _ones, 4, len, lambda xp, x: len(x), **calls)
    assert [(each.clock, each.n, each.quick) for each in found] == [
        ("cpu", 1000, False), ("cpu", 1 << 20, True), ("device", 1 << 28, False),
    ]  # fmt: skip
    assert list(found[0].calls) == [OURS, "NumPy", "numba", "else"]
    assert list(found[2].calls) == [OURS, "CUB", "CuPy", "torch", "else"]
    assert [each.bytes_moved for each in found] == [4000, 4 << 20, 4 << 28]


def test_calls_get_what_they_require() -> None:
    given: dict[str, Any] = {}

    def counted(x: Any, out: Any, out_count: Any) -> Any:
        given.update(out=out, was=out.copy(), out_count=out_count)
        np.add(x, x, out=out)
        return out

    def prepared(x: Any, out: Any) -> Any:
        return lambda: np.multiply(x, 2, out=out)

    calls = {
        OURS: counted,
        "made": Prepared(prepared),
        "NumPy": lambda xp, x, *, out=None: xp.add(x, x),
    }
    contenders, expected = Row("a f32", 8, "cpu", _ones, calls).prepare()
    assert (expected == 2).all()
    assert [call().tolist() for call in contenders.values()] == [[2] * 8] * 3
    assert (given["was"] == POISON).all()
    assert (given["out"].dtype, given["out"].shape) == (np.float32, (8,))
    assert (given["out_count"].dtype, given["out_count"].shape) == (np.int64, ())
    assert contenders["made"]() is not given["out"], "each has an output of its own"


def test_outputs_are_like_the_expected_result() -> None:
    calls = {OURS: lambda x, out: out}
    expected = lambda x: (x, np.float64(1))  # noqa: E731
    row = Row("a", 4, "cpu", _ones, calls, expected=expected, out_dtype="int32")
    first, second = row.prepare()[0][OURS]()
    assert (first.shape, second.shape) == ((4,), ())
    assert first.dtype == second.dtype == np.int32


def test_a_peer_that_cannot_be_prepared_is_left_out_by_name() -> None:
    def fails(x: Any) -> Any:
        raise RuntimeError("no compiler")

    calls = {OURS: lambda x: x, "NumPy": lambda xp, x: x, "a": Prepared(fails),
             "b": Prepared(lambda x: None)}  # fmt: skip
    contenders, _ = Row("a row", 4, "cpu", _ones, calls).prepare()
    assert list(contenders) == [OURS, "NumPy"]
    assert peers.taken_notes() == [
        {"row": "a row, n=4, cpu", "who": "a", "reason": "RuntimeError: no compiler"}
    ]
    with pytest.raises(RuntimeError, match="no compiler"):
        Row("a row", 4, "cpu", _ones, {**calls, OURS: Prepared(fails)}).prepare()


def test_peers_by_the_beginnings_of_their_names() -> None:
    assert peers.is_here("NumPy, two passes")
    assert peers.is_here("a copy")
    peers.want(["cupy"])
    assert not peers.is_here("NumPy")
    assert peers.is_here("gpualgo, cpu")
