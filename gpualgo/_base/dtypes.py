"""The table of supported element types: NumPy dtypes, their C++ names and casts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from gpualgo._base.errors import shown

NAMES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "bfloat16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip

# Names of the supported dtypes seen so far; warm calls need this lookup only.
_names: dict[np.dtype[Any], str] = {np.dtype(name): name for name in NAMES if name != "bfloat16"}


def bfloat16() -> np.dtype[Any]:
    try:
        import ml_dtypes
    except ImportError:
        raise TypeError(
            "bfloat16 needs the package ml_dtypes: run `pip install ml_dtypes`"
        ) from None
    dtype: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return dtype


def name_of(dtype: np.dtype[Any]) -> str | None:
    """Return the name of a supported, native-endian dtype, else None."""
    name = _names.get(dtype)
    if name is not None:
        return name if dtype.isnative else None
    ml_dtypes = sys.modules.get("ml_dtypes")
    if ml_dtypes is not None and dtype == np.dtype(ml_dtypes.bfloat16):
        _names[dtype] = "bfloat16"
        return "bfloat16"
    return None


def from_name(name: str) -> np.dtype[Any]:
    return bfloat16() if name == "bfloat16" else np.dtype(name)


def as_named(dtype: np.dtype[Any], *, align: bool = False) -> np.dtype[Any]:
    """Return the one of all equal dtypes: for example np.int64 for np.longlong.

    It has no metadata. Structured dtypes, also nested ones, have the scalar type numpy.void;
    `align`: the flag of an aligned one.
    """
    if dtype.subdtype is not None:
        return np.dtype((as_named(dtype.subdtype[0]), dtype.shape))
    if dtype.names is None:
        name = name_of(dtype)
        is_own = dtype.metadata is None or dtype.isbuiltin == 2
        return from_name(name) if name is not None else dtype if is_own else np.dtype(dtype.str)
    fields: Any = [dtype.fields[name] for name in dtype.names]  # type: ignore[index]
    layout: Any = {
        "names": dtype.names, "formats": [as_named(field[0]) for field in fields],
        "offsets": [field[1] for field in fields], "itemsize": dtype.itemsize,
        "titles": [field[2] if len(field) > 2 else None for field in fields],
    }  # fmt: skip
    found: np.dtype[Any] = np.dtype(layout, align=align)
    return found


def cpp_name(dtype: np.dtype[Any]) -> str:
    """Return the C++ name that cuda_src/parts/types.cuh declares."""
    name = str(name_of(dtype))
    return {"bool": "bool", "float32": "float", "float64": "double"}.get(name, f"gpualgo::{name}")


_USE_ANOTHER = f"use one of {', '.join(NAMES)}"
_CODES = "pass integer codes: np.unique(x, return_inverse=True)[1]"
_HINTS = {
    "O": f"convert it with x.astype(float), or {_CODES}",
    "U": _CODES, "S": _CODES, "T": _CODES,
    **dict.fromkeys("Mm", "pass x.view(np.int64), in which NaT is the least number"),
}  # fmt: skip


def check(dtype: np.dtype[Any], where: str) -> np.dtype[Any]:
    """Return dtype if kernels support it, else raise TypeError."""
    if name_of(dtype) is not None:
        return dtype
    if not dtype.isnative:
        hint = "convert it with x.astype(x.dtype.newbyteorder('='))"
        raise TypeError(f"{where} has big-endian dtype {dtype!r}; {hint}")
    hint = _HINTS.get(dtype.kind, _USE_ANOTHER)
    raise TypeError(f"{where} has dtype {dtype}, which has no kernel; {hint}")


def check_number(number: np.ndarray[Any, Any], where: str) -> None:
    """Raise TypeError for the array of a Python or NumPy number that kernels do not support."""
    if number.dtype.kind == "O" and isinstance(number.item(), int):
        raise TypeError(f"{where} is an int of more than 64 bits; convert it, with float(x) say")
    check(number.dtype, where)


def as_dtype(value: Any, where: str) -> np.dtype[Any]:
    """Return the supported dtype that a dtype= argument names.

    If the platform has several types of one kind and size, such as np.longlong and np.int64, the
    result is the one in the table.
    """
    if type(value) is str and value == "bfloat16":
        return bfloat16()
    if isinstance(value, tuple):  # NumPy would interpret it
        raise TypeError(f"{where}: dtype {value!r} is a tuple; pass a single dtype")
    try:
        dtype = np.dtype(value)
    except TypeError:
        name = str(value).rpartition(".")[2]  # torch.float32
        if name not in NAMES:
            raise TypeError(f"{where}: dtype {shown(value)} is not a dtype of NumPy") from None
        dtype = from_name(name)
    if dtype.isnative and name_of(dtype) is None:
        raise TypeError(f"{where}: dtype {dtype} has no kernel; {_USE_ANOTHER}")
    return from_name(str(name_of(check(dtype, f"{where}: dtype"))))


# Order of kinds for same_kind casting; includes bfloat16, which NumPy's rules do not cover.
_RANKS = {"b": 0, "u": 1, "i": 2, "f": 3, "c": 4}


def kind(dtype: np.dtype[Any]) -> str:
    """Return the kind letter b, u, i, f or c; f for bfloat16, whose dtype.kind is V."""
    return "f" if name_of(dtype) == "bfloat16" else dtype.kind


def can_cast(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Return whether same_kind casting allows source to target."""
    if source == target:
        return True
    ranks = _RANKS[kind(source)], _RANKS[kind(target)]
    if ranks == (2, 1):  # as in NumPy, signed to unsigned is not same_kind
        return False
    return ranks[0] <= ranks[1]


# --- NumPy 2's type promotion on dtype names, with weak Python scalars (NEP 50).
#
# A weak operand (a Python int, float or complex) never widens an operand of its own kind.
# bfloat16, which NumPy lacks, promotes as float16 does.

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
