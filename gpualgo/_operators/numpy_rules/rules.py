"""NumPy 2's typing of the functions that operators call.

A rule determines the dtypes in which a function computes and which it returns, from NumPy's ufuncs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial, reduce
from typing import Any, TypeAlias

import numpy as np
from numba import types
from numba.extending import intrinsic

from gpualgo._base import dtypes, records
from gpualgo._base.dtypes import WEAK, default_name, is_inexact, loop_of
from gpualgo._operators.captured import ConstantNeeded
from gpualgo._operators.numpy_rules import codegen, errors
from gpualgo._operators.numpy_rules.errors import Refused, ValueNeeded, source_of
from gpualgo._operators.numpy_rules.storage import (
    WEAK_KINDS,
    Code,
    Operand,
    Weak,
    bounds_of,
    cast,
    check_fits,
    common_name,
    described,
    is_within,
    native,
    scalar_name,
    scalar_type,
    weak_constant,
    without_members,
)
from gpualgo._operators.numpy_rules.table import Entry, entry_of
from gpualgo._operators.numpy_rules.values import Integer, choose

Resolved = tuple[Any, Callable[..., Any]]  # the signature and the code generator of an intrinsic
Generate = Callable[[Code, list[Operand]], Any]


def resolve(entry: Entry, fn: Any, args: tuple[types.Type, ...]) -> Resolved:
    """Return the signature and the code generator of a function of the table for numba types."""
    plain = without_members(args, stays_member=entry.style == "extreme")
    if entry.style == "contains":
        result, generate = _contains(entry, plain)
    else:
        for i, ty in enumerate(plain):
            if scalar_name(ty) is None:
                raise Refused(
                    f"{entry.shown} takes numbers, and argument {i + 1} is {described(ty)}"
                )
        folded = _folded(entry, fn, plain)
        of_data = codegen.result_of(entry, plain) if folded is None and _is_python(entry) else None
        result, generate = folded or _STYLES[entry.style](entry, plain)
        result = of_data or result

    def generator(context: Any, builder: Any, sig: Any, values: Any) -> Any:
        code = Code(context, builder)
        pairs = zip(plain, values, strict=True)
        return generate(code, [Operand(code, ty, value) for ty, value in pairs])

    return result(*args), generator


_FOLDED = ("operator", "math", "cmath", "whole", "bool", "extreme", "round")


def _folded(
    entry: Entry, fn: Any, args: tuple[types.Type, ...]
) -> tuple[types.Type, Generate] | None:
    """Fold a call with constant arguments by calling the Python function; None for others."""
    if not _is_python(entry) or not all(isinstance(ty, Weak) and ty.is_constant for ty in args):
        return None
    values = [ty.value for ty in args]
    if entry.does == "power" and abs(values[1]) > 1 << 12:
        raise Refused(f"{values[0]} ** {values[1]} is too large a number")
    try:
        value = fn(*values)
    except Exception as error:
        raise Refused(f"{entry.shown} of {', '.join(map(str, values))}: {error}") from None
    if isinstance(value, (bool, np.bool_)):
        return types.boolean, lambda code, _: code.context.get_constant(types.boolean, bool(value))
    ty = Weak(type(value).__name__, (value,))
    return ty, lambda code, _: weak_constant(code.context, code.builder, ty, value)


def _is_python(entry: Entry) -> bool:
    """Return whether a function of Python numbers gives a Python number."""
    return entry.style in _FOLDED or (entry.style == "construct" and entry.is_builtin)


def _names(args: tuple[types.Type, ...]) -> tuple[str, ...]:
    return tuple(str(scalar_name(ty)) for ty in args)


def _plan(entry: Entry, args: tuple[types.Type, ...]) -> tuple[types.Type, Generate]:
    if entry.does in codegen.RELATIONS and not any(
        map(is_inexact, map(default_name, _names(args)))
    ):
        return types.boolean, lambda code, values: _compared(entry.does, *values)
    call_names, result_name = _loop(entry, args)
    return _computed(entry, args, call_names, result_name)


def _loop(entry: Entry, args: tuple[types.Type, ...]) -> tuple[tuple[str, ...], str]:
    ufunc = entry.ufunc
    assert ufunc is not None
    try:
        return loop_of(ufunc, _names(args))
    except TypeError as error:
        names = ", ".join(map(default_name, _names(args)))
        raise Refused(f"{entry.shown} of {names}: {str(error).rstrip(chr(46))}") from None


def _computed(
    entry: Entry, args: tuple[types.Type, ...], call_names: tuple[str, ...], result_name: str
) -> tuple[types.Type, Generate]:
    name = call_names[0]
    if entry.does.endswith("power"):
        constant_power = codegen.constant_power(entry, args, name)
        if constant_power is not None:
            return constant_power
    if not codegen.has(entry.does, name):
        raise Refused(f"{entry.shown} of {name} is not supported{_advice(entry, name)}")
    result = scalar_type(result_name)
    if entry.style != "numpy" and all(isinstance(ty, Weak) for ty in args):
        result = Weak(WEAK_KINDS[result_name]) if result_name in WEAK_KINDS else result

    def generate(code: Code, values: list[Operand]) -> Any:
        natives = [v.native(scalar_type(n)) for v, n in zip(values, call_names, strict=True)]
        value = codegen.compute(code, entry.does, name, natives)
        return code.context.cast(code.builder, value, native(result), result)

    for ty, call in zip(args, call_names, strict=True):
        if isinstance(ty, Weak) and call != "bool" and not is_inexact(call):
            check_fits(ty, call)
    return result, generate


def _advice(entry: Entry, name: str) -> str:
    if name.startswith("complex"):
        return "; compute it from a.real and a.imag"
    return "; convert to a float first" if not is_inexact(name) else ""


def _compared(relation: str, left: Operand, right: Operand) -> Any:
    """Compare integers of any dtypes, and Python integers of any size, exactly."""
    code, a, b = left.code, left.raw, right.raw
    mirrored = codegen.MIRRORED.get(relation, relation)
    limit = right.type.value if isinstance(right.type, Weak) else None
    if limit is None and isinstance(left.type, Weak) and left.type.is_constant:
        return _compared(mirrored, right, left)
    names = [default_name(str(scalar_name(side.type))) for side in (left, right)]
    holds = codegen.RELATIONS[relation]
    if limit is not None:
        strong = names[0]
        limits = (0, 1) if strong == "bool" else (np.iinfo(strong).min, np.iinfo(strong).max)
        if not limits[0] <= limit <= limits[1]:
            is_true = holds(0, 1 if limit > limits[1] else -1)
            return code.context.get_constant(types.boolean, is_true)
        if strong == "bool":
            a, strong = codegen.widened(code, "bool", "uint8", a), "uint8"
        constant = code.context.get_constant(scalar_type(strong), limit)
        return codegen.compute(code, relation, strong, [a, constant])
    joint = np.promote_types(*names).name
    if "float" in joint:  # a signed dtype and uint64
        if names[0] == "uint64":
            return _compared(mirrored, right, left)
        signed = Integer(code, codegen.widened(code, names[0], "int64", a), signed=True)
        # A negative number is below all of uint64, as -1 is below 0.
        return choose(signed < 0, holds(-1, 0), holds(signed.unsigned, Integer(code, b))).raw
    pair = [codegen.widened(code, name, joint, v) for name, v in zip(names, (a, b), strict=True)]
    return codegen.compute(code, relation, joint, pair)


def compared(does: str, left: Operand, right: Operand) -> Any:
    generate = _plan(Entry(does, does, "operator", (2, 2)), (left.type, right.type))[1]
    return generate(left.code, [left, right])


def _math(entry: Entry, args: tuple[types.Type, ...]) -> tuple[types.Type, Generate]:
    """Type a function of `math`: float64 for integers and Python numbers, else as NumPy."""
    name = str(common_name(args))
    if name.startswith("complex"):
        raise Refused(f"{entry.shown} takes real numbers; use NumPy's function of complex ones")
    name = name if name not in WEAK and is_inexact(name) else "float64"
    result = "bool" if entry.does in ("isnan", "isinf", "isfinite") else name
    return _computed(entry, args, (name,) * len(args), result)


def _cmath(entry: Entry, args: tuple[types.Type, ...]) -> tuple[types.Type, Generate]:
    name = default_name(str(common_name((*args, NATIVE_COMPLEX))))
    result = "bool" if entry.does.startswith("is") else name
    return _computed(entry, args, (name,) * len(args), result)


NATIVE_COMPLEX = Weak("complex")


def _extreme(entry: Entry, args: tuple[types.Type, ...]) -> tuple[types.Type, Generate]:
    """Python's max or min of two: the second only if it is strictly larger or smaller."""
    name = str(common_name(args))
    if name.startswith("complex"):
        raise Refused(f"{entry.shown} needs an order, which complex numbers have not")
    weak = [ty for ty in args if isinstance(ty, Weak)]
    result = weak[0].joined(weak[1]) if len(weak) == 2 else scalar_type(name)
    relation = "greater" if entry.does == "max" else "less"
    for ty in weak:
        if len(weak) == 1 and name != "bool" and not is_inexact(name):
            check_fits(ty, name)

    def generate(code: Code, values: list[Operand]) -> Any:
        a, b = values
        is_second = compared(relation, b, a)
        first, second = a.to(result), b.to(result)
        return code.builder.select(is_second, second, first)

    return result, generate


def _contains(entry: Entry, args: tuple[types.Type, ...]) -> tuple[types.Type, Generate]:
    items = args[0]
    item_types = without_members(tuple(items) if isinstance(items, types.BaseTuple) else (items,),
                            stays_member=True)  # fmt: skip
    if not isinstance(items, types.BaseTuple) or any(scalar_name(t) is None for t in item_types):
        raise Refused(f"`in` takes a tuple of numbers, not {described(items)}")

    def generate(code: Code, values: list[Operand]) -> Any:
        parts = (
            Operand(code, ty, code.builder.extract_value(values[0].raw, i))
            for i, ty in enumerate(item_types)
        )
        matches = [compared("equal", part, values[1]) for part in parts]
        return reduce(code.builder.or_, matches, code.context.get_constant(types.boolean, False))

    return types.boolean, generate


_STYLES: dict[str, Callable[..., tuple[types.Type, Generate]]] = {
    **codegen.STYLES,
    "numpy": _plan, "operator": _plan, "math": _math, "cmath": _cmath, "extreme": _extreme,
}  # fmt: skip


# --- Intrinsics by which the rewrite replaces the functions that operators call.


@cache
def calling(entry: Entry, fn: Any, arity: int) -> Any:
    lowest, highest = entry.arity
    if not lowest <= arity <= highest:
        expected = str(lowest) if lowest == highest else f"{lowest} or {highest}"
        expected = f"{lowest} or more" if highest > lowest + 1 else expected
        noun = "argument" if expected == "1" else "arguments"
        raise Refused(f"{entry.shown} takes {expected} {noun} in an operator, not {arity}")

    def resolved(*args: Any) -> Any:
        return resolve(entry, fn, args)

    typers: tuple[Callable[..., Any], ...] = (  # numba reads their signatures
        lambda typingctx, a: resolved(a),
        lambda typingctx, a, b: resolved(a, b),
        lambda typingctx, a, b, c: resolved(a, b, c),
    )
    typers[arity - 1].__name__ = f"numpy_{entry.does}"
    return intrinsic(typers[arity - 1])


def _clip(typingctx: Any, a: Any, low: Any, high: Any) -> Any:
    """np.clip(a, low, high). As in NumPy a Python integer beyond a's integer dtype is no bound."""
    name = scalar_name(a)
    limits = np.iinfo(name) if name is not None and "int" in name else None
    steps = []
    for i, (fn, ty) in enumerate(((np.maximum, low), (np.minimum, high)), 1):
        is_known = isinstance(ty, Weak) and ty.kind == "int" and (ty.data or ty.values)
        if limits is not None and is_known:
            least, greatest = bounds_of(ty)
            if greatest <= limits.min if fn is np.maximum else least >= limits.max:
                continue
        if ty is not types.none:
            steps.append((fn, i, ty))
    name = common_name((a, *(ty for _, _, ty in steps)))
    joint = result = a if name is None or isinstance(a, Weak) else scalar_type(name)
    calls: list[Any] = []
    for fn, i, ty in steps:
        calls.append((i, *resolve(entry_of(fn), fn, (result, ty))))  # type: ignore[arg-type]
        result = calls[-1][1].return_type

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        value = cast(context, builder, args[0], a, joint)
        for i, signature, step in calls:
            value = step(context, builder, signature, (value, args[i]))
        return value

    return result(a, low, high), generate


clip = intrinsic(_clip)


Counters: TypeAlias = "str | tuple[Counters, ...] | None"
"""Which items are counters: "python", None for none, or a tuple's items."""


@cache
def converting(name: Counters) -> Any:
    """Return the intrinsic of one of `_CONVERSIONS`, which changes the type of a value."""
    convert = _CONVERSIONS[name] if isinstance(name, str) else partial(_counted, name)

    def typer(typingctx: Any, value: Any) -> Any:
        target = convert(value)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return cast(context, builder, args[0], value, target)

        return target(value), generate

    typer.__name__ = name if isinstance(name, str) else "counted"
    return intrinsic(typer)


@cache
def reading(name: str, by_name: bool) -> Any:
    """Return the intrinsic that reads a field of a tuple, or else (not by_name) a part of a number.

    The part is "real" or "imag".
    """

    def typer(typingctx: Any, value: Any) -> Any:
        if not isinstance(value, types.BaseTuple):
            if by_name:
                raise Refused(f"a number has no items, such as {name!r}")
            part = np.real if name == "real" else np.imag
            entry = entry_of(part)
            assert entry is not None
            return resolve(entry, part, (value,))
        fields = getattr(value, "fields", None)
        if fields is None:
            raise Refused(f"a tuple without names has no {name!r}; take its items by number")
        if name not in fields:
            raise Refused(f"{name!r} is not a field of the tuple, which has {', '.join(fields)}")
        index = fields.index(name)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return builder.extract_value(args[0], index)

        return value[index](value), generate

    return intrinsic(typer)


def _size_of(typingctx: Any, size: Any, owner: Any) -> Any:
    """Return an array's attribute as a Python integer; the field of a tuple as it is."""
    target = _python(size) if isinstance(owner, types.Array) else size

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return cast(context, builder, args[0], size, target)

    return target(size, owner), generate


size_of = intrinsic(_size_of)


def _plain(ty: Any) -> Any:
    """Convert Python integers to int64, for numba's indices and ranges."""
    if isinstance(ty, Weak):
        if ty.kind != "int":
            raise Refused(f"an index or a bound must be an integer, not {described(ty)}")
        return types.int64
    if isinstance(ty, types.BaseTuple) and any(isinstance(item, Weak) for item in ty):
        return types.Tuple([_plain(item) for item in ty])
    return ty


def _index(ty: Any) -> Any:
    """As `_plain`, for indices of tuples, which numba needs as constants."""
    if isinstance(ty, Weak) and ty.data:
        raise ValueNeeded(ty.data)
    return _plain(ty)


def _python(ty: Any) -> Any:
    """Convert integers from numba's counters and lengths to weak Python integers."""
    if isinstance(ty, types.BaseTuple):
        return types.Tuple([_python(item) for item in ty])
    return Weak("int") if isinstance(ty, types.Integer) else ty


def _counted(counters: Counters, ty: Any) -> Any:
    if isinstance(counters, tuple):
        return types.Tuple([_counted(one, ty[i]) for i, one in enumerate(counters)])
    return ty if counters is None else _python(ty)


def _uniform(ty: Any) -> Any:
    """Convert a tuple to one whose items have a common type, so that it can be iterated."""
    if not isinstance(ty, types.BaseTuple) or isinstance(ty, types.UniTuple) or not len(ty):
        return ty
    joint = _common_type(list(ty))
    return ty if joint is None else types.UniTuple(joint, len(ty))


def _common_type(items: list[Any]) -> Any:
    """Return the common type of numbers, or of tuples of one length; None if there is none."""
    if all(isinstance(item, types.BaseTuple) for item in items):
        if len({len(item) for item in items}) > 1:
            return None
        columns = [_common_type(list(column)) for column in zip(*items, strict=True)]
        return None if None in columns else types.Tuple(columns)
    if any(scalar_name(item) is None for item in items):
        return None
    if not all(isinstance(item, Weak) for item in items):
        return scalar_type(str(common_name(tuple(items))))
    joint = items[0]
    for item in items:
        joint = joint.joined(item)
    return joint


def _strong(ty: Any) -> Any:
    """Convert Python numbers to their dtypes in an array."""
    if isinstance(ty, types.BaseTuple):
        items = tuple(map(_strong, ty))
        return types.BaseTuple.from_types(items, getattr(ty, "instance_class", None))
    return native(ty) if isinstance(ty, Weak) else ty


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "plain": _plain, "index": _index, "python": _python, "uniform": _uniform, "strong": _strong,
    # a Python constant to one of unknown value, for arguments of recursive calls
    "any_value": lambda ty: Weak(ty.kind) if isinstance(ty, Weak) else ty,
}  # fmt: skip


# --- Dtypes of operators' results, and checks of results against a requested dtype.


def result_of(fn: Any, returned: types.Type, wanted: np.dtype[Any] | None) -> np.dtype[Any]:
    """Return the dtype of op's result; raise TypeError if it is invalid or does not fit."""
    try:
        if isinstance(returned, types.BaseTuple):
            return _record_of(returned, wanted)
        if wanted is not None and wanted.names is not None:
            raise TypeError(
                f"op returns {described(returned)}, but must return a tuple like "
                f"{records.shown(wanted)}"
            )
        return _number_of(returned, wanted, "")
    except TypeError as error:
        raise type(error)(f"{error}: {source_of(fn)}") from None


def _record_of(returned: types.BaseTuple, wanted: np.dtype[Any] | None) -> np.dtype[Any]:
    names, item_types = zip(*_paths_of(returned, ""), strict=True)
    if wanted is not None and wanted.names is None:
        raise records.ReturnsTuple(
            f"op returns a tuple of {len(returned)}, but must return a number like {wanted}"
        )
    if wanted is not None and not _is_alike(names, wanted.names or ()):
        if len(names) != len(wanted.names or ()):
            raise TypeError(
                f"op returns a tuple of {len(names)}, but must return a tuple of "
                f"{len(wanted.names or ())} like {records.shown(wanted)}"
            )
        raise TypeError(
            f"op returns a tuple with items {', '.join(names)}, but must return a tuple like "
            f"{records.shown(wanted)}"
        )
    if len(names) > records.MAX_FIELDS:
        raise TypeError(
            f"op returns a tuple of {len(names)} numbers, at most {records.MAX_FIELDS} are possible"
        )
    fields = [None] * len(names) if wanted is None else records.field_dtypes(wanted)
    item_dtypes = [
        _number_of(ty, field, f" in item {name}")
        for name, ty, field in zip(names, item_types, fields, strict=True)
    ]
    return records.record(names, item_dtypes) if wanted is None else wanted


def _is_alike(names: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """Return whether tuples have the same structure; plain tuples match namedtuples by position."""

    def agree(a: Any, b: Any) -> bool:
        if a is None or b is None:
            return a is b
        (fields, items), (others, expected) = a, b
        is_named = fields is not None and others is not None
        if len(items) != len(expected) or (is_named and fields != others):
            return False
        return all(map(agree, items, expected))

    return agree(
        *(records.nest_fields(n, [None] * len(n), records.fields_of) for n in (names, wanted))
    )


def _paths_of(ty: types.BaseTuple, path: str) -> Iterator[tuple[str, types.Type]]:
    fields = getattr(ty, "fields", None) or tuple(map(str, range(len(ty))))
    if not fields:
        raise TypeError("op returns an empty tuple; return a number or several")
    for name, item in zip(fields, ty, strict=True):
        if not isinstance(item, types.BaseTuple):
            yield path + name, item
        elif path:
            raise TypeError(
                "op returns tuples that are nested too deeply; one level of nesting is possible"
            )
        else:
            yield from _paths_of(item, f"{name}.")


def _number_of(returned: types.Type, wanted: np.dtype[Any] | None, item: str) -> np.dtype[Any]:
    name = scalar_name(returned)
    if isinstance(returned, types.Optional):
        raise TypeError(
            f"op returns None{item} on some path, and {described(returned.type)} on another; "
            f"return a scalar on each"
        )
    if name is None:
        raise TypeError(
            f"op returns {described(returned)}{item}, which is not a number; return a scalar"
        )
    inferred = dtypes.from_name(str(scalar_name(native(returned))) if name in WEAK else name)
    if wanted is None:
        if isinstance(returned, Weak) and returned.kind == "int":
            _check_values(returned, inferred)
        return inferred
    weak_fits = isinstance(returned, Weak) and _weak_fits(returned, wanted)
    if not weak_fits and not dtypes.can_cast(inferred, wanted):
        raise TypeError(
            f"op returns {inferred}{item}, which does not fit {wanted}; pass dtype=np.{inferred} "
            f"or convert inside op"
        )
    return wanted


def _weak_fits(returned: Weak, wanted: np.dtype[Any]) -> bool:
    ranks = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
    kind = dtypes.kind(wanted)
    if kind in "ui":
        _check_values(returned, wanted)
    return {"int": 1, "float": 2, "complex": 3}[returned.kind] <= ranks[kind]


def _check_values(returned: Weak, wanted: np.dtype[Any]) -> None:
    limits = np.iinfo(wanted)
    if returned.kind == "int" and returned.data and not is_within(returned, limits.min, limits.max):
        raise ConstantNeeded("op returns a number that may not fit", returned.data)
    for value in returned.values or ():
        if returned.kind == "int" and not limits.min <= value <= limits.max:
            raise TypeError(
                f"op returns the Python integer {errors.shown_integer(value)}, which does not fit "
                f"{wanted}; pass another dtype= or return a float"
            )
