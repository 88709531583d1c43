"""Numbers of the CUDA driver's interface."""

from __future__ import annotations

SUCCESS = 0
INVALID_VALUE = 1
OUT_OF_MEMORY = 2
INVALID_CONTEXT = 201
INVALID_HANDLE = 400
NOT_FOUND = 500
NOT_READY = 600
PEER_ACCESS_ALREADY_ENABLED = 704
LAUNCH_FAILED = 719
COOPERATIVE_LAUNCH_TOO_LARGE = 720
NOT_SUPPORTED = 801
CAPTURE_UNSUPPORTED = 900
CAPTURE_INVALIDATED = 901
CAPTURE_ISOLATION = 905
CAPTURE_IMPLICIT = 906

NAMES = {
    INVALID_VALUE: "CUDA_ERROR_INVALID_VALUE",
    OUT_OF_MEMORY: "CUDA_ERROR_OUT_OF_MEMORY",
    INVALID_CONTEXT: "CUDA_ERROR_INVALID_CONTEXT",
    INVALID_HANDLE: "CUDA_ERROR_INVALID_HANDLE",
    NOT_FOUND: "CUDA_ERROR_NOT_FOUND",
    NOT_READY: "CUDA_ERROR_NOT_READY",
    PEER_ACCESS_ALREADY_ENABLED: "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
    LAUNCH_FAILED: "CUDA_ERROR_LAUNCH_FAILED",
    COOPERATIVE_LAUNCH_TOO_LARGE: "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
    NOT_SUPPORTED: "CUDA_ERROR_NOT_SUPPORTED",
    CAPTURE_UNSUPPORTED: "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
    CAPTURE_INVALIDATED: "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
    CAPTURE_ISOLATION: "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
    CAPTURE_IMPLICIT: "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
}


class Failed(Exception):
    """A call that gives an error code instead of values."""

    def __init__(self, code: int) -> None:
        super().__init__(NAMES.get(code, str(code)))
        self.code = code


class _Results:
    """The enumeration of results."""

    def __init__(self) -> None:
        for code, name in NAMES.items():
            setattr(self, name, code)


RESULTS = _Results()


class Names:
    """An enumeration of which only the names count."""

    def __getattr__(self, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return name
