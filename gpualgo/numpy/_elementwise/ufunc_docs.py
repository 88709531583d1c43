"""Docstrings of ufuncs, generated on access: NumPy's first line and an example."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._operators.numpy_rules import table

PASSES = (
    "One transform; of arrays in host memory NumPy's own loop on all cores. Of lazy arrays the "
    "result is lazy and takes no pass"
)

_DOC = """{first}

``{name}({arguments}, /, out=None, *, where=True, casting='same_kind', dtype=None, subok=True)``

Arguments and results are those of `numpy.{name}`. Arrays are NumPy's, CuPy's, PyTorch's, lazy or
anything that `gpualgo.reduce` takes, and of host memory all that `numpy.asarray` makes an array of
numbers of. Results are in the library of the arrays; device arrays are returned without waiting
for them. Of lazy arrays the result is lazy, unless it is written to ``out=``. Without ``out=``
elements that ``where=`` leaves out are zero.

Raises
------
TypeError, ValueError
    As `numpy.{name}`; TypeError for dtypes that have no kernel, and for ``signature=`` and
    ``order=``.

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
    "on a GPU within {ulp} units in the last place ({complex} of the number's size where it is "
    "complex; of infinities and NaN then any value)"
)
_OTHER = {
    "power": "on a GPU integers to negative powers in an array are no error, but 0, 1 or -1",
    "absolute": "on a GPU complex numbers within 16 units in the last place",
    "sqrt": "on a GPU complex numbers within 16 units in the last place",
    "sign": "on a GPU complex numbers within 16 units in the last place",
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
