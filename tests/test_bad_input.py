"""Bad input that is no row of contract/refused.txt, and what other tests of bad input share."""

from __future__ import annotations

import ast
import operator
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


def _x(backend: Backend, shape: Any = (6,)) -> Any:
    return backend.to_device((np.arange(np.prod(shape)).reshape(shape) % 7).astype("float32"))


NOT_ARRAYS: list[Any] = [[1.0, 2.0], (1, 2), 3.0, 3, True, None, "123", b"123", {1: 2}, range(3)]
NOT_ARRAYS += [int, np.float64, np.ndarray]  # whose attributes look like those of arrays


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


def _unsupported(a: Any, b: Any) -> Any:
    return a.no_such_attribute - b  # no other operator is equal to it


def _reads_a_module(a: Any, b: Any) -> Any:
    return ast.literal_eval(a) + b


class _Settings:
    scale = 2.0


def _reads_a_class(a: Any, b: Any) -> Any:
    return a * _Settings.scale + b


@pytest.mark.parametrize(
    ("op", "kind", "reason"),
    [
        (_unsupported, ga.CompileError, r"unknown attribute 'no_such.*line \d+: return a\.no_such"),
        (_reads_a_module, TypeError, "literal_eval"),  # which kernels cannot hold
        (_reads_a_class, ga.CompileError, "hold the class _Settings; assign its numbers to var"),
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


OVERLAPS: dict[str, Any] = {
    "shifted": lambda b: (b[:-1], b[1:]),
    "shifted back": lambda b: (b[1:], b[:-1]),
    "reversed": lambda b: (b, b[::-1]),
    "half": lambda b: (b[:60], b[30:90]),
    "interleaved": lambda b: (b[::2], b[: b.size // 2]),
    "transposed": lambda b: (b.reshape(10, 10), b.reshape(10, 10).T),
}


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
