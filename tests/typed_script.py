"""A user's script, read by type checkers and never run: test_types.py says what they must find.

Each line that ends in the comment `error` is wrong and must be reported; no other line may be.

One file of more than 300 lines, as a type checker reads it whole.
"""

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Callable
from typing import Any, assert_type

import cupy as cp
import numpy as np
import torch
from numpy.typing import NDArray

import gpualgo as ga

x = np.arange(6.0).reshape(2, 3)
floats: NDArray[np.float32] = np.ones(3, np.float32)
names: NDArray[np.str_] = np.array(["c", "a", "b"])
unknown: NDArray[Any] = np.load("x.npy")
device = cp.arange(3)  # of a library without types: anything goes
t = torch.arange(3)


class OnGPU:
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {}


class Interfaced:
    def __init__(self) -> None:
        self.__array_interface__: dict[str, Any] = {}


class Producer:
    def __dlpack__(self, stream: int | None = None) -> object:
        return object()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0


class Comparable(Producer):
    def __eq__(self, other: object) -> bool:
        return self is other


class Stream:
    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 7


class Stepping:
    """A stream of a library such as CuPy or numba, by its handle."""

    ptr = 7

    def synchronize(self) -> None: ...


def gcd(a: int, b: int) -> int:
    return math.gcd(a, b)


raw = ga.from_pointer(4096, (2, 3), np.float32)
assert_type(raw, ga.DeviceArray)
assert_type(raw.copy_to_host(), np.ndarray[Any, Any])

# Arrays
ga.reduce(x)
ga.reduce(floats)
ga.reduce(unknown)
ga.reduce(x > 0)
ga.reduce(device)
ga.reduce(t)
ga.reduce(raw)
ga.reduce(OnGPU())
ga.reduce(Interfaced())
ga.reduce(Producer())
ga.transform(abs, Producer())
ga.transform(abs, Comparable())
ga.radix_sort(Producer(), OnGPU())
ga.radix_sort(Interfaced())
ga.argsort(device)
ga.radix_sort(device, device)
ga.reduce(x.__dlpack__())
ga.reduce("no array")  # error
ga.reduce([1, 2, 3])  # error
ga.reduce(3.0)  # error
ga.reduce()  # error

# Operators
for op in (operator.add, operator.mul):
    ga.reduce(x, None, op)
ga.reduce(x, 0.0, lambda a, b: a if abs(a) > abs(b) else b)
ga.reduce(x, None, max)
ga.reduce(x, None, min)
ga.reduce(x, None, np.maximum)
ga.reduce(x, None, np.logical_or)
ga.reduce(x, None, np.hypot)
ga.reduce(x, None, gcd)
ga.reduce(x, None, ga.Operator(lambda a, b: max(a, b), identity=-np.inf, commutative=True))
ga.reduce(x, None, ga.Operator(gcd, identity=np.int64(0)))
ga.reduce(x, max)  # error
ga.reduce(x, None, "add")  # error
ga.reduce(x, None, lambda a: a)  # error
ga.reduce(x, None, math.sqrt)  # error
ga.Operator(3)  # error
ga.Operator(gcd, identity="none")  # error

# init
ga.reduce(x, 1)
ga.reduce(x, True)
ga.reduce(x, 1j)
ga.reduce(x, np.float32(1))
ga.reduce(x, np.array(1.0))
ga.reduce(x, init=np.ones(1))
ga.inclusive_scan(device, device[:1])
ga.inclusive_scan(raw, raw[0])
ga.reduce(x, "0")  # error
ga.inclusive_scan(x, [0])  # error

# axis, keepdims, reverse
ga.reduce(x, axis=0)
ga.reduce(x, axis=(0, 1), keepdims=True)
ga.reduce(x, axis=())
ga.reduce(x, axis=None)
ga.reduce(x, axis=np.int32(0))
ga.reduce(x, axis=(np.int64(0), -1))
ga.inclusive_scan(x, axis=-1, reverse=True)
ga.reduce(x, axis="zero")  # error
ga.reduce(x, axis=0.5)  # error
ga.reduce(x, axis=[0, 1])  # error
ga.reduce(x, keepdims="no")  # error
ga.inclusive_scan(x, axis=(0, 1))  # error
ga.inclusive_scan(x, reverse="no")  # error
ga.exclusive_scan(x, keepdims=True)  # error
ga.rolling(x, np.int32(3), max, axis=0)
ga.rolling(x, 2.5)  # error
ga.rolling(x, 3, axis=None)  # error

# dtype
ga.reduce(x, dtype=np.float32)
ga.reduce(x, dtype="float32")
ga.reduce(x, dtype="bfloat16")
ga.reduce(x, dtype=np.dtype("int64"))
ga.reduce(x, dtype=float)
ga.reduce(x, dtype=x.dtype)
ga.reduce(t, dtype=torch.float32)
ga.reduce(device, dtype=cp.float32)
ga.reduce(x, dtype=32)  # error
ga.transform(lambda a: a, x, dtype=1.0)  # error

# out and stream
ga.reduce(x, axis=0, out=np.empty(3))
ga.transform(lambda a: a, raw, out=raw)
ga.reduce(raw, stream=7)
ga.reduce(raw, stream=np.intp(7))
ga.reduce(raw, stream=ctypes.c_void_p(7))
ga.reduce(raw, stream=Stream())
ga.reduce(raw, stream=Stepping())
ga.reduce(t, stream=torch.cuda.Stream())
ga.reduce(device, stream=cp.cuda.Stream())
ga.reduce(x, out="there")  # error
ga.reduce(raw, stream="default")  # error
ga.reduce(raw, stream=1.5)  # error
ga.radix_sort(raw, stream=object())  # error
raw.copy_to_host(stream=7)

# transform
functions: list[Callable[[float], float]] = [math.sqrt, abs]
for function in functions:
    ga.transform(function, x)
ga.transform(lambda a, b, c: a if a > b else c, x, x, x)
ga.transform(np.sqrt, x)
ga.transform(np.hypot, x, x)
ga.transform(lambda a: np.where(a > 0, a, 0), t)
ga.transform(ga.Operator(lambda a: -a), x)
ga.transform(operator.neg, x, out=x, dtype=np.float64)
ga.transform(x, lambda a: a)  # error
ga.transform(lambda a: a)  # error
ga.transform(lambda a, b: a * b, x, 2.0)
ga.transform(lambda a, b: a * b, 2, x)
ga.transform(np.multiply, t, np.float32(2))
ga.transform(lambda a, b: a * b, x, "2")  # error

# histogram
ga.histogram(x, 10)
ga.histogram(x, np.int64(10), (0, 1))
ga.histogram(x, [0, 1.5, np.inf], dtype=np.uint32)
ga.histogram(x, np.linspace(0, 1, 5), axis=(0, 1))
ga.histogram(x, (0, 1, 2))
ga.histogram(x, 4, (0.0, np.float32(1)))
ga.histogram(x, 4, (x.min(), x.max()))
ga.histogram(device, device)
ga.histogram(x)  # error
ga.histogram(x, "auto")  # error
ga.histogram(x, 4, 5)  # error
ga.histogram(x, 4, (0, 1, 2))  # error

# segments
ga.segmented_reduce(floats, x, 0.0, max, dtype=np.float64, out=floats, stream=Stream())
ga.segmented_reduce((x, floats), x, (0, 1.0), lambda a, b: a)
ga.segmented_exclusive_scan(raw, raw, raw)
ga.segmented_inclusive_scan((x, floats), x, (x, floats), lambda a, b: a)
ga.segmented_reduce(x, [0, 1])  # error
ga.segmented_reduce(x, x, axis=0)  # error
ga.segmented_inclusive_scan(x, x, op=3)  # error
ga.segmented_sort(x, x, values=names, descending=True, out=(x, names))
ga.segmented_sort(x, x, names)  # error
assert_type(ga.segmented_reduce(t, t), torch.Tensor)
assert_type(ga.segmented_inclusive_scan(raw, raw), ga.DeviceArray)

# radix_sort, argsort
ga.radix_sort(floats, out=floats)
ga.radix_sort(floats, names, out=(floats, names))
ga.radix_sort(x, axis=None, begin_bit=np.uint8(8), end_bit=16, descending=True)
ga.argsort(x, dtype=np.int32, axis=np.int64(0))
ga.radix_sort(floats, names, out=floats)  # error
ga.radix_sort(floats, [1, 2, 3])  # error
ga.radix_sort(x, begin_bit=0.5)  # error
ga.radix_sort(x, axis=(0, 1))  # error
ga.argsort(x, names)  # error

# top_k, kth_value
assert_type(ga.top_k(x, 3), ga.TopK)
ga.top_k(device, np.int64(3), axis=None, mode="smallest")
ga.top_k(x, 3, out=(floats, names))
ga.kth_value(x, 3)
ga.kth_value(floats, [0, np.int64(2)], axis=0, out=floats)
ga.kth_value(floats, range(3))
ga.top_k(x, 0.5)  # error
ga.top_k(x, 3, out=floats)  # error
ga.kth_value(x, "3")  # error


# Results
def results(a: NDArray[np.float32], b: NDArray[Any]) -> None:
    assert_type(ga.radix_sort(a), np.ndarray[Any, np.dtype[np.float32]])
    assert_type(ga.radix_sort(a, b)[0], np.ndarray[Any, np.dtype[np.float32]])
    assert_type(ga.argsort(a), np.ndarray[Any, Any])
    assert_type(ga.inclusive_scan(b), np.ndarray[Any, Any])
    assert_type(ga.transform(np.hypot, a, b), np.ndarray[Any, Any])
    assert_type(ga.histogram(b, 3, out=b), np.ndarray[Any, Any])


assert_type(ga.transform(lambda a: a > 0, floats), np.ndarray[Any, Any])
assert_type(ga.transform(abs, Interfaced()), np.ndarray[Any, Any])
assert_type(ga.transform(abs, t), torch.Tensor)
assert_type(ga.transform(abs, raw), ga.DeviceArray)
assert_type(ga.inclusive_scan(x), np.ndarray[Any, Any])
assert_type(ga.rolling(x, 3), np.ndarray[Any, Any])
assert_type(ga.exclusive_scan(t, axis=0), torch.Tensor)
assert_type(ga.histogram(x, 3), np.ndarray[Any, Any])
assert_type(ga.argsort(floats), np.ndarray[Any, Any])
assert_type(ga.argsort(t), torch.Tensor)
assert_type(ga.radix_sort(floats), np.ndarray[Any, np.dtype[np.float32]])
assert_type(ga.radix_sort(t), torch.Tensor)
keys, values = ga.radix_sort(floats, names)
assert_type(keys, np.ndarray[Any, np.dtype[np.float32]])
assert_type(values, np.ndarray[Any, np.dtype[np.str_]])
assert_type(ga.radix_sort(raw, raw), tuple[ga.DeviceArray, ga.DeviceArray])
assert_type(ga.reduce(t), torch.Tensor)
assert_type(ga.reduce(raw, axis=0), ga.DeviceArray)
total: float = ga.reduce(x)
bools: NDArray[np.bool_] = ga.transform(lambda a: a > 0, x)
grouped: ga.ReducedByKey = ga.reduce_by_key(x, floats)
ga.reduce_by_key((x, x), (floats, x), (0.0, 1), lambda a, b: a, consecutive=True)
ga.reduce_by_key(raw, t, 0.5, max, eq=lambda a, b: a == b, consecutive=True, dtype="f8")
ga.inclusive_scan_by_key(x, floats, out=floats).tolist()
ga.exclusive_scan_by_key(x, (floats, x), (0.0, 1), consecutive=True, dtype=("f8", "i8"))
ga.reduce_by_index(x, (floats, x), 3, (0.0, 1), lambda a, b: a, out=(floats, x))
ga.reduce_by_index(x, floats, "3")  # error
ga.reduce_by_key(x)  # error
ga.reduce_by_key(x, floats, axis=0)  # error
ga.inclusive_scan_by_key(x, floats, consecutive="yes")  # error
ga.exclusive_scan_by_key(x, floats, out_count=x)  # error
ga.reduce(ga.inclusive_scan(x, axis=1), None, max, axis=1).tolist()
ga.transform(abs, OnGPU()).copy_to_host()
ga.radix_sort(floats).copy_to_host()  # error
ga.radix_sort(floats, names).sum()  # error
ga.inclusive_scan(t).copy_to_host()  # error

# Plans, graphs, memory
plan = ga.prepare(ga.reduce, raw, 0.0, max, axis=0)
assert_type(plan, ga.Plan)
assert_type(plan.temp_storage_bytes, int)
plan(raw, out=raw, temp_storage=device, stream=Stream())
ga.prepare(ga.radix_sort, floats, names)(floats, names, out=(floats, names))
assert_type(ga.temp_storage_bytes(ga.radix_sort, raw), int)
with ga.graph("cuda:0") as graph:
    assert_type(graph, ga.Graph)
    ga.reduce(raw)
graph.launch()
graph.launch(Stream())
graph.update((raw, raw), (device, device))
with ga.default_device("cpu"):
    ga.reduce(x)
ga.set_memory_resource("cupy", device=0)
ga.set_memory_resource(None)
pinned = ga.empty_pinned((2, 3), [("name", "S4"), ("age", np.int32)])
assert_type(pinned, np.ndarray[Any, Any])
ga.empty_pinned([2, 3])
ga.from_pointer(np.uint64(4096), 10, torch.float32, owner=raw, strides=(8,), stream=7)
shards = ga.distribute(x, ["cuda:0", 1], axis=-1)
assert_type(shards, ga.ShardedArray)
assert_type(ga.ShardedArray.from_shards([x, x]), ga.ShardedArray)
ga.reduce(shards, None, max)
ga.radix_sort(shards, shards, descending=True)
ga.distribute(shards, axis=1).gather("cpu")
ga.distribute(x, 1.5)  # error
ga.prepare("reduce", raw)  # error
plan("raw")  # error
plan(raw, temp_storage=4096)  # error
graph.launch("default")  # error
graph.update(raw, raw)  # error
ga.set_memory_resource("malloc")  # error
ga.from_pointer("4096", 10, np.float32)  # error
ga.from_pointer(4096, 1.5, np.float32)  # error
ga.from_pointer(4096, 10)  # error
ga.empty_pinned("2, 3")  # error
ga.default_device(0)  # error
with ga.graph(0):  # error
    pass
missing = ga.no_such_name  # error
error: type[RuntimeError] = ga.CompileError
error = ga.NoDeviceError
version: str = ga.__version__
