"""Functions that add to the sums of a histogram's slots, and that convert sums to results.

A table has a plane of 64-bit words for each 32-bit digit of a sum (see sums.py), so that carries
can wait until the end, and one plane that marks non-finite sums. Digits that no weight reaches are
never touched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba import types

from gpualgo._algorithms.histogram.cpu_joint_parameters import (
    HIGH,
    IS_NAN,
    IS_NEGATIVE,
    IS_POSITIVE,
    LOW,
    SPECIALS,
    span_of,
)  # fmt: skip
from gpualgo._algorithms.histogram.sums import Format
from gpualgo._cpu.pointers import load, pointer_to, store

_OPTIONS = {"nogil": True, "error_model": "numpy"}
_words = pointer_to(types.int64)
_slots = pointer_to(types.int32)
_U = types.uint64
_DIGIT = 0xFFFF_FFFF


# --- integers -----------------------------------------------------------------------------------


def add_ones() -> Callable[..., None]:
    """Return the function that counts samples."""

    def add(tables: int, sums: int, plane: int, slots: int, weights: int, count: int) -> None:
        for i in range(count):
            slot = types.intp(load(_slots(slots), i))
            store(_words(sums), slot, load(_words(sums), slot) + 1)

    return add


def add_integers() -> Callable[..., None]:
    """Return the function that adds 64-bit integers; their sum wraps."""

    def add(tables: int, sums: int, plane: int, slots: int, weights: int, count: int) -> None:
        for i in range(count):
            slot = types.intp(load(_slots(slots), i))
            store(_words(sums), slot, load(_words(sums), slot) + load(_words(weights), i))

    return add


def finish_integers() -> Callable[..., None]:
    """Return the function that moves sums of integers to the target."""

    def finish(tables: int, sums: int, plane: int, first: int, last: int, target: int) -> None:
        for i in range(last - first):
            store(_words(target), i, load(_words(sums), first + i))
            store(_words(sums), first + i, 0)

    return finish


# --- floats -------------------------------------------------------------------------------------


def add_floats(bits_of: Any, form: Format, parts: int) -> Callable[..., None]:
    """Return the function that adds floats exactly, each as an integer with an exponent."""
    as_bits = pointer_to(bits_of)
    mantissa, special, planes = form.mantissa, form.special, form.digits + 1
    hidden, is_wide = 1 << mantissa, span_of(mantissa) > 2

    def add(tables: int, sums: int, plane: int, slots: int, weights: int, count: int) -> None:
        h = _words(tables)
        low, high = load(h, LOW), load(h, HIGH)
        for part in range(parts):
            base = sums + part * planes * plane
            for i in range(count):
                bits = types.int64(load(as_bits(weights), i * parts + part))
                slot = types.intp(load(_slots(slots), i))
                exponent, m = (bits >> mantissa) & special, bits & (hidden - 1)
                if exponent == special:
                    kind = IS_NAN if m else (IS_NEGATIVE if bits < 0 else IS_POSITIVE)
                    address = _words(base + (planes - 1) * plane)
                    store(address, slot, load(address, slot) | kind)
                    store(h, SPECIALS, 1)
                    continue
                if exponent:
                    m += hidden
                    exponent -= 1
                elif not m:
                    continue
                m = -m if bits < 0 else m
                digit, shift = exponent >> 5, exponent & 31
                low, high = min(low, digit), max(high, digit)
                address = base + digit * plane
                if is_wide:
                    lower, upper = (m & _DIGIT) << shift, (m >> 32) << shift
                    _add(address, slot, lower & _DIGIT)
                    _add(address + plane, slot, (lower >> 32) + (upper & _DIGIT))
                    _add(address + 2 * plane, slot, upper >> 32)
                else:
                    shifted = m << shift
                    _add(address, slot, shifted & _DIGIT)
                    _add(address + plane, slot, shifted >> 32)
        store(h, LOW, low)
        store(h, HIGH, high)

    return add


def _add_word(words: int, slot: int, number: int) -> None:
    store(_words(words), slot, load(_words(words), slot) + number)


_add = numba.njit(**_OPTIONS)(_add_word)


def finish_floats(bits_of: Any, form: Format, parts: int) -> Callable[..., None]:
    """Return the function that rounds sums to the target and clears them."""
    as_bits = pointer_to(bits_of)
    planes, span = form.digits + 1, span_of(form.mantissa)
    rounded = numba.njit(**_OPTIONS)(_rounding(form))
    infinity = form.special << form.mantissa
    nan, sign = infinity | 1 << (form.mantissa - 1), form.mantissa + form.exponent

    def finish(tables: int, sums: int, plane: int, first: int, last: int, target: int) -> None:
        h = _words(tables)
        low, end = load(h, LOW), load(h, HIGH) + span
        for part in range(parts):
            base = sums + part * planes * plane
            for i in range(first, last):
                bits = rounded(base + 8 * i, plane, low, end)
                if load(h, SPECIALS):
                    at = _words(base + (planes - 1) * plane)
                    kinds = load(at, i)
                    store(at, i, 0)
                    if kinds & IS_NAN or kinds == IS_POSITIVE | IS_NEGATIVE:
                        bits = _U(nan)
                    elif kinds:
                        bits = _U(infinity) | _U(kinds == IS_NEGATIVE) << _U(sign)
                store(as_bits(target), (i - first) * parts + part, bits_of(bits))

    return finish


def _rounding(form: Format) -> Callable[..., Any]:
    """Return f(at, plane, low, end): the bits of the float nearest to a sum, which is cleared."""
    mantissa, special = form.mantissa, form.special
    sign = mantissa + form.exponent

    def rounded(at: int, plane: int, low: int, end: int) -> Any:
        carry = 0
        for digit in range(low, end):
            carry = (carry + load(_words(at + digit * plane), 0)) >> 32
        factor = -1 if carry < 0 else 1
        # The highest nonzero digit, the two below it, and whether lower ones are nonzero.
        top, first, second, third, more = -1, 0, 0, 0, False
        carry = one = two = 0
        is_more = False
        for digit in range(low, end + 2):
            if digit < end:
                carry += factor * load(_words(at + digit * plane), 0)
                store(_words(at + digit * plane), 0, 0)
            word = carry & _DIGIT
            carry >>= 32
            if word:
                top, first, second, third, more = digit, word, one, two, is_more
            is_more |= two != 0
            one, two = word, one
        if top < 0:
            return _U(0)
        bits, leading = _U(first) << _U(32) | _U(second), 32 * top + 31
        while not bits >> _U(63):
            bits <<= _U(1)
            third <<= 1
            leading -= 1
        bits |= _U(third >> 32)
        more |= third & _DIGIT != 0
        if leading < mantissa:  # subnormal: no rounding
            result = bits >> _U(63 - leading)
        else:
            result = bits >> _U(63 - mantissa)
            remainder, half = bits << _U(mantissa + 1), _U(1) << _U(63)
            is_up = (remainder > half) | ((remainder == half) & (more | (result & _U(1) != _U(0))))
            result += (_U(leading - mantissa) << _U(mantissa)) + _U(is_up)
            result = min(result, _U(special) << _U(mantissa))
        return result | _U(factor < 0) << _U(sign)

    return rounded
