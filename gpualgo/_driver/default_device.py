"""Where NumPy arrays are processed: where a table says if there is a GPU, else the CPU."""

from __future__ import annotations

import inspect
import os
import re
import warnings
from contextlib import AbstractContextManager, ContextDecorator
from contextvars import ContextVar
from typing import Any

CPU = -1  # device numbers: CUDA ordinals, and this
AUTO = -2  # no device: there is a GPU, and a table decides for each call (`_pipeline/auto.py`)

_chosen: ContextVar[tuple[Fixed, ...]] = ContextVar("gpualgo_default_device", default=())
_NOTHING = "{0} is no statement of its own and has changed nothing; write `with {0}:`"
_NAME = "GPUALGO_DEVICE"
_environ: Any = os.environ
_KEY = _environ.encodekey(_NAME) if hasattr(_environ, "encodekey") else _NAME
_RUN_LATER = inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction
_from_environment: dict[bytes | str | None, int] = {}  # by what it holds, as it holds it


class WithBlock:
    """What warns when it goes if it was never entered."""

    def __init__(self, shown: str) -> None:
        """`shown`: the call that made it."""
        self.is_entered = False
        self._shown = shown

    def __del__(self) -> None:
        if not self.is_entered:
            warnings.warn(_NOTHING.format(self._shown), RuntimeWarning, stacklevel=2)


class Fixed(AbstractContextManager[None]):
    """A device on which host arrays run within a block, for some reason."""

    def __init__(self, number: int, reason: str) -> None:
        self.number, self.reason = number, reason

    def __enter__(self) -> None:
        _chosen.set((*_chosen.get(), self))

    def __exit__(self, *exc: object) -> None:
        # Blocks of generators may end in any order, and in a context where they did not begin.
        left = list(_chosen.get())
        if self in left:
            left.reverse()
            left.remove(self)
            _chosen.set(tuple(reversed(left)))


class _DefaultDevice(Fixed, WithBlock, ContextDecorator):
    def __init__(self, device: str, number: int) -> None:
        reason = "" if device == "auto" else f"gpualgo.default_device({device!r}) says so"
        Fixed.__init__(self, number, reason)
        WithBlock.__init__(self, f"gpualgo.default_device({device!r})")

    def __enter__(self) -> None:
        self.is_entered = True
        super().__enter__()

    def __call__(self, function: Any) -> Any:
        self.is_entered = True  # by each call
        if any(is_one(function) for is_one in _RUN_LATER):
            raise TypeError(
                f"default_device: {function.__qualname__} is a coroutine or generator, whose body "
                "runs after the call; write a `with` block in it"
            )
        return super().__call__(function)

    def _recreate_cm(self) -> Fixed:  # type: ignore[override]
        return Fixed(self.number, self.reason)


def default_device(device: str) -> _DefaultDevice:
    """Run host arrays on ``"cpu"``, ``"cuda"``, ``"cuda:1"`` or ``"auto"`` in a ``with`` block.

    ``"auto"`` is what holds without it: without a GPU the CPU, with one whichever a fixed table
    names for the algorithm, the sizes and the dtypes, see docs/devices.md and `gpualgo.explain`.
    The choice holds for the current thread or task, for tasks that it starts meanwhile, and for
    functions that it hands to `asyncio.to_thread`; not for other threads. A generator that yields
    within the block makes it for its caller, too. Device arrays are not affected: they run where
    they live. The environment variable ``GPUALGO_DEVICE`` sets the same for a process.

    Raises
    ------
    ValueError
        The name is none of these.
    NoDeviceError
        A GPU is named and cannot be used; it is never replaced by the CPU.

    Notes
    -----
    Both errors come at once, not when the block begins. What is called without ``with`` changes
    nothing, which a RuntimeWarning says. The result decorates functions as well, but for coroutines
    and generators (TypeError): their bodies run later.

    On one device the same input gives the same bits. The CPU and a GPU associate floats
    differently, so that with ``"auto"`` a sum may differ in its last bits from that of a machine
    without a GPU; name a device to have one answer wherever that device is.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> with ga.default_device("cpu"):
    ...     int(ga.reduce(np.arange(5)))
    10
    """
    return _DefaultDevice(device, _parse_default(device, "default_device"))


def fixed(number: int, reason: str) -> Fixed:
    """Run host arrays on a device, for some reason, within a ``with`` block."""
    return Fixed(number, reason)


def parse(name: str, where: str, known: str = "'cpu', 'cuda' or 'cuda:1'") -> int:
    """Return the device number of a name; raise NoDeviceError for a GPU that is not there."""
    match = re.fullmatch(r"cpu|cuda(?::(\d+))?", name) if isinstance(name, str) else None
    if match is None:
        raise ValueError(f"{where}: unknown device {name!r}; use {known}")
    if name == "cpu":
        return CPU
    from gpualgo._driver import driver

    ordinal = int(match.group(1) or 0)
    driver.require_device(ordinal)
    return ordinal


def current() -> int:
    """Return the device number on which host arrays run; or AUTO, on which none runs."""
    chosen = _chosen.get()
    if chosen:
        return chosen[-1].number
    environ: Any = os.environ
    try:  # in a tenth of the time that the mapping takes
        told = environ._data.get(_KEY)
    except AttributeError:  # another Python's, or another mapping in its place
        told = environ.get(_NAME)
    try:
        return _from_environment[told]
    except KeyError:  # parsed as it was told: another thread may have set another one by now
        name = environ.decodevalue(told) if isinstance(told, bytes) else told
        found = _parse_default(name or "auto", _NAME)
    _from_environment[told] = found
    return found


def of_streams() -> int:
    """Return the GPU whose streams calls on host arrays take; CPU if they take none."""
    found = current()
    return 0 if found == AUTO else found


def why() -> str:
    """Return who has decided on the default device."""
    chosen, environment = _chosen.get(), os.environ.get("GPUALGO_DEVICE", "")
    if chosen and chosen[-1].reason:
        return chosen[-1].reason
    if not chosen and environment not in ("", "auto"):
        return f"GPUALGO_DEVICE={environment} in the environment says so"
    return "the default device is 'auto', and there is no GPU that can be used"


def name_of(number: int) -> str:
    """Return the name of a device number."""
    return "cpu" if number == CPU else f"cuda:{number}"


def _parse_default(name: str, where: str) -> int:
    if name != "auto":
        return parse(name, where, "'auto', 'cpu', 'cuda' or 'cuda:1'")
    from gpualgo._driver import driver

    return AUTO if driver.is_installed() and driver.device_count() > 0 else CPU
