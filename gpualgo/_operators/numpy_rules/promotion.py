"""NumPy-2 type promotion on names of `_dtypes`, with Python scalars that are weak.

A weak operand (a Python int, float or complex) never widens an operand of its own kind: NEP 50,
"Promotion rules for Python scalars". bfloat16, which NumPy lacks, promotes as float16 does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

WEAK = ("int", "float", "complex")


def promote(left: str, right: str) -> str:
    """Return the name of the dtype that holds both."""
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
    """Return whether a dtype name is a float or complex one."""
    return "float" in name or name.startswith("complex")


def _widen(strong: str, weak: str) -> str:
    """Return the dtype of strong beside a Python scalar of kind weak."""
    if weak == "int":
        return "int64" if strong == "bool" else strong
    if weak == "float":
        return strong if is_inexact(strong) else "float64"
    if strong.startswith("complex"):
        return strong
    return "complex64" if strong in ("float16", "bfloat16", "float32") else "complex128"


def result_name(strong: Sequence[str], weak: Sequence[str]) -> str:
    """Return the common dtype name; a Python kind (`WEAK`) if every operand is weak."""
    if not strong:
        return max(weak, key=WEAK.index)
    joint = strong[0]
    for name in strong[1:]:
        joint = promote(joint, name)
    return _widen(joint, max(weak, key=WEAK.index)) if weak else joint
