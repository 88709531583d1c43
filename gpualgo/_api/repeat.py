"""The last call of a plan, for launching it again with the same two arrays."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from gpualgo._arrays.view import View


class Repeat:
    """A packed launch on two CuPy arrays, valid while both keep their address and shape."""

    __slots__ = ("device", "launch", "out", "out_ptr", "out_shape", "stream", "x", "x_ptr",
                 "x_shape")  # fmt: skip

    def __init__(self, x: Any, out: Any, view: View, launch: Callable[[int], None]) -> None:
        self.x: Callable[[], Any] = weakref.ref(x)
        self.out: Callable[[], Any] = weakref.ref(out)
        self.x_ptr, self.x_shape = x.data.ptr, x.shape
        self.out_ptr, self.out_shape = out.data.ptr, out.shape
        self.launch, self.stream, self.device = launch, view.library.stream, view.device
