"""Results lie where NumPy's do: outputs of the other byte order, larger ones, and new memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Backend

import gpualgo.numpy as gnp
from gpualgo.numpy import _loops

SWAPPED = np.dtype(float).newbyteorder()
X = np.array([[1.25, -2.5, 3.75], [0.5, 7.0, -0.25]])
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("sum", (0,), {}),
    ("cumsum", (1,), {}),
    ("clip", (0, 3), {}),
    ("round", (1,), {}),
    ("negative", (), {"where": X > 0}),
    ("divmod", (2,), {}),
    ("add.reduce", (1,), {}),
    ("add.accumulate", (), {}),
    ("median", (0,), {}),
]


@pytest.mark.parametrize(("name", "args", "kwargs"), CALLS, ids=[call[0] for call in CALLS])
def test_outputs_of_the_other_byte_order(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """What few elements are written to many are: kernels write to memory beside it."""
    found = []
    for where in (np, gnp):
        function: Any = where
        for part in name.split("."):
            function = getattr(function, part)
        like = getattr(np, name)(X, *args) if "." not in name else function(X, *args)
        outs = [np.ones(x.shape, SWAPPED) for x in (like if isinstance(like, tuple) else (like,))]
        out = outs[0] if len(outs) == 1 else tuple(outs)
        result = function(X, *args, out=out, **kwargs)
        assert all(x is y for x, y in zip(_each(result), outs, strict=True))
        found.append(outs)
    for got, want in zip(*found, strict=True):
        np.testing.assert_array_equal(got, want)


def _each(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


def test_output_given_by_place() -> None:
    out = np.zeros(3, SWAPPED)
    assert gnp.sum(X, 0, None, out) is out
    np.testing.assert_array_equal(out, X.sum(0))


def test_nan_to_num_in_place_of_the_other_byte_order() -> None:
    x = np.array([1.0, np.nan, np.inf]).astype(SWAPPED)
    assert gnp.nan_to_num(x, copy=False, nan=7, posinf=8) is x
    assert x.tolist() == [1, 7, 8]


@pytest.mark.parametrize("name", ["isposinf", "isneginf"])
def test_larger_outputs(backend: Backend, name: str) -> None:
    x = np.array([np.inf, -np.inf, 1])
    out = backend.to_device(np.ones((2, 3), bool))
    assert getattr(gnp, name)(backend.to_device(x), out=out) is out
    want = getattr(np, name)(x, out=np.ones((2, 3), bool))
    np.testing.assert_array_equal(backend.to_host(out), want)
    with pytest.raises(ValueError, match="shape"):
        getattr(gnp, name)(backend.to_device(x), out=backend.to_device(np.ones(2, bool)))


@pytest.mark.few
def test_orders_that_differ_make_c_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks make the memory that one call of NumPy's makes."""
    monkeypatch.setattr(_loops, "sizes_of", lambda ufunc: (4, 1))
    x, other = np.arange(24.0).reshape(2, 3, 4), np.ones((4, 3, 2)).T
    turned = np.arange(24.0).reshape(3, 4, 2).transpose(2, 0, 1)
    for args in ((x, other), (other, x), (other, other), (turned, turned), (other, 2),
                 (other, np.ones(4)), (turned[::-1], turned)):  # fmt: skip
        want, got = np.add(*args), gnp.add(*args)
        np.testing.assert_array_equal(got, want)
        assert got.strides == want.strides


def test_no_outputs_are_not_left_out() -> None:
    for call in (lambda: gnp.add(X, 1, out=()), lambda: gnp.divmod(X, 2, out=())):
        with pytest.raises(ValueError, match="tuple"):
            call()


def test_differences_of_nothing(backend: Backend) -> None:
    x = backend.to_device(np.zeros((0, 2)))
    assert gnp.diff(x, axis=0, prepend=x, append=x).shape == (0, 2)
    assert gnp.diff(x, axis=0, append=1).shape == (0, 2)
    assert gnp.diff(x, axis=1, prepend=1).shape == (0, 2)
