"""Bad input of scans: the type of every error, what its message says, and that `out` is left alone.

Every test is for both scans: the message names the one that was called.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Backend
from test_bad_input import refused

import gpualgo as ga

pytestmark = pytest.mark.parametrize("scan", [ga.inclusive_scan, ga.exclusive_scan])


def add(a: Any, b: Any) -> Any:
    return a + b


def _x(backend: Backend, dtype: Any = "float32", shape: Any = (6,)) -> Any:
    return backend.to_device((np.arange(np.prod(shape)).reshape(shape) % 7).astype(dtype))


def test_operators_without_meaning_for_the_dtype(backend: Backend, scan: Any) -> None:
    with refused(backend, TypeError, rf"^{scan.__name__}: .*bitwise_and.*float32"):
        scan(_x(backend), None, np.bitwise_and)
    with refused(backend, TypeError, rf"^{scan.__name__}: .*maximum.*complex64"):
        scan(_x(backend, "complex64"), 0, max)


@pytest.mark.parametrize("identity", ["zero", 0.5, [0], 300], ids=repr)
def test_identities(backend: Backend, scan: Any, identity: Any) -> None:
    if scan is ga.inclusive_scan:
        for n in (0, 6):  # has no use for one
            assert scan(_x(backend, shape=(n,)), None, max).shape == (n,)
        return
    for n in (0, 6):
        for op in (min, np.maximum, add, ga.Operator(add)):
            with refused(backend, ValueError, r"^exclusive_scan: .*identity.*init=.*Operator"):
                scan(_x(backend, shape=(n,)), None, op)
        with refused(backend, (TypeError, ValueError), "^exclusive_scan: identity"):
            scan(_x(backend, "int8", (n,)), None, ga.Operator(add, identity=identity))


def test_init_on_another_side(cuda: Backend, scan: Any) -> None:
    x, init = _x(cuda), cuda.xp.float32(1) + cuda.xp.zeros(1, "f4")
    with refused(cuda, TypeError, rf"^{scan.__name__}: init .*cuda:0.*numpy on the CPU"):
        scan(np.ones(6, np.float32), init)
    with refused(cuda, ValueError, rf"^{scan.__name__}: init .*one value.*\(6,\)"):
        scan(x, x)
    with refused(cuda, ValueError, rf"^{scan.__name__}: init .*one value.*\(0,\)"):
        scan(x, x[:0])
    with refused(cuda, TypeError, rf"^{scan.__name__}: init .*float32.*float64.*convert"):
        scan(x, init, dtype="float64")
    with refused(cuda, TypeError, rf"^{scan.__name__}: .*float32.*int32"):
        scan(x, cuda.xp.zeros((), "i4"))
    out = cuda.xp.zeros(6, "f4")
    with refused(cuda, ValueError, rf"^{scan.__name__}: out shares memory with init", out):
        scan(x, out[3:4], out=out)


def test_what_has_no_axes(backend: Backend, scan: Any) -> None:
    with refused(backend, np.exceptions.AxisError, "axis.*out of bounds"):
        scan(_x(backend)[:1].reshape(()), axis=0)


def test_in_place_but_flattened(backend: Backend, scan: Any) -> None:
    x = _x(backend, shape=(4, 6))
    with refused(backend, ValueError, rf"^{scan.__name__}: out .*shape.*\(24,\)", x):
        scan(x, out=x)
