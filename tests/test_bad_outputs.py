"""Outputs that must be refused before anything is written, and calls that run out of memory."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from support import Backend, random_array
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
