"""stream= -> the integer handle of a CUDA stream."""

from __future__ import annotations

from typing import Any


def handle_of(stream: Any, where: str) -> int:
    """Return the handle of an int, a `__cuda_stream__` object or a library's stream."""
    if isinstance(stream, int) and not isinstance(stream, bool):
        if stream < 0:
            raise ValueError(f"{where}: stream handle {stream} is negative; pass a stream object")
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return int((protocol() if callable(protocol) else protocol)[1])
    for name in ("cuda_stream", "ptr", "handle"):  # torch, CuPy, numba
        value = getattr(stream, name, None)
        if value is not None:
            return int(getattr(value, "value", value) or 0)
    raise TypeError(
        f"{where}: stream must be a CUDA stream or its integer handle, got {type(stream).__name__}"
    )
