"""gpualgo.jax: frames of a GPU, as XLA makes them, on the emulated GPU or with CuPy's arrays."""

from __future__ import annotations

import ctypes
import operator
from typing import Any

import numpy as np
import pytest
from support import Backend

pytest.importorskip("jax", reason="it comes by the extra jax")

import jax
import jax.numpy as jnp

import gpualgo as ga
import gpualgo.jax as gj
from gpualgo.jax import _ffi

CODES = {name: code for code, name in _ffi._DTYPES.items()}


class Frame:
    """A call frame of arrays on a GPU, and what is alive while it is used."""

    def __init__(self, text: str, ins: list[Any], outs: list[Any], stream: int) -> None:
        self.errors: list[str] = []
        self.kept: list[Any] = [ins, outs]
        span = _ffi._Text(*self.memory(text.encode()))
        api = _ffi._Api(
            error_create=self.function(self._error), stream_get=self.function(self._stream)
        )
        self.stream = stream
        self.frame = _ffi._Frame(
            api=ctypes.pointer(api), stage=3, context=77, arguments=self.buffers(ins),
            results=self.buffers(outs),
            attributes=_ffi._Attributes(
                size=1, types=self.array(ctypes.c_int, [_ffi._STRING]), items=self.pointers([span])
            ),
        )  # fmt: skip
        self.kept += [api]

    def memory(self, data: bytes) -> tuple[int, int]:
        self.kept.append(ctypes.create_string_buffer(data))
        return ctypes.addressof(self.kept[-1]), len(data)

    def function(self, fn: Any) -> Any:
        self.kept.append(_ffi._Function(fn))
        return ctypes.cast(self.kept[-1], ctypes.c_void_p)

    def array(self, kind: Any, values: Any) -> Any:
        self.kept.append((kind * max(len(values), 1))(*values))
        return ctypes.cast(self.kept[-1], ctypes.POINTER(kind))

    def pointers(self, items: list[Any]) -> Any:
        self.kept += items
        return self.array(ctypes.c_void_p, [ctypes.addressof(item) for item in items])

    def buffers(self, arrays: list[Any]) -> Any:
        items = [
            _ffi._Buffer(
                dtype=CODES[str(x.dtype)], data=x.__cuda_array_interface__["data"][0] or None,
                rank=x.ndim, dims=self.array(ctypes.c_int64, x.shape),
            )
            for x in arrays
        ]  # fmt: skip
        return _ffi._Buffers(size=len(items), items=self.pointers(items))

    def _error(self, address: int) -> int:
        arguments = _ffi._ErrorArguments.from_address(address)
        self.errors.append(arguments.message.decode())
        return 1

    def _stream(self, address: int) -> None:
        arguments = _ffi._StreamArguments.from_address(address)
        assert arguments.context == 77
        arguments.stream = self.stream or None

    def run(self) -> int | None:
        return _ffi._handle("CUDA", ctypes.pointer(self.frame))


def text_of(call: Any) -> str:
    """Return the text of the call that a function makes, which it runs on the CPU."""
    before = dict(_ffi._calls)
    _ffi._calls.clear()
    call()
    (text,) = _ffi._calls
    _ffi._calls.update(before)
    return text


def test_arrays_of_a_gpu(cuda: Backend) -> None:
    xp = cuda.xp
    stream = xp.cuda.Stream(non_blocking=True)
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    text = text_of(lambda: gj.inclusive_scan(jnp.asarray(x[0]), 0.5, operator.mul, axis=-1))
    with stream:
        given, out = xp.asarray(x), xp.zeros((3, 4), np.float32)
        assert Frame(text, [given], [out], stream.ptr).run() is None
    stream.synchronize()
    np.testing.assert_array_equal(xp.asnumpy(out), np.cumprod(x, 1) * np.float32(0.5))


def test_what_a_batch_shares_is_not_copied(cuda: Backend) -> None:
    xp = cuda.xp
    a, b = np.float32([[2, 3]]), np.float32([[1, 1], [5, 7]])
    text = text_of(lambda: gj.linear_recurrence(a[0], b[0]))
    outs = [xp.zeros((2, 2), np.float32) for _ in range(2)]
    assert Frame(text, [xp.asarray(a), xp.asarray(b)], outs, 0).run() is None
    np.testing.assert_array_equal(xp.asnumpy(outs[1]), [[1, 4], [5, 22]])
    keys = np.float32([1, 3, 3, 7])
    text = text_of(lambda: gj.searchsorted(keys, jnp.ones(2), dtype=np.int32))
    out = xp.zeros((3, 2), np.int32)
    v = np.float32([[3, 8], [0, 1], [4, 3]])
    assert Frame(text, [xp.asarray(keys[None]), xp.asarray(v)], [out], 0).run() is None
    np.testing.assert_array_equal(xp.asnumpy(out), np.searchsorted(keys, v))


def test_counts_and_empty_arrays(cuda: Backend) -> None:
    xp = cuda.xp
    text = text_of(lambda: gj.select(jnp.ones(5), lambda a: a > 2.5, size=4))
    x, out, count = (
        xp.asarray(np.float32([3, 1, 4, 1, 5])),
        xp.zeros(4, np.float32),
        xp.zeros(1, int),
    )
    assert Frame(text, [x], [out, count], 0).run() is None
    assert xp.asnumpy(out)[:3].tolist() == [3, 4, 5]
    assert xp.asnumpy(count).tolist() == [3]
    empty, count = xp.zeros(0, np.float32), xp.ones(1, int)
    assert Frame(text, [empty], [out, count], 0).run() is None
    assert xp.asnumpy(count).tolist() == [0]


def test_errors_become_xlas(cuda: Backend) -> None:
    xp = cuda.xp
    x, out = xp.zeros(3, np.float32), xp.zeros(3, np.float32)
    frame = Frame("elsewhere", [x], [out], 0)
    assert frame.run() == 1
    assert frame.errors[0].startswith("LookupError: this process has traced no call elsewhere")
    text = text_of(lambda: gj.inclusive_scan(jnp.ones(3), None, lambda a, b: a + 3.25 * b))
    frame = Frame(text, [x], [xp.zeros(3, np.int32)], 0)
    assert frame.run() == 1
    assert "out has dtype int32" in frame.errors[0]


def test_traced_arrays_belong_to_the_other_layer() -> None:
    with pytest.raises(TypeError, match=r"^reduce: x is traced by JAX.*; call gpualgo.jax instead"):
        jax.jit(lambda x: ga.reduce(x))(jnp.ones(3))
