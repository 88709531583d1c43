"""Arrays of several libraries on one GPU, as contract tests mix them in one call."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from contract.case import Shown
from gate import Gate
from support import Array, Backend

import gpualgo as ga
from gpualgo._arrays import view as views
from gpualgo._arrays.frameworks import CuPy
from gpualgo._arrays.view import View


def another(xp: Any, current: Any) -> type:
    """Return a class of arrays of a library of its own, whose current stream is the given one."""

    class Another(xp.ndarray):  # type: ignore[misc]
        __module__ = "another"

        def __getitem__(self, key: Any) -> Any:
            return of(super().__getitem__(key))

        def copy(self, *args: Any) -> Any:
            return of(super().copy(*args))

        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            return {**super().__cuda_array_interface__, "stream": current.ptr}

    def of(x: Array) -> Any:
        return Another(x.shape, x.dtype, x.data, x.strides)

    class Library:
        name = "another"
        has_producers = False
        pointer = CuPy.pointer

        @staticmethod
        def view(x: Any) -> View:
            return CuPy.view(x)._replace(library=Library)

        @staticmethod
        def empty(shape: Any, dtype: Any, device: int, stream: int | None) -> Any:
            if stream is not None:
                return of(CuPy.empty(shape, dtype, device, stream))
            with current:
                return of(xp.empty(shape, dtype))

        @staticmethod
        def maker(shape: Any, dtype: Any, device: int) -> Callable[[], Any]:
            return partial(Library.empty, shape, dtype, device, None)

        @staticmethod
        def transposed(x: Any, axes: tuple[int, ...]) -> Any:
            return of(x.transpose(axes))

        @staticmethod
        def stream(device: int) -> int:
            return int(current.ptr)

    found: Any = Another
    found.of, found.viewer = of, Library.view
    return Another


class Libraries:
    """Three libraries: CuPy, another one, and arrays known by a protocol alone.

    Each has a stream of its own; CuPy's is current while `current` is entered.
    """

    def __init__(self, cuda: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cuda, self.xp = cuda, cuda.xp
        self.streams = [self.xp.cuda.Stream(non_blocking=True) for _ in range(3)]
        self.current = self.streams[0]
        self.another: Any = another(self.xp, self.streams[1])
        monkeypatch.setitem(views._viewers, self.another, self.another.viewer)
        self.types = (self.xp.ndarray, self.another, ga.DeviceArray)

    def given(self, array: Array, number: int) -> Any:
        """Return an array of CuPy's as one of a library."""
        if number == 0:
            return array
        return self.another.of(array) if number == 1 else Shown(array, self.streams[2])

    def mixed(self, arrays: Sequence[Array], first: int) -> list[Any]:
        """Return arrays as those of one library after the other."""
        return [self.given(x, (first + i) % 3) for i, x in enumerate(arrays)]

    def outputs(self, want: Sequence[np.ndarray[Any, Any]], first: int) -> tuple[Any, list[Array]]:
        """Return what out= is for such results, of several libraries, and as arrays of CuPy's."""
        plain = [self.cuda.to_device(np.ones(x.shape, x.dtype)) for x in want]
        self.synchronize()
        made = tuple(self.mixed(plain, first))
        return made if len(made) > 1 else made[0], plain

    def synchronize(self) -> None:
        self.xp.cuda.Device().synchronize()

    def hosts(self, results: Any) -> list[np.ndarray[Any, Any]]:
        """Return results of any of the libraries, once all is done."""
        self.synchronize()
        return [
            np.array(x.copy_to_host() if type(x) is ga.DeviceArray else self.cuda.to_host(x))
            for x in leaves(results)
        ]

    def are_of(self, results: Any, number: int) -> bool:
        """Return whether results are arrays of a library."""
        return all(type(x) is self.types[number] for x in leaves(results))


def joins(libraries: Libraries, gate: Gate, run: Callable[[], Any]) -> None:
    """Assert that a call of CuPy's waits for another library's stream, and that for the call."""
    for _ in range(2):
        run()
        libraries.synchronize()
    with gate.hold(libraries.streams[1]):
        run()
        assert gate.holds(libraries.current)
    libraries.synchronize()
    with gate.hold(libraries.current):
        run()
        assert gate.holds(libraries.streams[1])
    libraries.synchronize()


def leaves(results: Any) -> list[Any]:
    """Return the arrays of a result."""
    if not isinstance(results, tuple):
        return [results]
    return [x for item in results for x in leaves(item)]


def torch_on_gpu() -> Any:
    """Return PyTorch where it can use the GPU that the tests use; else skip the test."""
    from support import is_emulated

    torch = pytest.importorskip("torch")
    if is_emulated or "cupy" not in sys.modules or not torch.cuda.is_available():
        pytest.skip("needs PyTorch and CuPy on a GPU")
    return torch
