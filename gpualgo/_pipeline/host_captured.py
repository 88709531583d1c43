"""Copies captured host arrays to a GPU for a call whose other arrays are staged."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._arrays import device_array, page_locked
from gpualgo._arrays.view import View, _Addresses
from gpualgo._driver import device as gpu
from gpualgo._driver import driver, streams
from gpualgo._driver.default_device import CPU
from gpualgo._operators.operator import Operator


def on_device(op: Operator, device: int, stream: Any, where: str) -> Operator:
    """Return op with its captured pageable arrays replaced by copies on the device.

    The copies are complete on return and live as long as the operator and the work that uses it.
    """
    if not op.arrays:
        return op
    with gpu.get(device).current():
        pageable = [
            view.device == CPU and page_locked.view(view, device, where) is None
            for view in op.arrays
        ]
        if stream is not None and any(pageable):
            driver.refuse_capture(
                streams.handle_of(stream, where),
                f"{where}: op captures pageable host memory; make it with gpualgo.empty_pinned",
            )
        return op.with_arrays(
            tuple(
                _copied(view, device) if is_pageable else view
                for view, is_pageable in zip(op.arrays, pageable, strict=True)
            )
        )


def _copied(view: View, device: int) -> View:
    """Return the view of a contiguous copy on the device, which the view's owner frees."""
    source = np.ascontiguousarray(_Addresses(view).array).reshape(view.shape)
    stream = gpu.get(device).copy_stream
    copy = device_array.empty(view.shape, view.dtype, device, stream)
    if source.nbytes:
        api = driver.api()
        status = api.cuMemcpyHtoDAsync(copy.ptr, source.ctypes.data, source.nbytes, stream)
        driver.check(status, "cuMemcpyHtoDAsync")
        driver.synchronize(stream)
    return view._replace(ptr=copy.ptr, strides=copy.strides, device=device, owner=copy,
                         library=_CopyStream(stream))  # fmt: skip


class _CopyStream:
    """Stand-in library of a captured array: returns the stream on which the copy was written."""

    def __init__(self, stream: int) -> None:
        self._stream = stream

    def stream(self, device: int) -> int:
        return self._stream
