"""Functions with NumPy's names: each one kernel, and so is a chain of them on lazy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fake_driver
import numpy as np
import pytest
from fake_driver import FakeArray, FakeDriver, FakeLibrary

import gpualgo as ga
import gpualgo.numpy as gnp
from gpualgo._arrays import view
from gpualgo._cuda import build
from gpualgo.numpy import _call as arguments

RESULT_DTYPE = build.result_dtype
N = 1 << 16


class Array(FakeArray):
    """An array on a fake GPU that is sliced, as those of all libraries are."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, ordinal: int = 0) -> None:
        super().__init__(shape, dtype, ordinal)
        size = self.dtype.itemsize * int(np.prod(shape))
        self.host = self.memory[:size].view(self.dtype).reshape(shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __getitem__(self, index: Any) -> Array:
        part = self.host[index]
        made = Array.__new__(Array)
        made.__dict__.update(self.__dict__, host=part, shape=part.shape, strides=part.strides)
        made.data = type(self.data)(ptr=part.ctypes.data, device_id=self.data.device_id)
        return made


class Library(FakeLibrary):
    """The library of these."""

    def empty(self, shape: Any, dtype: Any, device: int, stream: int | None) -> Array:
        return Array(shape, dtype, device)


def _array(dtype: Any = np.float32) -> Any:
    return Array((N,), dtype)


def _lazy() -> Any:
    return ga.lazy.asarray(_array())


# Each with how many kernels it launches.
CALLS: dict[str, tuple[Callable[[], Callable[[], Any]], int]] = {
    "a ufunc": (lambda: _bound(gnp.add, _array(), _array()), 1),
    "a ufunc of a number": (lambda: _bound(gnp.power, _array(), 2), 1),
    "a ufunc into another dtype": (
        lambda: _bound(gnp.add, _array(), _array(), out=_array(np.float64)),
        1,
    ),
    "a ufunc with where": (
        lambda: _bound(gnp.multiply, _array(), 2, out=_array(), where=_array(bool)),
        1,
    ),
    "a ufunc's two results": (lambda: _bound(gnp.divmod, _array(), _array()), 1),
    "sum of a chain": (
        lambda: _chain(lambda x, y: gnp.sum(gnp.exp(gnp.clip(x, 0, 1)) * gnp.sqrt(y))),
        1,
    ),
    "a chain made real": (
        lambda: _chain(lambda x, y: ga.copy(gnp.nan_to_num(gnp.sinc(x) + gnp.round(y, 2)))),
        1,
    ),
    "sum of differences": (lambda: _chain(lambda x, y: gnp.sum(gnp.abs(gnp.diff(x, n=2)))), 1),
    "dot": (lambda: _bound(gnp.dot, _array(), _array()), 1),
    "dot of chains": (lambda: _chain(lambda x, y: gnp.dot(gnp.sin(x), gnp.cos(y))), 1),
    "trapezoid": (lambda: _bound(gnp.trapezoid, _array(), _array()), 1),
    "clip": (lambda: _bound(gnp.clip, _array(), 0, 1), 1),
    "isclose": (lambda: _bound(gnp.isclose, _array(), _array()), 1),
    "angle": (lambda: _bound(gnp.angle, _array(np.complex64)), 1),
    "diff": (lambda: _bound(gnp.diff, _array()), 1),
    "diff of the fourth order": (lambda: _bound(gnp.diff, _array(), n=4), 1),
    "cumsum": (lambda: _bound(gnp.cumsum, _array()), 1),
    "cumulative_sum with its start": (
        lambda: _bound(gnp.cumulative_sum, _array(), include_initial=True),
        2,
    ),
    "vectorize": (lambda: _bound(gnp.vectorize(lambda a: a * 2 + 1), _array()), 1),
}


def _bound(function: Any, *args: Any, **kwargs: Any) -> Callable[[], Any]:
    return lambda: function(*args, **kwargs)


def _chain(function: Callable[[Any, Any], Any]) -> Callable[[], Any]:
    x, y = _lazy(), _lazy()
    return lambda: function(x, y)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    made = fake_driver.install(monkeypatch)
    fake_driver.stub_kernels(monkeypatch)
    monkeypatch.setattr(build, "result_dtype", RESULT_DTYPE)
    monkeypatch.setitem(view._viewers, Array, Library().view)
    monkeypatch.setattr(arguments, "ARRAY_TYPES", {Array})
    return made


@pytest.mark.parametrize("name", CALLS)
def test_launches(name: str, fake: FakeDriver) -> None:
    make, launches = CALLS[name]
    call = make()
    call()
    fake.calls.clear()
    call()
    assert len(fake.named("cuLaunchKernel", "cuLaunchKernelEx")) == launches
