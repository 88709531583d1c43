"""Compute the polynomials of gpualgo/_operators/numpy_rules/elementary.py; needs mpmath.

Each interpolates its function at Chebyshev's points of the interval, in 60 digits; the error is
within a small factor of the best polynomial's. Coefficients are rounded to doubles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpmath import atanh, cos, expm1, log, lu_solve, matrix, mp, mpf, pi, sqrt, tanh

mp.dps = 60


def fit(f: Callable[[Any], Any], low: Any, high: Any, count: int) -> tuple[list[float], float]:
    """Return so many coefficients, lowest first, and the largest error."""
    points = [(low + high) / 2 + (high - low) / 2 * cos(pi * (2 * i + 1) / (2 * count))
              for i in range(count)]  # fmt: skip
    rows = matrix([[x**j for j in range(count)] for x in points])
    found = [float(c) for c in lu_solve(rows, matrix([f(x) for x in points]))]
    worst = mpf(0)
    for i in range(2001):
        x = low + (high - low) * (i + mpf("0.31")) / 2001
        worst = max(worst, abs(sum(mpf(c) * x**j for j, c in enumerate(found)) - f(x)))
    return found, float(worst)


def main() -> None:
    half = log(2) / 2 * mpf("1.0001")
    root = (sqrt(2) - 1) / (sqrt(2) + 1)
    square = (root * mpf("1.001")) ** 2
    small = mpf("0.5625")
    polynomials = {
        # (exp(r) - 1 - r) / r² where |r| ≤ log(2) / 2
        "EXP": (lambda r: (expm1(r) - r) / r**2, -half, half, 10),
        "EXP_SINGLE": (lambda r: (expm1(r) - r) / r**2, -half, half, 6),
        # (2 atanh(s) - 2 s) / s³ of z = s²
        "LOG": (lambda z: (2 * atanh(sqrt(z)) - 2 * sqrt(z)) / sqrt(z) ** 3, mpf(0), square, 8),
        "LOG_SINGLE": (
            lambda z: (2 * atanh(sqrt(z)) - 2 * sqrt(z)) / sqrt(z) ** 3, mpf(0), square, 4
        ),
        # (tanh(x) - x) / x³ of z = x²
        "TANH": (lambda z: (tanh(sqrt(z)) - sqrt(z)) / sqrt(z) ** 3, mpf(0), small**2, 11),
    }  # fmt: skip
    for name, (f, low, high, count) in polynomials.items():
        found, worst = fit(f, low, high, count)
        print(f"# the error is {worst:.1e}")
        print(f"{name} = (")
        for c in found:
            print(f"    {c!r},")
        print(")")
    ln2 = log(2)
    high_part = float(mp.floor(ln2 * 2**40) / 2**40)
    print(f"LN2_HIGH, LN2_LOW = {high_part!r}, {float(ln2 - mpf(high_part))!r}")
    print(f"LN2 = {float(ln2)!r}; LOG2_E = {float(1 / ln2)!r}")


if __name__ == "__main__":
    main()
