"""What makes NumPy's functions of ours: one decorator, and the table of all that it has made."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import numpy as np

from gpualgo._base import dtypes, recording
from gpualgo._base.errors import shown
from gpualgo._driver import default_device
from gpualgo._lazy import is_lazy
from gpualgo.numpy._call.arguments import AS_THEY_ARE, NotTaken, array_of

P = ParamSpec("P")
R = TypeVar("R")

_BOOL = np.dtype(np.bool_)
ndarray = np.ndarray
FEW = 1 << 12  # host arrays of fewer elements are NumPy's own to work on, see ADR 26


@dataclass(frozen=True)
class Entry:
    """One function: what it stands for, and what docs/numpy.md says of it."""

    name: str
    function: Callable[..., Any]  # with the path to NumPy for few elements
    native: Callable[..., Any] | None  # NumPy's, where it has one
    passes: str  # over memory, and what is fused
    differs: str  # from NumPy, "" where nothing is known to


TABLE: dict[str, Entry] = {}


def numpys(
    passes: str, *, arrays: int = 1, weak: bool = False, few: int = FEW, few_bools: int = 0,
    differs: str = "", refuses: dict[str, tuple[Any, ...]] | None = None,
    native: Callable[..., Any] | None = None, quick: Callable[[Any], Any] | None = None,
    orders: bool = False,
) -> Callable[[Callable[P, R]], Callable[P, R]]:  # fmt: skip
    """Make a function NumPy's: its name, its docstring, and NumPy itself for few elements.

    Parameters
    ----------
    passes
        How often it goes over memory, for the docs.
    arrays
        How many of the first positional arguments are arrays, which come as `array_of` makes them.
        Behind the first one None, where it is left out, and Python's numbers stay as they are.
    weak
        Python's numbers stay as they are in the first place, too.
    few
        Host arrays of fewer elements in all go to NumPy's function, unless a GPU is named; 0: none.
    few_bools
        The same of an array of bools alone: it is all there is to the call.
    differs
        What is known to differ from NumPy.
    refuses
        Arguments that have no meaning here, each with the values that are taken.
    native
        NumPy's function, where its name is another or this NumPy has none.
    quick
        What such a call returns of one array of NumPy's own class, all else being left out; None:
        nothing, and it goes on as all calls do. It is not asked while calls are recorded.
    orders
        It puts elements in order: NumPy's function gets none that NumPy has no order for.
    """

    def made(fn: Callable[P, R]) -> Callable[P, R]:
        name = fn.__name__
        theirs = native if native is not None else getattr(np, name, None)
        parameters = inspect.signature(fn).parameters.values()
        # Those that have no name to be given by have none here.
        all_names = [one.name for one in parameters]
        names = ["" if one.kind is one.POSITIONAL_ONLY else one.name for one in parameters]
        place_of_out = names.index("out") if "out" in names else None
        refused = {one: (names.index(one), values) for one, values in (refuses or {}).items()}

        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                if recording.active:
                    recording.refuse_in_graph_of_cpu(name)
                elif quick and len(args) == 1 and not kwargs and type(args[0]) is ndarray:
                    found: Any = quick(args[0])
                    if found is not None:
                        return found
                if len(args) >= arrays > 0 and AS_THEY_ARE.issuperset(map(type, args[:arrays])):
                    if refused and (kwargs or len(args) > arrays):
                        _check_refused(refused, args, kwargs, name)
                    return fn(*args, **kwargs)  # arrays of a GPU, as in most warm calls
                if refused:
                    _check_refused(refused, args, kwargs, name)
                if len(args) < arrays:
                    args, kwargs = _placed(names, arrays, args, kwargs)
                given = list(args)
                size, is_host, is_computed = 0, True, False
                for i in range(min(arrays, len(given))):
                    x = given[i]
                    if type(x) is not np.ndarray or dtypes.name_of(x.dtype) is None:
                        if (i or weak) and (type(x) in _NUMBERS or (i and x is None)):
                            continue
                        x = given[i] = array_of(x, f"{name}: {all_names[i]}")
                        if type(x) is not np.ndarray:
                            is_host = False
                            is_computed = is_computed or is_lazy(x)
                            continue
                    size += x.size
                    is_host = is_host and (not orders or has_order(x.dtype))
                if arrays and is_host and theirs is not None:
                    is_bool = size < few_bools and len(given) == 1 and given[0].dtype == _BOOL
                    if is_few(size, few_bools if is_bool and not kwargs else few):
                        return theirs(*given, **kwargs)
                if is_computed:
                    given, kwargs = _beside_each_other(given, kwargs, name)
                if place_of_out is not None:
                    out = given[place_of_out] if place_of_out < len(given) else kwargs.get("out")
                    if is_swapped(out):
                        return _by_way_of_native(fn, given, kwargs, place_of_out)
                return fn(*given, **kwargs)
            except Exception as error:
                other = told_by(name, error)
                if other is None:
                    raise
                try:
                    raise other from None
                finally:
                    del other  # whose traceback holds this frame, and with it the arguments

        call.__doc__ = _documented(fn, name, theirs, passes, differs)
        call.__module__ = "gpualgo.numpy"
        TABLE[name] = Entry(name, call, theirs, passes, differs)
        return call

    return made


def told_by(name: str, error: Exception) -> Exception | None:
    """Let an error that another function raised within a call begin with the called one's name.

    What cannot be changed is returned as another error, to be raised in its place.
    """
    text = str(error)
    if text.startswith("UFunc.__call__() "):
        error.args = (text.replace("UFunc.__call__", name, 1),)
    teller, colon, rest = text.partition(": ")
    if not colon or teller == name or teller.rpartition(".")[2] not in _tellers():
        return None
    if isinstance(error, np.exceptions.AxisError):  # whose message is not its argument
        if error.axis is None or error.ndim is None:
            return None
        found = np.exceptions.AxisError(error.axis, error.ndim, name)
        return found.with_traceback(error.__traceback__)
    error.args = (f"{name}: {rest}",)
    return None


@functools.cache
def _tellers() -> frozenset[str]:
    """Return the names of functions of this package with which messages begin."""
    from gpualgo import lazy
    from gpualgo._algorithms import ALGORITHMS

    algorithms = (function.__name__ for function in ALGORITHMS)
    return frozenset((*TABLE, *algorithms, *lazy.__all__, "copy", "lazy"))


def of_native(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return ours for a function of NumPy's; None, where there is none."""
    for entry in TABLE.values():
        if entry.native is function or getattr(np, entry.name, None) is function:
            return entry.function
    return None


def is_swapped(out: Any) -> bool:
    """Return whether ``out=`` is of the other byte order, which kernels do not write."""
    return type(out) is np.ndarray and not out.dtype.isnative


def native_of(out: Any) -> Any:
    """Return what ``out=`` of the other byte order holds in this machine's; others as they are."""
    return out.astype(out.dtype.newbyteorder("=")) if is_swapped(out) else out


def _by_way_of_native(
    fn: Callable[..., Any], args: list[Any], kwargs: dict[str, Any], place: int
) -> Any:
    """Call a function with memory of this machine's byte order for an output of the other one."""
    if place < len(args):
        out = args[place]
        made = args[place] = native_of(out)
    else:
        out = kwargs["out"]
        made = native_of(out)
        kwargs = {**kwargs, "out": made}
    fn(*args, **kwargs)
    out[...] = made
    return out


_NUMBERS = frozenset((bool, int, float, complex))


def is_few(size: int, few: int) -> bool:
    """Return whether host arrays of so many elements go to NumPy: tests have their own answer."""
    return size < few and default_device.current() < 0


def has_order(dtype: np.dtype[Any]) -> bool:
    """Return whether NumPy has our order of a dtype: around NaN it leaves bfloat16 in none."""
    return dtype.kind != "V"


def _placed(
    names: list[str], arrays: int, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments with the arrays that were given by name in their places."""
    for name in names[len(args) : arrays]:
        if name not in kwargs:
            break
        kwargs = dict(kwargs)
        args = (*args, kwargs.pop(name))
    return args, kwargs


def _beside_each_other(
    given: list[Any], kwargs: dict[str, Any], name: str
) -> tuple[list[Any], dict[str, Any]]:
    """Return arguments, of which lazy arrays that read no array are where the others are."""
    from gpualgo._lazy.combining import place_lazy

    found = place_lazy((*given, *kwargs.values()), (), name)
    return list(found[: len(given)]), dict(zip(kwargs, found[len(given) :], strict=True))


def _check_refused(
    refused: dict[str, tuple[int, tuple[Any, ...]]], args: tuple[Any, ...],
    kwargs: dict[str, Any], name: str,
) -> None:  # fmt: skip
    for option, (place, taken) in refused.items():
        value = args[place] if place < len(args) else kwargs.get(option, taken[0])
        if value is taken[0]:
            continue
        if not any(value is one or (type(value) is type(one) and value == one) for one in taken):
            raise NotTaken(
                f"{name}: {option}={shown(value)} is not possible here; leave it out, or use "
                f"numpy.{name}"
            )


_SHARED = """
    Arguments and results are those of `numpy.{name}`. Arrays are NumPy's, CuPy's, PyTorch's, lazy
    or anything that `gpualgo.reduce` takes, and of host memory all that `numpy.asarray` makes an
    array of numbers of. Results are in the library of the arrays; device arrays are returned
    without waiting for them where the result's length does not depend on the data.

    Raises
    ------
    TypeError, ValueError, numpy.exceptions.AxisError
        As `numpy.{name}`; TypeError for dtypes that have no kernel.

    Notes
    -----
    {passes}.{differs} Few elements in host memory are left to NumPy. The same input gives the same
    bits on each backend. See docs/numpy.md.
"""


def _documented(fn: Callable[..., Any], name: str, native: Any, passes: str, differs: str) -> str:
    """Return a docstring: the function's own first line and examples, and what all have."""
    first, _, rest = inspect.cleandoc(fn.__doc__ or "").partition("\n")
    known = name if native is not None else getattr(fn, "like", name)
    told = f" Differs from NumPy: {differs}." if differs else ""
    shared = inspect.cleandoc(_SHARED.format(name=known, passes=passes, differs=told))
    parts = (first, shared, rest.strip())
    return "\n\n".join(part for part in parts if part) + "\n"
