"""More of a user's script, as typed_script.py: elements that are tuples, and extreme elements."""

from __future__ import annotations

from typing import Any, NamedTuple, assert_type

import cupy as cp
import numpy as np
import torch
from numpy.typing import NDArray

import gpualgo as ga

x = np.arange(6.0).reshape(2, 3)
floats: NDArray[np.float32] = np.ones(3, np.float32)
unknown: NDArray[Any] = np.load("x.npy")
device = cp.arange(3)  # of a library without types: anything goes
t = torch.arange(3)
raw = ga.from_pointer(4096, (2, 3), np.float32)


class Point(NamedTuple):
    x: Any
    y: Any


def paired(a: Any, b: Any) -> Any:
    return a[0] + b[0], max(a[1], b[1])


records = np.zeros(3, [("x", "f4"), ("y", "i8")])
ga.reduce((x, x), None, paired)
ga.reduce((floats, 1.0, unknown), (0, 0.0, np.int8(0)), paired, axis=0, keepdims=True)
ga.reduce(Point(x, x), Point(0, 0), paired)
ga.reduce((x, (x, floats)), (0, (1, 2)), paired, dtype=np.float32)
ga.reduce(records, records[0], paired)
ga.reduce((t, t), None, paired, out=(t, t))
ga.reduce((raw, raw), None, paired, dtype=(np.float32, "int64"), stream=7)
ga.inclusive_scan((device, raw), None, paired, dtype=np.dtype([("x", "f4"), ("y", "i8")]))
ga.inclusive_scan((x, x), None, paired, axis=1, reverse=True, out=(x, (x, x)))
ga.exclusive_scan((x, x), (0, np.float32(1)), paired, out=records)
ga.transform(lambda p, k: (p[0] * k, p[1]), (x, x), 2)
ga.transform(lambda k, p: (p[0] * k, p[1]), x, (x, x), out=(x, x))
ga.transform(lambda a: (a, a), x, out=(x, x), dtype=(np.float32, np.int8))
ga.transform(lambda a: (a, a), x, dtype=(np.float32, np.int8))
ga.transform(lambda k, j, p: (p[0] * k, p[1] * j), x, 2, (x, x))
ga.transform(lambda a, b, c, p, d: (a, b + p[1]), x, x, x, (x, x), 2.0)
ga.transform(lambda a: (a, a), t, out=(t, t))
ga.transform(lambda p: p.x, records)
quotient, remainder = ga.transform(lambda a: (a // 3, a % 3), t, dtype=(np.int8, np.int8))
least, greatest = ga.minmax(x, axis=(0, 1), keepdims=True, out=(x, x))
assert_type(ga.minmax(t), ga.MinMax)
ga.argmax(x, 0, out=unknown)
ga.argmin(raw, axis=None, keepdims=True, stream=7)
ga.radix_sort((x, (floats, 1.0)), descending=(True, (False, True)), out=(x, (x, floats)))
ga.radix_sort(Point(x, x), floats, axis=0, out=((x, x), floats))
ga.radix_sort((t, t), (t, t), stream=7)
ga.radix_sort(x, (x, floats), begin_bit=3, descending=True, out=(x, (x, floats)))
ga.radix_sort(records, descending=(True, False), out=records)
ga.radix_sort(records, records, out=(records, records))
assert_type(ga.radix_sort(floats, (x, x)), tuple[Any, Any])
ga.argsort((raw, raw), descending=(True, False), dtype=np.int32, out=raw)
ga.argsort(records, descending=(True, False))
assert_type(ga.argsort(records), np.ndarray[Any, Any])
ga.reduce(("x", x), None, paired)  # error
ga.reduce([x, x], None, paired)  # error
ga.reduce((x, x), "0", paired)  # error
ga.reduce((x, x), None, paired, out="there")  # error
ga.reduce((x, x), None, paired, dtype=32)  # error
ga.inclusive_scan((x, x), (0, "0"), paired)  # error
ga.inclusive_scan((x, x), None, paired, axis=(0, 1))  # error
ga.exclusive_scan((x, [1, 2]), (0, 0), paired)  # error
ga.transform(lambda p: p, (x, "x"))  # error
ga.histogram((x, x), 3)
ga.histogram((x, x), (3, [0, 1.5]), ((0, 1), None), axis=0, out=x)
ga.histogram((device, device), 3, weights=device)
ga.histogram((x, 1), 3, weights=2.5, dtype=np.float32)
ga.histogram(x, 3, weights=x)
ga.histogram(device, 3, weights=0.5)
ga.histogram((x, x), [3, 4])  # error
ga.histogram((x, x), 3, (0, 1))  # error
ga.histogram(x, 3, weights=[1, 2])  # error
ga.histogram(((x, x), x), 3)  # error
ga.argmax((x, x))  # error
ga.argmax(x, (0, 1))  # error
ga.minmax(x, out=x)  # error
ga.radix_sort((x, x), begin_bit=3)  # error
ga.radix_sort((x, "x"))  # error
ga.radix_sort((x, x), descending=[True, False])  # error
ga.radix_sort(x, (x, [1, 2]))  # error
ga.argsort((x, x), out=(x, x))  # error
ga.argsort(((x, x), "y"))  # error
