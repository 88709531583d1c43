"""LLVM code of NumPy's functions by dtype."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from llvmlite import ir as llvm
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np import arrayobj

from gpualgo._base.dtypes import WEAK, default_name, is_inexact
from gpualgo._operators.captured import WHOLE_POWERS, Number, Slot
from gpualgo._operators.numpy_rules import floats, integers
from gpualgo._operators.numpy_rules.errors import Refused, ValueNeeded
from gpualgo._operators.numpy_rules.storage import (
    NARROW,
    WEAK_KINDS,
    Code,
    Operand,
    Weak,
    bounds_of,
    check_fits,
    common_name,
    i1,
    is_within,
    native,
    scalar_name,
    scalar_type,
)
from gpualgo._operators.numpy_rules.table import Entry
from gpualgo._operators.numpy_rules.values import Complex, Float, wrapped

RELATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "less": operator.lt, "less_equal": operator.le, "greater": operator.gt,
    "greater_equal": operator.ge, "equal": operator.eq, "not_equal": operator.ne,
}  # fmt: skip
MIRRORED = {"less": "greater", "less_equal": "greater_equal", "greater": "less",
            "greater_equal": "less_equal"}  # fmt: skip
_OF_ALL: dict[str, Callable[..., Any]] = {
    **RELATIONS,
    "logical_not": lambda a: ~truth(a),
    "logical_and": lambda a, b: truth(a) & truth(b),
    "logical_or": lambda a, b: truth(a) | truth(b),
    "logical_xor": lambda a, b: truth(a) ^ truth(b),
}


def truth(value: Any) -> Any:
    return value if value.raw.type == i1 else value != 0


def compute(code: Code, does: str, name: str, values: Sequence[Any]) -> Any:
    numbers = [wrapped(code, name, value) for value in values]
    if does == "nextafter" and name in NARROW:
        return floats.next_narrow(name, *numbers).raw
    return _function_of(does, name)(*numbers).raw  # type: ignore[misc]


def has(does: str, name: str) -> bool:
    return _function_of(does, name) is not None


def _function_of(does: str, name: str) -> Callable[..., Any] | None:
    if name == "bool":
        functions = integers.BOOL
    elif name.startswith("complex"):
        from gpualgo._operators.numpy_rules import complexes

        functions = complexes.FUNCTIONS
    else:
        functions = floats.FUNCTIONS if is_inexact(name) else integers.FUNCTIONS
    return _OF_ALL.get(does) or functions.get(does)


def rounded_to(code: Code, ty: types.Type, value: Any) -> Any:
    return code.context.cast(code.builder, value, native(ty), ty)


def power_by_constant(code: Code, name: str, base: Any, exponent: int) -> Any:
    """Return base ** exponent by repeated squaring, with the multiplications of NumPy."""
    square = wrapped(code, name, base)
    is_from_one = name.startswith("complex") and exponent > 3
    power = square.like(1) if is_from_one else None
    while exponent:
        if exponent & 1:
            power = square if power is None else power * square
        exponent >>= 1
        if exponent:
            square = square * square
    assert power is not None
    return power.raw


def rounding(code: Code, ty: types.Type, value: Any, decimals: int) -> Any:
    """Return np.round: scale by a power of ten, round half to even, scale back."""
    if decimals == 0:
        return floats.rint(Float(code, value)).raw

    def rounded(number: Any) -> Any:
        return Operand(code, ty, rounded_to(code, ty, number)).native()

    scale = rounded(value.type(float(10 ** abs(decimals))))
    steps = (code.builder.fmul, code.builder.fdiv)
    scale_up, scale_back = steps if decimals > 0 else steps[::-1]
    whole = floats.rint(Float(code, rounded(scale_up(value, scale)))).raw
    return scale_back(whole, scale)


def widened(code: Code, source: str, target: str, value: Any) -> Any:
    return Operand(code, scalar_type(source), value).to(scalar_type(target))


# --- Intrinsics that load captured arrays and numbers from the words that a call passes.

_word = llvm.IntType(64)


def array_intrinsic(slot: Slot, words: Any) -> Any:
    """Return the intrinsic that returns a captured array, read-only; words(builder) points to word
    0.
    """
    element = scalar_type(slot.dtype_name)
    layout = "C" if slot.is_contiguous else "A"
    is_aligned = slot.is_contiguous is not None
    ty = types.Array(element, slot.ndim, layout, readonly=True, aligned=is_aligned)

    def captured(typingctx: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            start = words(builder)

            def word(index: int) -> Any:
                address = builder.gep(start, [llvm.Constant(_word, slot.first_word + index)])
                loaded = builder.load(address)
                # The words do not change while a kernel runs.
                loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
                return loaded

            data_type = context.get_data_type(element)
            shape = [word(1 + axis) for axis in range(slot.ndim)]
            strides = [word(1 + slot.ndim + axis) for axis in range(slot.ndim)]
            array = context.make_array(ty)(context, builder)
            arrayobj.populate_array(
                array,
                data=builder.inttoptr(word(0), data_type.as_pointer()),
                shape=shape,
                strides=strides,
                itemsize=context.get_constant(types.intp, context.get_abi_sizeof(data_type)),
                meminfo=None,
            )
            return array._getvalue()

        return ty(), generate

    return intrinsic(captured)


def number_intrinsic(number: Number, word: Any) -> Any:
    """Return the intrinsic that returns a data number; word(builder, i) loads word i."""
    ty = scalar_type(number.kind)
    if isinstance(ty, Weak):
        words = frozenset((number.first_word,))
        ty = Weak(ty.kind, None, words, number.bounds, number.is_exponent)

    def captured(typingctx: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            words = [word(builder, number.first_word + i) for i in range(number.num_words)]
            buffer = cgutils.alloca_once(builder, llvm.ArrayType(_word, len(words)))
            for i, value in enumerate(words):
                indices = [llvm.Constant(llvm.IntType(32), n) for n in (0, i)]
                builder.store(value, builder.gep(buffer, indices))
            kind = ty.native if isinstance(ty, Weak) else ty
            data_type = context.get_data_type(kind)
            data = builder.load(builder.bitcast(buffer, data_type.as_pointer()))
            model = context.data_model_manager[kind]
            return model.from_data(builder, data)

        return ty(), generate

    return intrinsic(captured)


# --- Result types of functions of Python numbers, some of which are passed as data.
#
# Results must equal Python's, whose integers are unbounded and whose floats raise. If they might
# differ, `ValueNeeded` is raised and the numbers are compiled in as constants.

_EXACT = 1 << 53  # integers up to it are exact as floats

# Functions that are monotonic in each argument: bounds of arguments give bounds of the result.
_MONOTONIC: dict[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul,
    "negative": operator.neg, "positive": operator.pos,
}  # fmt: skip


def result_of(entry: Entry, args: tuple[types.Type, ...]) -> types.Type | None:
    """Return the result type for Python numbers with data among them, None for other arguments."""
    weak = [ty for ty in args if isinstance(ty, Weak)]
    words = frozenset().union(*(ty.data for ty in weak))
    if not words or len(weak) < len(args):
        return None
    if not all(ty.data or ty.values is not None for ty in weak):
        return None  # neither data nor constant, such as a loop's counter
    kind = max((ty.kind for ty in weak), key=WEAK.index)
    result = _result(entry, weak, kind, words)
    if result is None:
        raise ValueNeeded(words)
    return result


def _result(entry: Entry, args: list[Weak], kind: str, words: frozenset[int]) -> types.Type | None:
    """Return the result's type, None if code needs the values."""
    if entry.style == "bool" or entry.does == "logical_not":
        return types.boolean
    if kind != "int" and not all(ty.kind != "int" or is_within(ty, -_EXACT, _EXACT) for ty in args):
        return None  # an integer that no float is equal to
    if entry.does in RELATIONS:
        return types.boolean if kind != "complex" else None
    if entry.style == "extreme":  # returns one of the two, unconverted
        return args[0].joined(args[1]) if args[0].kind == args[1].kind else None
    compute = _MONOTONIC.get(entry.does)
    if entry.style != "operator" or compute is None or kind == "complex":
        return None
    if kind == "float":
        return Weak("float", None, words)
    ends = [compute(*corner) for corner in product(*map(bounds_of, args))]
    result = Weak("int", None, words, (min(ends), max(ends)))
    return result if is_within(result, -(1 << 63), (1 << 63) - 1) else None


# --- Rules of functions that convert or select numbers: constructors, rounding, parts, where.

Planned = tuple[types.Type, Callable[[Code, list[Operand]], Any]]


def _construct(entry: Entry, args: tuple[types.Type, ...]) -> Planned:
    target = scalar_type(entry.does)
    names = [default_name(str(scalar_name(ty))) for ty in args]
    is_complex = entry.does.startswith("complex")
    if len(args) == 2:
        return _of_two_parts(entry, target, names)
    if names[0].startswith("complex") and not is_complex and entry.does != "bool":
        raise Refused(
            f"{entry.shown} of a complex number would lose the imaginary part; use a.real"
        )
    if entry.does == "bool":
        return target, lambda code, values: _truth(values[0])
    if isinstance(args[0], Weak) and not is_inexact(entry.does):
        check_fits(args[0], entry.does)
    return target, lambda code, values: values[0].to(target)


def _truth(operand: Operand) -> Any:
    code, ty = operand.code, operand.type
    if isinstance(ty, Weak) and ty.is_constant:
        return code.context.get_constant(types.boolean, bool(ty.value))
    return truth(wrapped(code, default_name(str(scalar_name(ty))), operand.native())).raw


def _of_two_parts(entry: Entry, target: types.Type, names: list[str]) -> Planned:
    if any(name.startswith("complex") for name in names):
        raise Refused(f"{entry.shown} of two parts takes real numbers; write a + b * 1j")
    part = types.float32 if entry.does == "complex64" else types.float64

    def generate(code: Code, values: list[Operand]) -> Any:
        return Complex(*(Float(code, value.to(part)) for value in values)).raw

    return target, generate


def _round(entry: Entry, args: tuple[types.Type, ...]) -> Planned:
    """Python's round: to an int64 without decimals, else as np.round."""
    if len(args) == 2:
        return _numpy_round(entry, args)
    return _to_whole(entry, args[0], "rint", types.int64)


def _to_whole(entry: Entry, ty: types.Type, does: str, result: types.Type) -> Planned:
    name = default_name(str(scalar_name(ty)))
    if name.startswith("complex"):
        raise Refused(f"{entry.shown} has no meaning on {name}; use a.real")
    if name == "uint64":  # int64 does not hold all of them
        result = types.uint64

    def generate(code: Code, values: list[Operand]) -> Any:
        value = values[0].native()
        value = compute(code, does, name, [value]) if is_inexact(name) else value
        return code.context.cast(code.builder, value, native(ty), native(result))

    return result, generate


def _numpy_round(entry: Entry, args: tuple[types.Type, ...]) -> Planned:
    name = default_name(str(scalar_name(args[0])))
    decimals = 0
    if len(args) == 2:
        value = args[1].value if isinstance(args[1], Weak) and args[1].kind == "int" else None
        if isinstance(args[1], Weak) and args[1].data:
            raise ValueNeeded(args[1].data)
        if value is None:
            raise Refused(f"{entry.shown}: the number of decimals must be a constant")
        decimals = value
    if name == "bool" or name.startswith("complex") or abs(decimals) > 22:
        raise Refused(f"{entry.shown} of {name} to {decimals} decimals is not supported")
    if not is_inexact(name) and decimals < 0:
        raise Refused(f"{entry.shown} of integers takes no negative number of decimals")
    result = scalar_type(name)

    def generate(code: Code, values: list[Operand]) -> Any:
        if not is_inexact(name):
            return values[0].to(result)
        value = rounding(code, result, values[0].native(result), decimals)
        return rounded_to(code, result, value)

    return result, generate


def _part(entry: Entry, args: tuple[types.Type, ...]) -> Planned:
    (ty,), name = args, str(scalar_name(args[0]))
    if not name.startswith("complex"):
        if entry.does == "real":
            return ty, lambda code, values: values[0].raw
        zero = scalar_type(default_name(name))
        return scalar_type(name), lambda code, values: code.context.get_constant_null(zero)
    result: types.Type = types.float32 if name == "complex64" else types.float64
    if name == "complex":
        result = Weak("float", None, args[0].data)
    index = 0 if entry.does == "real" else 1
    return result, lambda code, values: code.builder.extract_value(values[0].native(), index)


def _where(entry: Entry, args: tuple[types.Type, ...]) -> Planned:
    name = default_name(str(common_name(args[1:])))
    if not is_inexact(name) and name != "bool":
        for ty in args[1:]:
            if isinstance(ty, Weak):
                check_fits(ty, name)
    result = scalar_type(name)

    def generate(code: Code, values: list[Operand]) -> Any:
        condition, *either = values
        chosen = (value.to(result) for value in either)
        return code.builder.select(_truth(condition), *chosen)

    return result, generate


# --- Powers: which constant exponents have special code, and which exponents may be data.


def constant_power(
    entry: Entry, args: tuple[types.Type, ...], name: str
) -> tuple[types.Type, Any] | None:
    """Return the type and special code of a power with a constant exponent, None for others."""
    if isinstance(args[1], Weak) and args[1].data:
        _check_power_of_data(args[1], name)
        return None
    exponent = args[1].value if isinstance(args[1], Weak) else None
    if isinstance(exponent, int) and exponent < 0 and not is_inexact(name):
        raise Refused(
            f"integers to negative integer powers are not allowed; write a ** {exponent}.0"
        )
    function_name = None
    if entry.style == "operator" and exponent is not None:
        function_name = {-1: "reciprocal", 0.5: "sqrt"}.get(exponent)
    is_product = isinstance(exponent, (int, float)) and exponent in WHOLE_POWERS
    if (function_name is None and not is_product) or (function_name and not is_inexact(name)):
        return None
    result = args[0] if isinstance(args[0], Weak) else scalar_type(name)
    if isinstance(result, Weak):
        result = Weak(WEAK_KINDS[name])

    def generate(code: Code, values: list[Operand]) -> Any:
        base = values[0].native(scalar_type(name))
        if function_name is not None:
            value = compute(code, function_name, name, [base])
        else:
            value = power_by_constant(code, name, base, int(exponent))  # type: ignore[arg-type]
        return rounded_to(code, result, value)

    return result, generate


def _check_power_of_data(exponent: Weak, name: str) -> None:
    """Raise `ValueNeeded` for a data exponent whose code depends on its value."""
    if is_inexact(name) and not exponent.is_exponent:
        raise ValueNeeded(exponent.data, is_exponent=exponent.kind != "complex")
    if not is_inexact(name) and not is_within(exponent, 0, _MAX_EXPONENT):
        raise ValueNeeded(exponent.data)  # negative exponents raise


_MAX_EXPONENT = 2**63 - 1


def _philox(entry: Entry, args: tuple[types.Type, ...]) -> Planned:
    from gpualgo._operators.numpy_rules import philox  # most operators draw no random numbers

    return types.uint64, philox.generate


STYLES: dict[str, Callable[..., Planned]] = {
    "bool": lambda entry, args: (types.boolean, lambda code, values: _truth(values[0])),
    # math.floor, ceil and trunc, which return a Python int
    "whole": lambda entry, args: _to_whole(entry, args[0], entry.does, Weak("int")),
    "construct": _construct, "round": _round,
    "np.round": _numpy_round, "part": _part, "where": _where, "philox": _philox,
}  # fmt: skip
