"""NumPy's functions of arrays of several libraries on one GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from contract.libraries import Libraries, leaves
from support import Backend

import gpualgo.numpy as gnp

N = 600
X, Y = np.arange(N) * 37 % 101 * 1.0, np.arange(N) * 53 % 97 * 1.0
I, J, MARKS = X.astype(np.int64), Y.astype(np.int64), np.arange(N) % 3 == 0  # noqa: E741

# Each of a module, arrays of a library, and those of another.
CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda np, a, b: np.add(a(X), b(Y)),
    "divmod": lambda np, a, b: np.divmod(a(I), b(J + 1)),
    "where=": lambda np, a, b: np.multiply(a(X), b(Y), out=b(Y * 0), where=a(MARKS)),
    "out=": lambda np, a, b: np.maximum(a(X), a(Y), out=b(X * 0)),
    "clip": lambda np, a, b: np.clip(a(X), b(Y), b(Y + 5)),
    "compress": lambda np, a, b: np.compress(b(MARKS), a(X)),
    "extract": lambda np, a, b: np.extract(b(MARKS), a(X)),
    "digitize": lambda np, a, b: np.digitize(a(X), b(Y[:7].cumsum())),
    "dot": lambda np, a, b: np.dot(a(X), b(Y)),
    "inner": lambda np, a, b: np.inner(a(X), b(Y)),
    "vdot": lambda np, a, b: np.vdot(a(X), b(Y)),
    "ediff1d": lambda np, a, b: np.ediff1d(a(X), to_end=b(Y[:3])),
    "histogram": lambda np, a, b: np.histogram(a(X), 7, (0, 101), weights=b(Y))[0],
    "bincount": lambda np, a, b: np.bincount(a(I), weights=b(Y)),
    "average": lambda np, a, b: np.average(a(X), weights=b(Y)),
    "isclose": lambda np, a, b: np.isclose(a(X), b(Y), atol=3),
    "isin": lambda np, a, b: np.isin(a(I), b(J[:50])),
    "intersect1d": lambda np, a, b: np.intersect1d(a(I), b(J)),
    "setdiff1d": lambda np, a, b: np.setdiff1d(a(I), b(J)),
    "setxor1d": lambda np, a, b: np.setxor1d(a(I), b(J)),
    "union1d": lambda np, a, b: np.union1d(a(I), b(J)),
    "lexsort": lambda np, a, b: np.lexsort((a(I), b(J))),
    "searchsorted": lambda np, a, b: np.searchsorted(a(X.cumsum()), b(Y * 30)),
    "trapezoid": lambda np, a, b: np.trapezoid(a(X), b(Y.cumsum())),
    "where": lambda np, a, b: np.where(a(MARKS), b(X), b(Y)),
    "sum": lambda np, a, b: np.sum(a(X), where=b(MARKS)),
    "cumsum": lambda np, a, b: np.cumsum(a(X), out=b(X * 0)),
    "median": lambda np, a, b: np.median(a(X), out=b(X[:1].copy().reshape(()))),
}  # fmt: skip

INTO = {"where=", "out=", "cumsum", "median"}  # arrays of the other library


@pytest.mark.parametrize("name", CALLS)
def test_as_numpy(cuda: Backend, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    call, libraries = CALLS[name], Libraries(cuda, monkeypatch)

    def plain(x: Any) -> Any:
        return x

    want = [np.asarray(x) for x in leaves(call(np, plain, plain))]

    def of(number: int) -> Callable[[Any], Any]:
        def made(x: Any) -> Any:
            with libraries.streams[number]:
                return libraries.given(cuda.to_device(x), number)

        return made

    with libraries.current:
        for first, second in ((0, 1), (1, 0)):
            found = call(gnp, of(first), of(second))
            assert libraries.are_of(found, second if name in INTO else first)
            for got, wanted in zip(libraries.hosts(found), want, strict=True):
                assert got.dtype == wanted.dtype
                np.testing.assert_allclose(got, wanted, rtol=1e-13)
