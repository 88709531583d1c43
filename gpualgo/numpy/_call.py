"""NumPy's interface: the decorator of its functions, their table, and their arguments."""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import numpy as np

from gpualgo import copy
from gpualgo._algorithms.histogram.arguments import to_host
from gpualgo._arrays.view import as_view, view_of
from gpualgo._base import dtypes, recording
from gpualgo._driver import default_device, device, staging
from gpualgo._driver.default_device import CPU
from gpualgo._lazy import is_lazy, operators
from gpualgo._lazy.combining import is_aligned
from gpualgo._pipeline import checks
from gpualgo.lazy import LazyArray, full
from gpualgo.lazy import asarray as lazy_of

# --- Conversion of arguments to arrays that the functions here accept.


class NotTaken(TypeError):
    """NumPy supports the call and this package does not: `wrap` delegates it to NumPy."""

    __module__ = "gpualgo.numpy"


# Array types of GPUs and other libraries seen before, whose arrays need no conversion.
ARRAY_TYPES: set[type] = set()


def array_of(x: Any, where: str) -> Any:
    """Return an argument as a NumPy array, a lazy one, or one of another library."""
    cls = type(x)
    if cls in ARRAY_TYPES:
        return x
    if cls is not np.ndarray:
        if is_lazy(x):
            if x.dtype.names is not None:
                raise NotTaken(f"{where} has tuple elements, which NumPy does not support")
            return x
        if isinstance(x, np.ndarray):
            x = _plain(x, where)
        elif _is_foreign(x):
            view_of(x, where)  # which knows it, or raises
            ARRAY_TYPES.add(cls)
            return x
        elif hasattr(cls, "__array_function__"):
            raise NotTaken(
                f"{where} is a {cls.__module__}.{cls.__qualname__}, which implements NumPy's "
                "functions itself; call those, or pass numpy.asarray(x)"
            )
        elif x is None:
            raise NotTaken(f"{where} is None; pass an array")
        else:
            x = np.asarray(x)
    return _native_numbers(x, where)


def _plain(x: Any, where: str) -> Any:
    """Return a subclass's array as NumPy's own if its class adds no meaning."""
    if isinstance(x, (np.memmap, np.recarray)):
        return x.view(np.ndarray)
    masked = sys.modules.get("numpy.ma")
    if masked is not None and isinstance(x, masked.MaskedArray):
        raise NotTaken(f"{where} is a masked array, whose mask would be lost; use x.filled(value)")
    raise NotTaken(
        f"{where} is a {type(x).__module__}.{type(x).__qualname__}, whose meaning beyond an array "
        "would be lost; pass numpy.asarray(x)"
    )


def _is_foreign(x: Any) -> bool:
    """Return whether x is an array of a GPU or of torch, which algorithms accept."""
    if hasattr(x, "__cuda_array_interface__"):
        return True
    if isinstance(x, np.generic) or not hasattr(x, "__dlpack__"):
        return False
    return not hasattr(x, "__array__") or type(x).__module__.partition(".")[0] == "torch"


def _native_numbers(x: np.ndarray[Any, Any], where: str) -> np.ndarray[Any, Any]:
    dtype = x.dtype
    if dtypes.name_of(dtype) is not None:
        return x
    if not dtype.isnative and dtypes.name_of(dtype.newbyteorder("=")) is not None:
        return x.astype(dtype.newbyteorder("="))
    if dtype.names is not None:
        raise NotTaken(f"{where} has structured dtype {dtype}; pass one of its fields")
    try:
        dtypes.check(dtype, where)
    except TypeError as error:
        raise NotTaken(str(error)) from None
    return x


def is_host(x: Any) -> bool:
    return type(x) is np.ndarray


def is_true(a: Any) -> Any:
    return a != 0


def aligned(x: Any) -> Any:
    """Return an array that kernels can index; an unaligned NumPy array is copied."""
    if isinstance(x, LazyArray):
        return x if all(map(is_aligned, x.leaves)) else copy(x)
    return np.array(x) if type(x) is np.ndarray and not x.flags.aligned else x


def flattened(x: Any) -> Any:
    """Return an array with one axis, lazily unless it is NumPy's."""
    if x.ndim == 1:
        return x
    return x.reshape(-1) if type(x) is np.ndarray else lazy_of(aligned(x)).reshape(-1)


def host_of(x: Any, where: str) -> Any:
    """Return an array or a result as NumPy's; this waits for a GPU."""
    if isinstance(x, (np.ndarray, np.generic)):
        return x
    return to_host(view_of(x, where), None)


# --- The decorator, and the table.

P = ParamSpec("P")
R = TypeVar("R")

ndarray = np.ndarray
UNSET: Any = np._NoValue
BOOL = np.dtype(np.bool_)
# Calls on fewer elements in host arrays go to NumPy (ADR 26): others, what it vectorises, searches.
FEW, FEW_FOR_ONE_PASS, FEW_TO_SEARCH = 1 << 14, 1 << 17, 1 << 12
ALL = sys.maxsize  # of what NumPy computes at any size, as its loops are as fast

# NumPy reduces long rows at memory speed. Results that are not rounded have the bits of here, but
# for zeros and NaN, of which NumPy returns any.
EXACT = "?bBhHiIlLqQfd"  # dtypes that it vectorises
EXACT_BYTES = 1 << 21  # from here on several cores are faster
EXACT_ROW = 64  # elements of the last axis; NumPy is slow for shorter ones


@dataclass(frozen=True)
class Entry:
    """A function of the table and its entry in the manual's page of `gpualgo.numpy`."""

    name: str
    function: Callable[..., Any]  # includes the path to NumPy for few elements
    native: Callable[..., Any] | None  # NumPy's function, if there is one
    differs: str  # known differences from NumPy


TABLE: dict[str, Entry] = {}


def numpy_function(
    passes: str, *rows: tuple[Any, ...], **options: Any
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Give a function NumPy's interface: see `_with_interface`, which takes the arguments.

    Rows make one template several functions that differ in its first arguments: their name, then
    those that the row has. Behind these a row has the line that says what is returned, an example,
    its result, and possibly a dict of its own options.
    """

    def decorate(fn: Callable[P, R]) -> Callable[P, R]:
        if not rows:
            return _with_interface(fn, passes, **options)
        for row in rows:
            row, own = (row[:-1], row[-1]) if type(row[-1]) is dict else (row, {})
            name, *arguments, summary, example, result = row
            one: Any = functools.partial(fn, name, *arguments)
            one.__name__ = one.__qualname__ = name
            one.__module__, one._template = fn.__module__, fn.__qualname__
            written = list(fn.__annotations__.items())[1 + len(arguments) :]
            one.__annotations__ = {key: bool if text == "bool" else Any for key, text in written}
            one.__doc__ = f"{summary}\n\n>>> {example}\n{result}"
            _with_interface(one, **{"passes": passes, **options, **own})
        return fn

    return decorate


def _with_interface(
    fn: Callable[P, R], passes: str, *, arrays: int = 1, weak: bool = False, few: int = FEW,
    exact: str = "", differs: str = "", quick: Callable[[Any], Any] | None = None,
    orders: bool = False,
) -> Callable[P, R]:  # fmt: skip
    """Return a function with NumPy's interface: docstring, NumPy for few elements, table entry.

    The docstring that is written has a line that says what is returned, and examples that use gnp.
    `passes` tells the docs how often it reads memory, `differs` the known differences from NumPy.

    The first positional arguments, `arrays` in number, are converted by `array_of`; None and Python
    numbers after the first one are passed unchanged, if `weak` also as the first. Host arrays of
    fewer elements in total than `few` go to NumPy's function, unless a GPU is selected; so do
    arrays of `exact` dtypes, of fewer than `EXACT_BYTES` in long rows, if nothing else is asked
    than an axis. If it `orders` or sums elements, 16-bit floats do not go to NumPy.

    `quick` is called with a single argument of NumPy's own class, unless calls are recorded. It
    returns the result, or None to continue with the general path.
    """
    name = fn.__name__
    native = getattr(np, name, None)
    parameters = inspect.signature(fn).parameters.values()
    parameter_names = [one.name for one in parameters]
    names = ["" if one.kind is one.POSITIONAL_ONLY else one.name for one in parameters]
    out_index = names.index("out") if "out" in names else None

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if recording.active:
                recording.refuse_in_graph_of_cpu(name)
            elif quick and len(args) == 1 and not kwargs and type(args[0]) is ndarray:
                result: Any = quick(args[0])
                if result is not None:
                    return result
            if len(args) >= arrays > 0 and ARRAY_TYPES.issuperset(map(type, args[:arrays])):
                return fn(*args, **kwargs)  # GPU arrays: most warm calls
            if len(args) < arrays:
                args, kwargs = _positional_arrays(names, arrays, args, kwargs)
            operands = list(args)
            size, is_host, is_computed = 0, True, False
            for i in range(min(arrays, len(operands))):
                x = operands[i]
                if type(x) is not np.ndarray or dtypes.name_of(x.dtype) is None:
                    if (i or weak) and (type(x) in _NUMBERS or (i and x is None)):
                        continue
                    x = operands[i] = array_of(x, f"{name}: {parameter_names[i]}")
                    if type(x) is not np.ndarray:
                        is_host = False
                        is_computed = is_computed or is_lazy(x)
                        continue
                size += x.size
                is_host = is_host and (not orders or has_order(x.dtype))
            if arrays and is_host and native is not None:
                options = dict(zip(names[arrays:], operands[arrays:], strict=False)) | kwargs
                most = min(few, FEW) if "where" in options else few
                if is_few(size, most) and (not options or is_numpys(options, orders)):
                    return native(*operands, **kwargs)
                if exact and is_exact(operands, kwargs, exact):
                    result = native(*operands, **kwargs)
                    if _is_the_first(result):
                        return result
            if is_computed and (len(operands) > 1 or not _NO_ARRAYS.issuperset(kwargs)):
                operands, kwargs = _place_lazy_arrays(operands, kwargs, name)
            if out_index is not None:
                out = operands[out_index] if out_index < len(operands) else kwargs.get("out")
                if is_swapped(out):
                    return _call_with_native_out(fn, operands, kwargs, out_index)
            return fn(*operands, **kwargs)
        except Exception as error:
            renamed = rename_in_message(fn, args, kwargs, error)
            if renamed is None:
                raise
            try:
                raise renamed from None
            finally:
                del renamed  # its traceback holds this frame and the arguments

    call.__doc__ = docstring(fn.__doc__ or "", name, passes, differs)
    call.__module__ = "gpualgo.numpy"
    call.__annotations__ = fn.__annotations__  # which wraps copies before Python 3.14
    TABLE[name] = Entry(name, call, native, differs)
    return call


def rename_in_message(fn: Any, args: Any, kwargs: Any, error: Exception) -> Exception | None:
    """Replace the function's name at the start of an error's message by the called function's.

    The error is changed in place. An error that cannot be changed is returned as a new one, to be
    raised instead.
    """
    name, text = fn.__name__, str(error)
    teller, says_call, reason = text.partition("() ")
    if says_call and teller in (getattr(fn, "_template", ""), "UFunc.__call__"):
        try:  # Python's message is about other parameters
            inspect.signature(fn).bind(*args, **kwargs)
        except TypeError as misfit:
            reason = str(misfit)
        error.args = (f"{name}() {reason}",)
    named, colon, message = text.partition(": ")
    if not colon or named == name or named.rpartition(".")[2] not in _function_names():
        return None
    if isinstance(error, np.exceptions.AxisError):  # its message is built from attributes
        if error.axis is None or error.ndim is None:
            return None
        renamed = np.exceptions.AxisError(error.axis, error.ndim, name)
        return renamed.with_traceback(error.__traceback__)
    error.args = (f"{name}: {message}",)
    return None


@functools.cache
def _function_names() -> frozenset[str]:
    """Return the names of functions of this package with which messages begin."""
    from gpualgo import lazy
    from gpualgo._algorithms import ALGORITHMS

    algorithms = (function.__name__ for function in ALGORITHMS)
    return frozenset((*TABLE, *algorithms, *lazy.__all__, "copy", "lazy"))


def is_swapped(out: Any) -> bool:
    """Return whether ``out=`` has the other byte order, which kernels do not write."""
    return type(out) is np.ndarray and not out.dtype.isnative


def with_native_outs(outs: tuple[Any, ...], call: Callable[..., Any]) -> Any:
    """Return ``call(*outs)``; outputs of the other byte order are replaced, then written."""
    natives = [x.astype(x.dtype.newbyteorder("=")) if is_swapped(x) else x for x in outs]
    result = call(*natives)
    for out, native in zip(outs, natives, strict=True):
        if out is not native:
            out[...] = native
    if len(outs) == 1:
        return result if outs[0] is natives[0] else outs[0]
    return tuple(x if out is None else out for x, out in zip(result, outs, strict=True))


def _call_with_native_out(
    fn: Callable[..., Any], args: list[Any], kwargs: dict[str, Any], index: int
) -> Any:
    given: Any = args if index < len(args) else kwargs
    place: Any = index if given is args else "out"

    def call(native: Any) -> Any:
        given[place] = native
        return fn(*args, **kwargs)

    return with_native_outs((given[place],), call)


_NUMBERS = frozenset((bool, int, float, complex))
_NO_ARRAYS = frozenset(("axis", "dtype", "keepdims", "kind", "stable"))  # options


def is_few(size: int, few: int) -> bool:
    """Return whether host arrays of this size go to NumPy; tests replace this function."""
    return size < few and default_device.current() < 0


def is_numpys(options: dict[str, Any], orders: bool) -> bool:
    """Return whether NumPy's function may take these options.

    Not outputs that are refused here, nor those without axes, past whose end its scans write; nor
    results in 16-bit floats if the function `orders` or sums elements.
    """
    dtype, out = options.get("dtype"), options.get("out")
    try:
        kinds = [np.dtype(one) for one in (dtype, getattr(out, "dtype", None)) if one is not None]
    except TypeError:
        return False
    is_array = out is None or (type(out) is ndarray and out.ndim and dtypes.name_of(out.dtype))
    return bool(is_array) and (not orders or all(map(has_order, kinds)))


def is_exact(operands: list[Any], kwargs: dict[str, Any], exact: str) -> bool:
    """Return whether NumPy reduces an array along no axis or one as here, and as fast."""
    x, *axis = [*operands, kwargs["axis"]] if "axis" in kwargs else operands
    is_plain = len(axis) < 2 and {"axis", "keepdims"}.issuperset(kwargs)
    if not is_plain or type(kwargs.get("keepdims", False)) is not bool:
        return False
    is_plain = not axis or type(axis[0]) in (int, type(None))
    is_fast = is_plain and x.dtype.char in exact and x.shape[-1:] >= (EXACT_ROW,)
    return is_fast and x.flags.c_contiguous and is_few(x.nbytes, EXACT_BYTES)


def _is_the_first(result: Any) -> bool:
    """Return whether results hold no zeros or NaN, of which the first is returned here."""
    return result.dtype.kind != "f" or bool(((result < 0) | (result > 0)).all())


def has_order(dtype: np.dtype[Any]) -> bool:
    """Return whether NumPy sorts and sums a dtype exactly enough.

    Not 16-bit floats: it sorts bfloat16 with NaN, and float16 with AVX-512, wrongly, and the sum of
    300 ones in bfloat16 is 256.
    """
    return dtype.kind != "V" and dtype.char != "e"


def _positional_arrays(
    names: list[str], arrays: int, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments with arrays given by keyword moved to their positions."""
    for name in names[len(args) : arrays]:
        if name not in kwargs:
            break
        kwargs = dict(kwargs)
        args = (*args, kwargs.pop(name))
    return args, kwargs


def _place_lazy_arrays(
    operands: list[Any], kwargs: dict[str, Any], name: str
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments with lazy arrays that read no array placed where the others are."""
    from gpualgo._lazy.combining import place_lazy

    placed = place_lazy((*operands, *kwargs.values()), (), name)
    return list(placed[: len(operands)]), dict(zip(kwargs, placed[len(operands) :], strict=True))


_SHARED = """
    Arguments and results are those of `numpy.{name}`. Arrays are those that `gpualgo.reduce`
    accepts: NumPy's, CuPy's, PyTorch's, lazy ones and others; on the host also everything that
    `numpy.asarray` converts to an array of numbers. Results are in the library of the arrays. For
    device arrays the call does not synchronise, unless the length of the result depends on the
    data.

    Raises
    ------
    TypeError, ValueError, numpy.exceptions.AxisError
        As `numpy.{name}`; TypeError also for unsupported dtypes.

    Notes
    -----
    {passes}.{differs} Small host arrays are delegated to NumPy. The same input gives the same bits
    on each backend. See https://github.com/gpualgo/gpualgo/blob/main/docs/numpy.md.
"""


_EXAMPLES = "Examples\n--------\n>>> import gpualgo.numpy as gnp\n>>> "


def docstring(own: str, name: str, passes: str, differs: str, more: str = "") -> str:
    """Return a docstring: a function's first line and examples, and the shared text."""
    summary, _, examples = inspect.cleandoc(own).partition("\n")
    examples = examples.replace(">>> ", _EXAMPLES, 1)
    differences = f" Differs from NumPy: {differs}." if differs else ""
    shared = inspect.cleandoc(_SHARED.format(name=name, passes=passes, differs=differences))
    parts = (summary, more, shared, examples.strip())
    return "\n\n".join(part for part in parts if part) + "\n"


# --- Results as NumPy's callers expect them: written to ``out=``, cast as NumPy casts.

Dtype = np.dtype[Any]


def out_of(out: Any, where: str) -> Any:
    """Return ``out=`` as one array or None; ufuncs also accept a tuple of one."""
    if isinstance(out, tuple):
        if len(out) != 1:
            raise ValueError(f"{where}: out is a tuple of {len(out)} where one array is written")
        (out,) = out
    if out is not None and not hasattr(out, "dtype"):
        raise TypeError(f"{where}: out must be an array, got {type(out).__name__}")
    operators.no_lazy_out(out, where)
    if isinstance(out, np.ndarray) and out.dtype.isnative and dtypes.name_of(out.dtype) is None:
        raise NotTaken(f"{where}: out has dtype {out.dtype}, which has no kernel")
    return out


def dtype_of(x: Any, where: str) -> Dtype:
    """Return the NumPy dtype of an array of any library."""
    return x.dtype if isinstance(x.dtype, np.dtype) else as_view(x, where).dtype


def check_cast(kind: Dtype, out: Any, where: str, casting: Any = "same_kind") -> Dtype:
    """Return the dtype of ``out=``; raise TypeError if NumPy does not cast ``kind`` to it."""
    wanted = dtype_of(out, where)
    if casting == "same_kind":
        is_allowed = dtypes.can_cast(kind, wanted)
    else:
        is_allowed = wanted == kind or np.can_cast(kind, wanted, casting)
    if not is_allowed:
        raise TypeError(
            f"{where}: the result's dtype {kind} does not become out's dtype {wanted} by "
            f"{casting!r} casting; pass out of dtype {kind}"
        )
    return wanted


def check_shape(out: Any, shape: tuple[int, ...], where: str) -> None:
    if tuple(out.shape) != shape:
        raise ValueError(f"{where}: out has shape {tuple(out.shape)}, the result has {shape}")


def warn(text: str, category: type[Warning] = RuntimeWarning) -> None:
    """Warn at the line that called this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("gpualgo."):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


def warn_of_parts(own: Dtype, wanted: Dtype) -> None:
    """Warn as NumPy does if a cast from complex to real discards imaginary parts."""
    if own.kind == "c" and wanted.kind not in "cb":
        text = "Casting complex values to real discards the imaginary part"
        warn(text, np.exceptions.ComplexWarning)


def bools_of(where: Any, name: str) -> Any:
    """Return ``where=`` as an array of bool."""
    mask = array_of(where, f"{name}: where")
    if (kind := dtype_of(mask, name)) != BOOL:
        raise TypeError(f"{name}: where has dtype {kind}; pass an array of bool")
    return mask


def new(x: Any, shape: tuple[int, ...], kind: Dtype, where: str = "an array") -> Any:
    """Return a new array in x's library and on its device."""
    if type(x) is np.ndarray:
        return np.empty(shape, kind)
    if is_lazy(x):
        ordinal, library = x.place
    else:
        view = as_view(x, where)
        ordinal, library = view.device, view.library
    if ordinal == CPU:
        return library.from_numpy(np.empty(shape, kind), x)
    return library.empty(shape, kind, ordinal, None)


def copy_to_device_of(x: Any, values: np.ndarray[Any, Any], where: str) -> Any:
    """Return a host array in the library and on the device of an array x."""
    x = new(x, (0,), BOOL) if is_lazy(x) else x
    if isinstance(x, (np.ndarray, np.generic)):
        return values
    if recording.is_capturing():
        raise TypeError(
            f"{where}: a host array would be copied to the GPU, which a graph does not record; "
            "pass a GPU array"
        )
    view = view_of(x, where)
    if view.device == CPU:
        return view.library.from_numpy(np.array(values), x)
    copied = view.library.empty(values.shape, values.dtype, view.device, None)
    if values.size:
        stream = int(view.library.stream(view.device))
        with device.get(view.device).current():
            staging.upload(np.array(values), view.library.pointer(copied), view.device, stream)
    return copied


def cast(x: Any, kind: Dtype, where: str) -> Any:
    """Return an array in a dtype, converted lazily; complex to real takes the real part."""
    own = dtype_of(x, where)
    return x if own == kind else operators.cast(x, own, kind, where)


def axis_of(axis: Any, ndim: int, where: str) -> int:
    """Return a single axis as a non-negative number."""
    return checks.axes_of(checks.integer(axis, "axis", where), ndim, where)[0]


def fill(out: Any, value: Any) -> None:
    if isinstance(out, np.ndarray):
        out[...] = value
    else:
        copy(full(tuple(out.shape), value, dtype=dtype_of(out, "out")), out=out)


def evaluate_into(x: Any, out: Any, where: str) -> Any:
    """Compute a lazy array: into a new array, or into one of its shape and any dtype."""
    if out is None:
        return copy(x)
    check_shape(out, x.shape, where)
    wanted = dtype_of(out, where)
    warn_of_parts(x.dtype, wanted)
    write(cast(x, wanted, where), out)
    return out


def write(x: Any, out: Any) -> None:
    """Compute a lazy array into an array that it may read."""
    try:
        copy(x, out=out)
    except ValueError:  # it reads `out` at other indices, or `out` is read-only
        copy(copy(x), out=out)


def number_of(result: Any) -> Any:
    """Return 0-d arrays as numbers, as NumPy does."""
    if isinstance(result, tuple):
        return tuple(map(number_of, result))
    return result[()] if type(result) is np.ndarray and not result.ndim else result
