"""The functions of a scan along rows, or parts of rows: strips of elements, four at once."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gpualgo._algorithms.scan.cpu_chain import Function, inline
from gpualgo._algorithms.scan.cpu_parameters import (
    ABREAST,
    INIT,
    IS_CUT,
    LENGTH,
    OUT,
    OUT_JUMP,
    OUT_STEP,
    OUTER,
    SPAN,
    STRIPS,
    TILE,
    X_JUMP,
    X_STEP,
    X,
)  # fmt: skip
from gpualgo._algorithms.scan.cpu_parameters import STRIPS_TAIL as TAIL
from gpualgo._cpu.packing import offset
from gpualgo._cpu.pointers import load, pointer_to, reader, writer

_words = pointer_to(types.intp)


def _one_by_one(_typing: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, _args: Any) -> Any:
        builder.asm(ir.FunctionType(ir.VoidType(), []), "", "", [], True)
        return context.get_dummy_value()

    return types.void(), generate


one_by_one = intrinsic(_one_by_one)  # keeps LLVM from gathering what lies far apart into vectors


def strip_functions(
    fn: Any, cast: Any, types_: tuple[Any, Any], sizes: tuple[int, int], exclusive: bool,
    dense: bool,
) -> tuple[Function, Function, Function]:  # fmt: skip
    """Write the functions for strips: the tiles of a row that is cut, else whole rows.

    A chain's prefix is where each strip of a link starts from, and where the next link does.
    """
    x_size, a_size = sizes
    read, get, put = _reader(types_[0], cast), reader(types_[1]), writer(types_[1])
    through = _through(fn, read, types_[1], sizes, exclusive, dense)

    def aggregate(
        table: int, scratch: int, chain: int, link: int, prefix: int, target: int
    ) -> None:
        p = _words(table)
        outer, at = load(p, OUTER), table + 8 * TAIL
        n = min(ABREAST, load(p, STRIPS) - 1 - link * ABREAST)  # no tile follows the last one
        if n <= 0:
            return
        k1, k2, k3 = min(1, n - 1), min(2, n - 1), n - 1
        sx, jump = x_size if dense else load(p, X_STEP), load(p, X_JUMP)
        s0 = load(p, X) + offset(chain, outer, at, at + 8 * outer) + link * ABREAST * jump
        s1, s2, s3 = s0 + k1 * jump, s0 + k2 * jump, s0 + k3 * jump
        a, b, c, d = read(s0), read(s1), read(s2), read(s3)
        for i in range(1, load(p, TILE)):
            one_by_one()
            x = i * sx
            a, b = fn(a, read(s0 + x)), fn(b, read(s1 + x))
            c, d = fn(c, read(s2 + x)), fn(d, read(s3 + x))
        put(target, a)
        put(target + k1 * a_size, b)
        put(target + k2 * a_size, c)
        put(target + k3 * a_size, d)

    def fold(table: int, scratch: int, chain: int, link: int, prefix: int, source: int) -> None:
        p = _words(table)
        first, init = 0, load(p, INIT)
        if link > 0:
            put(prefix, get(prefix + ABREAST * a_size))
        elif init:
            put(prefix, get(init))
        else:
            put(prefix + a_size, get(source))
            first = 1
        for k in range(first, min(ABREAST, load(p, STRIPS) - 1 - link * ABREAST)):
            at = prefix + k * a_size
            put(at + a_size, fn(get(at), get(source + k * a_size)))

    def emit(table: int, scratch: int, chain: int, link: int, prefix: int, own: int) -> None:
        p = _words(table)
        outer, at = load(p, OUTER), table + 8 * TAIL
        is_cut, init, strips = load(p, IS_CUT), load(p, INIT), load(p, STRIPS)
        x_row = load(p, X) + offset(chain, outer, at, at + 8 * outer)
        out_row = load(p, OUT) + offset(chain, outer, at, at + 16 * outer)
        begin, apart = link * load(p, SPAN), 1
        q, stop = begin, min(begin + load(p, SPAN), strips)
        is_whole = is_cut == 0 and stop - begin == load(p, SPAN)
        if is_whole:
            apart = load(p, SPAN) // ABREAST  # four long runs are prefetched best
            stop = begin + apart
        while q < stop:
            n, m = ABREAST if is_whole else min(ABREAST, stop - q), load(p, TILE)
            start = init
            if is_cut:
                if q == 0 and init == 0:
                    n = 1  # starts from its first element, and the others do not
                else:
                    start = prefix + (q - begin) * a_size
                    n = n - 1 if n > 1 and q + n == strips else n
                m = min(m, load(p, LENGTH) - (q + n - 1) * m)
            source, target = x_row + q * load(p, X_JUMP), out_row + q * load(p, OUT_JUMP)
            through(table, source, target, apart, n, m, start, a_size if is_cut else 0)
            q += 1 if is_whole else n

    return aggregate, fold, emit


def _reader(x_type: Any, cast: Any) -> Any:
    """Return the function that reads an element of x in the accumulator's type."""
    read = reader(x_type)
    return read if cast is None else inline(lambda address: cast(read(address)))


def _through(
    fn: Any, read: Any, a_type: Any, sizes: tuple[int, int], exclusive: bool, dense: bool
) -> Any:
    """Return the loop through n strips of m elements, which start from values `step` bytes apart.

    Or from their first elements, if `start` is 0. Where n is below four, the last strip is gone
    through several times, to the same effect, as all is read before any of it is written.
    """
    get, put = reader(a_type), writer(a_type)
    x_size, a_size = sizes

    @inline
    def through(
        table: int, s0: int, d0: int, apart: int, n: int, m: int, start: int, step: int
    ) -> None:
        p = _words(table)
        k1, k2, k3 = min(1, n - 1), min(2, n - 1), n - 1
        jump, jump_out = apart * load(p, X_JUMP), apart * load(p, OUT_JUMP)
        s1, s2, s3 = s0 + k1 * jump, s0 + k2 * jump, s0 + k3 * jump
        d1, d2, d3 = d0 + k1 * jump_out, d0 + k2 * jump_out, d0 + k3 * jump_out
        # Steps that the compiler knows leave it more registers.
        sx, sy = (x_size, a_size) if dense else (load(p, X_STEP), load(p, OUT_STEP))
        first = 0
        if start:
            a, b = get(start), get(start + k1 * step)
            c, d = get(start + k2 * step), get(start + k3 * step)
        else:
            a, b, c, d = read(s0), read(s1), read(s2), read(s3)
            put(d0, a)
            put(d1, b)
            put(d2, c)
            put(d3, d)
            first = 1
        for i in range(first, m):
            one_by_one()
            x, y = i * sx, i * sy
            e, f, g, h = read(s0 + x), read(s1 + x), read(s2 + x), read(s3 + x)
            if not exclusive:
                a, b, c, d = fn(a, e), fn(b, f), fn(c, g), fn(d, h)
            put(d0 + y, a)
            put(d1 + y, b)
            put(d2 + y, c)
            put(d3 + y, d)
            if exclusive:
                a, b, c, d = fn(a, e), fn(b, f), fn(c, g), fn(d, h)

    return through
