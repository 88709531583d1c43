"""Bad input of scans: the type of every error, what its message says, and that `out` is left alone.

Every test is for both scans: the message names the one that was called.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Backend
from test_bad_input import BAD_DTYPES, NOT_ARRAYS, ONE_OR_THREE, refused

import gpualgo as ga

pytestmark = pytest.mark.parametrize("scan", [ga.inclusive_scan, ga.exclusive_scan])


def add(a: Any, b: Any) -> Any:
    return a + b


def _x(backend: Backend, dtype: Any = "float32", shape: Any = (6,)) -> Any:
    return backend.to_device((np.arange(np.prod(shape)).reshape(shape) % 7).astype(dtype))


@pytest.mark.parametrize("value", [*NOT_ARRAYS, np.float32(3)], ids=repr)
def test_not_an_array(backend: Backend, scan: Any, value: Any) -> None:
    with refused(
        backend, TypeError, rf"^{scan.__name__}: x .*{type(value).__name__}.*(asarray|one)"
    ):
        scan(value)


def test_masked_arrays(backend: Backend, scan: Any) -> None:
    with refused(backend, TypeError, rf"^{scan.__name__}: x is a masked array.*filled"):
        scan(np.ma.masked_array([1, 2, 3], [0, 1, 0]))


@pytest.mark.parametrize(("x", "message"), BAD_DTYPES, ids=[str(x.dtype) for x, _ in BAD_DTYPES])
def test_dtypes_without_kernels(backend: Backend, scan: Any, x: Any, message: str) -> None:
    with refused(backend, TypeError, f"^{scan.__name__}: x.*({message})"):
        scan(x)
    with refused(backend, TypeError, f"^{scan.__name__}: .*dtype"):
        scan(np.ones(3, np.int8), dtype=x.dtype)
    with refused(backend, TypeError, f"^{scan.__name__}: out.*({message})"):
        scan(np.ones(3, np.int8), out=x)


@pytest.mark.parametrize("dtype", ["nope", "float31", 12, [1], "f4,i4"], ids=str)
def test_unknown_dtype_names(backend: Backend, scan: Any, dtype: Any) -> None:
    with refused(backend, TypeError, f"^{scan.__name__}: .*dtype"):
        scan(_x(backend), dtype=dtype)


@pytest.mark.parametrize("op", [3, "add", None, [max], np.ones(2)], ids=str)
def test_operators_that_are_not_callable(backend: Backend, scan: Any, op: Any) -> None:
    out = _x(backend)
    with refused(backend, TypeError, rf"^{scan.__name__}: op .*{type(op).__name__}", out):
        scan(_x(backend), 1, op, out=out)


@pytest.mark.parametrize("op", ONE_OR_THREE)
def test_operators_with_the_wrong_number_of_parameters(
    backend: Backend, scan: Any, op: Any
) -> None:
    for wrapped in (op, ga.Operator(op)):
        with refused(backend, TypeError, rf"^{scan.__name__}: op (takes|has) .*(two|by position)"):
            scan(_x(backend), 1, wrapped)


def _unsupported(a: Any, b: Any) -> Any:
    return a.no_such_attribute + b


def test_operators_that_do_not_compile(backend: Backend, scan: Any) -> None:
    out, line = _x(backend), _unsupported.__code__.co_firstlineno
    source = rf"test_scan_bad_input.py:{line}: def _unsupported"
    with refused(backend, ga.CompileError, source, out):
        scan(_x(backend), 1, _unsupported, out=out)
    with refused(backend, ga.CompileError, "no_such_attribute"):
        scan(_x(backend), 1, _unsupported)


def test_operators_whose_results_do_not_fit(backend: Backend, scan: Any) -> None:
    table, out = [1, 2], _x(backend, "int32")
    for op in (lambda a, b: None, lambda a, b: "text", lambda a, b: (a, b)):
        with refused(backend, TypeError, "op returns", out):
            scan(_x(backend, "int32"), 1, op, out=out)
    with refused(backend, TypeError, r"op.* returns float64.*int32.*dtype=", out):
        scan(_x(backend, "int32"), 1, lambda a, b: (a + b) * 1.0, out=out)
    with refused(backend, TypeError, r"captures .*list"):
        scan(_x(backend, "int32"), 1, lambda a, b: a + table[b])


def test_operators_without_meaning_for_the_dtype(backend: Backend, scan: Any) -> None:
    with refused(backend, TypeError, rf"^{scan.__name__}: .*bitwise_and.*float32"):
        scan(_x(backend), None, np.bitwise_and)
    with refused(backend, TypeError, rf"^{scan.__name__}: .*maximum.*complex64"):
        scan(_x(backend, "complex64"), 0, max)


@pytest.mark.parametrize(
    ("dtype", "init", "kind", "message"),
    [
        ("int32", 0.0, TypeError, "0.0.*int32"),
        ("bool", 0, TypeError, "0.*bool"),
        ("float32", 1j, TypeError, "1j.*float32"),
        ("int8", 128, ValueError, "128.*int8"),
        ("uint8", -1, ValueError, "-1.*uint8"),
        ("uint64", 2**64, ValueError, "18446744073709551616.*uint64"),
        ("float16", 1e6, ValueError, "1000000.*float16"),
        ("float32", np.zeros(2, "f4"), ValueError, "one value.*2"),
        ("float32", np.zeros(0, "f4"), ValueError, "one value.*0"),
        ("float32", "0", TypeError, "str"),
        ("float32", [0.0], TypeError, "list"),
        ("float32", (0.0,), TypeError, "tuple"),
        ("float32", np.int32(0), TypeError, "float32.*int32"),  # x does not fit the accumulator
        ("complex64", np.float64(0), TypeError, "complex64.*float64"),
        ("float32", np.array(None), TypeError, "object"),
    ],
)
def test_init_that_does_not_fit(
    backend: Backend, scan: Any, dtype: str, init: Any, kind: type[Exception], message: str
) -> None:
    for shape, axis in (((6,), None), ((0,), None), ((2, 3), 0)):
        with refused(backend, kind, f"^{scan.__name__}: .*({message})"):
            scan(_x(backend, dtype, shape), init, axis=axis)


def test_init_that_does_not_fit_dtype(backend: Backend, scan: Any) -> None:
    with refused(backend, TypeError, f"^{scan.__name__}: init .*float64.*int32"):
        scan(_x(backend, "int32"), np.float64(0), dtype="int32")
    with refused(backend, ValueError, f"^{scan.__name__}: init .*300.*int8"):
        scan(_x(backend, "int8"), 300, dtype="int8")
    with refused(backend, TypeError, f"^{scan.__name__}: .*float32.*int32"):
        scan(_x(backend), dtype="int32")


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


def test_streams_are_not_for_host_arrays(scan: Any) -> None:
    for n in (0, 3):
        with ga.default_device("cpu"), pytest.raises(ValueError, match=f"^{scan.__name__}: stream"):
            scan(np.ones(n), stream=0)


def test_what_has_no_axes(backend: Backend, scan: Any) -> None:
    with refused(backend, np.exceptions.AxisError, "axis.*out of bounds"):
        scan(_x(backend)[:1].reshape(()), axis=0)


def test_in_place_but_flattened(backend: Backend, scan: Any) -> None:
    x = _x(backend, shape=(4, 6))
    with refused(backend, ValueError, rf"^{scan.__name__}: out .*shape.*\(24,\)", x):
        scan(x, out=x)


def test_read_only_or_without_memory_of_its_own(backend: Backend, scan: Any) -> None:
    frozen = np.zeros(6, np.float32)
    frozen.flags.writeable = False
    for x in (np.ones(6, np.float32), frozen):
        with refused(backend, ValueError, rf"^{scan.__name__}: out .*read-only"):
            scan(x, out=frozen)
    base = backend.to_device(np.zeros(1, np.float32))
    spread = backend.xp.lib.stride_tricks.as_strided(base, (6,), (0,))
    for x in (_x(backend), spread):
        with refused(backend, ValueError, rf"^{scan.__name__}: out .*share memory", spread):
            scan(x, out=spread)


def test_out_of_memory(backend: Backend, scan: Any) -> None:
    x = backend.xp.broadcast_to(backend.to_device(np.ones(1)), (1 << 46,))
    for _ in range(3):  # and the library still works after it
        with pytest.raises(MemoryError):
            scan(x)
        assert float(scan(backend.to_device(np.ones(1000)), 1.0)[-1]) in (1000, 1001)
