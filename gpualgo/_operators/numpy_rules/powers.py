"""Powers whose exponent is the same for all elements, and known when a kernel is launched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir as llvm
from numba.core import cgutils

from gpualgo._operators.numpy_rules import codegen, floats
from gpualgo._operators.numpy_rules.code import Code

_BITS = codegen.MAX_UNROLLED_POWER.bit_length()
_EXPONENTS = {"reciprocal": -1.0, "sqrt": 0.5}


def of_data(
    code: Code, does: str, name: str, values: tuple[Any, Any], exponent: Any, ways: tuple[str, ...]
) -> Any:
    """Return a ** b, of native values of one dtype, to the bit as where b is a constant.

    `exponent`: b as a float64; `ways`: functions that are taken for their exponents.
    """
    place = cgutils.alloca_once(code.builder, values[0].type)

    def keep(condition: Any, compute: Callable[[], Any], otherwise: Callable[[], None]) -> None:
        with code.builder.if_else(condition) as (then, other):
            with then:
                code.builder.store(compute(), place)
            with other:
                otherwise()

    def general() -> None:
        code.builder.store(codegen.compute(code, does, name, list(values)), place)

    def products() -> None:
        keep(
            _is_product(code, exponent), lambda: _product(code, name, values[0], exponent), general
        )

    following = products
    for way in ways:

        def taken(way: str = way, rest: Callable[[], None] = following) -> None:
            wanted = exponent.type(_EXPONENTS[way])
            is_it = floats.compare(code, "==", exponent, wanted)
            keep(is_it, lambda: codegen.compute(code, way, name, [values[0]]), rest)

        following = taken
    following()
    return code.builder.load(place)


def _is_product(code: Code, exponent: Any) -> Any:
    limits = (exponent.type(1.0), exponent.type(float(codegen.MAX_UNROLLED_POWER)))
    return code.both(
        floats.compare(code, ">=", exponent, limits[0]),
        floats.compare(code, "<=", exponent, limits[1]),
        floats.compare(code, "==", exponent, code.intrinsic("trunc", exponent)),
    )


def _product(code: Code, name: str, base: Any, exponent: Any) -> Any:
    """Return a whole power by the squarings and products of `codegen.constant_power`."""
    builder, i32 = code.builder, llvm.IntType(32)
    count = builder.fptosi(exponent, i32)
    square, power, is_begun = base, base, llvm.IntType(1)(0)
    for bit in range(_BITS):
        is_set = builder.trunc(builder.lshr(count, i32(bit)), llvm.IntType(1))
        grown = codegen.compute(code, "multiply", name, [power, square])
        grown = builder.select(is_begun, grown, square)
        power, is_begun = builder.select(is_set, grown, power), builder.or_(is_begun, is_set)
        if bit + 1 < _BITS:
            square = codegen.compute(code, "multiply", name, [square, square])
    return power
