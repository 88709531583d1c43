"""Operators: a callable, its identity, whether it commutes, and the built-ins known by name."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._arrays.view import View
from gpualgo._operators import key as key_module
from gpualgo._operators import recognised
from gpualgo._operators.bytecode import accepts, taken_arguments
from gpualgo._operators.captured import Captured, note
from gpualgo._operators.content import Key, digest_of, intern
from gpualgo._operators.key import as_decided, call_key, examine, key_of, python_function, words_now

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty

MAX_ARITY = 8
OPERATOR, SOURCE = 0, 1  # parts of what is looked at together (`joint.joint`)


class Operator:
    """Say of a callable what the callable alone cannot: its identity, and that it commutes.

    Parameters
    ----------
    fn : callable
        A function of one to eight scalars that numba can compile, or a recognised built-in.
    identity : scalar, optional
        ``e`` with ``fn(e, a) == fn(a, e) == a``: the result of an empty reduction.
    commutative : bool
        True promises ``fn(a, b) == fn(b, a)``, which lets kernels read in a faster order.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> longest = ga.Operator(lambda a, b: a if abs(a) > abs(b) else b, identity=0.0)
    >>> float(ga.reduce(np.array([1.0, -3.0, 2.0]), None, longest))
    -3.0
    """

    __slots__ = ("_captured", "commutative", "fn", "identity", "name", "part")

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
        self.name = recognised.name_of(fn)
        self._captured: Captured | None = None  # what one call found, held as long as it runs
        self.part: int | None = None
        self.identity = _settled(identity)
        self.commutative = bool(commutative) or self.name is not None

    @property
    def key(self) -> Key:
        """An object that operators with equal code and equal captured values share.

        Of captured arrays it holds the dtypes and numbers of dimensions, not the values.
        """
        if self._captured is not None:
            return self._captured.key
        return intern(("builtin", self.name)) if self.is_known else key_of(self.fn)

    @property
    def is_known(self) -> bool:
        """Whether its name says all of it: it captures nothing."""
        return self.name is not None and self.part is None

    @property
    def code(self) -> Any:
        """What decides compiled code, but for dtypes, in this process."""
        return self.key if self.part is None else (self.key, self.part)

    @property
    def digest(self) -> str:
        """The same, in every process."""
        digest = digest_of(self.key)
        return digest if self.part is None else f"{digest}.{self.part}"

    @property
    def function(self) -> Any:
        """What is compiled, which reads no variable that could change."""
        function = self.key.function
        return function if self.part is None else _part_of(function, self.part)

    @property
    def shown(self) -> Any:
        """What its author wrote."""
        return self.fn if self.part is None else _part_of(self.fn, self.part)

    @property
    def source(self) -> Operator:
        """Of an operator with the function that makes its elements: that function."""
        found = self._with(self._captured or examine(self.fn))
        found.name, found.commutative, found.part = None, False, SOURCE
        return found

    @property
    def arrays(self) -> tuple[View, ...]:
        """The arrays that it captures, in the order in which compiled code knows them."""
        if self.is_known:
            return ()
        return (self._captured or examine(self.fn)).views

    @property
    def words(self) -> bytes:
        """The numbers that it captures and that are data, as compiled code reads them."""
        if self.is_known:
            return b""
        return (self._captured or examine(self.fn)).words

    def as_of(self, hot: Any, where: str) -> Operator:
        """Return this operator with the key, and the arrays, that it had when `hot` was taken.

        Numbers that are data are read now; raises `CapturesChanged` if they are of other types.
        """
        if self.is_known:
            return self
        key = key_within(hot)
        if not key.arrays and not key.numbers:
            return self._with(Captured(key, ()))
        found = self._captured or as_decided(self.fn, key)
        if found is not None and not (key.arrays and note(found.views) != hot[1]):
            return self._with(found)
        from gpualgo._operators.changes import error_of

        raise error_of(where, self.fn, key, found, hot)

    def with_arrays(self, views: tuple[View, ...]) -> Operator:
        """Return this operator with other arrays of the same dtypes in the place of its own."""
        return self._with(Captured(self.key, views, self.words))

    def _with(self, captured: Captured) -> Operator:
        found = Operator.__new__(Operator)
        found.fn, found.name, found._captured = self.fn, self.name, captured
        found.identity, found.commutative = self.identity, self.commutative
        found.part = self.part
        return found

    def identity_for(self, dtype: np.dtype[Any]) -> Any:
        """Return the identity in dtype, or None where none is known."""
        if self.identity is not None or self.name is None:
            return self.identity
        if self.name == "bitwise_and" and dtype.kind in "bu":
            return dtype.type(True) if dtype.kind == "b" else np.iinfo(dtype).max
        known = recognised.IDENTITIES.get(self.name)
        return known if known is None or dtype.kind != "b" else dtype.type(known)

    def __repr__(self) -> str:
        fn = self.name or getattr(self.fn, "__qualname__", repr(self.fn))
        return f"Operator({fn}, identity={self.identity!r}, commutative={self.commutative})"


def _part_of(function: Any, part: int) -> Any:
    """Return one of two functions that another captures."""
    return function.__closure__[part].cell_contents


def _settled(identity: Any) -> Any:
    """Return an identity that cannot change any more: an array's value as it is now."""
    if isinstance(identity, tuple):
        items = [_settled(item) for item in identity]
        return type(identity)._make(items) if hasattr(identity, "_make") else tuple(items)
    if not isinstance(identity, (np.ndarray, np.void)):
        return identity
    identity = identity.copy()  # of which a structured scalar is a view
    return identity.reshape(())[()] if identity.size == 1 else identity


_builtin_operators = {fn: Operator(fn) for fn in recognised.NAMES}
_builtin_keys = {fn: found.key for fn, found in _builtin_operators.items()}


def known(name: str) -> Operator:
    """Return an operator of the package's own: a functor of parts/operator.cuh, by its name."""
    found = Operator.__new__(Operator)
    found.fn, found.name = known, name  # there is no function of Python's
    found.identity, found.commutative = None, True
    found._captured = found.part = None
    return found


def hot_key(op: Any) -> Any:
    """Return what decides the kernel of an operator: the one question of a warm call."""
    kind = type(op)
    if kind is types.FunctionType:
        info = key_module.codes.look(id(op.__code__))
        if info is not None:
            if (
                info.closed_key is not None
                and op.__defaults__ is None and op.__kwdefaults__ is None
            ):  # fmt: skip
                return info.closed_key  # reads nothing but its arguments
            guard = info.guard
            if guard is not None and guard.is_plain(op):
                return guard.key
        return call_key(op)
    if kind is Operator:
        held = op._captured
        if held is not None:
            key = (held.key, note(held.views)) if held.views else held.key
        else:
            key = op.key if op.is_known else call_key(op.fn)
        commutes: Any = op.commutative if op.part is None else (op.commutative, op.name)
        if type(key) is tuple:  # it captures arrays
            return *key, commutes, id(op.identity)
        return key, commutes, id(op.identity)
    try:
        return _builtin_keys[op]
    except (KeyError, TypeError):
        return call_key(op) if callable(op) else None


def key_within(hot: Any) -> Any:
    """Return the key of a hot key: what the operator computes, whatever arrays it reads."""
    return hot[0] if type(hot) is tuple else hot


def words_as_of(op: Any, hot: Any, where: str) -> bytes:
    """Return the numbers that op captures now; `CapturesChanged` if its key is another by then."""
    is_operator = type(op) is Operator
    held = op._captured if is_operator else None
    if held is not None:
        words: bytes | None = held.words
    else:
        words = words_now(op.fn if is_operator else op, key_within(hot))
    if words is None:
        from gpualgo._operators.changes import error_of

        raise error_of(where, op.fn if is_operator else op, key_within(hot), None, hot)
    return words


def hot_key_of_function(hot: Any) -> Any:
    """Return what the hot key of an operator would be of its function alone."""
    if type(hot) is not tuple or len(hot) == 2:
        return hot
    return hot[0] if len(hot) == 3 else hot[:2]


def as_operator(op: Any, where: str, arity: int, hot: Any = None) -> Operator:
    """Return op as an Operator that can be called with `arity` arguments.

    `hot` is the hot key of a call that has begun: what it computes is what it did then.
    """
    if type(op) is types.FunctionType:
        found = Operator.__new__(Operator)
        found.fn, found.name, found.identity, found.commutative = op, None, None, False
        found._captured = found.part = None
    elif type(op) is Operator:
        found = op
    else:
        try:
            known = _builtin_operators.get(op)
        except TypeError:
            known = None
        if known is None and not callable(op):
            raise TypeError(
                f"{where}: op must be callable, got {type(op).__name__}; "
                "pass a function of scalars such as lambda a, b: a + b"
            )
        found = known or Operator(op)
    if not _takes(found, arity):
        hint = "give it one parameter for each argument (reduce and scan: two)"
        if where == "transform":
            hint = "transform(f, x, y) calls f(a, b), and transform(f, (x, y)) calls f((a, b))"
        function = python_function(found.fn)
        takes = "two" if function is None else taken_arguments(function)
        if function is not None and (named := function.__code__.co_kwonlyargcount):
            count = function.__code__.co_argcount
            name = function.__code__.co_varnames[count : count + named][0]
            raise TypeError(
                f"{where}: op has the parameter {name} after *, and kernels pass no argument by "
                "its name; write it before the *, or capture its value"
            )
        raise TypeError(f"{where}: op takes {takes} argument(s) but is called with {arity}; {hint}")
    return found if hot is None else found.as_of(hot, where)


def _takes(op: Operator, arity: int) -> bool:
    """Return whether an operator can be called with so many arguments."""
    if op.part is not None:  # asked when they were put together
        return True
    if op.name is not None:
        return arity == 2
    function = python_function(op.fn)
    return function is None or accepts(function, arity)  # without a signature: numba decides
