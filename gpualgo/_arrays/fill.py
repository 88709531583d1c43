"""Fills a device array with one value, in stream order and without host memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpualgo._arrays.view import View
from gpualgo._base.strides import merge
from gpualgo._driver import device as gpu
from gpualgo._driver import driver


def fill(target: View, value: np.ndarray[Any, Any], stream: int) -> None:
    """Queue writing one value to all elements."""
    if 0 in target.shape:
        return
    data = np.asarray(value).astype(target.dtype).tobytes()
    unit = math.gcd(4, len(data), target.ptr, *target.strides)  # memsets write aligned words
    words = [int.from_bytes(data[i : i + unit], "little") for i in range(0, len(data), unit)]
    dims = merge([(n, (s,)) for n, s in zip(target.shape, target.strides, strict=True)])
    rows, (pitch,) = dims.pop() if dims else (1, (len(data),))
    with gpu.get(target.device).current():
        for index in np.ndindex(*(extent for extent, _ in dims)):
            start = sum(i * stride for i, (_, (stride,)) in zip(index, dims, strict=True))
            _fill_line(target.ptr + start, rows, pitch, words, unit, stream)


def _fill_line(
    address: int, rows: int, pitch: int, words: list[int], unit: int, stream: int
) -> None:
    """Queue writing the words to `rows` addresses that are `pitch` bytes apart."""
    api = driver.api()
    bits = 8 * unit
    if pitch < 0:
        address, pitch = address + (rows - 1) * pitch, -pitch
    if pitch == unit * len(words) and len(set(words)) == 1:
        queue = getattr(api, f"cuMemsetD{bits}Async")
        driver.check(queue(address, words[0], rows * len(words), stream), "cuMemsetAsync")
        return
    queue = getattr(api, f"cuMemsetD2D{bits}Async")
    for number, word in enumerate(words):
        status = queue(address + number * unit, pitch, word, 1, rows, stream)
        driver.check(status, "cuMemsetD2DAsync")
