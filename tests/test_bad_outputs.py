"""Outputs that must be refused before anything is written, and calls that run out of memory."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from support import Backend, assert_same, random_array
from test_bad_input import refused

import gpualgo as ga


def _x(backend: Backend, shape: Any = (4, 6), dtype: str = "float32") -> Any:
    return backend.to_device(random_array(shape, np.dtype(dtype)))


def test_keepdims_changes_the_shape_wanted(backend: Backend) -> None:
    out = _x(backend, (6,))
    with refused(backend, ValueError, r"^reduce: out .*shape.*\(1, 6\)", out):
        ga.reduce(_x(backend), axis=0, keepdims=True, out=out)


def test_wrong_dtype_of_a_transform(backend: Backend) -> None:
    out = _x(backend, dtype="int32")
    with refused(backend, TypeError, "float32.*int32", out):
        ga.transform(lambda a: a, _x(backend), out=out)
    wide = _x(backend, dtype="float64")
    with refused(backend, TypeError, "^transform: out .*float64.*float32", wide):
        ga.transform(lambda a: a, _x(backend), out=wide, dtype="float32")


def test_inputs_may_be_read_only_or_broadcast() -> None:
    x = random_array((3, 5), np.dtype("float32"))
    x.flags.writeable = False
    with ga.default_device("cpu"):
        assert_same(ga.transform(lambda a: a + a, x), x + x)
        assert_same(ga.reduce(x, None, max, axis=0), x.max(axis=0))


OVERLAPS: dict[str, Any] = {
    "shifted": lambda b: (b[:-1], b[1:]),
    "shifted back": lambda b: (b[1:], b[:-1]),
    "reversed": lambda b: (b, b[::-1]),
    "half": lambda b: (b[:60], b[30:90]),
    "interleaved": lambda b: (b[::2], b[: b.size // 2]),
    "transposed": lambda b: (b.reshape(10, 10), b.reshape(10, 10).T),
}


def test_overlap_of_a_broadcast_input(backend: Backend) -> None:
    base = _x(backend, (100,))
    with refused(backend, ValueError, "^transform: out .*overlap", base):
        ga.transform(operator.add, base[:1], base[50:60], out=base[:10])


@pytest.mark.parametrize("case", OVERLAPS)
def test_partial_overlap(backend: Backend, case: str) -> None:
    x, out = OVERLAPS[case](_x(backend, (100,)))
    with refused(backend, ValueError, "^transform: out .*overlap", out):
        ga.transform(lambda a: a, x, out=out)
    with refused(backend, ValueError, "^transform: out .*overlap", out):
        ga.transform(operator.add, out, x, out=out)  # exact on the first, partial on the second


def test_overlap_with_another_dtype(backend: Backend) -> None:
    x = _x(backend, (100,))
    out = x.view(np.int32)
    with refused(backend, ValueError, "^transform: out .*overlap", out):
        ga.transform(lambda a: a > 0, x[:50], out=out[25:75])


def test_neighbours_do_not_overlap(backend: Backend) -> None:
    x = random_array((100,), np.dtype("float32"))
    base = backend.to_device(x.copy())
    ga.transform(lambda a: a + a, base[:50], out=base[50:])
    ga.transform(lambda a: a + a, base[0:50:2], out=base[1:50:2])  # in the gaps
    host = backend.to_host(base)
    assert_same(host[50:], x[:50] + x[:50])
    assert_same(host[1:50:2], x[0:50:2] + x[0:50:2])


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_a_reduction_may_not_write_into_its_input(backend: Backend, axis: int | None) -> None:
    base = _x(backend, (6, 6))
    out = {None: base[2, 3:4].reshape(()), 0: base[0], 1: base[:, 0]}[axis]
    with refused(backend, ValueError, "^reduce: out .*(overlap|shares memory)", base):
        ga.reduce(base, axis=axis, out=out)


def test_out_of_memory(backend: Backend) -> None:
    x = backend.xp.broadcast_to(backend.to_device(np.ones(1)), (1 << 46, 2))
    for _ in range(3):  # and the library still works after it
        with pytest.raises(MemoryError):
            ga.transform(lambda a: a, x)
        with pytest.raises(MemoryError):
            ga.reduce(x, axis=1)
        assert float(ga.reduce(backend.to_device(np.ones(1000)))) == 1000


def test_no_mix_of_host_and_device(cuda: Backend) -> None:
    host, device = np.ones(6, np.float32), _x(cuda, (6,))
    with refused(cuda, TypeError, "^transform: .*(host|[Nn]um[Pp]y)", device):
        ga.transform(operator.add, host, device)
    with refused(cuda, TypeError, "^transform: .*out"):
        ga.transform(lambda a: a, device, out=host)
    with refused(cuda, TypeError, "^transform: .*out", device):
        ga.transform(lambda a: a, host, out=device)
    with refused(cuda, TypeError, "^reduce: .*out"):
        ga.reduce(device, out=host[0].reshape(()))
