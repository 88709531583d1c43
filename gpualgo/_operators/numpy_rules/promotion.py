"""NumPy 2's type promotion on dtype names, with weak Python scalars (NEP 50).

A weak operand (a Python int, float or complex) never widens an operand of its own kind. bfloat16,
which NumPy lacks, promotes as float16 does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

WEAK = ("int", "float", "complex")
_PYTHON: dict[str, type] = {"int": int, "float": float, "complex": complex}
_DEFAULT = {"int": "int64", "float": "float64", "complex": "complex128"}


def promote(left: str, right: str) -> str:
    if left == right:
        return left
    if "bfloat16" in (left, right):
        other = right if left == "bfloat16" else left
        if other == "float16":
            return "float32"
        joint = np.promote_types("float16", other).name
        return "bfloat16" if joint == "float16" else joint
    return np.promote_types(left, right).name


def is_inexact(name: str) -> bool:
    return "float" in name or name.startswith("complex")


def default_name(name: str) -> str:
    """Return the dtype name of a Python kind in an array; other names are returned unchanged."""
    return _DEFAULT.get(name, name)


@cache
def loop_of(ufunc: np.ufunc, args: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """Return the argument dtypes of a ufunc's loop for such arguments, and its result dtype.

    NumPy resolves them. Raises NumPy's TypeError if there is no loop.
    """
    if all(name in WEAK for name in args):
        args = tuple(map(default_name, args))
    has_bfloat16 = "bfloat16" in args
    stand_in = "float32" if "float16" in args else "float16"
    operands = [
        _PYTHON.get(name) or np.dtype(stand_in if has_bfloat16 and name.endswith("float16")
                                      else name)
        for name in args
    ]  # fmt: skip
    loop = [dtype.name for dtype in ufunc.resolve_dtypes((*operands, *(None,) * ufunc.nout))]
    if has_bfloat16:
        loop = ["bfloat16" if name == "float16" else name for name in loop]
    return tuple(loop[: len(args)]), loop[len(args)]


def _widen(strong: str, weak: str) -> str:
    if weak == "int":
        return "int64" if strong == "bool" else strong
    if weak == "float":
        return strong if is_inexact(strong) else "float64"
    if strong.startswith("complex"):
        return strong
    return "complex64" if strong in ("float16", "bfloat16", "float32") else "complex128"


def result_name(strong: Sequence[str], weak: Sequence[str]) -> str:
    """Return the promoted dtype name; a Python kind (`WEAK`) if every operand is weak."""
    if not strong:
        return max(weak, key=WEAK.index)
    joint = strong[0]
    for name in strong[1:]:
        joint = promote(joint, name)
    return _widen(joint, max(weak, key=WEAK.index)) if weak else joint
