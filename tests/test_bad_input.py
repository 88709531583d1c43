"""Bad input and outputs: the type of every error, what it says, and that `out` is left alone."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support import Backend, count_gpus

import gpualgo as ga


def add(a: Any, b: Any) -> Any:
    return a + b


@contextmanager
def refused(
    backend: Backend,
    kind: type[Exception] | tuple[type[Exception], ...],
    message: str,
    out: Any = None,
) -> Iterator[None]:
    """Expect `kind`, whose one sentence matches `message`, and every byte of out unchanged."""
    before = None if out is None else backend.to_host(out).tobytes()
    with pytest.raises(kind, match=message) as caught:
        yield
    assert out is None or backend.to_host(out).tobytes() == before
    assert "\n" not in str(caught.value) or kind is ga.CompileError


def _x(backend: Backend, dtype: Any = "float32", shape: Any = (6,)) -> Any:
    return backend.to_device((np.arange(np.prod(shape)).reshape(shape) % 7).astype(dtype))


NOT_ARRAYS: list[Any] = [[1.0, 2.0], (1, 2), 3.0, 3, True, None, "123", b"123", {1: 2}, range(3)]


@pytest.mark.parametrize("value", [*NOT_ARRAYS, np.float32(3)], ids=repr)
def test_not_an_array(backend: Backend, value: Any) -> None:
    named = f"{type(value).__name__}|{re.escape(repr(value))}"
    if not isinstance(value, (bool, int, float, np.generic)):  # which may stand beside an array
        with refused(backend, TypeError, f"^transform: .*({named})"):
            ga.transform(add, _x(backend), value)


def test_a_list_is_told_the_way(backend: Backend) -> None:
    with refused(backend, TypeError, r"numpy\.asarray"):
        ga.reduce([1.0, 2.0])


BAD_DTYPES: list[tuple[Any, str]] = [
    (np.array([1, None], object), r"object.*x\.astype\(float\), or pass integer codes: np\.unique"),
    (np.array([Fraction(1, 2)]), r"object.*x\.astype\(float\)"),
    (np.array(["a", "b"]), r"<U1.*pass integer codes: np\.unique"),
    (np.array([b"a"]), r"S1.*pass integer codes: np\.unique"),
    (np.zeros(3, "M8[s]"), r"datetime64.*pass x\.view\(np\.int64\)"),
    (np.zeros(3, "m8[ns]"), r"timedelta64.*pass x\.view\(np\.int64\)"),
    (np.zeros(3, np.longdouble), "longdouble|float128|float96"),
    (np.zeros(3, np.clongdouble), "clongdouble|complex256|complex192"),
    (np.zeros(3, ">f4"), "big-endian.*>f4.*newbyteorder|big-endian.*astype"),
    (np.zeros(3, ">i8"), "big-endian"),
]


BAD_DTYPES += [(np.zeros(3, dtype), "no kernel") for dtype in ("V8", "S8", "U2")]


def test_a_long_int_next_to_an_array() -> None:
    x = np.arange(3)
    for call in (
        lambda: ga.reduce((x, 2**70), None, lambda a, b: a),
        lambda: ga.searchsorted(x, 2**70),
        lambda: ga.lazy.full(3, 2**70),
        lambda: ga.lazy.arange(2**70),
    ):
        with pytest.raises(TypeError, match="is an int of more than 64 bits"):
            call()


@pytest.mark.parametrize("op", [3, "add", None, [max], np.ones(2)], ids=str)
def test_operators_that_are_not_callable(op: Any) -> None:
    with pytest.raises(TypeError, match=rf"Operator: .*{type(op).__name__}"):
        ga.Operator(op)


ONE_OR_THREE: list[Callable[..., Any]] = [
    lambda a: a,
    lambda a, b, c: a,
    lambda: 1,
    lambda a, *, b: a,
    lambda a, b, *, c: a,
]


@pytest.mark.parametrize("op", ONE_OR_THREE)
def test_operators_with_the_wrong_number_of_parameters(backend: Backend, op: Any) -> None:
    x, out = _x(backend), _x(backend)
    with refused(backend, TypeError, r"^transform: op (takes|has) .*", out):
        ga.transform(op, x, x, out=out)
    with refused(backend, TypeError, r"^transform: op takes .*"):
        ga.transform(np.add, x)


def _unsupported(a: Any, b: Any) -> Any:
    return a.no_such_attribute + b


def _reads_a_module(a: Any, b: Any) -> Any:
    return ast.literal_eval(a) + b


@pytest.mark.parametrize(
    ("op", "kind", "reason"),
    [
        (_unsupported, ga.CompileError, r"unknown attribute 'no_such.*line \d+: return a\.no_such"),
        (_reads_a_module, TypeError, "literal_eval"),  # which kernels cannot hold
    ],
)
def test_operators_that_do_not_compile(
    backend: Backend, op: Any, kind: type[Exception], reason: str
) -> None:
    x, out = _x(backend), _x(backend)
    line = op.__code__.co_firstlineno
    calls: list[Callable[[], Any]] = [
        lambda: ga.reduce(x, None, op),
        lambda: ga.transform(op, x, x, out=out),
    ]
    for call in calls:
        with refused(backend, kind, rf"test_bad_input.py:{line}: def {op.__name__}", out):
            call()
        with refused(backend, kind, reason):
            call()


@pytest.mark.parametrize(
    "op",
    [lambda a, b: None, lambda a, b: "text", lambda a, b: (a, (b, (a, b)))],
    ids=["None", "str", "tuples"],
)
def test_operators_that_return_no_number(backend: Backend, op: Any) -> None:
    out = _x(backend)
    with refused(backend, TypeError, "op returns"):
        ga.reduce(out, None, op)
    with refused(backend, TypeError, "op returns", out):
        ga.transform(op, out, out, out=out)


def test_operator_results_that_do_not_fit(backend: Backend) -> None:
    x, out = _x(backend, "int32"), _x(backend, "int32")
    with refused(backend, TypeError, r"op.* returns float64.*int32", out):
        ga.transform(lambda a: a / 2, x, out=out)
    with refused(backend, TypeError, r"op.* returns complex"):
        ga.transform(lambda a: a * 1j, x, dtype="float64")


def test_operators_without_meaning_for_the_dtype(backend: Backend) -> None:
    with refused(backend, TypeError, r"^transform: .*float32"):
        ga.transform(np.bitwise_xor, _x(backend), _x(backend))


def test_an_axis_of_an_array_that_has_none(backend: Backend) -> None:
    with refused(backend, np.exceptions.AxisError, "axis.*out of bounds"):
        ga.reduce(_x(backend, shape=()), axis=0)


@pytest.mark.parametrize("identity", ["zero", 0.5, [0], 300], ids=repr)
def test_identity_that_does_not_fit(backend: Backend, identity: Any) -> None:
    with refused(backend, (TypeError, ValueError), "identity"):
        ga.reduce(_x(backend, "int8")[:0], None, ga.Operator(add, identity=identity))


def test_transform_without_arrays(backend: Backend) -> None:
    with refused(backend, TypeError, "^transform: pass 1 to 8 arguments"):
        ga.transform(lambda: 1)


def test_shapes_that_do_not_broadcast(backend: Backend) -> None:
    with refused(backend, ValueError, r"^transform: .*\(2, 3\).*\(2,\)"):
        ga.transform(add, _x(backend, shape=(2, 3)), _x(backend, shape=(2,)))


def test_keepdims_changes_the_shape_wanted(backend: Backend) -> None:
    out = _x(backend)
    with refused(backend, ValueError, r"^reduce: out .*shape.*\(1, 6\)", out):
        ga.reduce(_x(backend, shape=(4, 6)), axis=0, keepdims=True, out=out)


def test_wrong_dtype_of_a_transform(backend: Backend) -> None:
    out = _x(backend, "int32")
    with refused(backend, TypeError, "float32.*int32", out):
        ga.transform(lambda a: a, _x(backend), out=out)
    wide = _x(backend, "float64")
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
    base = _x(backend, shape=(100,))
    with refused(backend, ValueError, "^transform: out .*overlap", base):
        ga.transform(operator.add, base[:1], base[50:60], out=base[:10])


@pytest.mark.parametrize("case", OVERLAPS)
def test_partial_overlap(backend: Backend, case: str) -> None:
    x, out = OVERLAPS[case](_x(backend, shape=(100,)))
    with refused(backend, ValueError, "^transform: out .*overlap", out):
        ga.transform(lambda a: a, x, out=out)
    with refused(backend, ValueError, "^transform: out .*overlap", out):
        ga.transform(operator.add, out, x, out=out)  # exact on the first, partial on the second


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "cuda:-1", "CPU", "", 3])
def test_unknown_devices(name: Any) -> None:
    with (
        pytest.raises((ValueError, TypeError), match=r"default_device|device"),
        ga.default_device(name),
    ):
        pass


def test_a_gpu_that_is_not_there() -> None:
    names = ["cuda:99"] if count_gpus() else ["cuda", "cuda:0", "cuda:99"]
    for name in names:
        with pytest.raises(ga.NoDeviceError, match=r"install|found"), ga.default_device(name):
            raise AssertionError("the block was entered")
