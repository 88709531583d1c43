"""Random expressions: lazy, they have the bits of the same steps with an array after each."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import ml_dtypes  # noqa: F401  # the dtype bfloat16
import numpy as np
import support
from hypothesis import given, settings
from hypothesis import strategies as st
from support import BFLOAT16, assert_same, random_array

import gpualgo as ga

KINDS = [np.dtype(name) for name in ("float16", "float32", "int8", "int64", "uint16", "bool")]
DTYPES = st.sampled_from([*KINDS, BFLOAT16])
NUMBERS = st.sampled_from([2, -3, 0.5, True, np.float32(1.25), np.int16(-7), np.float64(0.1)])
SHAPE = (3, 4)

Step = Callable[..., Any]
UNARY: list[Step] = [operator.neg, abs, np.square, lambda a: a * a + a, lambda a: (a + 1) * 2]
BINARY: list[Step] = [
    operator.add, operator.mul, np.maximum, np.minimum, operator.truediv,
    lambda a, b: a * 2 + b, lambda a, b: a if a > b else b,
]  # fmt: skip
VIEWS: list[Callable[[Any], Any]] = [
    lambda x: x[::-1], lambda x: x[:, ::-1], lambda x: x[::-1, ::-1],
    lambda x: x.T.reshape(SHAPE), lambda x: x.reshape(4, 3).T,
]  # fmt: skip


@st.composite
def steps(draw: Any) -> list[tuple[str, Any, list[int]]]:
    """Return steps, each with the places of its arguments among those before."""
    found: list[tuple[str, Any, list[int]]] = []
    for i in range(draw(st.integers(1, 3))):
        found.append(("array", (draw(DTYPES), i), []))
    if draw(st.booleans()):
        found.append(("count", None, []))
    for _ in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(["one", "two", "two", "number", "view"]))
        places = [draw(st.integers(0, len(found) - 1)) for _ in range(2)]
        if kind == "one":
            found.append(("apply", draw(st.sampled_from(UNARY)), places[:1]))
        elif kind == "two":
            found.append(("apply", draw(st.sampled_from(BINARY)), places))
        elif kind == "number":
            op, number = draw(st.sampled_from(BINARY[:4])), draw(NUMBERS)
            found.append(("number", (op, number), places[:1]))
        else:
            found.append(("view", draw(st.sampled_from(VIEWS)), places[:1]))
    return found


def _made(kind: str, what: Any, given: list[Any], apply: Any, asarray: Any) -> Any:
    if kind == "array":
        dtype, seed = what
        return asarray(random_array(SHAPE, dtype, seed))
    if kind == "count":
        return asarray(np.arange(12).reshape(SHAPE))
    if kind == "number":
        return apply(what[0], *given, what[1])
    return what(*given) if kind == "view" else apply(what, *given)


@settings(max_examples=support.examples(25), deadline=None, derandomize=True)
@given(steps())
def test_lazy_is_as_step_by_step(plan: list[tuple[str, Any, list[int]]]) -> None:
    real: list[Any] = []
    lazy: list[Any] = []
    with np.errstate(all="ignore"), ga.default_device("cpu"):
        for kind, what, places in plan:
            try:
                after = _made(kind, what, [real[i] for i in places], ga.transform, lambda x: x)
            except (TypeError, ValueError, ga.CompileError):
                return  # a step that these dtypes do not have: -bool, say
            real.append(after)
            asarray = ga.lazy.asarray
            if kind == "count":
                asarray = lambda x: ga.lazy.arange(12).reshape(SHAPE)  # noqa: E731
            lazy.append(_made(kind, what, [lazy[i] for i in places], ga.lazy.transform, asarray))
        made = lazy[-1]
        assert made.dtype == real[-1].dtype
        assert_same(ga.copy(made), np.ascontiguousarray(real[-1]))


@settings(max_examples=support.examples(25), deadline=None, derandomize=True)
@given(st.data())
def test_views_of_views(data: Any) -> None:
    real = np.arange(2 * 6 * 8).reshape(2, 6, 8)
    made = ga.lazy.arange(96).reshape(2, 6, 8)
    for _ in range(data.draw(st.integers(1, 6))):
        kind = data.draw(st.sampled_from(["slice", "turn", "reshape", "none"]))
        if kind == "slice" and real.ndim:
            cuts = [
                slice(data.draw(st.integers(-9, 9)), data.draw(st.integers(-9, 9)),
                      data.draw(st.sampled_from([1, -1, 2, -3])))
                for _ in range(real.ndim)
            ]  # fmt: skip
            some = real[tuple(cuts)]
            if some.size:
                real, made = some, made[tuple(cuts)]
        elif kind == "turn":
            order = data.draw(st.permutations(range(real.ndim)))
            real, made = real.transpose(order), made.transpose(order)
        elif kind == "reshape":
            real, made = real.reshape(-1), made.reshape(-1)
            halves = real.size // 2
            if real.size == 2 * halves and data.draw(st.booleans()):
                real, made = real.reshape(2, halves), made.reshape(2, halves)
        elif real.ndim < 4:
            real, made = real[None], made[None]
    with ga.default_device("cpu"):
        assert_same(ga.copy(made), real)
