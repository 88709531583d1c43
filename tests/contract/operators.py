"""Operators of sample calls: each captures a table and a number, though not all read them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from support import Array


def shifted(table: Array, number: int) -> Callable[..., Any]:
    return lambda a, b: a + b + table[1] + number  # associative


def looked_up(table: Array, number: int) -> Callable[..., Any]:
    return lambda a: table[a & 7] + number


def doubled(table: Array, number: int) -> Callable[..., Any]:
    return lambda a: a * 2 + 1


def combined(table: Array, number: int) -> Callable[..., Any]:
    return lambda a, b: a * 3 + b


def paired(table: Array, number: int) -> Callable[..., Any]:
    return lambda a, b: (a[0] + b[0] + table[1] + number, max(a[1], b[1] + number - number))


def stepped(table: Array, number: int) -> Callable[..., Any]:
    return lambda a, b: a * 3 - b + table[1] + number  # the later element first


def stepped_pairs(table: Array, number: int) -> Callable[..., Any]:
    return lambda a, b: (a[0] - b[0] + table[1] + number, b[1])


def crossed(table: Array, number: int) -> Callable[..., Any]:
    return lambda p: (p[1] - p[0], p[0])


def divided(table: Array, number: int) -> Callable[..., Any]:
    return lambda a: (a // 7 + table[0] + number, a % 7 + number)


def chosen(table: Array, number: int) -> Callable[..., Any]:
    return lambda a: a < table[1] + number - 5


def rare(table: Array, number: int) -> Callable[..., Any]:
    return lambda a: a > table[1] + number + 5


def near(table: Array, number: int) -> Callable[..., Any]:
    return lambda a, b: abs(a - b) < table[1] + number


def paired_off(table: Array, number: int) -> Callable[..., Any]:
    return lambda p: p[1] < p[0] + number


def ranked(table: Array, number: int) -> Callable[..., Any]:
    return lambda a, b: a // (table[1] + number) < b // (table[1] + number)  # elements in order are
