"""NumPy's ufuncs and Python's operators on lazy arrays."""

from __future__ import annotations

import copy
import operator
import pickle
from typing import Any

import numpy as np
import pytest
from support import Backend, a_few, assert_same, random_array

import gpualgo as ga
from gpualgo._operators.numpy_rules import table

UFUNCS = sorted(
    {entry.ufunc for entry in table.ENTRIES if entry.style == "numpy" and entry.ufunc},
    key=lambda ufunc: ufunc.__name__,
)
X = np.array([[0.5, -0.25, 1.0], [0.75, 0.125, -0.5]])
Y = np.array([[0.5, 2.0, -1.0], [3.0, 0.25, 0.5]])
WHOLE = "bitwise_and bitwise_or bitwise_xor left_shift right_shift invert gcd lcm bitwise_count"


GROUPS = [UFUNCS[i : i + 4] for i in range(0, len(UFUNCS), 4)]


@pytest.mark.parametrize("ufuncs", GROUPS, ids=lambda ufuncs: f"{ufuncs[0].__name__} and so on")
def test_ufuncs(ufuncs: list[np.ufunc]) -> None:
    """Those of a group are read by one kernel, which compiles sooner than as many."""
    wanted, read = [], []
    for ufunc in ufuncs:
        given = [X, Y][: ufunc.nin]
        if ufunc.__name__ in WHOLE.split():
            given = [np.abs(x * 8).astype(np.int32) for x in given]
        with np.errstate(all="ignore"):
            want = ufunc(*given)
        made = ufunc(ga.lazy.asarray(given[0]), *given[1:])
        assert type(made) is ga.lazy.LazyArray
        assert (made.shape, made.dtype) == (want.shape, want.dtype), ufunc
        wanted.append((ufunc, want))
        read.append(made)
        if ufunc.nin == 2:  # an array of NumPy's that comes first
            again = ufunc(given[0], ga.lazy.asarray(given[1]))
            assert type(again) is ga.lazy.LazyArray
            wanted.append((ufunc, want))
            read.append(again)
    for (ufunc, want), got in zip(wanted, ga.copy(tuple(read)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14, err_msg=ufunc.__name__)


OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
             operator.mod, operator.pow, operator.lt, operator.le, operator.gt, operator.ge,
             operator.eq, operator.ne]  # fmt: skip


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.__name__)
def test_operators(backend: Backend, op: Any) -> None:
    x, y = np.abs(X), Y
    a, b = backend.to_device(x), backend.to_device(y)
    pairs = (
        (op(ga.lazy.asarray(a), b), op(x, y)),
        (op(ga.lazy.asarray(a), ga.lazy.asarray(b)), op(x, y)),
        (op(ga.lazy.asarray(a), 2), op(x, 2)),
        (op(2, ga.lazy.asarray(a)), op(2, x)),
        (op(np.float32(1.5), ga.lazy.asarray(a)), op(np.float32(1.5), x)),
    )
    assert all(type(made) is ga.lazy.LazyArray for made, _ in pairs)
    found = ga.copy(tuple(made for made, _ in pairs))  # by one kernel
    for (_, want), array in zip(pairs, found, strict=True):
        got = backend.to_host(array)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-14)


@pytest.mark.parametrize("op", [operator.and_, operator.or_, operator.xor, operator.lshift,
                                operator.rshift], ids=lambda op: op.__name__)  # fmt: skip
def test_operators_of_integers(op: Any) -> None:
    x = np.arange(12, dtype=np.int32)
    assert_same(ga.copy(op(ga.lazy.asarray(x), 3)), op(x, 3))
    assert_same(ga.copy(op(3, ga.lazy.asarray(x))), op(3, x))
    assert_same(ga.copy(op(x, ga.lazy.asarray(x))), op(x, x))


def test_operators_of_one() -> None:
    x = np.array([3, -4], np.int8)
    made = ga.lazy.asarray(x)
    for op in (operator.neg, operator.pos, operator.abs, operator.invert):
        assert_same(ga.copy(op(made)), op(x))
    for got, want in zip(divmod(made, 3), divmod(x, 3), strict=True):
        assert_same(ga.copy(got), want)
    for got, want in zip(divmod(7, made), divmod(7, x), strict=True):
        assert_same(ga.copy(got), want)
    for got, want in zip(np.divmod(x, made), np.divmod(x, x), strict=True):
        assert_same(ga.copy(got), want)


def test_in_place_operators_make_new_ones() -> None:
    x = np.arange(3)
    made = before = ga.lazy.asarray(x)
    made += 1
    assert made is not before
    assert_same(ga.copy(before), x)
    assert_same(ga.copy(made), np.arange(3) + 1)
    real = np.arange(3)
    real += made  # one of NumPy's is written
    assert type(real) is np.ndarray
    assert_same(real, np.arange(3) * 2 + 1)


def test_parts_of_complex_numbers() -> None:
    z = random_array(9, np.dtype("complex64"))
    made = ga.lazy.asarray(z)
    assert_same(ga.copy(made.real), z.real)
    assert_same(ga.copy(made.imag), z.imag)
    assert_same(ga.copy(made.conj()), z.conj())
    assert_same(ga.copy(ga.lazy.asarray(X).real), X)
    assert_same(ga.copy(ga.lazy.asarray(X).imag), np.zeros_like(X))


def test_dtype_is_that_of_the_loop() -> None:
    x = np.array([100, 120, -128], np.int8)
    made = ga.lazy.asarray(x)
    for dtype in a_few((np.int32, np.float32, np.complex128)):
        assert_same(ga.copy(np.add(made, 100, dtype=dtype)), np.add(x, 100, dtype=dtype))
        assert_same(ga.copy(np.multiply(x, made, dtype=dtype)), np.multiply(x, x, dtype=dtype))
    assert_same(ga.copy(np.less(made, 3, dtype=bool)), np.less(x, 3))
    with pytest.raises(TypeError, match=r"np\.add: Cannot cast"):
        np.add(made, 1.5, dtype=np.int8)


def test_out() -> None:
    x = np.arange(6.0).reshape(2, 3)
    made = ga.lazy.asarray(x)
    out = np.empty((2, 3))
    assert np.multiply(made, 2, out=out) is out
    assert_same(out, x * 2)
    single = np.empty((2, 3), np.float32)
    assert np.exp2(made, single) is single
    assert_same(single, np.exp2(x).astype(np.float32))
    broad = np.empty((4, 2, 3))
    np.negative(made, out=broad)
    assert_same(broad, np.broadcast_to(-x, (4, 2, 3)).copy())
    quotient, rest = np.empty((2, 3)), np.empty((2, 3))
    np.divmod(made, 4, out=(quotient, rest))
    assert_same(quotient, x // 4)
    assert_same(rest, x % 4)
    with pytest.raises(ValueError, match=r"np\.negative: out has shape \(3,\)"):
        np.negative(made, out=np.empty(3))
    with pytest.raises(TypeError, match="out is a lazy array, which has no memory"):
        np.negative(x, out=made)
    with pytest.raises(TypeError, match="float64"):
        np.negative(made, out=np.empty((2, 3), np.int64))


@pytest.mark.parametrize("which", range(2))
@pytest.mark.parametrize("others", [False, True])
def test_two_results_one_of_which_takes_the_place_of_an_input(
    backend: Backend, which: int, others: bool
) -> None:
    """Both are of the inputs as they were."""
    if backend.xp.ndarray.__array_ufunc__ is None:
        pytest.skip("NumPy refuses an out= whose __array_ufunc__ is None")
    x, y = np.array([7, -8, 9, 5]), np.array([3, 2, -4, 5])
    want = np.divmod(x, y)
    for k in range(2):
        given = [backend.to_device(x.copy()), backend.to_device(y.copy())]
        out = [backend.to_device(np.zeros(4, int)) if others else None for _ in range(2)]
        out[which] = given[k]
        made = list(map(ga.lazy.asarray, given))
        for got, wanted in zip(np.divmod(*made, out=tuple(out)), want, strict=True):
            assert_same(backend.to_host(got), wanted)
        assert_same(backend.to_host(given[k]), want[which])


REDUCIBLE = "add multiply minimum maximum fmin fmax bitwise_and bitwise_or bitwise_xor gcd lcm " \
    "hypot logaddexp logical_and logical_or logical_xor"  # fmt: skip


@pytest.mark.parametrize("name", REDUCIBLE.split())
def test_reduce_and_accumulate(name: str) -> None:
    ufunc = getattr(np, name)
    x = np.array([[3, 1, 4], [1, 0, 9], [2, 6, 5]], np.int16)
    made = ga.lazy.asarray(x)
    for method, axis in (("reduce", 0), ("accumulate", 1)):
        got = getattr(ufunc, method)(made, axis=axis)
        want = getattr(ufunc, method)(x, axis=axis)
        assert got.dtype == want.dtype
        rtol = 4 * np.finfo(np.float32).eps if name in ("hypot", "logaddexp") else 1e-14
        np.testing.assert_allclose(got, want, rtol=rtol)  # a library's, within 4 units


def test_axes_of_reduce_and_accumulate() -> None:
    x = np.array([[3, 1, 4], [1, 0, 9], [2, 6, 5]], np.int16)
    made = ga.lazy.asarray(x)
    assert_same(np.add.reduce(made, axis=1), np.add.reduce(x, axis=1))
    assert_same(np.add.accumulate(made, axis=0), np.add.accumulate(x, axis=0))
    assert_same(np.add.reduce(made), np.add.reduce(x))
    assert_same(np.add.reduce(made, axis=(0, 1), keepdims=True), np.add.reduce(
        x, axis=(0, 1), keepdims=True))  # fmt: skip
    assert_same(np.maximum.reduce(made, axis=None, initial=50), np.int16(50))


REFUSED: list[tuple[Any, type[Exception], str]] = [
    (lambda x: np.add(x, 1, where=np.array([True])), TypeError, r"np\.add: where= is not possible"),
    (lambda x: np.add(x, 1, casting="unsafe"), TypeError, r"np\.add: casting= is not possible"),
    (lambda x: np.add(x, 1, order="F"), TypeError, r"np\.add: order= is not possible"),
    (lambda x: np.spacing(x), TypeError, r"np\.spacing: .*materialize it with gpualgo\.copy\(x\)"),
    (lambda x: np.add.outer(x, x), TypeError, r"np\.add\.outer: .*materialize it"),
    (lambda x: np.add.at(np.arange(3), [0], x), TypeError, r"np\.add\.at: .*materialize it"),
    (lambda x: np.add.reduceat(x, [0]), TypeError, r"np\.add\.reduceat: .*materialize it"),
    (lambda x: np.subtract.reduce(x), TypeError, "subtract is not known to be associative"),
    (lambda x: np.add.reduce(x, where=np.array([True])), TypeError, r"add\.reduce: where="),
    (lambda x: np.add.reduce(x, out=x), TypeError, "out is a lazy array"),
    (lambda x: x * [1, 2, 3], TypeError, "mul: a lazy array combines with .* not with list"),
    (lambda x: [1, 2, 3] * x, TypeError, "mul: a lazy array combines with .* not with list"),
    (lambda x: x == None, TypeError, "eq: .* not with NoneType"),  # noqa: E711
    (lambda x: x + "a", TypeError, "add: .* not with str"),
    (lambda x: x @ x, TypeError, "matmul: lazy arrays have no matrix product"),
    (lambda x: np.arange(3) @ x, TypeError, r"np\.matmul"),
    (lambda x: bool(x), ValueError, r"bool: .* 3 elements .* np\.any, np\.all"),
    (lambda x: float(x), TypeError, "float: a lazy array of 3 elements"),
    (lambda x: range(x), TypeError, r"index: a lazy array of shape \(3,\)"),
    (lambda x: list(x), TypeError, r"cannot be iterated.*gpualgo\.copy\(x\)"),
    (lambda x: 1 in x, TypeError, r"`in` .* np\.any\(x == value\)"),
    (lambda x: x.__setitem__(0, 1), TypeError, "no elements to assign to"),
    (lambda x: hash(x), TypeError, "unhashable"),
    (lambda x: pickle.dumps(x), TypeError, "cannot be pickled"),
    (lambda x: copy.deepcopy(x), TypeError, "cannot be pickled or deep-copied"),
    (lambda x: np.asarray(x, copy=False), ValueError, "no memory that a NumPy array could share"),
]  # fmt: skip


@pytest.mark.parametrize(("act", "kind", "words"), REFUSED, ids=[words for _, _, words in REFUSED])
def test_refused(act: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words) as caught:
        act(ga.lazy.arange(3))
    assert "\n" not in str(caught.value)


def test_one_element_is_a_number() -> None:
    made = ga.lazy.arange(5) * 2
    assert (bool(made[0]), bool(made[1]), bool(made[1:2])) == (False, True, True)
    assert (int(made[3]), float(made[3]), complex(made[3])) == (6, 6.0, 6 + 0j)
    assert [10, 20, 30, 40, 50][made[1]] == 30
    with pytest.raises(TypeError):
        [10, 20][ga.lazy.full((), 1.0)]
    if not made[0]:
        made = made[1:]
    assert made.shape == (4,)


def test_copies_of_the_object() -> None:
    made = ga.lazy.arange(5)
    assert_same(ga.copy(copy.copy(made)), np.arange(5))


def test_repr() -> None:
    x = ga.lazy.asarray(np.arange(6.0).reshape(2, 3))
    assert repr(x) == "LazyArray(numpy float64, shape=(2, 3), dtype=float64)"
    assert repr(x * 2) == "LazyArray(mul(numpy float64, 2), shape=(2, 3))"
    assert repr(ga.lazy.arange(3)) == "LazyArray(arange(0, 3, 1), shape=(3,), dtype=int64)"
    made = x + 1
    assert made.dtype == np.float64
    assert repr(made).endswith("shape=(2, 3), dtype=float64)")  # once it is known
    for _ in range(50):
        made = np.exp(made) + made
    assert len(repr(made)) < 130
