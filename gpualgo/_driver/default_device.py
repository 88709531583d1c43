"""Where NumPy arrays are processed: the GPU where there is one, else the CPU."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

CPU = -1  # device numbers: CUDA ordinals, and this

_chosen: ContextVar[int | None] = ContextVar("gpualgo_default_device", default=None)
_from_environment: dict[str, int] = {}


@contextmanager
def default_device(device: str) -> Iterator[None]:
    """Run host arrays on ``"cpu"``, ``"cuda"`` or ``"cuda:1"`` within a ``with`` block.

    The choice holds for the current thread or task. Device arrays are not affected: they run
    where they live. The environment variable ``GPUALGO_DEVICE`` sets the same for a process.

    Raises
    ------
    ValueError
        The name is none of these.
    NoDeviceError
        A GPU is named and cannot be used; it is never replaced by the CPU.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> with ga.default_device("cpu"):
    ...     int(ga.reduce(np.arange(5)))
    10
    """
    token = _chosen.set(parse(device, "default_device"))
    try:
        yield
    finally:
        _chosen.reset(token)


def parse(name: str, where: str) -> int:
    """Return the device number of a name; raise NoDeviceError for a GPU that is not there."""
    match = re.fullmatch(r"cpu|cuda(?::(\d+))?", name) if isinstance(name, str) else None
    if match is None:
        raise ValueError(f"{where}: unknown device {name!r}; use 'cpu', 'cuda' or 'cuda:1'")
    if name == "cpu":
        return CPU
    from gpualgo._driver import driver

    ordinal = int(match.group(1) or 0)
    driver.require_device(ordinal)
    return ordinal


def current() -> int:
    """Return the device number on which host arrays run."""
    chosen = _chosen.get()
    if chosen is not None:
        return chosen
    name = os.environ.get("GPUALGO_DEVICE", "")
    found = _from_environment.get(name)
    if found is None:
        found = parse(name, "GPUALGO_DEVICE") if name else _detect()
        _from_environment[name] = found
    return found


def _detect() -> int:
    from gpualgo._driver import driver

    return 0 if driver.is_installed() and driver.device_count() > 0 else CPU
