"""The class Operator, and the keys by which calls find compiled code of operators."""

from __future__ import annotations

import builtins
import math
import operator
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from gpualgo._arrays.view import View
from gpualgo._base import dtypes, forks
from gpualgo._base.errors import CapturesChanged, CompileError, shown
from gpualgo._base.memo import Memo
from gpualgo._operators.captured import ConstantNeeded, Key, Resolved, is_array, remember_owners
from gpualgo._operators.key import (
    call_key,
    codes,
    error_of,
    make_constant,
    make_data,
    packed_numbers_now,
    python_function,
    recapture_for,
    resolve,
)
from gpualgo._operators.tokens import accepts, digest_of, intern, taken_arguments

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty

Result = TypeVar("Result")


# --- Built-in operators: callables with functors in the CUDA sources, which need no compilation.

# Recognised callables -> the name of the functor in cuda_src/parts/operator.cuh.
NAMES: dict[Any, str] = {
    operator.add: "add",
    operator.mul: "multiply",
    operator.and_: "bitwise_and",
    operator.or_: "bitwise_or",
    operator.xor: "bitwise_xor",
    builtins.min: "minimum",
    builtins.max: "maximum",
    np.add: "add",
    np.multiply: "multiply",
    np.bitwise_and: "bitwise_and",
    np.bitwise_or: "bitwise_or",
    np.bitwise_xor: "bitwise_xor",
    np.minimum: "minimum",
    np.maximum: "maximum",
    np.logical_and: "logical_and",
    np.logical_or: "logical_or",
    np.logical_xor: "logical_xor",
}

IDENTITIES: dict[str, int | bool] = {
    "add": 0,
    "multiply": 1,
    "bitwise_and": -1,
    "bitwise_or": 0,
    "bitwise_xor": 0,
    "logical_and": True,
    "logical_or": False,
    "logical_xor": False,
}

BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")


def _look(table: dict[Any, Result], fn: Any) -> Result | None:
    try:
        return table.get(fn)
    except TypeError:  # an unhashable callable
        return None


def name_of(fn: Any) -> str | None:
    return _look(NAMES, fn)


def _arg_minimum(a: Any, b: Any) -> Any:
    if a[0] < b[0]:
        return a
    if a[0] > b[0]:
        return b
    return _first(a, b)


def _arg_maximum(a: Any, b: Any) -> Any:
    if a[0] > b[0]:
        return a
    if a[0] < b[0]:
        return b
    return _first(a, b)


def _first(a: Any, b: Any) -> Any:
    """Return the element with the lower index; a NaN comes before other values."""
    if a[0] == b[0]:
        return a if a[1] < b[1] else b
    return a if a[0] != a[0] and (b[0] == b[0] or a[1] < b[1]) else b


# The built-in functors in Python, for code that numba compiles.
PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "multiply": lambda a, b: a * b,
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
    # `a != a` propagates a NaN from either side, as in NumPy.
    "minimum": lambda a, b: a if a <= b or a != a else b,
    "maximum": lambda a, b: a if a >= b or a != a else b,
    "logical_and": lambda a, b: (a != 0) & (b != 0),
    "logical_or": lambda a, b: (a != 0) | (b != 0),
    "logical_xor": lambda a, b: (a != 0) ^ (b != 0),
    "arg_minimum": _arg_minimum,
    "arg_maximum": _arg_maximum,
    "minimum_maximum": lambda a, b: (
        a[0] if a[0] <= b[0] or a[0] != a[0] else b[0],
        a[1] if a[1] >= b[1] or a[1] != a[1] else b[1],
    ),
}


def check_dtype(op: Operator, dtype: np.dtype[Any], where: str) -> None:
    kind = dtypes.kind(dtype)
    if op.name in BITWISE and kind in "fc":
        raise TypeError(f"{where}: op {op.name} needs integers or bool, got dtype {dtype}")
    if op.name in ("minimum", "maximum") and kind == "c":
        raise TypeError(f"{where}: op {op.name} needs an order, which dtype {dtype} has not")


# Functions of Python and NumPy that do not associate, and what to do instead.
_NEGATE, _INVERT, _OTHER = (
    "add negated elements with operator.add", "multiply reciprocals with operator.mul",
    "pass an associative operator",
)  # fmt: skip
_NOT_ASSOCIATIVE: dict[Any, str] = {
    operator.sub: _NEGATE, np.subtract: _NEGATE, operator.truediv: _INVERT, np.divide: _INVERT,
    **dict.fromkeys((
        operator.floordiv, operator.mod, operator.pow, operator.lshift, operator.rshift,
        operator.lt, operator.le, operator.gt, operator.ge, pow, divmod, math.pow, math.fmod,
        math.atan2, np.floor_divide, np.remainder, np.fmod, np.divmod, np.power, np.float_power,
        np.left_shift, np.right_shift, np.less, np.less_equal, np.greater, np.greater_equal,
        np.arctan2, np.nextafter, np.heaviside,
    ), _OTHER),
}  # fmt: skip


def check_associativity(op: Operator, where: str) -> None:
    advice = _look(_NOT_ASSOCIATIVE, op.shown)
    if advice is not None:
        name = shown(op.shown).removeprefix("_")
        raise TypeError(
            f"{where}: op {name} is not associative, so results depend on how elements are "
            f"grouped; {advice}, or write a lambda if you mean it"
        )


_COMMUTATIVE = dict.fromkeys(
    (np.fmax, np.fmin, np.logaddexp, np.logaddexp2, np.hypot, np.gcd, np.lcm), True
)
MAX_ARITY = 8
# Parts of a fused operator (`joint.joint`); f(b, a) of a function f, or of a fused operator's f.
OPERATOR, SOURCE, MIRRORED, MIRRORED_PART = range(4)
_CELLS = {OPERATOR: 0, SOURCE: 1, MIRRORED_PART: 0}  # of the fused pair


class Operator:
    """A function, its identity element, and whether it is commutative.

    Parameters
    ----------
    fn : callable
        A pure function of one to eight scalars that numba can compile, or a recognised built-in.
    identity : scalar, optional
        A value ``e`` with ``fn(e, a) == fn(a, e) == a``: the result of an empty reduction.
    commutative : bool
        True promises ``fn(a, b) == fn(b, a)``, which allows kernels a faster order of reads.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> longest = ga.Operator(lambda a, b: a if abs(a) > abs(b) else b, identity=0.0)
    >>> float(ga.reduce(np.array([1.0, -3.0, 2.0]), None, longest))
    -3.0
    """

    __slots__ = ("_resolved", "commutative", "fn", "identity", "name", "part")

    def __init__(
        self, fn: ty.Function, *, identity: ty.Scalar | None = None, commutative: bool = False
    ) -> None:
        if isinstance(fn, Operator):
            raise TypeError("Operator: fn is an Operator already; pass the function itself")
        if not callable(fn):
            raise TypeError(
                f"Operator: fn must be callable, got {type(fn).__name__}; pass a function or lambda"
            )
        self.fn = fn
        self.name = name_of(fn)
        self._resolved: Resolved | None = None  # captured values, fixed for one call
        self.part: int | None = None
        self.identity = _frozen_identity(identity)
        self.commutative = (
            bool(commutative) or self.name is not None or _look(_COMMUTATIVE, fn) is not None
        )

    @property
    def _captures(self) -> Resolved:
        """Key, captured arrays in the order of compiled code, and packed data numbers, as of now.

        The key is shared by operators with equal code and captured values. It contains the dtypes
        and numbers of dimensions of captured arrays, not their values.
        """
        if self._resolved is not None:
            return self._resolved
        return Resolved(self.key) if self.is_known else resolve(self.fn)

    @property
    def key(self) -> Key:
        return intern(("builtin", self.name)) if self.is_known else self._captures.key

    @property
    def arrays(self) -> tuple[View, ...]:
        return () if self.is_known else self._captures.arrays

    @property
    def words(self) -> bytes:
        return b"" if self.is_known else self._captures.captured

    @property
    def is_known(self) -> bool:
        return self.name is not None and self.part is None

    @property
    def code(self) -> Any:
        """Key of compiled code in this process, apart from dtypes."""
        return self.key if self.part is None else (self.key, self.part)

    @property
    def digest(self) -> str:
        """Key of compiled code that is the same in every process."""
        digest = digest_of(self.key)
        return digest if self.part is None else f"{digest}.{self.part}"

    @property
    def function(self) -> Any:
        """Function to compile, which reads no variables."""
        function = _part_of(self.key.function, self.part)
        is_mirrored = self.part in (MIRRORED, MIRRORED_PART)
        return (lambda a, b: function(b, a)) if is_mirrored else function

    @property
    def shown(self) -> Any:
        """Function that the caller passed, for messages."""
        return _part_of(self.fn, self.part)

    @property
    def source(self) -> Operator:
        """Operator of the function that computes the elements of a fused operator."""
        return _new(self.fn, None, self.identity, part=SOURCE, resolved=self._captures)

    def as_of(self, op_key: Any, where: str) -> Operator:
        """Return this operator with the key and arrays that it had when `op_key` was computed.

        Data numbers are read now; raises `CapturesChanged` if their types have changed.
        """
        if self.is_known:
            return self
        key = content_key(op_key)
        if not key.arrays and not key.numbers:
            return self._with(Resolved(key))
        current = self._resolved or recapture_for(self.fn, key)
        if current is None or (key.arrays and remember_owners(current.arrays) != op_key[1]):
            raise error_of(where, self.fn, key, current, op_key)
        return self._with(current)

    def with_arrays(self, views: tuple[View, ...]) -> Operator:
        """Return this operator with its captured arrays replaced by others of the same layouts."""
        return self._with(self._captures._replace(arrays=views))

    def _with(self, resolved: Resolved) -> Operator:
        return _new(self.fn, self.name, self.identity, self.commutative, self.part, resolved)

    def identity_for(self, dtype: np.dtype[Any]) -> Any:
        if self.identity is not None or self.name is None:
            return self.identity
        if self.name == "bitwise_and" and dtype.kind in "bu":
            return dtype.type(True) if dtype.kind == "b" else np.iinfo(dtype).max
        identity = IDENTITIES.get(self.name)
        return identity if identity is None or dtype.kind != "b" else dtype.type(identity)

    def __repr__(self) -> str:
        fn = self.name or getattr(self.fn, "__qualname__", repr(self.fn))
        return f"Operator({fn}, identity={self.identity!r}, commutative={self.commutative})"


def _new(
    fn: Any, name: str | None, identity: Any = None, commutative: bool = False,
    part: int | None = None, resolved: Resolved | None = None,
) -> Operator:  # fmt: skip
    result = Operator.__new__(Operator)
    result.fn, result.name, result.part, result._resolved = fn, name, part, resolved
    result.identity, result.commutative = identity, commutative
    return result


def _part_of(function: Any, part: int | None) -> Any:
    cell = _CELLS.get(part)  # type: ignore[arg-type]
    return function if cell is None else function.__closure__[cell].cell_contents


def mirrored(op: Operator) -> Operator:
    """Return the operator of op(b, a), with op's key and captured values; op if it commutes."""
    if op.commutative:
        return op
    part = MIRRORED if op.part is None else MIRRORED_PART
    return _new(op.fn, None, part=part, resolved=op._resolved or resolve(op.fn))


def _frozen_identity(identity: Any) -> Any:
    """Return an immutable copy of an identity: an array is replaced by its current value."""
    if isinstance(identity, tuple):
        items = [_frozen_identity(item) for item in identity]
        return type(identity)._make(items) if hasattr(identity, "_make") else tuple(items)
    if not isinstance(identity, (np.ndarray, np.void)):
        return identity
    identity = identity.copy()  # a structured scalar is a view of its array
    return identity.reshape(())[()] if identity.size == 1 else identity


_builtin_operators = {fn: Operator(fn) for fn in NAMES}
_builtin_keys = {fn: found.key for fn, found in _builtin_operators.items()}


def builtin(name: str) -> Operator:
    """Return a built-in operator without a Python function: a functor of parts/operator.cuh."""
    return _new(builtin, name, commutative=True)  # fn is a placeholder


def without_arrays(op: Operator) -> Operator:
    """Return an operator of the same compiled code that keeps no captured array alive."""
    key = op.key
    return _new(key.function, op.name, op.identity, op.commutative, op.part, Resolved(key))


def operator_key(op: Any) -> Any:
    """Return the key by which a warm call finds an operator's kernel; None if op is invalid."""
    kind = type(op)
    if kind is types.FunctionType:
        info = codes.look(id(op.__code__))
        if info is None:
            return call_key(op)
        if info.closed_key is not None and op.__defaults__ is None and op.__kwdefaults__ is None:
            return info.closed_key
        guard = info.guard
        return guard.key if guard is not None and guard.is_plain(op) else call_key(op)
    if kind is Operator:
        if op._resolved is not None:
            key, arrays, _ = op._resolved
            key = (key, remember_owners(arrays)) if arrays else key
        else:
            key = op.key if op.is_known else call_key(op.fn)
        properties: Any = op.commutative if op.part is None else (op.commutative, op.name)
        if type(key) is tuple:  # it captures arrays
            return *key, properties, id(op.identity)
        return key, properties, id(op.identity)
    try:
        return _builtin_keys[op]
    except (KeyError, TypeError):
        return call_key(op) if callable(op) else None


def content_key(op_key: Any) -> Any:
    """Return the `Key` in a operator key, without the addresses of captured arrays."""
    return op_key[0] if type(op_key) is tuple else op_key


def packed_numbers_of(op: Any, op_key: Any, where: str) -> bytes:
    """Return op's current packed data numbers; raise `CapturesChanged` if its key has changed."""
    is_operator = type(op) is Operator
    captures = op._resolved if is_operator else None
    if captures is not None:
        words: bytes | None = captures.captured
    else:
        words = packed_numbers_now(op.fn if is_operator else op, content_key(op_key))
    if words is None:
        raise error_of(where, op.fn if is_operator else op, content_key(op_key), None, op_key)
    return words


def retried(error: Exception, op: Any, op_key: Any, attempt: Callable[[], Result]) -> Result:
    """Return attempt() if a failed call may succeed now, else raise its error.

    It may if captured values changed while the call was prepared, and if its code needs the values
    of captured numbers: these are constants from now on. If the attempt fails as well, they become
    data again. `op_key` is the operator key of the failed call.
    """
    try:
        if isinstance(error, CapturesChanged):
            return attempt()
        key = content_key(op_key)
        if not getattr(key, "numbers", ()) or not isinstance(error, (CompileError, TypeError)):
            raise error
        words, is_exponent = None, False
        if isinstance(error, ConstantNeeded):
            words, is_exponent = error.words, error.is_exponent
        fn = op.fn if type(op) is Operator else op
        locations, added = make_constant(fn, key, words, is_exponent)
        if not locations:
            raise error
        try:
            return attempt()
        except BaseException:
            make_data(fn, added)
            raise
    finally:  # a frame that refers to its own error is a cycle, which keeps the caller's arrays
        del error


def as_operator(op: Any, where: str, arity: int, op_key: Any = None) -> Operator:
    """Return op as an Operator; raise TypeError if it does not take `arity` arguments.

    `op_key` is the operator key from the start of the call, whose content the result has.
    """
    if type(op) is types.FunctionType:
        result = _new(op, None)
    elif type(op) is Operator:
        result = op
    else:
        builtin = _look(_builtin_operators, op)
        if builtin is None and not callable(op):
            raise TypeError(
                f"{where}: op must be callable, got {type(op).__name__}; "
                "pass a function of scalars such as lambda a, b: a + b"
            )
        result = builtin or Operator(op)
    if not _accepts_arity(result, arity):
        hint = "give it one parameter for each argument"
        if where.endswith("transform"):
            hint = "transform(f, x, y) calls f(a, b), and transform(f, (x, y)) calls f((a, b))"
        elif arity == 2:
            hint = "it gets two elements at a time: lambda a, b: ..., say"
        elif arity == 1:  # a predicate
            hint = "it gets one element, for a tuple of arrays one tuple: lambda p: p[0] > 0, say"
        function = python_function(result.fn)
        takes = "two" if function is None else taken_arguments(function)
        if function is not None and (num_keyword_only := function.__code__.co_kwonlyargcount):
            count = function.__code__.co_argcount
            name = function.__code__.co_varnames[count : count + num_keyword_only][0]
            raise TypeError(
                f"{where}: op has the parameter {name} after *, but kernels pass arguments by "
                "position only; write it before the *, or capture its value"
            )
        raise TypeError(f"{where}: op takes {takes} argument(s) but is called with {arity}; {hint}")
    return result if op_key is None else result.as_of(op_key, where)


def _accepts_arity(op: Operator, arity: int) -> bool:
    if op.part is not None:  # checked before it was fused
        return True
    if op.name is not None:
        return arity == 2
    function = python_function(op.fn)
    return function is None or accepts(function, arity)  # numba checks other callables


# --- Operators fused with the function that computes their elements (of a lazy array).
#
# Both share one key, and the words of their captured numbers and arrays.


# A code object for each pair of functions, as facts about captured numbers are stored by code. The
# functions' codes are kept alive: the keys are their ids.
_pair_codes: Memo[tuple[Any, types.CodeType]] = Memo(1 << 10)


def fuse(op: Operator, source: types.FunctionType) -> Operator:
    """Return op fused with the function that computes its elements from the numbers that are read.

    It has op's name and identity.
    """
    inner = op.fn if op.name is None else op.name
    both: Callable[[], Any] = lambda: (inner, source)  # noqa: E731
    pair = cast("types.FunctionType", both)
    codes = getattr(python_function(inner), "__code__", inner), source.__code__
    _, pair.__code__ = _pair_codes.made(
        (id(codes[0]), id(codes[1])), lambda: (codes, pair.__code__.replace())
    )
    return _new(pair, op.name, op.identity, op.commutative, OPERATOR)


def without_source(op: Operator) -> Operator:
    """Return a fused operator for kernels that do not compute elements.

    A built-in operator is returned without the function. Others are returned unchanged, as they
    share their captured numbers with the function.
    """
    if op.name is None or op.part is None:
        return op
    return _new(op.fn, op.name, op.identity, op.commutative)


# --- Predicates: functions of an element, or boolean arrays.

_NEITHER = (bool, int, float, complex, str, bytes, list, tuple, dict, set, range, type(None))


def is_function(predicate: Any, where: str) -> bool:
    """Return whether a predicate is a function, False if an array; raise TypeError for others."""
    if isinstance(predicate, (*_NEITHER, np.generic)):
        raise TypeError(
            f"{where}: predicate must be a function of one element or an array of bool, got "
            f"{type(predicate).__name__}; pass lambda a: a > 0, say"
        )
    return type(predicate) is Operator or (callable(predicate) and not is_array(predicate))


# --- Warns once about an operator that is compiled many times with different codes.


MOST_CODES = 16  # codes of an operator at one source line before the warning
_MOST_ORIGINS = 1024
ELEMENT = "element"  # name of the generated function of a lazy array's element
_OWN = ("<lazy array>", __file__.rpartition("_operators")[0])  # files of the package's functions
_ADVICE = (
    "Captured numbers and arrays are read by each call and need no compilation; captured "
    "functions, tuples, bools and strings, and its source, are part of the code. Define it once, "
    "and capture what changes as a number or an array"
)
_ADVICE_ON_OWN = (
    "Exponents from 1 to 16 and numbers of decimals are part of its code. Pass an exponent that "
    "changes as an array, such as numpy.asarray(2)"
)

_codes: dict[tuple[object, ...], set[object]] = {}  # digests by the operator's source location
_lock = forks.Lock()


def source_location(fn: Any) -> str:
    code = getattr(python_function(fn) or fn, "__code__", None)
    if code is None:
        return shown(fn)
    return f"{code.co_name} ({code.co_filename}:{code.co_firstlineno})"


def _origin(op: Operator, fn: Any, code: Any) -> tuple[object, ...]:
    """Return a key of an operator's source location.

    Operators that the package makes are distinguished by their code, the layouts of arrays, and all
    functions that they call.
    """
    location = code.co_filename, code.co_firstlineno, code.co_name
    if code.co_name != ELEMENT and not code.co_filename.startswith(_OWN):
        return location
    captured = [cell.cell_contents for cell in getattr(fn, "__closure__", None) or ()]
    return (
        *location,
        code.co_code,
        op.key.arrays,
        *(source_location(value) for value in captured if callable(value)),
    )


def count_code(op: Operator) -> None:
    fn = python_function(op.shown) or op.shown
    code = getattr(fn, "__code__", None)
    if code is None:
        return
    origin = _origin(op, fn, code)
    cell = _CELLS.get(op.part)  # type: ignore[arg-type]
    token = op.key.token if cell is None else op.key.token[3][cell]  # of this part alone
    digest = hash((token[1], token[3:]))  # not names of arguments, which parts have
    with _lock:
        if origin not in _codes and len(_codes) >= _MOST_ORIGINS:
            return
        digests = _codes.setdefault(origin, set())
        num_before = len(digests)
        if num_before < MOST_CODES:  # later codes are not counted
            digests.add(digest)
        is_too_many = num_before < len(digests) == MOST_CODES
    if is_too_many:
        from gpualgo._base import log  # seldom needed

        subject, advice = f"operator {source_location(op.shown)}", _ADVICE
        if code.co_filename.startswith(_OWN):
            subject, advice = "an operator that gpualgo makes of a lazy array", _ADVICE_ON_OWN
        log.warn(
            f"{subject} has been compiled with {len(digests)} different codes, each in tenths of a "
            f"second. {advice} (https://github.com/gpualgo/gpualgo/blob/main/docs/operators.md, "
            '"Numbers that change")'
        )
