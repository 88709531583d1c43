"""XLA's foreign function interface: XLA calls one Python function for each call of gpualgo.

The C callback is made by ctypes; the structures are those of ``xla/ffi/api/c_api.h``, which jaxlib
ships. A call in an XLA program has one attribute, the text of what it computes; `_calls` has the
function and its arguments for each text.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import numpy as np

import gpualgo as ga
from gpualgo._api.derivatives import compose, compose_pairs
from gpualgo._arrays.device_array import DeviceArray
from gpualgo._base import dtypes, recording
from gpualgo._base.strides import dense_strides
from gpualgo._driver.default_device import CPU, Fixed
from gpualgo._driver.device import device_of
from gpualgo._operators.operator import Operator

_TARGET = "gpualgo"
_VERSION = 0, 3  # of the interface: XLA refuses it if it no longer supports it
_METADATA = 1  # the type of an extension
_STRING = 4  # the type of an attribute
_CANCELLED, _INVALID_ARGUMENT, _INTERNAL = 1, 3, 13  # codes of errors

# XLA_FFI_DataType -> dtype. gpualgo supports no others.
_DTYPES = {
    1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8", 7: "uint16", 8: "uint32",
    9: "uint64", 10: "float16", 11: "float32", 12: "float64", 15: "complex64", 16: "bfloat16",
    18: "complex128",
}  # fmt: skip


def _structure(name: str, has_head: bool = True, /, **fields: Any) -> Any:
    head = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p)]
    items = [*head, *fields.items()] if has_head else list(fields.items())
    return type(name, (ctypes.Structure,), {"_fields_": items})


_Pointers = ctypes.POINTER(ctypes.c_void_p)
_Version = _structure("ApiVersion", major=ctypes.c_int, minor=ctypes.c_int)
_Api = _structure(
    "Api", version=_Version, internal=ctypes.c_void_p, error_create=ctypes.c_void_p,
    error_get=ctypes.c_void_p, error_destroy=ctypes.c_void_p, handler_register=ctypes.c_void_p,
    stream_get=ctypes.c_void_p,
)  # fmt: skip
_Buffer = _structure(
    "Buffer", dtype=ctypes.c_int, data=ctypes.c_void_p, rank=ctypes.c_int64,
    dims=ctypes.POINTER(ctypes.c_int64),
)  # fmt: skip
_Buffers = _structure(  # arguments or results
    "Buffers", size=ctypes.c_int64, types=ctypes.c_void_p, items=_Pointers
)
_Text = _structure("ByteSpan", False, start=ctypes.c_void_p, length=ctypes.c_size_t)
_Attributes = _structure(
    "Attributes", size=ctypes.c_int64, types=ctypes.POINTER(ctypes.c_int), names=_Pointers,
    items=_Pointers,
)  # fmt: skip
_Frame = _structure(
    "CallFrame", api=ctypes.POINTER(_Api), context=ctypes.c_void_p, stage=ctypes.c_int,
    arguments=_Buffers, results=_Buffers, attributes=_Attributes,
)  # fmt: skip
_Metadata = _structure(
    "Metadata", False, struct_size=ctypes.c_size_t, version=_Version, traits=ctypes.c_uint32
)
_Extension = _structure(
    "Extension", False, struct_size=ctypes.c_size_t, kind=ctypes.c_int, next=ctypes.c_void_p,
    metadata=ctypes.POINTER(_Metadata),
)  # fmt: skip
_ErrorArguments = _structure("ErrorArguments", message=ctypes.c_char_p, code=ctypes.c_int)
_StreamArguments = _structure("StreamArguments", context=ctypes.c_void_p, stream=ctypes.c_void_p)

_Handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Frame))
_Function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)  # of the API: arguments -> error
_memory = ctypes.pythonapi.PyMemoryView_FromMemory
_memory.restype = ctypes.py_object
_memory.argtypes = ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int
_READ, _WRITE = 0x100, 0x200  # flags of _memory


# --- The table of calls.


class _Call(NamedTuple):
    name: str
    args: tuple[Any, ...]
    options: dict[str, Any]
    ndim: int  # of the first result without batch axes


# By text. Entries are never removed: a compiled program may run at any time. There is one for each
# distinct call that was traced, and XLA keeps a program for each of these.
_calls: dict[str, _Call] = {}
_LONGEST_TEXT = 1000
_MAX_INT32 = (1 << 31) - 1


def call(
    name: str, arrays: Sequence[Any], results: Sequence[tuple[Any, Any]], *args: Any, **options: Any
) -> tuple[jax.Array, ...]:
    """Return what ``gpualgo.<name>(*arrays, *args, **options)`` writes, computed by XLA.

    `results` has the shapes and dtypes of results; batch axes come first. Without jax's 64-bit mode
    results of 64 bits are converted to 32. Equal arguments give equal texts, and so equal programs,
    in every process. Results have no gradient but that of `differentiable`.
    """
    items = ", ".join([_text_of(args), *(f"{key}={_text_of(options[key])}" for key in options)])
    if len(items) > _LONGEST_TEXT:
        items = hashlib.sha256(items.encode()).hexdigest()
    ndim = len(results[0][0])
    text = f"{name}({items}) in {ndim}-d"
    _calls.setdefault(text, _Call(name, args, options, ndim))
    if not jax.config.jax_enable_x64 and any(x.size > _MAX_INT32 for x in arrays):
        raise ValueError(
            f"{name}: arrays of more than {_MAX_INT32} elements have indices and counts that 32 "
            "bits do not hold; set jax_enable_x64"
        )
    wanted = tuple(jax.ShapeDtypeStruct(shape, np.dtype(dtype)) for shape, dtype in results)
    arrays = vary_alike(*map(jax.lax.stop_gradient, arrays))
    found = jax.ffi.ffi_call(_TARGET, wanted, vmap_method="expand_dims")(*arrays, call=text)
    found = [x.astype(jax.dtypes.canonicalize_dtype(x.dtype)) for x in found]
    return tuple(vary_alike(*found, arrays[0])[:-1])


def vary_alike(*arrays: Any) -> list[Any]:
    """Return arrays that vary along the same axes of `jax.shard_map`."""
    varying = [jax.typeof(x).mat.varying for x in arrays]
    missing = [tuple(frozenset().union(*varying) - axes) for axes in varying]
    return [
        jax.lax.pcast(x, axes, to="varying") if axes else x
        for x, axes in zip(arrays, missing, strict=True)
    ]


def _text_of(value: Any) -> str:
    """Return the text of an argument: an operator's is that of its code and captured numbers."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_text_of, value))})"
    if isinstance(value, Operator):
        commutes = " commutative" if value.commutative else ""
        return f"<{value.digest} {value.words.hex()} {value.identity!r}{commutes}>"
    return repr(value)


# --- The calls that XLA makes.


def _run(found: _Call, ins: list[Any], outs: list[Any], stream: int | None) -> None:
    """Write the results of a call, without or with batch axes, to the arrays `outs`."""
    name, args, options = found.name, found.args, {**found.options, "stream": stream}
    if name in ("reduce_by_key", "select"):
        options["out_count"] = outs.pop()
    count = options.pop("count", 1)  # of the arrays whose elements are tuples
    if count > 1:
        ins = [tuple(ins[:count]), *ins[count:]]
    options["out"] = outs[0] if len(outs) == 1 else tuple(outs)
    if name == "linear_recurrence":
        op = compose if len(ins) == 2 else compose_pairs
        ga.inclusive_scan(tuple(ins), None, op, **options)
    elif name == "transform":
        ga.transform(*args, *ins, **options)
    elif name == "histogram":  # x and, if they are arrays, edges and weights
        bins = ins[1] if options["bins"] is None else options["bins"]
        weights = ins[-1] if options.pop("has_weights") else None
        ga.histogram(ins[0], **{**options, "bins": bins, "weights": weights})
    else:
        getattr(ga, name)(*ins, *args, **options)


# Those that take the batch as axes of their arrays; others run for each element of the batch.
_BATCHED = {
    "argsort", "exclusive_scan", "inclusive_scan", "linear_recurrence", "reduce", "sort", "top_k",
    "transform",
}  # fmt: skip


def _handle(platform: str, frame_address: Any) -> int | None:
    """Run the call of a frame; return None, or the address of an error."""
    frame = frame_address.contents
    try:
        if frame.extension_start:
            extension = ctypes.cast(frame.extension_start, ctypes.POINTER(_Extension)).contents
            if extension.kind == _METADATA:  # XLA asks for it at registration
                version = extension.metadata.contents.version
                version.struct_size = ctypes.sizeof(_Version)
                version.major, version.minor = _VERSION
                extension.metadata.contents.traits = 0
                return None
        stream = None if platform == "cpu" else _stream_of(frame)
        fixed = Fixed(CPU, "jax runs the program on its CPU device")
        with recording.suspended(), fixed, _with_subnormals():
            _run_frame(frame, stream)
    except BaseException as error:
        return _error(frame, error)
    return None


try:
    _libm: Any = ctypes.CDLL("libm.so.6")  # glibc
except OSError:
    _libm = None


@contextmanager
def _with_subnormals() -> Iterator[None]:
    """Compute with subnormal numbers, which XLA's threads take for zero."""
    if _libm is None:
        yield
        return
    saved = ctypes.create_string_buffer(64)  # a fenv_t has 32 bytes on x86-64, 8 on Arm
    _libm.fegetenv(saved)
    _libm.fesetenv(ctypes.c_void_p(-1))  # the default one
    try:
        yield
    finally:
        _libm.fesetenv(saved)


def _run_frame(frame: Any, stream: int | None) -> None:
    """Run the call of a frame, on the CPU if there is no stream."""
    attributes = frame.attributes
    if attributes.size != 1 or attributes.types[0] != _STRING:
        raise ValueError(f"a call of {_TARGET!r} has one attribute, call=; use gpualgo.jax")
    span = ctypes.cast(attributes.items[0], ctypes.POINTER(_Text)).contents
    text = ctypes.string_at(span.start, span.length).decode()
    found = _calls.get(text)
    if found is None:
        raise LookupError(
            f"this process has traced no call {text}; trace the function here, as operators are "
            "not part of an exported program"
        )
    arguments, results = (
        [
            ctypes.cast(buffers.items[i], ctypes.POINTER(_Buffer)).contents
            for i in range(buffers.size)
        ]
        for buffers in (frame.arguments, frame.results)
    )
    batch = tuple(results[0].dims[: results[0].rank - found.ndim])
    gpu = None
    if stream is not None:
        used = (buffer.data for buffer in (*arguments, *results) if buffer.data)
        gpu = device_of(next(used, 0)), stream
    inputs = [_array(buffer, batch, _READ, gpu) for buffer in arguments]
    outputs = [_array(buffer, batch, _WRITE, gpu) for buffer in results]
    if found.name in _BATCHED or not batch:
        _run(found, inputs, outputs, stream)
        return
    for index in np.ndindex(batch):
        _run(found, [x[*index, ...] for x in inputs], [x[*index, ...] for x in outputs], stream)


def _array(buffer: Any, batch: tuple[int, ...], access: int, gpu: tuple[int, int] | None) -> Any:
    """Return an array on XLA's memory, which is valid in the order of its stream.

    An input that all of the batch share has strides of 0. `gpu` has an ordinal and the stream.
    """
    dtype = _DTYPES.get(buffer.dtype)
    if dtype is None:
        raise TypeError(f"gpualgo has no dtype for XLA's type {buffer.dtype}")
    element = dtypes.from_name(dtype)
    own = tuple(buffer.dims[: buffer.rank])
    shape = batch + own[len(batch) :]
    strides = tuple(
        0 if n == 1 != m else s
        for n, m, s in zip(own, shape, dense_strides(own, element.itemsize), strict=True)
    )
    if gpu is not None:
        address, readonly = buffer.data or 0, access == _READ
        return DeviceArray(address, shape, strides, element, *gpu, readonly, None)
    nbytes = math.prod(own) * element.itemsize
    if not nbytes:
        return np.empty(shape, element)
    memory = _memory(buffer.data, nbytes, access)
    return np.ndarray(shape, element, buffer=memory, strides=strides)


def _stream_of(frame: Any) -> int:
    """Return the CUDA stream that XLA runs the call on."""
    arguments = _StreamArguments(struct_size=ctypes.sizeof(_StreamArguments), context=frame.context)
    error = _Function(frame.api.contents.stream_get)(ctypes.addressof(arguments))
    if error:
        raise RuntimeError("XLA gives no CUDA stream for this call")
    return int(arguments.stream or 0)


def _error(frame: Any, error: BaseException) -> int:
    """Return the address of an XLA error with the message of an exception."""
    code = _INVALID_ARGUMENT if isinstance(error, TypeError | ValueError) else _INTERNAL
    if isinstance(error, KeyboardInterrupt):
        code = _CANCELLED
    message = f"{type(error).__name__}: {error}".encode(errors="replace")
    arguments = _ErrorArguments(
        struct_size=ctypes.sizeof(_ErrorArguments), message=message, code=code
    )
    return int(_Function(frame.api.contents.error_create)(ctypes.addressof(arguments)))


# Kept alive for as long as XLA may call them.
_handlers = {
    platform: _Handler(functools.partial(_handle, platform)) for platform in ("cpu", "CUDA")
}
for _platform, _handler in _handlers.items():
    jax.ffi.register_ffi_target(
        _TARGET, jax.ffi.pycapsule(_handler), platform=_platform, api_version=1
    )
