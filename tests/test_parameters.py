"""Descriptions of kernels' parameters: laid out as C++ does, compared with it by the compiler."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpualgo._algorithms.radix_sort import cuda_passes
from gpualgo._base.errors import CompileError
from gpualgo._base.records import POSITION, Computed, record
from gpualgo._cuda import build, headers
from gpualgo._cuda.build import source_folder
from gpualgo._cuda.headers import Cpp, cpp, divisor, parameters_of
from gpualgo._cuda.parameters import (
    F32,
    F64,
    I32,
    I64,
    POINTER,
    U32,
    U64,
    Array,
    Kind,
    Parameters,
    Scalar,
    init,
)

DIVISOR, LAYOUT = (
    headers.struct_of("parts/layout.cuh", cls) for cls in (cpp("Divisor"), cpp("Layout", 1))
)
C_TYPES: dict[str, Any] = {
    "i": ctypes.c_int32, "I": ctypes.c_uint32, "q": ctypes.c_int64, "Q": ctypes.c_uint64,
    "f": ctypes.c_float, "d": ctypes.c_double, "h": ctypes.c_int16,
}  # fmt: skip
SCALARS = [I32, U32, F32, I64, U64, F64, Scalar("h", 2)]


# --- as C lays it out ---------------------------------------------------------------------------


def struct_of(fields: list[Kind]) -> Parameters:
    return Parameters("Made", **{f"f{i}": kind for i, kind in enumerate(fields)})


KINDS: st.SearchStrategy[Kind] = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: st.one_of(
        st.builds(Array, inner, st.integers(1, 3)),
        st.lists(inner, min_size=1, max_size=4).map(struct_of),
    ),
    max_leaves=8,
)


def c_type(kind: Kind) -> Any:
    """Return the ctypes type of a kind."""
    if isinstance(kind, Scalar):
        return C_TYPES[kind.code]
    if isinstance(kind, Array):
        return c_type(kind.item) * kind.count
    fields = [(name, c_type(inner)) for name, (_, inner) in kind.fields.items()]
    return type(kind.name, (ctypes.Structure,), {"_fields_": fields})


def filled(kind: Kind, made: Any, numbers: Iterator[int]) -> Any:
    """Fill what ctypes holds with numbers; return them as `pack` takes them."""
    if isinstance(kind, Parameters):
        names = kind.fields.items()
        return {name: put(made, name, inner, numbers) for name, (_, inner) in names}
    assert isinstance(kind, Array)
    return [put(made, i, kind.item, numbers) for i in range(kind.count)]


def put(made: Any, name: Any, kind: Kind, numbers: Iterator[int]) -> Any:
    """Fill one field or item."""
    is_item = isinstance(name, int)
    if not isinstance(kind, Scalar):
        return filled(kind, made[name] if is_item else getattr(made, name), numbers)
    number = next(numbers)
    if is_item:
        made[name] = number
    else:
        setattr(made, name, number)
    return number


@given(st.lists(KINDS, min_size=1, max_size=8))
def test_bytes_are_those_of_c(kinds: list[Kind]) -> None:
    kernel = struct_of(kinds)
    made = c_type(kernel)()
    assert (kernel.size, kernel.alignment) == (ctypes.sizeof(made), ctypes.alignment(made))
    values = filled(kernel, made, iter(range(1, 10_000)))
    packed = kernel.pack(**values)
    assert packed.tail == bytes(made)
    assert kernel.head.size == 0
    offsets = {name: getattr(type(made), name).offset for name in kernel.fields}
    assert {p: at for p, at, _ in kernel.offsets() if p in offsets} == offsets


def test_head_and_tail() -> None:
    kernel = Parameters(
        "Kernel", init=init(8), input=POINTER[2],
        table=Parameters("Table", cells=POINTER, size=U32), rows=DIVISOR, fixed=POINTER,
        dims=LAYOUT,
    )  # fmt: skip
    assert kernel.head.format == "<16sq8xQQQ"
    packed = kernel.pack(table={"size": 7}, rows=5, fixed=9, dims=[(3, (8,))])
    assert kernel.size == kernel.head.size + len(packed.tail)
    assert [kernel.fields[name][0] for name in ("table", "rows", "fixed")] == [48, 64, 88]
    assert (kernel.head.size, kernel.size % 16) == (56, 0)
    words = np.frombuffer(packed.tail, np.uint64).tolist()
    assert words[:5] == [7, *divisor(5), 9]
    assert words[5:9] == [1, *divisor(3)]
    takes = {"init": {"value": 0, "is_given": 1}, "input": [4, (5, 80)], "table": {"cells": 6}}
    assert kernel.address_indices(takes) == ((0, 1, 4, 5, 6), (0, 0, 0, 80, 0))


# --- by name ------------------------------------------------------------------------------------

KERNEL = Parameters(
    "Kernel", input=POINTER, output=POINTER, count=I64, strides=I64[2], digits=DIVISOR,
    inner=Parameters("Inner", a=U32, b=U32),
)  # fmt: skip
GIVEN: dict[str, Any] = {
    "count": 1, "strides": (1, 2), "digits": 3, "inner": {"a": 1, "b": 2},
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": ...}, "Kernel: values are missing; give count"),
        ({"inner": {"a": 1}}, "Kernel: values are missing; give inner.b"),
        ({"number": 1}, "Kernel has no field number; it has input, output, count"),
        ({"inner": {"a": 1, "b": 2, "c": 3}}, "Kernel has no field inner.c; it has a, b"),
        ({"input": 1}, "Kernel takes no values for input"),
        ({"strides": (1, 2, 3)}, "Kernel: strides got 3 numbers; give 2"),
    ],
)
def test_values_are_named(change: dict[str, Any], message: str) -> None:
    values = {name: value for name, value in {**GIVEN, **change}.items() if value is not ...}
    assert len(KERNEL.pack(**GIVEN).tail) == KERNEL.size - 16
    with pytest.raises(TypeError, match=re.escape(message)):
        KERNEL.pack(**values)


def test_places_are_named() -> None:
    assert KERNEL.address_indices({"output": (5, 8), "input": 4}) == ((4, 5), (0, 8))
    with pytest.raises(TypeError, match="Kernel: places are missing; give output"):
        KERNEL.address_indices({"input": 4})
    with pytest.raises(TypeError, match="Kernel takes no places for count"):
        KERNEL.address_indices({"input": 4, "output": 5, "count": 6})
    with pytest.raises(TypeError, match="Kernel has no field outputs"):
        KERNEL.address_indices({"input": 4, "outputs": 5})


# --- as kernels read them -----------------------------------------------------------------------

_GATHER: dict[str, Any] = {
    "input": POINTER, "output": POINTER, "indices": POINTER, "num_words": I64,
    "words_per_item": DIVISOR, "row_items": DIVISOR,
}  # fmt: skip


def _exchanged(fields: dict[str, Any], one: str, other: str) -> dict[str, Any]:
    names = {one: other, other: one}
    return {names.get(name, name): kind for name, kind in fields.items()}


def _without(fields: dict[str, Any], one: str) -> dict[str, Any]:
    return {name: kind for name, kind in fields.items() if name != one}


@pytest.mark.parametrize(
    ("fields", "messages"),
    [
        (_exchanged(_GATHER, "input", "indices"), ["place of GatherParams.input"]),
        (_exchanged(_GATHER, "words_per_item", "row_items"), ["place of GatherParams.row_items"]),
        (_without(_GATHER, "row_items"), ["size of GatherParams"]),
        (_without(_GATHER, "num_words"), ["place of GatherParams.row_items"]),
        ({**_GATHER, "num_words": I32}, ["size of GatherParams.num_words"]),  # hidden by padding
        ({**_GATHER, "word_count": I64}, ['has no member "word_count"']),
        (
            {**_GATHER, "row_items": Parameters("Divisor", value=I64, shift=I64, magic=I64)},
            ["place of GatherParams.row_items.shift", "place of GatherParams.row_items.magic"],
        ),
    ],
    ids=["exchanged", "alike", "last", "missing", "narrow", "more", "within"],
)
def test_a_mismatch_does_not_compile(fields: dict[str, Any], messages: list[str]) -> None:
    if not _knows_places():
        messages = [message for message in messages if not message.startswith("place of")]
        if not messages:
            pytest.skip("this NVRTC has no offset in constant expressions: newer ones compare it")
    spec = cuda_passes.gather_spec(4, 4)
    with pytest.raises(CompileError) as error:
        build.cubin(replace(spec, parameters=Parameters("GatherParams", **fields)), (9, 0))
    for message in messages:
        assert message in str(error.value)


@functools.cache
def _knows_places() -> bool:
    """Return whether this NVRTC (13.1 or newer) compares where fields lie."""
    core = pytest.importorskip("cuda.core")
    source = "#if !__has_builtin(__builtin_offsetof)\n#error none\n#endif\n"
    try:
        core.Program(source, "c++", core.ProgramOptions(arch="sm_90")).compile("cubin")
    except Exception:
        return False
    return True


def test_what_matches_compiles() -> None:
    spec = cuda_passes.gather_spec(4, 4)
    same = replace(spec, parameters=Parameters("GatherParams", **_GATHER))
    assert same.source == spec.source
    code, name = build.cubin(same, (9, 0))
    assert code and "gather_kernel" in name  # noqa: PT018


# --- as headers declare them --------------------------------------------------------------------

_F32, _F64 = np.dtype("f4"), np.dtype("f8")
_PAIR = record("01", [_F32, _F64])
_COMPUTED = Computed((_F32, POSITION), _F64)
_LAYOUT, _EVEN, _NESTED = (f"gpualgo::{name}Layout" for name in ("", "Even", "Nested"))
_WORD = "gpualgo::uint32"
_EVEN_BINS = Cpp("EvenBins", (_F32, _F64, _F64, _F64, 3), (("Fixed", np.dtype("u8")),))
_SEARCH_BINS = Cpp("SearchBins", (_F32, True), (("Key", _F32),))
# Kernels by header and name, with their template arguments; None where these do not matter.
KERNELS: list[tuple[str, str, tuple[Any, ...]]] = [
    ("gather", "gather", (256, 4, _WORD, _WORD)),
    ("reduce/columns", "reduce_columns",
     (None, 32, 1, False, None, _F64, _COMPUTED, cpp("Layout", 2))),
    ("reduce/rows", "reduce_rows", (None, 32, None, _F64, _F64, cpp("FlatRows", _F64, 2))),
    ("reduce/rows", "reduce_blocks",
     (None, None, _F64, _COMPUTED, cpp("StridedRows", _COMPUTED, 1, _EVEN))),
    ("reduce/rows", "reduce_blocks",
     (None, None, _F64, _COMPUTED, cpp("StridedRows", _COMPUTED, 1, _LAYOUT, _NESTED))),
    ("reduce/small", "reduce_small", (None, None, _F64, _F64, cpp("FlatRows", _F64, 2))),
    ("scan/walks", "scan_walks", (None, True, None, _PAIR, _PAIR)),
    ("scan/columns", "scan_columns", (None, True, None, _F64, _F64)),
    *(("scan/tiles", "scan_tiles", (None, True, None, kind, kind, cpp(name, kind, kind)))
      for name, kind in (("FlatLines", _F64), ("SteppedLines", _PAIR), ("FlatLines", _PAIR))),
    ("scan/wave", "scan_wave",
     (None, True, None, _F64, _COMPUTED, cpp("ComputedLines", _F64, _COMPUTED))),
    ("scan/rows", "scan_rows", (None, True, None, _F64, _F64, cpp("DenseRows", 8, 8, True, 1))),
    ("scan/rows", "scan_rows", (None, True, None, _PAIR, _PAIR, cpp("DenseRows", 8, 8, True, 2))),
    ("scan/rows", "scan_rows", (None, True, None, _PAIR, _PAIR, cpp("SpacedRows", 2))),
    ("transform/kernel", "transform_flat", (None, None, _PAIR, _F32, _F32, _F32)),
    ("transform/rows", "transform_rows", (None, None, _LAYOUT, None, _PAIR, _F32, _F32)),
    ("transform/turned", "transform_turned", (None, None, _EVEN, None, _F32, _F32, _F32)),
    ("histogram/kernel", "histogram_flat", (None, _F32, cpp("ByteBins"), None, 2)),
    ("histogram/kernel", "histogram_strided", (None, _F32, _EVEN_BINS, None)),
    ("histogram/small", "histogram_small", (None, _F32, _SEARCH_BINS)),
    ("histogram/joint_count", "histogram_joint",
     (None, None, _PAIR, cpp("JointBins", cpp("Tuple", _EVEN_BINS, _SEARCH_BINS)), None,
      cpp("StridedItems", 2))),
    ("histogram/sums", "histogram_write", (256, True, _F64, _F32)),
    ("radix_sort/histogram", "radix_histogram", (None, 4, None, _WORD)),
    ("radix_sort/passes", "radix_pass", (None, True, None, None, None, _WORD)),
    ("radix_sort/rows", "sort_rows", (None, None, None)),
    ("radix_sort/rows", "sort_small_rows", (None, None, None)),
    ("radix_sort/counting", "counting_sort_count", (None,) * 4),
    ("radix_sort/counting", "counting_sort_fill", (None,) * 3),
    ("radix_sort/words", "pack_words", (None, None, cpp("Tuple", _WORD, _WORD), None)),
    ("merge_sort/merge", "merge_splits", (None, None, _PAIR, 2)),
    ("merge_sort/runs", "merge_runs", (None, 7, None, _PAIR, _WORD, _WORD, 5)),
    ("searchsorted/samples", "search_samples",
     (None, None, True, _F32, _F32, _F32, None, cpp("EvenLayout", 2))),
    ("top_k/ranks", "ranks", (None, None, None, None)),
]  # fmt: skip
DESCRIBED = [
    parameters_of(f"{header}.cuh", f"{kernel}_kernel", args) for header, kernel, args in KERNELS
]


def test_a_struct_that_is_nowhere_is_named() -> None:
    with pytest.raises(
        LookupError, match=r"gather\.cuh and what it includes define no struct Other"
    ):
        headers.struct_of("gather.cuh", cpp("Other"))


def structs_of(kind: Kind) -> Iterator[Parameters]:
    """Return all structs of a description."""
    if isinstance(kind, Array):
        yield from structs_of(kind.item)
    elif isinstance(kind, Parameters):
        if kind.name != "Tuple":  # of which there is one for each number of fields
            yield kind
        for _, inner in kind.fields.values():
            yield from structs_of(inner)


def fields_in_source(name: str) -> list[str]:
    """Return the names of a struct's fields in C++."""
    text = "".join(path.read_text() for path in sorted(source_folder().rglob("*.cuh")))
    (body,) = re.findall(rf"\nstruct {name} {{\n(.*?)\n}};", text, re.DOTALL)
    body = re.sub(" *//.*", "", body)
    lines = re.sub(r"\n {6,}", " ", body).splitlines()
    declared = [line for line in lines if re.fullmatch(r"  [^ }].*;", line)]
    kept = [x for x in declared if not re.match(r"  (static|using|return|__device__|template)", x)]
    plain = [re.sub(r"alignas\(\d+\)|<[^<>]*>|\[[^]]*\]", "", line).rstrip(";") for line in kept]
    words = [part.split()[-1] for line in plain for part in line.split(",")]
    return [word.lstrip("*") for word in words]


@pytest.mark.parametrize("described", DESCRIBED, ids=lambda described: described.name)
def test_every_field_is_described(described: Parameters) -> None:
    """C++ has no field that a description lacks; between fields lies padding alone."""
    for struct in structs_of(described):
        assert list(struct.fields) == fields_in_source(struct.name)
        end = 0
        for begin, kind in struct.fields.values():
            assert 0 <= begin - end < kind.alignment
            end = begin + kind.size
        assert 0 <= struct.size - end < struct.alignment


@pytest.mark.parametrize("described", DESCRIBED, ids=lambda described: described.name)
def test_every_field_is_asserted(described: Parameters) -> None:
    source = described.checks("gpualgo::kernel<1>")
    assert f"sizeof(Parameters) == {described.size}," in source
    assert source.count("static_assert") == 1 + 2 * len(list(described.offsets()))
    for name, (begin, kind) in described.fields.items():
        assert f"__builtin_offsetof(Parameters, {name}) == {begin}," in source
        assert f"sizeof(Parameters::{name}) == {kind.size}," in source
