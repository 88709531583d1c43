"""Numbers in LLVM code with Python's operators, so that formulas are written once for all kinds."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir as llvm

from gpualgo._operators.numpy_rules.storage import Code, f64, i1

WORDS = {llvm.FloatType(): llvm.IntType(32), llvm.DoubleType(): llvm.IntType(64)}


def _instruction(name: str) -> Any:
    return lambda self, other: self.emit(name, other)


def _reflected(name: str) -> Any:
    return lambda self, other: self.like(other).emit(name, self)


def _relation(symbol: str) -> Any:
    return lambda self, other: Integer(self.code, self.compared(symbol, self.like(other)))


class Value:
    """A number in LLVM code; Python numbers that it meets become constants of its type."""

    __slots__ = ("code", "raw")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, code: Code, raw: Any) -> None:
        self.code, self.raw = code, raw

    def made(self, raw: Any) -> Any:
        return type(self)(self.code, raw)

    def like(self, other: Any) -> Any:
        return other if isinstance(other, Value) else self.made(self.raw.type(other))

    def emit(self, instruction: str, *others: Any) -> Any:
        operands = [self.like(other).raw for other in others]
        return self.made(getattr(self.code.builder, instruction)(self.raw, *operands))

    def libm(self, name: str, *others: Any) -> Any:
        return self.made(self.code.libm(name, self.raw, *(other.raw for other in others)))

    def intrinsic(self, name: str) -> Any:
        return self.made(self.code.intrinsic(name, self.raw))

    def chosen(self, condition: Any, other: Any) -> Any:
        """Return this number where a condition holds, else another."""
        return self.made(self.code.builder.select(condition.raw, self.raw, other.raw))

    def compared(self, symbol: str, other: Any) -> Any:
        raise NotImplementedError

    def is_nan(self) -> Any:
        return None  # integers have no NaN

    def conjugate(self) -> Any:
        return self

    __lt__, __le__, __gt__, __ge__ = map(_relation, ("<", "<=", ">", ">="))
    __eq__, __ne__ = map(_relation, ("==", "!="))


class Integer(Value):
    """An integer of any width, or a condition of one bit."""

    __slots__ = ("signed",)

    def __init__(self, code: Code, raw: Any, signed: bool = False) -> None:
        super().__init__(code, raw)
        self.signed = signed

    def made(self, raw: Any) -> Any:
        return Integer(self.code, raw, self.signed)

    def compared(self, symbol: str, other: Any) -> Any:
        builder = self.code.builder
        compare = builder.icmp_signed if self.signed else builder.icmp_unsigned
        return compare(symbol, self.raw, other.raw)

    @property
    def unsigned(self) -> Any:
        return Integer(self.code, self.raw)

    def extended(self, ty: Any) -> Any:
        return Integer(self.code, self.code.builder.zext(self.raw, ty))

    def truncated(self, ty: Any) -> Any:
        return Integer(self.code, self.code.builder.trunc(self.raw, ty))

    @property
    def sign_bit(self) -> Any:
        return self & -(1 << (self.raw.type.width - 1))

    def __neg__(self) -> Any:
        return self.emit("neg")

    def __invert__(self) -> Any:
        return self.emit("not_")

    def __abs__(self) -> Any:
        return choose(self < 0, -self, self) if self.signed else self

    __add__, __sub__, __mul__ = map(_instruction, ("add", "sub", "mul"))
    __and__, __or__, __xor__ = map(_instruction, ("and_", "or_", "xor"))
    __lshift__, __rshift__ = map(_instruction, ("shl", "lshr"))


class Float(Value):
    __slots__ = ()

    def compared(self, symbol: str, other: Any) -> Any:
        """Return whether a relation holds; with NaN only != does."""
        builder = self.code.builder
        compare = builder.fcmp_unordered if symbol == "!=" else builder.fcmp_ordered
        return compare(symbol, self.raw, other.raw)

    @property
    def bits(self) -> Any:
        return Integer(self.code, self.code.builder.bitcast(self.raw, WORDS[self.raw.type]))

    def of_bits(self, bits: Any) -> Any:
        """Return the float of this type that has these bits."""
        return self.made(self.code.builder.bitcast(bits.raw, self.raw.type))

    def signed(self, other: Any) -> Any:
        """Return this number, which is not negative, with another's sign."""
        return self.of_bits(self.bits | other.bits.sign_bit)

    def is_negative(self) -> Any:
        """Return whether the sign is set, also that of -0.0 and NaN."""
        return Integer(self.code, self.bits.raw, signed=True) < 0

    def to(self, ty: Any) -> Any:
        """Return it as a float or a double."""
        builder = self.code.builder
        convert = builder.fpext if ty == f64 else builder.fptrunc
        return self if self.raw.type == ty else self.made(convert(self.raw, ty))

    def is_nan(self) -> Any:
        return Integer(self.code, self.code.builder.fcmp_unordered("uno", self.raw, self.raw))

    def is_infinite(self) -> Any:
        return abs(self) == float("inf")

    def is_finite(self) -> Any:
        return abs(self) < float("inf")

    def __neg__(self) -> Any:
        return -0.0 - self  # NVVM lacks fneg on some architectures

    def __abs__(self) -> Any:
        return self.libm("fabs") if self.code.is_cuda else self.intrinsic("fabs")

    __add__, __sub__, __mul__ = map(_instruction, ("fadd", "fsub", "fmul"))
    __radd__, __rsub__, __rmul__ = map(_reflected, ("fadd", "fsub", "fmul"))
    __truediv__, __rtruediv__ = _instruction("fdiv"), _reflected("fdiv")


class Complex(Value):
    __slots__ = ("imag", "real")

    def __init__(self, real: Float, imag: Any) -> None:
        self.code, self.real, self.imag = real.code, real, real.like(imag)

    @property
    def raw(self) -> Any:
        insert, parts = self.code.builder.insert_value, (self.real.raw, self.imag.raw)
        empty = llvm.Constant(llvm.LiteralStructType([part.type for part in parts]), llvm.Undefined)
        return insert(insert(empty, parts[0], 0), parts[1], 1)

    @property
    def parts(self) -> tuple[Any, Any]:
        return self.real, self.imag

    def made(self, raw: Any) -> Any:
        return wrapped(self.code, "complex", raw)

    def like(self, other: Any) -> Any:
        return other if isinstance(other, Value) else Complex(self.real.like(other), 0.0)

    def chosen(self, condition: Any, other: Any) -> Any:
        real = self.real.chosen(condition, other.real)
        return Complex(real, self.imag.chosen(condition, other.imag))

    def compared(self, symbol: str, other: Any) -> Any:
        """Return whether a relation holds, in NumPy's order: by real, then by imaginary parts."""
        relate = _RELATIONS[symbol]
        reals, imags = (self.real, other.real), (self.imag, other.imag)
        if symbol in ("==", "!="):
            join = operator.and_ if symbol == "==" else operator.or_
            return join(relate(*reals), relate(*imags)).raw
        are_ordered = self.code.builder.fcmp_ordered("ord", *(imag.raw for imag in imags))
        is_beyond = _RELATIONS[symbol[0]](*reals) & Integer(self.code, are_ordered)
        return (is_beyond | ((reals[0] == reals[1]) & relate(*imags))).raw

    def is_nan(self) -> Any:
        return self.real.is_nan() | self.imag.is_nan()

    def is_infinite(self) -> Any:
        return self.real.is_infinite() | self.imag.is_infinite()

    def is_finite(self) -> Any:
        return self.real.is_finite() & self.imag.is_finite()

    def conjugate(self) -> Any:
        return Complex(self.real, -self.imag)

    def __neg__(self) -> Any:
        return Complex(-self.real, -self.imag)

    def __abs__(self) -> Any:
        return self.real.libm("hypot", self.imag)

    def __mul__(self, other: Any) -> Any:
        (ar, ai), (br, bi) = self.parts, other.parts
        return Complex(ar * br - ai * bi, ar * bi + ai * br)

    def __add__(self, other: Any) -> Any:
        return Complex(self.real + other.real, self.imag + other.imag)

    def __sub__(self, other: Any) -> Any:
        return Complex(self.real - other.real, self.imag - other.imag)


_RELATIONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
              "==": operator.eq, "!=": operator.ne}  # fmt: skip


def wrapped(code: Code, name: str, raw: Any) -> Any:
    """Return an LLVM value of a dtype, of which only the kind matters."""
    if name.startswith("complex"):
        return Complex(*(Float(code, code.builder.extract_value(raw, i)) for i in range(2)))
    return Float(code, raw) if "float" in name else Integer(code, raw, name.startswith("int"))


def choose(*cases: Any) -> Any:
    """Return the value of the first true condition: condition, value, …, default."""
    *pairs, result = cases
    values = (*pairs[1::2], result)
    some = next(value for value in values if isinstance(value, Value))
    result = some.like(result)
    for condition, value in reversed(list(zip(pairs[::2], pairs[1::2], strict=True))):
        result = some.like(value).chosen(condition, result)
    return result


def loop(start: Sequence[Any], goes_on: Callable[..., Any], step: Callable[..., Any]) -> Any:
    """Return the variables' values when `goes_on` is false; `step` returns their next ones."""
    builder, raw = start[0].code.builder, [value.raw for value in start]
    before = builder.block
    head, body, after = map(builder.append_basic_block, ("head", "body", "after"))
    builder.branch(head)
    builder.position_at_end(head)
    phis = [builder.phi(value.type) for value in raw]
    variables = [value.made(phi) for value, phi in zip(start, phis, strict=True)]
    builder.cbranch(goes_on(*variables).raw, body, after)
    builder.position_at_end(body)
    following = [value.raw for value in step(*variables)]
    for phi, first, later in zip(phis, raw, following, strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(later, builder.block)
    builder.branch(head)
    builder.position_at_end(after)
    return variables


def power(base: Any, count: Any) -> Any:
    """Return base to the power of an integer that is not negative, by repeated squaring."""

    def step(result: Any, square: Any, remaining: Any) -> list[Any]:
        product = choose(remaining.truncated(i1), result * square, result)
        return [product, square * square, remaining >> 1]

    return loop([base.like(1), base, count], lambda result, square, left: left != 0, step)[0]


def extreme(relation: Callable[[Any, Any], Any], skips_nan: bool) -> Callable[[Any, Any], Any]:
    """Return the code of the larger or smaller of two; a NaN is returned, or skipped."""

    def beyond(a: Any, b: Any) -> Any:
        is_first, is_nan = relation(a, b), (b if skips_nan else a).is_nan()
        return choose(is_first if is_nan is None else is_first | is_nan, a, b)

    return beyond


def is_off(remainder: Any, b: Any) -> Any:
    """Return whether a remainder of a quotient toward zero is not that of its floor."""
    return (remainder != 0) & ((remainder < 0) ^ (b < 0))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul,
    "negative": operator.neg, "positive": lambda a: a, "conjugate": lambda a: a.conjugate(),
    "absolute": abs, "square": lambda a: a * a,
    "maximum": extreme(operator.ge, False), "minimum": extreme(operator.le, False),
    "fmax": extreme(operator.ge, True), "fmin": extreme(operator.le, True),
}  # fmt: skip
"""Functions that have one formula for integers, floats and complex numbers."""
