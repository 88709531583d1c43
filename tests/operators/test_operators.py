"""Operators: what shares compiled code and what must not, and which changes are noticed."""

from __future__ import annotations

import enum
import math
import operator
import re
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from support import Backend, assert_same, run_python

import gpualgo as ga

Function = Callable[..., Any]


def _key(fn: Function) -> Any:
    """Return what decides the results of an operator: its code, and the numbers that are data."""
    op = ga.Operator(fn)
    return op.key, op.words


def _scaled_by(value: Any) -> Function:
    return lambda a: a * value


def test_equal_code_shares_a_key() -> None:
    assert _key(lambda a, b: a + b * 2) == _key(
        lambda a, b: a + b * 2,
    )
    assert _key(_scaled_by(2.5)) == _key(_scaled_by(2.5))
    assert _key(_scaled_by(float("nan"))) == _key(_scaled_by(float("nan")))
    assert _key(_scaled_by(np.float32(2))) == _key(_scaled_by(np.float32(2)))
    assert hash(_key(lambda a: a)) == hash(_key(lambda a: a))


def test_one_operation_has_one_key() -> None:
    assert _key(min) == _key(np.minimum) != _key(max)
    assert _key(operator.add) == _key(np.add) != _key(operator.mul)
    assert _key(operator.or_) == _key(np.bitwise_or) != _key(np.logical_or)


VALUES: list[Any] = [
    *(1, 1.0, True, 1 + 0j, 0, 0.0, -0.0, False, complex(0.0, -0.0), complex(-0.0, 0.0)),
    *(float("nan"), math.inf, -math.inf, -1, 2**40, None, "1", b"1"),
    *(
        np.int8(1),
        np.int64(1),
        np.uint8(1),
        np.float32(1),
        np.float64(1),
        np.float64(-0.0),
        np.True_,
    ),
    *((1,), (1.0,), (True,), (0.0,), (-0.0,), ((1,),), ()),
]


def test_values_that_differ_have_keys_that_differ() -> None:
    """1 == 1.0 == True and 0.0 == -0.0 in Python, but not in compiled code."""
    captured = [_key(_scaled_by(value)) for value in VALUES]
    assert len(set(captured)) == len(VALUES)
    defaults = [_key(_with_default(value)) for value in VALUES]
    assert len(set(defaults)) == len(VALUES)
    assert not set(captured) & set(defaults)


def _with_default(value: Any) -> Function:
    return lambda a, k=value: a * k


def test_constants_that_differ_have_keys_that_differ() -> None:
    functions: list[Function] = [
        lambda a: a * 1,
        lambda a: a * 1.0,
        lambda a: a * True,
        lambda a: a * 0.0,
        lambda a: a * -0.0,
        lambda a: a * 0,
        lambda a: a + 1,
        lambda a: 1 + a,
        lambda a: a if a > 1 else 1,
        lambda a: a if a > 1 else 1.0,
        lambda a: a * 1j,
        lambda a: a in (0, 1),
        lambda a: a in (0, 1.0),
    ]
    assert len({_key(fn) for fn in functions}) == len(functions)


def test_argument_order_matters() -> None:
    functions: list[Function] = [
        lambda a, b: a - b,
        lambda a, b: b - a,
        lambda b, a: a - b + 0,
        lambda a, b: a,
        lambda a, b: b,
        lambda a: a,
        lambda *a: a[0],
        lambda a, b=1: a,
    ]
    assert len({_key(fn) for fn in functions}) == len(functions)


def _apply(
    backend: Backend, fn: Function | ga.Operator, values: Any = (3,), dtype: str = "float64"
) -> list[Any]:
    result = ga.transform(fn, backend.to_device(np.array(values, dtype)))
    return backend.to_host(result).tolist()  # type: ignore[no-any-return]


def test_a_changed_closure_value_is_noticed(backend: Backend) -> None:
    scale: Any = 2

    def fn(a: Any) -> Any:
        return a * scale

    assert _apply(backend, fn) == [6]
    scale = 5
    assert _apply(backend, fn) == [15]
    scale = 2.5
    assert _apply(backend, fn, dtype="int32") == [7.5]
    scale = True
    assert _apply(backend, fn, dtype="int32") == [3]


OFFSET: Any = 10


def _plus_offset(a: Any) -> Any:
    return a + OFFSET


def _calls_plus_offset(a: Any) -> Any:
    return _plus_offset(a) * 2


def test_a_changed_global_is_noticed(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _apply(backend, _plus_offset) == [13]
    assert _apply(backend, _calls_plus_offset) == [26]
    monkeypatch.setitem(globals(), "OFFSET", 20)
    assert _apply(backend, _plus_offset) == [23]
    assert _apply(backend, _calls_plus_offset) == [46]
    monkeypatch.setitem(globals(), "OFFSET", 0.5)
    assert _apply(backend, _plus_offset, dtype="int32") == [3.5]
    assert _apply(backend, lambda a: _calls_plus_offset(a)) == [7]


def test_a_changed_function_is_noticed(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _apply(backend, _calls_plus_offset) == [26]
    monkeypatch.setitem(globals(), "_plus_offset", lambda a: a - 1)
    assert _apply(backend, _calls_plus_offset) == [4]
    helper: Function = lambda a: a * 10  # noqa: E731
    outer = lambda a: helper(a) + 1  # noqa: E731
    assert _apply(backend, outer) == [31]
    helper = _scaled_by(7)
    assert _apply(backend, outer) == [22]
    helper = _scaled_by(8)
    assert _apply(backend, outer) == [25]


def test_changed_code_and_defaults_are_noticed(backend: Backend) -> None:
    def fn(a: Any, k: Any = 2) -> Any:
        return a * k

    assert _apply(backend, fn) == [6]
    fn.__defaults__ = (4,)
    assert _apply(backend, fn) == [12]
    fn.__code__ = (lambda a, k=0: a - k).__code__
    assert _apply(backend, fn) == [-1]


settings = types.ModuleType("settings")
settings.SCALE = 2.0  # type: ignore[attr-defined]
settings.nested = types.ModuleType("nested")  # type: ignore[attr-defined]
settings.nested.SHIFT = 1.0


def test_a_changed_module_attribute_is_noticed(backend: Backend) -> None:
    scale = lambda a: a * settings.SCALE  # noqa: E731
    shift = lambda a: a + settings.nested.SHIFT  # noqa: E731
    assert (_apply(backend, scale), _apply(backend, shift)) == ([6], [4])
    try:
        settings.SCALE = 3.0  # type: ignore[attr-defined]
        settings.nested.SHIFT = -1.0
        assert (_apply(backend, scale), _apply(backend, shift)) == ([9], [2])
    finally:
        settings.SCALE, settings.nested.SHIFT = 2.0, 1.0  # type: ignore[attr-defined]


def test_equal_text_in_other_namespaces_is_told_apart(backend: Backend) -> None:
    def load(k: Any) -> Function:
        space: dict[str, Any] = {"K": k}
        exec("def fn(a):\n    return a + K", space)
        return space["fn"]  # type: ignore[no-any-return]

    assert _key(load(1)) == _key(load(1)) != _key(load(2))
    assert (_apply(backend, load(1)), _apply(backend, load(2))) == ([4], [5])


def test_functions_that_die_leave_no_wrong_key(backend: Backend) -> None:
    """Code objects made in a loop reuse addresses: a cache keyed by id() would mix them up."""
    for k in range(10, 20):
        fn = eval(f"lambda a, b: a if a > {k} else b")
        two = backend.to_device(np.array([15, 99], np.int32))
        assert int(ga.reduce(two, None, fn)) == (15 if k < 15 else 99)


def test_operator_objects(backend: Backend) -> None:
    x = backend.to_device(np.arange(1, 1001, dtype=np.int64))
    product = ga.Operator(lambda a, b: a * b % 1_000_003, identity=1, commutative=True)
    want = 1
    for value in range(1, 1001):
        want = want * value % 1_000_003
    assert int(ga.reduce(x, None, product)) == want
    assert _apply(backend, ga.Operator(lambda a: a + 1)) == [4]
    assert int(ga.reduce(x[:0], None, product)) == 1
    assert "identity" in repr(product)


def test_an_identity_in_an_array_is_what_it_was(backend: Backend) -> None:
    identity = np.array([7]).reshape(())  # whose memory is another array's
    largest = ga.Operator(lambda a, b: a if a > b else b, identity=identity)
    x, empty = backend.to_device(np.arange(3)), backend.to_device(np.empty(0, np.int64))
    for other in (7, 9):
        identity[...] = other
        assert largest.identity == 7
        assert not isinstance(largest.identity, np.ndarray)  # nobody can write to it
        assert backend.to_host(ga.exclusive_scan(x, None, largest)).tolist() == [7, 7, 7]
        assert int(ga.reduce(empty, None, largest)) == 7


def test_operators_that_differ_in_identity_alone(backend: Backend) -> None:
    def add(a: Any, b: Any) -> Any:
        return a + b

    empty = backend.to_device(np.empty(0, np.int64))
    for identity in (0, 7, 3):
        assert int(ga.reduce(empty, None, ga.Operator(add, identity=identity))) == identity
    with pytest.raises(ValueError, match="init"):
        ga.reduce(empty, None, add)


def test_callables_other_than_functions(backend: Backend) -> None:
    two = backend.to_device(np.array([1.5, -2.5], np.float32))
    assert float(ga.reduce(two, None, math.copysign)) == -1.5
    assert backend.to_host(ga.transform(abs, two)).tolist() == [1.5, 2.5]
    assert backend.to_host(ga.transform(np.sqrt, ga.transform(abs, two))).dtype == np.float32
    assert backend.to_host(ga.transform(operator.sub, two, two)).tolist() == [0, 0]
    assert backend.to_host(ga.transform(np.maximum, two, two[::-1])).tolist() == [1.5, 1.5]


def test_a_recognised_operator_needs_no_numba() -> None:
    code = """if True:
        import sys, numpy as np, gpualgo as ga
        from gpualgo import Operator
        keys = {Operator(fn).key for fn in (min, max, np.add, np.multiply, np.logical_or)}
        assert len(keys) == 5 and "numba" not in sys.modules, sorted(sys.modules)
    """
    done = run_python(code)
    assert done.returncode == 0, done.stderr


def test_defaults_and_variadic_parameters(backend: Backend) -> None:
    x = backend.to_device(np.array([1, 2], np.int32))
    assert backend.to_host(ga.transform(lambda *a: a[0] - a[1] * 2, x, x)).tolist() == [-1, -2]
    assert backend.to_host(ga.transform(lambda a, k=5: a * k, x)).tolist() == [5, 10]
    assert backend.to_host(ga.transform(lambda a, k=5: a * k, x, x)).tolist() == [1, 4]


def test_functions_nested_three_deep(backend: Backend) -> None:
    def square(a: Any) -> Any:
        return a * a

    def plus(a: Any, b: Any) -> Any:
        return square(a) + b

    result = ga.transform(
        lambda a, b: plus(a, plus(b, 1)), *[backend.to_device(np.array([3], np.float32))] * 2
    )
    assert_same(backend.to_host(result), np.array([19], np.float32))


class Colour(enum.IntEnum):
    RED = 1
    BLUE = 5


def test_members_are_looked_for_as_their_numbers(backend: Backend) -> None:
    x = np.arange(7)
    found = ga.transform(lambda a: a in (Colour.RED, Colour.BLUE), backend.to_device(x))
    np.testing.assert_array_equal(backend.to_host(found), (x == 1) | (x == 5))


CLIPPED = [np.int8, np.uint16, np.int64, np.float16, np.float32, np.float64]


@pytest.mark.parametrize("kind", list(map(np.dtype, CLIPPED)), ids=str)
def test_clip_is_numpys(backend: Backend, kind: np.dtype[Any]) -> None:
    x = np.arange(8).astype(kind)
    low, high = x[::-1].copy(), np.full(8, 5, kind)
    if kind.kind == "f":
        x[1], low[3], high[4] = np.nan, -0.0, np.inf
    given = [backend.to_device(a) for a in (x, low, high)]
    assert_same(
        backend.to_host(ga.transform(lambda a, b, c: np.clip(a, b, c), *given)),
        np.clip(x, low, high),
    )
    limited = ga.transform(lambda a: np.clip(a, 2, 1), given[0])  # the upper limit decides
    assert_same(backend.to_host(limited), np.clip(x, 2, 1))
    for op in (lambda a: np.clip(a, None, 3), lambda a: np.clip(a, 3, None)):
        assert_same(backend.to_host(ga.transform(op, given[0])), op(x))


def _clipped(x: Any, low: Any, high: Any) -> Any:
    """Return what NumPy 2.1 and later do: earlier ones refuse integers beyond x's dtype."""
    if x.dtype.kind in "iu" and not isinstance(high, np.int16):
        bounds = np.iinfo(x.dtype)
        low = None if low is None else max(low, int(bounds.min))
        high = None if high is None else min(high, int(bounds.max))
    return np.clip(x, low, high)


@pytest.mark.parametrize("kind", ["?", "i1", "u1", "i8", "u8", "f4"])
def test_clip_ignores_python_integers_beyond_the_dtype(backend: Backend, kind: str) -> None:
    x = np.array([0, 1, 5, 100, 127]).astype(kind)
    given = backend.to_device(x)
    far = 2**70 if kind != "?" else 300
    op = lambda a: np.clip(a, low, high)  # noqa: E731
    for low, high in ((0, 300), (-129, 5), (-far, far), (None, 300), (-300, None),
                      (3, np.int16(400)), (0, np.int16(-3))):  # fmt: skip
        found = ga.transform(op, given)
        assert_same(backend.to_host(found), _clipped(x, low, high))
        if not isinstance(high, np.int16):
            found = ga.copy(np.clip(ga.lazy.asarray(given), low, high))
            assert_same(backend.to_host(found), _clipped(x, low, high))
    if kind == "i1":
        for bounds in ((3, 5), (4, 6), (-1000, 1000), (-128, 126), (1, 40_000)):
            low, high = bounds  # data from the second call on
            assert_same(backend.to_host(ga.transform(op, given)), _clipped(x, low, high))
        with pytest.raises(ga.CompileError, match="200 is out of bounds for int8"):
            ga.transform(lambda a: np.clip(a, 200, 300), given)


def _by_variable(a: Any) -> Any:
    root = np.sqrt
    for _ in range(2):
        a = max(a, 1.0 if a < 3 else 4.0)
    return root(a)


BRANCHES: list[tuple[Function, list[float]]] = [
    (lambda a: max((a if a > 0 else 1.0), a), [1.0, 1.0, 4.0]),
    (lambda a: min(a, (2.0 if a > 0 else 3.0), (a if a > 2 else 7.0)), [1.0, -2.0, 2.0]),
    (lambda a: np.sqrt(a if a > 0 else -a), [1.0, math.sqrt(2), 2.0]),
    (lambda a: np.clip(a if a > 0 else -a, 0, 3 if a > 0 else 1), [1.0, 1.0, 3.0]),
    (lambda a: divmod(a if a > 0 else 1.0, 3.0)[0], [0.0, 0.0, 1.0]),
    (_by_variable, [1.0, 1.0, 2.0]),
]


@pytest.mark.parametrize("index", range(len(BRANCHES)))
def test_arguments_of_calls_may_branch(backend: Backend, index: int) -> None:
    op, expected = BRANCHES[index]
    result = ga.transform(op, backend.to_device(np.array([1.0, -2.0, 4.0])))
    assert_same(backend.to_host(result), np.array(expected))


def _half(a: Any) -> Any:
    return a * 0.5


def _whole(a: Any) -> Any:
    return int(a)


def _holds_one_of_two(a: Any) -> Any:
    fn = np.float32
    if a > 2:
        fn = np.float64
    return fn(a) / 3


def _holds_one_after_the_other(a: Any) -> Any:
    fn = _half
    total = fn(a)
    fn = _whole
    return total + fn(a)


CHOSEN: list[tuple[Function, list[Any]]] = [
    (lambda a: (math.floor if a > 2 else np.floor)(a), [4.0, 1.0]),
    (lambda a: (_half if a > 2 else _whole)(a) + a, [6.9, 2.6]),
    (lambda a: (bool if a > 2 else float)(a), [1.0, 1.6]),
    (lambda a: (np.isnan if a > 2 else np.sqrt)(a), [0.0, math.sqrt(1.6)]),
    (lambda a: ((lambda x: x * 0.5) if a > 2 else (lambda x: int(x)))(a), [2.3, 1.0]),
    (lambda a: (max if a > 2 else min)(a, 3.0), [4.6, 1.6]),
    (_holds_one_of_two, [4.6 / 3, float(np.float32(1.6) / 3)]),
]


@pytest.mark.parametrize("index", range(len(CHOSEN)))
def test_a_choice_of_functions_is_right_or_refused(backend: Backend, index: int) -> None:
    """Python 3.12 has a call in each branch; numba would type the result by one function."""
    op, wanted = CHOSEN[index]
    refusal, found = "", None
    try:
        found = ga.transform(op, backend.to_device(np.array([4.6, 1.6])))
    except ga.CompileError as error:
        refusal = str(error)
    if found is None:
        assert re.search("op chooses between functions|op passes (max|min) as", refusal)
    else:
        assert_same(backend.to_host(found), np.array(wanted))


def test_a_variable_may_hold_other_functions_later(backend: Backend) -> None:
    found = ga.transform(_holds_one_after_the_other, backend.to_device(np.array([4.6, 1.6])))
    assert_same(backend.to_host(found), np.array([6.3, 1.8]))


_FACTOR = 3.5


def _passes_on(a: Any) -> Any:
    def counted(x: Any) -> Any:
        for i in range(3):
            x = x + i
        return x

    return _called(counted, a)


def _called(fn: Function, a: Any) -> Any:
    return fn(a)


@pytest.mark.parametrize(
    ("op", "given", "wanted"),
    [
        (lambda a: _called(lambda x: x**2 + 1, a), np.int8([127]), np.int8([2])),
        (lambda a: _called(lambda x: x * _FACTOR, a), np.float32([2]), np.float32([7])),
        (lambda a: _called(lambda x: np.sin(x), a), np.int8([0]), np.float16([0])),
        (lambda a: _called(lambda x: _half(x) + 3, a), np.ones(1), np.array([3.5])),
        (_passes_on, np.int8([127]), np.int8([-126])),
    ],
)
def test_functions_defined_in_op_may_be_passed_on(
    backend: Backend, op: Function, given: Any, wanted: Any
) -> None:
    assert_same(backend.to_host(ga.transform(op, backend.to_device(given))), wanted)


def test_variables_of_op_in_functions_that_it_passes_on_are_refused() -> None:
    for op in (lambda a: _called(lambda x: x + a, a), lambda a: _called(lambda x, k=2: x * k, a)):
        with pytest.raises(ga.CompileError, match="define it outside of op"):
            ga.transform(op, np.ones(2))


class Parts(NamedTuple):
    size: Any
    shape: Any
    real: Any
    n: Any


def test_fields_with_names_of_attributes(backend: Backend) -> None:
    given = Parts(np.int64([1000, 5]), np.uint64([2**63 + 5, 1]), np.float32([0.5, 2]),
                  np.int8([1, 2]))  # fmt: skip
    device = Parts(*map(backend.to_device, given))
    for op, wanted in (
        (lambda r: r.size + r.n, given.size + given.n),
        (lambda r: r.shape, given.shape),
        (lambda r: r.real + r["n"], given.real + given.n),
    ):
        assert_same(backend.to_host(ga.transform(op, device)), wanted)
    x = np.complex64([1 + 2j, -3j])
    found = ga.transform(lambda a: a.real - a.imag, backend.to_device(x))
    assert_same(backend.to_host(found), x.real - x.imag)


class Row(NamedTuple):
    price: Any
    n: Any
    size: Any


def _larger(a: Any, b: Any) -> Any:
    chosen = a if a["price"] > b["price"] else b
    return Row(chosen["price"], chosen["n"], chosen["size"])


def test_fields_are_read_by_name_as_numpys(backend: Backend) -> None:
    rows = np.array([(1.5, 2, 7.0), (2.5, 3, 8.0)], [("price", "f8"), ("n", "i4"), ("size", "f4")])
    arrays = Row(*(backend.to_device(rows[name].copy()) for name in Row._fields))
    expected = rows["price"] * rows["n"] + rows["size"]
    for x in (arrays, rows):
        total = ga.transform(lambda r: r["price"] * r["n"] + r["size"], x)
        assert_same(backend.to_host(total), expected)
    largest = ga.reduce(arrays, None, _larger)
    assert (float(backend.to_host(largest.price)), int(backend.to_host(largest.n))) == (2.5, 3)
    with pytest.raises(ga.CompileError, match="'cost' is not a field of the tuple"):
        ga.transform(lambda r: r["cost"], arrays)
    for x in (
        np.ones(2),
        np.ones(2, complex),
    ):  # numbers have no fields, also of an attribute's name
        with pytest.raises(ga.CompileError, match="a number has no items"):
            ga.transform(lambda a: a["real"], backend.to_device(x))


FLOATS, INTEGERS = ["float16", "float32", "float64"], ["int8", "uint16", "int64"]
COMMUTING = {
    np.fmax: FLOATS + INTEGERS, np.fmin: FLOATS + INTEGERS, np.logaddexp: FLOATS,
    np.logaddexp2: FLOATS, np.hypot: FLOATS, np.gcd: INTEGERS, np.lcm: INTEGERS,
}  # fmt: skip


@pytest.mark.parametrize(
    ("fn", "dtype"), [(fn, dtype) for fn, found in COMMUTING.items() for dtype in found]
)
def test_what_is_known_to_commute_does(backend: Backend, fn: Function, dtype: str) -> None:
    assert ga.Operator(fn).commutative
    kind = np.dtype(dtype)
    limits: Any = np.finfo(kind) if kind.kind == "f" else np.iinfo(kind)
    odd = [limits.max, limits.min, 0, 1, 2, 3, 7, 100]
    if kind.kind == "f":
        odd += [np.inf, -np.inf, np.nan, -0.0, 0.3, -1e-3, limits.smallest_subnormal]
    a, b = (each.ravel() for each in np.meshgrid(*2 * [np.array(odd, kind)]))
    x, y = backend.to_device(a.copy()), backend.to_device(b.copy())
    found, turned = (backend.to_host(ga.transform(fn, *pair)) for pair in ((x, y), (y, x)))
    np.testing.assert_array_equal(found, turned)  # of two zeros the first one's sign counts
