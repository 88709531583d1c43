"""Compute the polynomials of gpualgo/_operators/numpy_rules/floats.py; needs mpmath.

Each interpolates its function at Chebyshev's points of the interval, in 60 digits; the error is
within a small factor of the best polynomial's. Coefficients are rounded to doubles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpmath import atanh, cos, expm1, log, lu_solve, matrix, mp, mpf, pi, sqrt, tanh

mp.dps = 60


def fit(
    f: Callable[[Any], Any], low: Any, high: Any, count: int, power: int = 0
) -> tuple[list[float], float]:
    """Return so many coefficients, lowest first, and the largest error of f(x) x^power.

    Near 0 the power makes errors small: so many points, the nearest to it, are left out.
    """
    number = count + power
    points = [(low + high) / 2 + (high - low) / 2 * cos(pi * (2 * i + 1) / (2 * number))
              for i in range(number)]  # fmt: skip
    points = sorted(points, key=abs)[power:]
    rows = matrix([[x**j for j in range(count)] for x in points])
    found = [float(c) for c in lu_solve(rows, matrix([f(x) for x in points]))]
    worst = mpf(0)
    for i in range(2001):
        x = low + (high - low) * (i + mpf("0.31")) / 2001
        error = sum(mpf(c) * x**j for j, c in enumerate(found)) - f(x)
        worst = max(worst, abs(error * x**power))
    return found, float(worst)


def fit_ratio(f: Callable[[Any], Any], high: Any, over: int, under: int) -> None:
    """Print the coefficients of two polynomials whose ratio is f from 0 to a bound.

    The one below has 1 as its lowest coefficient.
    """
    count = over + under
    points = [high / 2 + high / 2 * cos(pi * (2 * i + 1) / (2 * count)) for i in range(count)]
    rows = [
        [x**j for j in range(over)] + [-f(x) * x ** (j + 1) for j in range(under)] for x in points
    ]
    exact = list(lu_solve(matrix(rows), matrix([f(x) for x in points])))
    found = [float(c) for c in exact]
    above, below = found[:over], [1.0, *found[over:]]
    worst = mpf(0)
    for i in range(2001):
        x = high * (i + mpf("0.31")) / 2001
        parts = [sum(mpf(c) * x**j for j, c in enumerate(part)) for part in (above, below)]
        worst = max(worst, abs(parts[0] / parts[1] - f(x)))
    print(f"# the error is {float(worst):.1e}")
    print(f"TANH_OVER, TANH_UNDER = {tuple(above)!r}, {tuple(below)!r}")


def main() -> None:
    half = log(2) / 2 * mpf("1.0001")
    root = (sqrt(2) - 1) / (sqrt(2) + 1)
    square = (root * mpf("1.001")) ** 2
    small = mpf("0.625")
    polynomials = {
        # (exp(r) - 1 - r) / r² where |r| ≤ log(2) / 2; the error is relative to exp(r) - 1
        "EXP": (lambda r: (expm1(r) - r) / r**2, -half, half, 10, 1),
        "EXP_SINGLE": (lambda r: (expm1(r) - r) / r**2, -half, half, 6, 1),
        # (2 atanh(s) - 2 s) / s³ of z = s²
        "LOG": (lambda z: (2 * atanh(sqrt(z)) - 2 * sqrt(z)) / sqrt(z) ** 3, mpf(0), square, 7),
        "LOG_SINGLE": (
            lambda z: (2 * atanh(sqrt(z)) - 2 * sqrt(z)) / sqrt(z) ** 3, mpf(0), square, 4
        ),
    }  # fmt: skip
    for name, arguments in polynomials.items():
        found, worst = fit(*arguments)
        print(f"# the error is {worst:.1e}")
        print(f"{name} = (")
        for c in found:
            print(f"    {c!r},")
        print(")")
    # (tanh(x) - x) / x³ of z = x²
    fit_ratio(lambda z: (tanh(sqrt(z)) - sqrt(z)) / sqrt(z) ** 3, small**2, 3, 3)
    ln2 = log(2)
    high_part = float(mp.floor(ln2 * 2**40) / 2**40)
    print(f"LN2_HIGH, LN2_LOW = {high_part!r}, {float(ln2 - mpf(high_part))!r}")
    print(f"LN2 = {float(ln2)!r}; LOG2_E = {float(1 / ln2)!r}")


if __name__ == "__main__":
    main()
