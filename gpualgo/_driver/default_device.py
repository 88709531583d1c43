"""The default device for host arrays: the environment's, a `with` block's, or "auto"."""

from __future__ import annotations

import inspect
import os
import re
import warnings
from contextlib import AbstractContextManager, ContextDecorator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty

CPU = -1  # device numbers are CUDA ordinals, or this
AUTO = -2  # no device: a GPU exists and a table decides each call (`_pipeline/auto.py`)

chosen: ContextVar[tuple[Fixed, ...]] = ContextVar("gpualgo_default_device", default=())
_NOTHING = "{0} has no effect outside a `with` statement; write `with {0}:`"
_NAME = "GPUALGO_DEVICE"
_environ: Any = os.environ
DEVICE_KEY = _environ.encodekey(_NAME) if hasattr(_environ, "encodekey") else _NAME
_RUN_LATER = inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction
# Parsed values of GPUALGO_DEVICE, by the raw value.
_from_environment: dict[bytes | str | None, int] = {}


class WithBlock:
    """Warns on destruction if the `with` block was never entered."""

    is_entered = True  # until __init__, which an interrupt may end

    def __init__(self, shown: str) -> None:
        """`shown`: the call that created it, for the message."""
        self.is_entered = False
        self._shown = shown

    def __del__(self) -> None:
        if not self.is_entered:
            warnings.warn(_NOTHING.format(self._shown), RuntimeWarning, stacklevel=2)


class Fixed(AbstractContextManager[None]):
    """A `with` block that fixes the device of host arrays, for a stated reason."""

    def __init__(self, number: int, reason: str) -> None:
        self.number, self.reason = number, reason

    def __enter__(self) -> None:
        chosen.set((*chosen.get(), self))

    def __exit__(self, *exc: object) -> None:
        # Blocks in generators may end in any order, and in another context than they began in.
        stack = list(chosen.get())
        if self in stack:
            stack.reverse()
            stack.remove(self)
            chosen.set(tuple(reversed(stack)))


class _DefaultDevice(Fixed, WithBlock, ContextDecorator):
    def __init__(self, device: str, number: int) -> None:
        reason = "" if device == "auto" else f"chosen by gpualgo.default_device({device!r})"
        Fixed.__init__(self, number, reason)
        WithBlock.__init__(self, f"gpualgo.default_device({device!r})")

    def __enter__(self) -> None:
        self.is_entered = True
        super().__enter__()

    def __call__(self, function: Any) -> Any:
        self.is_entered = True  # each call enters it
        if any(is_one(function) for is_one in _RUN_LATER):
            raise TypeError(
                f"default_device: {function.__qualname__} is a coroutine or generator, whose body "
                "runs after the call; write a `with` block in it"
            )
        return super().__call__(function)

    def _recreate_cm(self) -> Fixed:  # type: ignore[override]
        return Fixed(self.number, self.reason)


def default_device(device: ty.DefaultDevice) -> _DefaultDevice:
    """Run host arrays on ``"cpu"``, ``"cuda"``, ``"cuda:1"`` or ``"auto"`` in a ``with`` block.

    ``"auto"`` is the default: the CPU if there is no GPU, else the device that a fixed table gives
    for the algorithm, the sizes and the dtypes; `gpualgo.explain` shows which. The environment
    variable ``GPUALGO_DEVICE`` sets the default of a process. Device arrays are not affected: they
    run on their own device.

    The block applies to the current thread or task, to tasks started within it, and to functions
    that it passes to `asyncio.to_thread`; not to other threads. If a generator yields within the
    block, it also applies to the generator's caller.

    Raises
    ------
    ValueError
        The name is unknown.
    NoDeviceError
        The named GPU cannot be used; it is never replaced by the CPU.

    Notes
    -----
    Both errors are raised by the call, before the block begins. A call without ``with`` has no
    effect and gives a RuntimeWarning. The result can also decorate functions; not coroutines and
    generators (TypeError), whose bodies run later.

    On one device the same input gives the same bits. The CPU and a GPU group floats differently, so
    with ``"auto"`` the last bits of a sum may differ between machines with and without a GPU; name
    a device to avoid that.

    See https://github.com/gpualgo/gpualgo/blob/main/docs/devices.md.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> with ga.default_device("cpu"):
    ...     int(ga.reduce(np.arange(5)))
    10
    """
    return _DefaultDevice(device, _parse_default(device, "default_device"))


def parse(name: str, where: str, known: str = "'cpu', 'cuda' or 'cuda:1'") -> int:
    """Return the device number of a name; raise NoDeviceError if the GPU does not exist."""
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
    """Return the device number for host arrays, or AUTO."""
    entered = chosen.get()
    if entered:
        return entered[-1].number
    environ: Any = os.environ
    try:  # ten times as fast as os.environ.get
        raw = environ._data.get(DEVICE_KEY)
    except AttributeError:  # another Python implementation, or os.environ was replaced
        raw = environ.get(_NAME)
    try:
        return _from_environment[raw]
    except KeyError:  # parse the value read above: another thread may have changed it
        name = environ.decodevalue(raw) if isinstance(raw, bytes) else raw
        number = _parse_default(name or "auto", _NAME)
    _from_environment[raw] = number
    return number


def of_streams() -> int:
    """Return the GPU for stream= of calls on host arrays; CPU if they take no streams."""
    number = current()
    return 0 if number == AUTO else number


def why() -> str:
    entered, environment = chosen.get(), os.environ.get("GPUALGO_DEVICE", "")
    if entered and entered[-1].reason:
        return entered[-1].reason
    if not entered and environment not in ("", "auto"):
        return f"chosen by GPUALGO_DEVICE={environment} in the environment"
    return "the default device is 'auto', and there is no GPU that can be used"


def name_of(number: int) -> str:
    return "cpu" if number == CPU else f"cuda:{number}"


def _parse_default(name: str, where: str) -> int:
    if name != "auto":
        return parse(name, where, "'auto', 'cpu', 'cuda' or 'cuda:1'")
    from gpualgo._driver import driver

    return AUTO if driver.is_installed() and driver.device_count() > 0 else CPU
