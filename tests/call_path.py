"""What one call of the package goes through: files, calls of Python functions, frames."""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import gpualgo as ga

PACKAGE = os.path.dirname(ga.__file__) + os.sep
N = 1_000


def path_of(call: Callable[[], Any]) -> dict[str, int]:
    """Return a call's numbers: package files and functions entered, deepest stack, all calls.

    A frame is counted when it begins or, being a generator's, goes on. Calls of C are not counted.
    """
    files: set[str] = set()
    calls = depth = 0
    total = -1  # without the call of `call` itself

    def note(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal calls, depth, total
        total += 1
        if frame.f_code.co_filename.startswith(PACKAGE):
            files.add(frame.f_code.co_filename)
            calls += 1
            depth = max(depth, _depth(frame))

    gc.collect()
    gc.disable()  # what it would finalize is not of this call
    before = sys.gettrace()
    sys.settrace(note)
    try:
        call()
    finally:
        sys.settrace(before)
        gc.enable()
    return {"files": len(files), "calls": calls, "depth": depth, "all": total}


def _depth(frame: FrameType | None) -> int:
    """Return how many frames of the package are on the stack."""
    found = 0
    while frame is not None:
        found += frame.f_code.co_filename.startswith(PACKAGE)
        frame = frame.f_back
    return found


def _watch() -> dict[str, int]:
    """Count from now on how often sources are opened to be hashed, and asked for their state."""
    looks = {"opened": 0, "asked": 0}

    def note(event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and str(args[0]).startswith(PACKAGE):
            looks["opened"] += "importlib" not in sys._getframe(1).f_code.co_filename

    def stat(path: Any, *args: Any, stat: Any = os.stat, **kwargs: Any) -> os.stat_result:
        looks["asked"] += str(path).startswith(PACKAGE)
        found: os.stat_result = stat(path, *args, **kwargs)
        return found

    sys.addaudithook(note)
    os.stat = stat
    return looks


def main() -> None:
    """Print the paths of this process's first reduction on the CPU and of a warm one, as JSON."""
    import numpy as np

    x = np.ones(N)

    def call() -> None:
        assert ga.reduce(x, 0.0, lambda a, b: a + b) == N

    looks = _watch()
    first = {**path_of(call), **looks}
    for _ in range(20):
        call()
    print(json.dumps({"first": first, "warm": path_of(call)}))


if __name__ == "__main__":
    main()
