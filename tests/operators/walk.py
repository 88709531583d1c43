"""The walk over the table of what operators may call: many cases in one kernel, beside NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import ml_dtypes
import numpy as np
from support import Backend
from walk_cases import Array, Case, is_complex

import gpualgo as ga
from gpualgo._base import dtypes
from gpualgo._operators.numpy_rules import table

# Of a math library for complex numbers: the error is within 4 LIBM_ULP of the absolute value.
_LIBM_OF_COMPLEX = ("absolute", "sqrt", "sign")

_LARGE = 1000  # the size of an exponent times a logarithm from which powers go astray
_ZERO_OF_EITHER_SIGN = ("maximum", "minimum", "fmax", "fmin")


class Walk:
    """Applies cases to arrays, many in one kernel, and collects where they differ from NumPy."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.differences: list[str] = []
        self.num_values = self.num_cases = self.num_refused = 0

    def over(self, found: Iterable[Case], arrays: list[Array]) -> None:
        """Compare cases on arrays; those of one result dtype share a kernel."""
        groups: dict[Any, list[tuple[Case, Array]]] = {}
        for case in found:
            want = _wanted(case, arrays)
            if want is None:
                self._is_refused(case, arrays)
            else:
                groups.setdefault(want.dtype, []).append((case, want))
        for group in groups.values():
            for start in range(0, len(group), 24):
                self._group(group[start : start + 24], arrays)

    def finish(self) -> None:
        """Fail for what differs."""
        assert self.num_cases
        assert not self.differences, "\n".join(self.differences)

    def _group(self, group: list[tuple[Case, Array]], arrays: list[Array]) -> None:
        try:
            got = self._applied([case for case, _ in group], arrays)
        except (TypeError, ga.CompileError) as error:
            if len(group) > 1:
                for pair in group:
                    self._group([pair], arrays)
                return
            self._note(group[0][0], arrays, f"{type(error).__name__}: {str(error)[:300]}")
            return
        if got.dtype != group[0][1].dtype and len(group) > 1:
            for pair in group:
                self._group([pair], arrays)
            return
        for (case, want), row in zip(group, got, strict=True):
            self._compare(case, arrays, want, row)

    def _applied(self, found: list[Case], arrays: list[Array]) -> Array:
        which = np.arange(len(found), dtype=np.int8)[:, None]
        moved = [self.backend.to_device(np.ascontiguousarray(a)) for a in (which, *arrays)]
        return self.backend.to_host(ga.transform(source_of(found, len(arrays)), *moved))

    def _is_refused(self, case: Case, arrays: list[Array]) -> None:
        self.num_refused += 1
        try:
            self._applied([case], arrays)
        except (TypeError, ga.CompileError) as error:
            if "could not be compiled" in str(error) and "\n" in str(error):
                self._note(case, arrays, f"refused in numba's words: {error}")
        else:
            self._note(case, arrays, "NumPy refuses it, gpualgo does not")

    def _compare(self, case: Case, arrays: list[Array], want: Array, got: Array) -> None:
        self.num_cases += 1
        self.num_values += got.size
        if got.dtype != want.dtype:
            self._note(case, arrays, f"is {got.dtype}, NumPy's {want.dtype}")
            return
        ulp = case.ulp
        operands = case.operands(*arrays)
        if is_complex(*operands) and case.does in _LIBM_OF_COMPLEX:
            ulp = table.LIBM_ULP
        fine = np.zeros(got.shape, bool)
        if is_complex(*operands) and ulp:  # docs/operators.md: of infinities and NaN, as it comes
            size = _exponents(case.does, operands)
            with np.errstate(over="ignore"):
                for operand in operands:  # a Python number is of its partner's dtype
                    is_weak = type(operand) in (int, float, complex)
                    number = _number(operand)
                    fine |= ~np.isfinite(want.dtype.type(number) if is_weak else number)
                ulp, fine = ulp * size, fine | (size > _LARGE)
        elif case.does in ("logaddexp", "logaddexp2"):  # a sum, which may cancel
            with np.errstate(all="ignore"):
                sizes = [abs(np.asarray(operand).astype(want.dtype)) for operand in operands]
                near = ulp * float(ml_dtypes.finfo(want.dtype).eps) * np.maximum(*sizes)
                fine |= abs(got - want) <= near
        bad = np.flatnonzero(~fine & ~same(got, want, ulp, case.does not in _ZERO_OF_EITHER_SIGN))
        if bad.size:
            shown = [
                f"({', '.join(repr(a[i].item()) for a in arrays)}): {got[i]!r}, NumPy {want[i]!r}"
                for i in bad[:4]
            ]
            self._note(case, arrays, f"{bad.size} of {got.size} differ: " + "; ".join(shown))

    def _note(self, case: Case, arrays: list[Array], what: str) -> None:
        kinds = ", ".join(str(a.dtype) for a in arrays)
        name = {key: getattr(value, "__name__", value) for key, value in case.names.items()}
        self.differences.append(f"{case.text} {name or ''} on {kinds}: {what}")


def source_of(found: list[Case], arity: int) -> Any:
    """Return an operator that applies the case whose number it is given."""
    lines = [f"def op(k, {', '.join('ab'[:arity])}):"]
    lines += [f"    if k == {i}: return {case.text}" for i, case in enumerate(found[:-1])]
    lines += [f"    return {found[-1].text}"]
    space: dict[str, Any] = {}
    for case in found:
        space.update(case.names)
    exec("\n".join(lines), space)
    return space["op"]


def _number(value: Any) -> Any:
    """Return a Python integer of any size as a float."""
    return float(value) if type(value) is int else value


def _exponents(does: str, operands: Any) -> Any:
    """Return how large the logarithms of powers are, whose errors are as much larger."""
    if not does.endswith("power"):
        return np.float64(1)
    base, exponent = (np.asarray(_number(value), complex) for value in operands)
    with np.errstate(all="ignore"):
        size = abs(exponent * np.log(base))
        size = np.where(np.isnan(size), np.inf, size)  # beyond a double
        return 1 + np.where((base == 0) | (exponent == 0), 0, size)


def _wanted(case: Case, arrays: list[Array]) -> Array | None:
    """Return what NumPy makes of it; None where NumPy refuses."""
    with np.errstate(all="ignore"):
        try:
            return np.asarray(case.reference(*arrays))
        except (TypeError, OverflowError, ValueError):
            return None


def same(got: Array, want: Array, ulp: Any, zero_signs: bool) -> Any:
    """Return where values are equal to the bit, or within so many units in the last place."""
    if dtypes.kind(want.dtype) == "c" and np.any(ulp):
        with np.errstate(all="ignore"):
            near = abs(got - want) <= 4 * ulp * np.finfo(want.dtype).eps * abs(want)
        return near | ~np.isfinite(want)
    if dtypes.kind(want.dtype) == "c":
        return same(got.real, want.real, ulp, zero_signs) & same(
            got.imag, want.imag, ulp, zero_signs
        )
    if dtypes.kind(want.dtype) != "f":
        return np.asarray(got == want)
    equal = (got == want) & ((np.signbit(got) == np.signbit(want)) | (not zero_signs))
    equal |= np.isnan(got) & np.isnan(want)
    if ulp:
        apart = _ordered(got) - _ordered(want)
        steps = np.minimum(apart, -apart)
        equal |= ~np.isnan(got) & ~np.isnan(want) & (steps <= ulp)
    return equal


def _ordered(values: Array) -> Any:
    """Return integers, modulo 2**64, in the order of floats, neighbours one apart."""
    size = 8 * values.dtype.itemsize
    bits = np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}").astype(np.uint64)
    magnitude = bits & np.uint64((1 << (size - 1)) - 1)
    return np.where(bits >> np.uint64(size - 1), -magnitude, magnitude)


def pairs(dtypes_: Iterable[np.dtype[Any]]) -> list[tuple[np.dtype[Any], np.dtype[Any]]]:
    """Return every pair of dtypes, in both orders."""
    return list(itertools.product(dtypes_, repeat=2))
