"""Operators of the tests' arrays: Python's, computed by NumPy when the stream comes to them."""

from __future__ import annotations

import operator
from typing import Any

from emulator.arrays import computed, ndarray, write


def _operator(name: str) -> None:
    plain = getattr(operator, name)

    def forward(self: ndarray, other: Any) -> ndarray:
        return computed(plain, self, other)

    def backward(self: ndarray, other: Any) -> ndarray:
        return computed(lambda a, b: plain(b, a), self, other)

    def in_place(self: ndarray, other: Any) -> ndarray:
        write(self, computed(plain, self, other))
        return self

    stem = name.strip("_")
    setattr(ndarray, f"__{stem}__", forward)
    if stem not in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(ndarray, f"__r{stem}__", backward)
        setattr(ndarray, f"__i{stem}__", in_place)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and_", "or_", "xor", "lshift",
              "rshift", "pow", "eq", "ne", "lt", "le", "gt", "ge"):  # fmt: skip
    _operator(_name)


def _unary(name: str) -> None:
    plain = getattr(operator, name)
    setattr(ndarray, f"__{name}__", lambda self: computed(plain, self))


for _name in ("neg", "invert", "abs"):
    _unary(_name)
