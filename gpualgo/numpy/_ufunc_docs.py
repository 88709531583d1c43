"""Docstrings of ufuncs, generated on access: NumPy's first line and an example."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._operators.numpy_rules import table

PASSES = (
    "One transform; host arrays: NumPy's loop on all cores; lazy arrays: none, the result is lazy"
)

_DOC = """{first}

``{name}({arguments}, /, out=None, *, where=True, casting='same_kind', dtype=None, subok=True)``

Arguments and results are those of `numpy.{name}`. Arrays are those that `gpualgo.reduce` accepts:
NumPy's, CuPy's, PyTorch's, lazy ones and others; on the host also everything that `numpy.asarray`
converts to an array of numbers. Results are in the library of the arrays. For device arrays the
call does not synchronise. For lazy arrays the result is lazy, unless ``out=`` is given. Without
``out=``, elements for which ``where=`` is false are zero.

Raises
------
TypeError, ValueError
    As `numpy.{name}`; TypeError also for unsupported dtypes, and for ``signature=`` and ``order=``.

Notes
-----
{passes}.{differs} See https://github.com/gpualgo/gpualgo/blob/main/docs/numpy.md.

Examples
--------
>>> import gpualgo.numpy as gnp
>>> gnp.{name}({example})
{result}
"""

_ULP = (
    "on a GPU within {ulp} ulp (complex: {complex} ulp of the magnitude, and any value for complex "
    "infinities and NaN)"
)
_OTHER = {
    "power": "on a GPU integers to an array of negative powers give 0, 1 or -1 (NumPy: ValueError)",
    "absolute": "on a GPU complex results within 16 ulp",
    "sqrt": "on a GPU complex results within 16 ulp",
    "sign": "on a GPU complex results within 16 ulp",
}


def differs(native: np.ufunc) -> str:
    """Return the known differences from NumPy's ufunc."""
    entry = table.entry_of(native)
    differences = []
    if entry is not None and entry.ulp:
        differences.append(_ULP.format(ulp=entry.ulp, complex=4 * entry.ulp))
    if native.__name__ in _OTHER:
        differences.append(_OTHER[native.__name__])
    return "; ".join(differences)


# Arguments of the examples; `_sample_of` chooses by the ufunc's dtypes.
_SAMPLES = (
    ("[6, 3]", "[3, 5]"), ("[True, False]", "[True, True]"), ("[1.0, 2.0]", "[2.0, 0.5]"),
    ("[0.25, 0.5]", "[2.0, 0.5]"),
)  # fmt: skip
_OF_BOOL = ("logical_and", "logical_or", "logical_xor", "logical_not")
_ABOVE_ONE = ("arccosh", "add", "subtract", "multiply", "divide", "floor_divide", "remainder",
              "fmod", "divmod", "float_power", "power")  # fmt: skip


def _sample_of(native: np.ufunc) -> tuple[str, str]:
    if native.__name__ in _OF_BOOL:
        return _SAMPLES[1]
    if all(kind not in "".join(native.types) for kind in "ed"):
        return _SAMPLES[0]
    return _SAMPLES[2] if native.__name__ in _ABOVE_ONE else _SAMPLES[3]


class Doc:
    """Descriptor of a docstring: the class's own, and one for each instance."""

    def __init__(self, of_class: str) -> None:
        self._of_class = of_class

    def __get__(self, one: Any, cls: type | None = None) -> str:
        return self._of_class if one is None else documented(one._native)


def documented(native: np.ufunc) -> str:
    name = native.__name__
    parts = [part for part in (native.__doc__ or "").split("\n\n") if not part.startswith(name)]
    summary = " ".join(parts[0].split()) if parts else f"Apply `numpy.{name}` element by element"
    summary = summary.rstrip(".") + "."
    arguments = _sample_of(native)[: native.nin]
    with np.errstate(all="ignore"):
        result = repr(native(*(eval(text, {}) for text in arguments)))
    differences = differs(native)
    return _DOC.format(
        first=summary,
        name=name,
        arguments="x" if native.nin == 1 else "x1, x2",
        passes=PASSES,
        differs=f" Differs from NumPy: {differences}." if differences else "",
        example=", ".join(arguments),
        result=result,
    )
