"""Fit the polynomials of arithmetic.py: ``python tests/operators/coefficients.py`` (mpmath).

Prints for each of them how far it is from its function at most, and the polynomial of the same
length through the function's values at Chebyshev's nodes, which is close to the best one. The
stored ones of log, and those of log1p, tan and tanh, were fitted to the smallest relative error of
the result instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp

from gpualgo._operators.numpy_rules.arithmetic import POLYNOMIALS

Function = Callable[[Any], Any]


def _even(function: Function) -> Function:
    """Return the function of x²; near 0 the quotients below have no digits left."""
    return lambda z: function(mp.sqrt(max(z, mp.mpf("1e-12"))))


def _exp(r: Any) -> Any:
    r = r if abs(r) > 1e-12 else mp.mpf("1e-12")
    return (mp.exp(r) - 1 - r - r**2 / 2) / r**3


def _log1p(f: Any) -> Any:
    f = f if abs(f) > 1e-12 else mp.mpf("1e-12")
    return (f - mp.log(1 + f) - f**2 / 2) / f**3


def _root(e: Any) -> Any:
    e = e if abs(e) > 1e-12 else mp.mpf("1e-12")
    return ((1 - e) ** (-mp.mpf(1) / 3) - 1) / e


def _power(s: Any) -> Any:
    return ((mp.atanh(s) / s - 1) / s**2 - mp.mpf(1) / 3) / s**2


def functions() -> dict[str, tuple[Function, Any, Any]]:
    """Return each polynomial's function and the ends of its interval, a little widened."""
    half = mp.log(2) / 2 * mp.mpf("1.001")
    quarter = (mp.pi / 4 * mp.mpf("1.0001")) ** 2
    eighth = (mp.tan(mp.pi / 8) * mp.mpf("1.0001")) ** 2
    s = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1) * mp.mpf("1.0001")) ** 2
    return {
        "exp": (_exp, -half, half),
        "log": (_even(lambda s: (2 * mp.atanh(s) - 2 * s) / s**3), 0, s),
        "power": (_even(_power), 0, s),
        "log1p": (_log1p, mp.sqrt(0.5) - 1, mp.sqrt(2) - 1),
        "slope": (lambda f: -1 / (2 * (1 + f)), mp.sqrt(0.5) - 1, mp.sqrt(2) - 1),
        "log2": (lambda f: mp.log(1 + f, 2) / f, mp.sqrt(0.5) - 1, mp.sqrt(2) - 1),
        "tanh": (_even(lambda x: mp.tanh(x) / x), 0, mp.mpf("9.02") ** 2),
        "tan": (_even(lambda r: ((mp.tan(r) - r) / r**3 - mp.mpf(1) / 3) / r**2), 0, quarter),
        "sinh": (_even(lambda r: (mp.sinh(r) - r) / r**3), 0, half**2),
        "cosh": (_even(lambda r: (mp.cosh(r) - 1) / r**2), 0, half**2),
        "sin": (_even(lambda r: (mp.sin(r) - r) / r**3), 0, quarter),
        "cos": (_even(lambda r: (mp.cos(r) - 1 + r * r / 2) / r**4), 0, quarter),
        "arctan": (_even(lambda t: (mp.atan(t) - t) / t**3), 0, eighth),
        "arcsin": (_even(lambda x: (mp.asin(x) - x) / x**3), 0, mp.mpf("0.2501")),
        "cbrt": (_root, mp.mpf("-0.103"), mp.mpf("0.103")),
    }


def main() -> None:
    mp.mp.dps = 60
    for name, (function, low, high) in functions().items():
        under = POLYNOMIALS.get(f"{name} under", ((1.0,), (1.0,)))
        for stored, divisor in zip(POLYNOMIALS[name], under, strict=True):
            if not stored:
                continue
            points = [low + (high - low) * (i + mp.mpf(0.5)) / 1000 for i in range(1000)]
            error = max(
                abs(mp.polyval(stored[::-1], z) / mp.polyval(divisor[::-1], z) - function(z))
                for z in points
            )
            fitted = mp.chebyfit(function, [low, high], len(stored))
            print(f"{name}: {mp.nstr(error, 2)} off, fitted {[float(c) for c in fitted[::-1]]}")


if __name__ == "__main__":
    main()
