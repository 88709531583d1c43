"""What an operator reads is known by its value, not by its name: classes, modules, parameters."""

from __future__ import annotations

import enum
import types
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import Backend

import gpualgo as ga

Function = Callable[..., Any]


def _key(fn: Function) -> Any:
    return (op := ga.Operator(fn)).key, op.words  # its code, and the numbers that are data


def _apply(backend: Backend, fn: Function, dtype: str = "int64") -> Any:
    return backend.to_host(ga.transform(fn, backend.to_device(np.array([3], dtype)))).item()


def _defined(text: str) -> Any:
    """Return what Python code defines as `it`: of one name and place, however often it is made."""
    space: dict[str, Any] = {"__name__": "elsewhere", "enum": enum, "namedtuple": namedtuple}
    exec(text, space)
    return space["it"]


# --- classes ------------------------------------------------------------------------------

COLOR = "class it(enum.{0}):\n    RED = {1}\n    GREEN = {2}"


@pytest.mark.parametrize("kind", ["Enum", "IntEnum"])
def test_an_enumeration_that_is_defined_anew(backend: Backend, kind: str) -> None:
    color: Any = None
    value = lambda a: a + color.RED.value  # noqa: E731
    for red, green in ((10, 20), (20, 10), (10, 20)):
        color = _defined(COLOR.format(kind, red, green))
        assert _apply(backend, value) == 3 + red


def test_enumerations_are_known_by_what_they_hold() -> None:
    def key(*parts: Any) -> Any:
        color = _defined(COLOR.format(*parts))
        return _key(lambda a: a + color.RED.value)

    assert key("Enum", 1, 2) == key("Enum", 1, 2)
    kinds = [key("Enum", 1, 2), key("IntEnum", 1, 2), key("Enum", 2, 1), key("Enum", 1, 3),
             key("Enum", 1.0, 2.0), key("Enum", "True", "False")]  # fmt: skip
    assert len(set(kinds)) == len(kinds)


def test_members_are_told_apart() -> None:
    def key(member: Any) -> Any:
        return _key(lambda a: a == member)

    first, again, other = (_defined(COLOR.format("IntEnum", *v)) for v in ((1, 2), (1, 2), (2, 1)))
    assert key(first.RED) == key(again.RED)
    assert len({key(first.RED), key(first.GREEN), key(other.RED), key(1)}) == 4


def test_equal_classes_are_two_classes() -> None:
    """Members of one enumeration alone can be compared."""
    first, second = (_defined(COLOR.format("Enum", 1, 2)) for _ in range(2))

    def key(one: Any, other: Any) -> Any:
        return _key(lambda a: a + (one.RED == other.RED))

    assert key(first, first) == key(second, second) != key(first, second)


def test_a_namedtuple_that_is_defined_anew(backend: Backend) -> None:
    point: Any = None
    first = lambda a: point(a, 2 * a).x  # noqa: E731
    for fields, want in (("x y", 3), ("y x", 6), ("x y", 3)):
        point = _defined(f"it = namedtuple('it', '{fields}')")
        assert _apply(backend, first) == want


def test_namedtuples_are_known_by_fields_and_defaults() -> None:
    def key(text: str) -> Any:
        point = _defined(f"it = namedtuple('it', {text})")
        return _key(lambda a: point(a).x)

    assert key("'x y'") == key("['x', 'y']")
    texts = ("'x y'", "'y x'", "'x y', defaults=(1,)", "'x y', defaults=(1.0,)")
    assert len({key(text) for text in texts}) == len(texts)


def test_a_namedtuple_that_is_given_defaults() -> None:
    point = _defined("it = namedtuple('it', 'x y')")
    op = lambda a: a + point(a).x  # noqa: E731
    keys = [_key(op)]
    for defaults in ((1,), (2,), (1.0,)):
        point.__new__.__defaults__ = defaults
        keys.append(_key(op))
    point.__new__.__defaults__ = (1,)
    assert _key(op) == keys[1]
    assert len(set(keys)) == 4


JITCLASS = """
from numba import int64
from numba.experimental import jitclass
K = {0}

@jitclass([("k", int64)])
class it:
    def __init__(self, k):
        self.k = k

    def of(self, a):
        return {1}
"""


def test_a_jitclass_that_is_defined_anew() -> None:
    scale: Any = None
    op = lambda a: scale(np.int64(7)).of(a)  # noqa: E731
    with ga.default_device("cpu"):
        for shift in (2, 5):
            scale = _defined(JITCLASS.format(0, f"a * self.k + {shift}"))
            assert ga.transform(op, np.array([3])).tolist() == [21 + shift]


def test_a_jitclass_that_reads_variables_is_refused() -> None:
    scale = _defined(JITCLASS.format(4, "a * K"))
    with pytest.raises(TypeError, match=r"jitclass it, whose method of reads 'K'"):
        _key(lambda a: scale(7).of(a))


def test_other_classes_are_told_apart() -> None:
    plain = [_defined("class it: pass") for _ in range(2)]
    first, second = (_key(lambda a, c=c: c(a)) for c in plain)  # type: ignore[misc]
    assert first != second == _key(lambda a, c=plain[1]: c(a))  # type: ignore[misc]


# --- modules ------------------------------------------------------------------------------


class _Computing(types.ModuleType):
    """A module whose attributes its class computes."""

    values: dict[str, Any] = {}  # noqa: RUF012

    def __getattribute__(self, name: str) -> Any:
        values = object.__getattribute__(self, "values")
        return values[name] if name in values else object.__getattribute__(self, name)


def _served(values: dict[str, Any]) -> types.ModuleType:
    def serve(name: str) -> Any:
        try:
            return values[name]
        except KeyError:
            raise AttributeError(name) from None

    module = types.ModuleType("served")
    module.__getattr__ = serve  # type: ignore[method-assign]
    return module


def _computed(values: dict[str, Any]) -> types.ModuleType:
    module = _Computing("computed")
    module.values = values
    return module


@pytest.mark.parametrize("make", [_served, _computed])
def test_attributes_that_a_module_computes(
    backend: Backend, make: Callable[[dict[str, Any]], Any]
) -> None:
    values: dict[str, Any] = {"SCALE": 2, "double": lambda a: 2 * a}
    module = make(values)
    outer = types.ModuleType("outer")
    outer.inner = module  # type: ignore[attr-defined]

    def local(a: Any) -> Any:
        alias = module
        return a * alias.SCALE

    def around(a: Any) -> Any:
        alias = module
        return (lambda b: b * alias.SCALE)(a)

    before = [_key(op) for op in (local, around)]
    values["SCALE"] = 3
    assert not set(before) & {_key(op) for op in (local, around)}

    ops: list[Function] = [
        lambda a: a * module.SCALE,
        lambda a: a * outer.inner.SCALE,  # type: ignore[attr-defined]
        local,
    ]
    call = lambda a: module.double(a)  # noqa: E731
    for scale in (2, 5, 2, 2.5):
        values["SCALE"] = scale
        values["double"] = _times(scale)
        assert [_apply(backend, op) for op in [*ops, call]] == [3 * scale] * 4


def _times(factor: Any) -> Function:
    return lambda a: a * factor


def test_a_module_that_begins_to_compute_attributes(backend: Backend) -> None:
    module = types.ModuleType("late")
    op = lambda a: a * module.SCALE  # noqa: E731
    with pytest.raises(ga.CompileError, match="SCALE"):
        _apply(backend, op)
    values = {"SCALE": 4}
    module.__getattr__ = values.__getitem__  # type: ignore[method-assign]
    assert _apply(backend, op) == 12
    module.SCALE = 5  # type: ignore[attr-defined]
    assert _apply(backend, op) == 15


def test_a_module_s_attribute_of_either_branch(backend: Backend) -> None:
    one, other = types.ModuleType("one"), types.ModuleType("other")
    one.K, other.K = 2, 3  # type: ignore[attr-defined]

    def op(a: Any) -> Any:
        return a * (one if a > 2 else other).K  # type: ignore[attr-defined]

    before = _key(op)
    one.K = 7  # type: ignore[attr-defined]
    assert _key(op) != before


def test_values_of_a_module_that_kernels_cannot_hold() -> None:
    module = types.ModuleType("settings")
    module.TABLE = [1, 2]  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="type list"):
        _key(lambda a: module.TABLE[a])
    module.real = [1]  # type: ignore[attr-defined]  # not what the operator reads
    module.K = 2  # type: ignore[attr-defined]
    assert _key(lambda a: (a + a).real * module.K) is not None


def test_a_module_s_enumeration(backend: Backend) -> None:
    module = types.ModuleType("colors")
    for red in (4, 9):
        module.Color = _defined(COLOR.format("Enum", red, 1))  # type: ignore[attr-defined]
        module.BEST = module.Color.RED  # type: ignore[attr-defined]
        assert _apply(backend, lambda a: a + module.Color.RED.value) == 3 + red
        assert _apply(backend, lambda a: a + module.BEST.value) == 3 + red


# --- functions ----------------------------------------------------------------------------


def test_names_of_parameters_count_where_a_call_uses_them(backend: Backend) -> None:
    def call(a: Any) -> Any:
        return minus(x=a, y=10)  # type: ignore[call-arg]

    minus: Function
    minus = lambda x, y: x - y  # noqa: E731
    assert _apply(backend, call) == -7
    minus = lambda y, x: y - x  # noqa: E731
    assert _apply(backend, call) == 7
    assert _key(lambda x, y: x - y) == _key(lambda y, x: y - x)


def test_which_parameter_a_function_inside_reads() -> None:
    first = lambda a, b: (lambda: a)()  # noqa: E731
    second = lambda b, a: (lambda: a)()  # noqa: E731
    assert _key(first) != _key(second)


def test_a_function_that_is_called_twice_and_one_that_calls_itself(backend: Backend) -> None:
    def square(a: Any) -> Any:
        return a * a

    def power(a: Any, n: Any) -> Any:
        return 1 if n == 0 else a * power(a, n - 1)

    twice = lambda a: square(a) + square(square(a))  # noqa: E731
    assert _apply(backend, twice) == 90
    assert _key(twice) == _key(lambda a: square(a) + square(square(a)))
    assert _key(lambda a: power(a, 3)) == _key(lambda a: power(a, 3)) != _key(twice)


def test_records_are_refused() -> None:
    """Their fields can be written to, and two layouts have one dtype.str."""
    record = np.zeros((), [("a", "i4"), ("b", "f4")])[()]
    with pytest.raises(TypeError, match="type void"):
        _key(lambda a: a + record["a"])


def test_functions_of_c_without_a_place() -> None:
    keys = {_key(lambda a, f=f: f(a)) for f in ([].append, [].append, {}.get, "a".join)}  # type: ignore[misc]
    assert len(keys) == 4
