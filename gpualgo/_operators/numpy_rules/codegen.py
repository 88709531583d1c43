"""LLVM code of NumPy's functions by dtype."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import product
from typing import Any

from llvmlite import ir as llvm
from numba import types
from numba.core import cgutils

from gpualgo._base.dtypes import WEAK, is_inexact
from gpualgo._operators.captured import Number, Slot
from gpualgo._operators.numpy_rules import complexes, floats, integers
from gpualgo._operators.numpy_rules.errors import Refused, ValueNeeded
from gpualgo._operators.numpy_rules.storage import Code
from gpualgo._operators.numpy_rules.table import Entry
from gpualgo._operators.numpy_rules.types import Weak, bounds_of, is_within, native, scalar_type

RELATIONS = {"less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==",
             "not_equal": "!="}  # fmt: skip
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_LOGIC = {"logical_and": "and_", "logical_or": "or_", "logical_xor": "xor"}


def truth(code: Code, name: str, value: Any) -> Any:
    if name == "bool":
        return value
    if name.startswith("complex"):
        return code.either(*(truth(code, "float", part) for part in complexes.parts(code, value)))
    if is_inexact(name):
        return code.builder.fcmp_unordered("!=", value, value.type(0.0))
    return code.builder.icmp_unsigned("!=", value, value.type(0))


def compute(code: Code, does: str, name: str, values: list[Any]) -> Any:
    if does in RELATIONS:
        return compare(code, RELATIONS[does], name, *values)
    if does == "logical_not":
        return code.builder.not_(truth(code, name, values[0]))
    if does in _LOGIC:
        return getattr(code.builder, _LOGIC[does])(*(truth(code, name, v) for v in values))
    if does == "nextafter" and name in ("float16", "bfloat16"):
        return floats.next_narrow(code, name, *values)
    function = _functions_of(name)[does]
    if name == "bool" or not is_inexact(name):
        return function(code, name.startswith("int"), *values)
    return function(code, *values)


def has(does: str, name: str) -> bool:
    if does in RELATIONS or does == "logical_not" or does in _LOGIC:
        return True
    return does in _functions_of(name)


def _functions_of(name: str) -> dict[str, Callable[..., Any]]:
    if name == "bool":
        return integers.BOOL
    if name.startswith("complex"):
        return complexes.FUNCTIONS
    return floats.FUNCTIONS if is_inexact(name) else integers.FUNCTIONS


def compare(code: Code, relation: str, name: str, a: Any, b: Any) -> Any:
    if name.startswith("complex"):
        return complexes.compare(code, relation, a, b)
    if is_inexact(name):
        return floats.compare(code, relation, a, b)
    return integers.compare(code, relation, name.startswith("int"), a, b)


def rounded_to(code: Code, ty: types.Type, value: Any) -> Any:
    return code.context.cast(code.builder, value, native(ty), ty)


def constant_power(code: Code, name: str, base: Any, exponent: int) -> Any:
    """Return base ** exponent by repeated squaring, rounded after each multiplication."""
    if name.startswith("complex"):
        return _complex_power(code, base, exponent)
    multiply = "multiply"
    square, power = base, None
    while exponent:
        if exponent & 1:
            power = square if power is None else compute(code, multiply, name, [power, square])
        exponent >>= 1
        if exponent:
            square = compute(code, multiply, name, [square, square])
    return power


def _complex_power(code: Code, base: Any, exponent: int) -> Any:
    """Return a power of a complex number by the same multiplications as NumPy."""
    multiply = complexes.FUNCTIONS["multiply"]
    if exponent == 3:
        return multiply(code, base, multiply(code, base, base))
    real = complexes.parts(code, base)[0].type
    power, square = complexes.joined(code, real(1.0), real(0.0)), base
    if exponent <= 2:
        return base if exponent == 1 else multiply(code, base, base)
    while exponent:
        if exponent & 1:
            power = multiply(code, power, square)
        exponent >>= 1
        if exponent:
            square = multiply(code, square, square)
    return power


def rounding(code: Code, ty: types.Type, value: Any, decimals: int) -> Any:
    """Return np.round: scale by a power of ten, round half to even, scale back."""
    if decimals == 0:
        return floats.rint(code, value)
    scale = rounded_to(code, ty, value.type(float(10 ** abs(decimals))))
    steps = (code.builder.fmul, code.builder.fdiv)
    scale_up, scale_back = steps if decimals > 0 else steps[::-1]
    whole = floats.rint(code, rounded_to(code, ty, scale_up(value, scale)))
    return rounded_to(code, ty, scale_back(whole, scale))


def widened(code: Code, source: str, target: str, value: Any) -> Any:
    ty = scalar_type(target)
    return code.context.cast(code.builder, value, scalar_type(source), ty)


def zero_of(name: str) -> Any:
    ty = native(scalar_type(name))
    if isinstance(ty, types.Float):
        return (llvm.FloatType() if ty == types.float32 else llvm.DoubleType())(0.0)
    if isinstance(ty, types.Boolean):
        return llvm.IntType(1)(0)
    if not isinstance(ty, types.Integer):
        raise Refused(f"{name} has no zero")
    return llvm.IntType(ty.bitwidth)(0)


def cast_all(code: Code, values: list[Any], sources: Any, names: Any) -> list[Any]:
    results = []
    for value, source, name in zip(values, sources, names, strict=True):
        target = scalar_type(name)
        cast = code.context.cast(code.builder, value, source, target)
        results.append(code.context.cast(code.builder, cast, target, native(target)))
    return results


# --- Intrinsics that load captured arrays and numbers from the words that a call passes.

_word = llvm.IntType(64)


def array_intrinsic(slot: Slot, arrayobj: Any, make: Callable[..., Any], words: Any) -> Any:
    """Return the intrinsic that returns a captured array, read-only; words(builder) points to word
    0.
    """
    element = scalar_type(slot.dtype_name)
    layout = "C" if slot.is_contiguous else "A"
    ty = types.Array(element, slot.ndim, layout, readonly=True)

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

    return make(captured)


def number_intrinsic(number: Number, make: Callable[..., Any], word: Any) -> Any:
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

    return make(captured)


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
    if kind != "int" and any(not _is_float(ty) for ty in args):
        return None
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


def _is_float(ty: Weak) -> bool:
    """Return whether a Python number is exactly representable as a float."""
    return ty.kind != "int" or is_within(ty, -_EXACT, _EXACT)
