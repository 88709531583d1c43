"""Specification of a sort: key dtypes, axis, and the bits compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpualgo._arrays import forms
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import View, check_items, view_of
from gpualgo._base import dtypes
from gpualgo._base.strides import order_of
from gpualgo._pipeline import checks, inputs
from gpualgo._pipeline.inputs import Views
from gpualgo._pipeline.problem import Call, Problem, Result, problem_of
from gpualgo._pipeline.run import run

_INDEX_DTYPES = ("int64", "int32", "uint64", "uint32")

Forms = tuple[Form | None, ...]


class KeysAndValues(Problem):
    """What sorts have in common: keys of one or several numbers, and values moved with them."""

    needs_alignment = False  # unaligned arrays are copied to dense, aligned rows
    copies_page_locked = True  # in place, each pass would cross the bus
    takes_any_items = True

    def __init__(self, call: Call, names: Sequence[str], forms: Forms) -> None:
        """`names`: of the arguments, keys first and values last, of which there may be none."""
        arguments = [*zip(names, forms, strict=False)]
        self.forms, self.num_keys = forms, num_fields(forms[0])
        self.num_values = num_fields(forms[-1]) if len(forms) == len(names) else 0
        others = [form for name, form in arguments if not name.endswith("values")]
        self.first_value = sum(map(num_fields, others))
        paths = [inputs.names((), form, name) for name, form in arguments]
        self.inputs = sum(paths, ())
        super().__init__(call)
        checks.same_place(list(call.views), call.where)
        for view, path in [*zip(call.views, self.inputs, strict=True)][self.first_value :]:
            check_items(view, f"{call.where}: {path}")
        self.form = forms[0]
        if self.num_values and (forms[0] is not None or forms[-1] is not None):
            self.form = Form(tuple, (forms[0], forms[-1]))

    def parse_arrays(self, arguments: tuple[Any, ...]) -> tuple[Views, Forms] | None:
        if not 0 < len(arguments) < 3:
            return None
        return arguments_of(arguments, self.where, self.num_arguments > 0)

    def set_rows(self, call: Call, axis: int | None) -> None:
        """Set the rows along an axis, and the results: keys and values, sorted."""
        views, where, values = call.views, call.where, call.views[self.first_value :]
        self.shape = shape = views[0].shape
        self.axis = checks.axis_of(axis, len(shape), where)  # None: flattened
        if len(values) == 1 and values[0].shape != shape:
            raise ValueError(
                f"{where}: values has shape {values[0].shape} but keys has {shape}; "
                "pass one value for each key"
            )
        size = math.prod(shape)
        self.row_items = size if self.axis is None else shape[self.axis]
        shape = (size,) if self.axis is None else shape
        self.results = tuple(
            Result(shape, view.dtype, (i,), () if self.axis is None else _order_of(view))
            for i, view in enumerate(views)
            if not self.num_keys <= i < self.first_value
        )


def num_fields(form: Form | None) -> int:
    """Return the number of arrays of an argument."""
    return 1 if form is None else len(form.names)


def _order_of(view: View) -> tuple[int, ...]:
    return order_of(view.shape, [view.strides])


class Sort(KeysAndValues):
    """Specification of a `radix_sort` or `argsort` call, shared by equal calls.

    Parameters: whether each field is descending; first and last bit; axis; index dtype of an
    `argsort`; the forms of keys and values.
    """

    shape_attributes = "shape", "row_items", "results"

    def __init__(self, call: Call) -> None:
        views, where = call.views, call.where
        self.directions, self.begin_bit, self.end_bit, axis, index_dtype, forms = call.params
        count = len(self.directions)
        super().__init__(call, ("keys", "values"), forms)
        for view, name in zip(views[:count], self.inputs, strict=False):
            key_dtype_of(view.dtype, where, name)
        self.groups = groups_of([view.dtype for view in views[:count]], self.directions)
        self.value_word = value_word([view.dtype for view in views[count:]])
        if forms[0] is None:
            self.end_bit = end_of_bits(self.begin_bit, self.end_bit, views[0].dtype, where)
        self.set_rows(call, axis)
        self.index_dtype: np.dtype[Any] | None = None
        if index_dtype is not None:
            self.index_dtype = index_dtype_of(index_dtype, self.row_items, where)
            orders = {result.order for result in self.results}
            order = orders.pop() if len(orders) == 1 else ()
            self.results = (Result(self.results[0].shape, self.index_dtype, (), order),)
            self.form = None

    def of_shape(self, shape: tuple[int, ...]) -> Problem | None:
        is_counted = self.index_dtype is None or shape[0] - 1 <= np.iinfo(self.index_dtype).max
        return super().of_shape(shape) if is_counted else None

    @classmethod
    def row_of(cls, views: Sequence[View], params: tuple[Any, ...]) -> tuple[str, Sequence[View]]:
        is_sort = params[4:] == (None, (None,))  # of one array of keys, without values
        return "sort" if is_sort else "order", views[: len(params[0])]

    @property
    def is_of_tuples(self) -> bool:
        return any(form is not None for form in self.forms)

    def rest_along(self, axis: int, index_dtype: np.dtype[Any] | None) -> tuple[Any, ...]:
        """Return parameters for sorting other rows; without `index_dtype`, positions are values."""
        are_values = index_dtype is None and self.index_dtype is not None
        forms = (self.forms[0], None) if are_values else self.forms
        return (*self.params[:3], axis, index_dtype, forms)


class SortAndOrder(Sort):
    """Specification of a sort of keys on a GPU that returns their positions as well."""

    def __init__(self, call: Call) -> None:
        super().__init__(call)
        self.results = (Result(self.shape, call.views[0].dtype), *self.results)


def sort_and_order(keys: Any, descending: bool, dtype: Any, stream: Any) -> tuple[Any, Any]:
    """Return a GPU's keys sorted, as `radix_sort`, and the positions that they had."""
    views, params = (view_of(keys, "argsort: keys"),), ((descending,), 0, None, -1, dtype, (None,))
    problem = problem_of(SortAndOrder, views, None, None, params, "argsort", 0)
    result: tuple[Any, Any] = run(problem, views, None, None, None, stream)
    return result


def sort_problem(
    views: Sequence[View], num_keys: int, where: str, device: int, end_bit: int | None = None,
    directions: tuple[bool, ...] = (), first_bit: int = 0,
) -> Sort:  # fmt: skip
    """Return the problem of host arrays, flattened and sorted by the first ones on a device."""
    keys = None if num_keys == 1 else Form(tuple, (None,) * num_keys)
    values = Form(tuple, (None,) * (len(views) - num_keys))
    directions = directions or (False,) * num_keys
    params = directions, first_bit, end_bit, None, None, (keys, values)
    problem = problem_of(Sort, tuple(views), None, None, params, where, 0, device)
    assert isinstance(problem, Sort)
    return problem


def key_dtype_of(dtype: np.dtype[Any], where: str, name: str = "keys") -> np.dtype[Any]:
    dtypes.check(dtype, f"{where}: {name}")
    if dtype.kind == "c":
        raise TypeError(
            f"{where}: {name} has dtype {dtype}, which has no order; "
            "pass the tuple (x.real, x.imag) to sort by the one and then by the other"
        )
    return dtype


def end_of_bits(first: int, end: int | None, dtype: np.dtype[Any], where: str) -> int:
    width = 8 * dtype.itemsize
    last = width if end is None else end
    if dtypes.kind(dtype) in "bf" and (first, last) != (0, width):
        raise TypeError(
            f"{where}: begin_bit and end_bit have no meaning for dtype {dtype}; "
            "leave them out, or sort an integer view of the keys"
        )
    if not 0 <= first < last <= width:
        raise ValueError(
            f"{where}: begin_bit={first} and end_bit={last} are not a range of bits of {dtype}; "
            f"pass 0 <= begin_bit < end_bit <= {width}"
        )
    return last


def index_dtype_of(value: Any, extent: int, where: str) -> np.dtype[Any]:
    """Return the index dtype after checking that it holds every position of a row."""
    dtype = dtypes.as_dtype(value, where)
    if dtypes.name_of(dtype) not in _INDEX_DTYPES:
        raise TypeError(
            f"{where}: dtype {dtype} is not an index dtype; use one of {', '.join(_INDEX_DTYPES)}"
        )
    if extent - 1 > np.iinfo(dtype).max:
        raise ValueError(
            f"{where}: index dtype too narrow: {dtype} cannot count {extent} keys; "
            "pass dtype=np.int64"
        )
    return dtype


# --- Keys of several numbers. Words: the fields of a tuple packed side by side, bit for bit, and
# sorted as one number.
#
# A structured dtype describes a word. The first field of a key has the highest bits, because it is
# compared first. A value word has its widest fields first, so that no field crosses 8 bytes.

Dtype: TypeAlias = np.dtype[Any]
Descending: TypeAlias = "bool | tuple[bool, ...]"
"""Whether the order is descending; for a word, one flag per field."""

FIELD_SIZES = (1, 2, 4, 8)  # of a word's fields, and of the words of keys
WORD_SIZES = (*FIELD_SIZES, 16)  # of values that are moved as one item


class Number(NamedTuple):
    dtype: Dtype
    shift: int  # of its lowest bit
    is_descending: bool

    @property
    def bits(self) -> int:
        return 8 * self.dtype.itemsize

    @property
    def is_float(self) -> bool:
        return dtypes.kind(self.dtype) == "f"

    @property
    def flipped(self) -> int:
        """The bits that are inverted in an ordered number; descending floats are negated."""
        flipped = 1 << self.bits - 1 if dtypes.kind(self.dtype) == "i" else 0
        return flipped ^ ((1 << self.bits) - 1 if self.is_descending and not self.is_float else 0)


def numbers(key: Dtype, descending: Descending) -> list[Number]:
    """Return the fields of a key, most significant first; a key may be a single number."""
    if key.names is None:
        assert isinstance(descending, bool)
        return [Number(key, 0, descending)]
    assert key.fields is not None
    assert isinstance(descending, tuple)
    fields = [key.fields[name] for name in key.names]
    return [
        Number(field[0], 8 * field[1], is_descending)
        for field, is_descending in zip(fields, descending, strict=True)
    ]


def used_bits(key: Dtype) -> int:
    """Return how many bits of a key hold fields, from the lowest on."""
    if key.names is None:
        return 8 * key.itemsize
    return 8 * sum(key[name].itemsize for name in key.names)


def flipped_bits(dtype: Dtype, descending: Descending) -> int:
    """Return which bits of an ordered key (KeyOrder) are inverted."""
    return sum(n.flipped << n.shift for n in numbers(dtype, descending))


class Group(NamedTuple):
    """Neighbouring fields of an element that are sorted at once, as one word."""

    first: int
    size: int  # number of fields
    dtype: Dtype  # of the field, or of the word that packs several
    descending: Descending

    @property
    def is_word(self) -> bool:
        return self.size > 1

    @property
    def places(self) -> range:
        return range(self.first, self.first + self.size)


def groups_of(dtypes: Sequence[Dtype], directions: Sequence[bool]) -> list[Group]:
    """Return the fewest groups that fit words, most significant first."""
    groups: list[Group] = []
    first = 0
    for end in range(1, len(dtypes) + 1):
        with_next = sum(dtype.itemsize for dtype in dtypes[first : end + 1])
        if end < len(dtypes) and with_next <= FIELD_SIZES[-1]:
            continue
        fields, size = tuple(dtypes[first:end]), end - first
        if size == 1:
            groups.append(Group(first, 1, fields[0], directions[first]))
        else:
            word = _word(fields, tuple(reversed(range(size))))
            groups.append(Group(first, size, word, tuple(directions[first:end])))
        first = end
    return groups


def value_word(dtypes: Sequence[Dtype]) -> Dtype | None:
    """Return the word that packs values of several arrays; None if impossible or not needed."""
    sizes = [dtype.itemsize for dtype in dtypes]
    if len(sizes) < 2 or sum(sizes) > WORD_SIZES[-1] or not set(sizes) <= set(FIELD_SIZES):
        return None
    widest_first = sorted(range(len(sizes)), key=lambda i: -sizes[i])
    return _word(tuple([np.dtype(f"u{size}") for size in sizes]), tuple(widest_first))


@cache
def _word(fields: tuple[Dtype, ...], from_lowest: tuple[int, ...]) -> Dtype:
    """Return the dtype of fields side by side, in this order from the lowest bytes on."""
    offsets, end = [0] * len(fields), 0
    for i in from_lowest:
        offsets[i] = end
        end += fields[i].itemsize
    spec: Any = {
        "names": [f"f{i}" for i in range(len(fields))], "formats": list(fields),
        "offsets": offsets, "itemsize": next(size for size in WORD_SIZES if end <= size),
    }  # fmt: skip
    word: Dtype = np.dtype(spec)
    return word


def arguments_of(
    arguments: tuple[Any, ...], where: str, has_names: bool = False
) -> tuple[Views, Forms]:
    keys, form = inputs.spread(arguments[0], f"{where}: keys", has_names)
    if len(arguments) == 1:
        return keys, (form,)
    values, values_form = values_of(arguments[1], keys[0].shape, where)
    return (*keys, *values), (form, values_form)


def values_of(
    values: Any, shape: tuple[int, ...], where: str, name: str = "values", of: str = "keys"
) -> tuple[Views, Form | None]:
    if not isinstance(values, tuple):  # a structured array is moved as one array
        return (view_of(values, f"{where}: {name}"),), None
    moved, moved_form = inputs.spread(values, f"{where}: {name}", has_names=False)
    got = moved[0].shape
    if got != shape:
        try:
            fits = np.broadcast_shapes(got, shape) == shape
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(
                f"{where}: {name} has shape {got}, which does not broadcast to {shape} of {of}; "
                "pass one value for each key"
            )
        moved = tuple([inputs.broadcast_to(view, shape) for view in moved])
    return moved, moved_form


def descending_by_field(descending: Any, form: Form | None, where: str) -> tuple[bool, ...]:
    if form is None:
        if type(descending) is bool:
            return (descending,)
        return (checks.flag_argument(descending, "descending", where),)
    if isinstance(descending, (bool, np.bool_)):
        return (bool(descending),) * len(form.names)
    flags = forms.parts_of(descending, form) if isinstance(descending, tuple) else None
    if flags is None or not all(isinstance(flag, (bool, np.bool_)) for flag in flags):
        raise TypeError(
            f"{where}: descending must be a bool, or a tuple of bools with the structure of "
            f"keys: {', '.join(inputs.names((), form, 'keys'))}; got {descending!r}"
        )
    return tuple(map(bool, flags))


# --- Argument table slots and sizes of the CPU kernels of the radix sort and around NumPy's sort.

BLOCK = 256  # keys converted to codes at once; they stay in L1
CODES_BYTES = 8 * BLOCK

# The table of arguments. VALUES 0: a key's position is its value. OUT_KEYS 0: only values are
# written. COUNTS holds a number for each part and bucket, SURVEY two words for each part. ENTRY is
# the kernel that `invoke` runs.
KEYS, VALUES, OUT_KEYS, OUT_VALUES, LENGTH, PARTS, COUNTS, SURVEY, SHIFT, BUCKETS = range(10)
ENTRY, CODES, KEY_BYTES, FLIP, USED, SIZE = range(10, 16)

# Up to this many keys, each is compared with all others; of one byte, which take one pass else.
SHORT, SHORT_BYTES = 128, 48
ROW_BITS = 8  # digit width

# Rows append to that table: addresses of kernels; the size of values; for keys, values and their
# outputs in turn, the function that packs a strided row (0 if dense), and the stride along the row.
# Then the lengths of the outer dimensions and their strides in each array.
FIND, COUNT, PLACE, MOVE, TAKE, VALUE_BYTES, PACKS = range(SIZE, SIZE + 7)
STEPS, NDIM, HEAD = PACKS + 4, PACKS + 8, PACKS + 9

# Scratch memory of a thread: its own table, addresses of the row, counts, the survey's result, work
# space of the kernels; then two buffers for keys and two for values.
ROW = 8 * SIZE
ROW_COUNTS = ROW + 32
ROW_SURVEY = ROW_COUNTS + (8 << ROW_BITS)
ROW_WORK = ROW_SURVEY + 16
BUFFERS = (ROW_WORK + CODES_BYTES + (8 << ROW_BITS) + 63) // 64 * 64
