"""Kernels as the policy tables make them, and their machine code as cuobjdump tells it."""

from __future__ import annotations

import collections
import functools
import importlib.util
import itertools
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cubin import Cubin

from gpualgo._algorithms.reduce import tuning as rows
from gpualgo._algorithms.transform import tuning as elements
from gpualgo._base import dtypes, records
from gpualgo._cuda import build, compilers, templates
from gpualgo._operators.operator import Operator

Dtype = np.dtype[Any]
Capability = tuple[int, int]

needs_compilers = pytest.mark.skipif(
    importlib.util.find_spec("cuda") is None,
    reason="needs the CUDA wheels (extra cu12 or cu13) to compile with; no GPU",
)


@functools.cache
def _tool(name: str) -> str | None:
    """Return the path of one of CUDA's tools: of the wheel, else of a toolkit."""
    try:
        from cuda.pathfinder import find_nvidia_binary_utility
    except ImportError:
        return shutil.which(name)
    found: str | None = find_nvidia_binary_utility(name)
    return found or shutil.which(name)


def cuobjdump() -> str | None:
    return _tool("cuobjdump")


def needs_cuobjdump(test: Any) -> Any:
    """Skip a test, saying so, where machine code cannot be made or read."""
    missing = pytest.mark.skipif(
        cuobjdump() is None or _tool("nvdisasm") is None,
        reason="needs cuobjdump (nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm, extra dev)",
    )
    return needs_compilers(missing(test))


MAIN: Capability = (9, 0)  # every kind of kernel is compiled for this architecture
OTHERS: list[Capability] = [(7, 5), (8, 0), (8, 6), (10, 0), (12, 0)]  # some for these
_SHARED_BYTES = {(7, 5): 64 << 10, (8, 0): 163 << 10, (8, 6): 99 << 10, (12, 0): 99 << 10}


def shared_bytes(capability: Capability) -> int:
    """Return how many bytes of shared memory a block may have."""
    return _SHARED_BYTES.get(capability, 227 << 10)


def dtype_of(name: str) -> Dtype:
    """Return the dtype of a name, checked as arguments are."""
    return dtypes.check(dtypes.from_name(name), "test")


@dataclass(frozen=True)
class Sass:
    """What a cubin's one kernel consists of."""

    instructions: tuple[Any, ...]  # each: address, predicate, opcode, operands
    local_bytes: int

    def count(self, pattern: str) -> int:
        """Return how many opcodes start with a regular expression."""
        return sum(re.match(pattern, opcode) is not None for _, _, opcode, _ in self.instructions)

    def compared_places(self) -> int:
        """Return with how many multiples of 4 a register is compared, at most.

        Many show that an array in registers is read at an index that only the kernel knows.
        """
        found = collections.defaultdict(set)
        for _, _, opcode, operands in self.instructions:
            if opcode.startswith("ISETP.EQ") and (match := _PLACE.search(operands)):
                found[match[1]].add(match[2])
        return max(map(len, found.values()), default=0)

    def calls(self) -> list[str]:
        """Return the calls of functions.

        Before sm_90 a warp that may have diverged calls its shuffles, which may begin by joining
        it, and gets back to the kernel's main path by a call that does not return.
        """
        found = []
        for _, _, opcode, operands in self.instructions:
            if re.match("J?CAL", opcode):
                body = self._body(operands)
                is_shuffle = any(opcode.startswith(("WARPSYNC", "SHFL")) for opcode in body)
                if not is_shuffle and body[-1] != "EXIT":
                    found.append(f"{opcode} {operands}")
        return found

    def _body(self, target: str) -> list[str]:
        """Return the opcodes from an address to a return or the kernel's end."""
        opcodes = ["?"]
        for address, predicate, opcode, _ in self.instructions:
            if target.startswith("0x") and address >= int(target, 16):
                opcodes.append(opcode)
                if opcode.startswith("RET") or (opcode == "EXIT" and not predicate):
                    break
        return opcodes


INSTRUCTION_BYTES = 16
FEW_PLACES = 6
DOUBLE = r"D(ADD|MUL|FMA|SETP|MNMX)|\w+\.(.*\.)?F64"

# An address, perhaps a predicate, the opcode, and perhaps operands.
_INSTRUCTION = re.compile(
    r"^\s*/\*([0-9a-f]{4,})\*/\s+(@!?\w+)?\s*([A-Z]\w*(?:\.\w+)*)\s*([^;]*?)\s*;", re.M
)
_PLACE = re.compile(r"PT, (R\d+)[.\w]*, (-?0x\w*[048c]), PT")
_USAGE = re.compile(r"^ Function (\S+):\n.*STACK:(\d+) .*LOCAL:(\d+) ", re.M)


def read(spec: build.Spec, capability: Capability, folder: Path) -> Sass:
    """Build a spec for an architecture and disassemble it."""
    return read_all([spec], capability, folder)[0]


def read_all(specs: Sequence[build.Spec], capability: Capability, folder: Path) -> list[Sass]:
    """Build specs for an architecture and disassemble them, in one piece.

    The disassembler takes 0.3 s to start, and hardly longer for many kernels than for one.
    """
    path, ends, stacks, pieces = folder / "kernel.cubin", [0], [], []
    for spec in specs:
        code, name = build.cubin(spec, capability)
        path.write_bytes(code)
        usage = _output("cuobjdump", "-res-usage", path)
        ((function, stack, local),) = _USAGE.findall(usage)  # one function: all else was inlined
        assert function == name
        assert f".{build.arch_of(capability)}.cubin\n" in _output("cuobjdump", "-lelf", path)
        (text,) = (part for part in Cubin(code).sections if part.name == f".text.{name}")
        pieces.append(text.content)
        ends.append(ends[-1] + len(text.content))
        stacks.append(int(stack) + int(local))
    path.write_bytes(b"".join(pieces))
    whole = _output("nvdisasm", "-b", build.arch_of(capability).replace("sm_", "SM"), path)
    found = [(int(at, 16), *rest) for at, *rest in _INSTRUCTION.findall(whole)]
    assert len(found) == ends[-1] // INSTRUCTION_BYTES
    kernels = [
        found[start // INSTRUCTION_BYTES : end // INSTRUCTION_BYTES]
        for start, end in itertools.pairwise(ends)
    ]
    return [Sass(tuple(kernel), stack) for kernel, stack in zip(kernels, stacks, strict=True)]


def held(
    specs: Sequence[build.Spec], capability: Capability, folder: Path, spilled: int = 0
) -> list[Sass]:
    """Build specs for an architecture: nothing is called, and so many bytes at most are spilled."""
    codes = read_all(specs, capability, folder)
    for spec, code in zip(specs, codes, strict=True):
        where = f"{build.arch_of(capability)} {spec.expression}"
        assert not code.calls(), f"{where}: calls"
        assert code.local_bytes <= spilled, f"{where}: {code.local_bytes} bytes of local memory"
        assert code.compared_places() <= FEW_PLACES, f"{where}: indexes an array in registers"
    return codes


def _output(name: str, *arguments: str | Path) -> str:
    tool = _tool(name)
    assert tool is not None
    command = [tool, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@dataclass(frozen=True)
class Case:
    """A kernel, and whether it should load 16 bytes at a time (None: either will do)."""

    spec: build.Spec
    is_wide: bool | None

    def faults(self, sass: Sass) -> Iterator[str]:
        """Name what is wrong with the machine code."""
        if sass.calls():
            yield f"calls, as if the operator were not inlined: {sass.calls()}"
        if sass.local_bytes or sass.count("LDL|STL"):
            yield f"registers spill: {sass.local_bytes} bytes of local memory"
        if sass.compared_places() > FEW_PLACES:
            yield "an array in registers is indexed by a variable"
        if self.is_wide is not None and bool(sass.count(r"LDG\.E\.128")) != self.is_wide:
            yield "elements are not loaded 16 bytes at a time" if self.is_wide else "16-byte loads"


def check(cases: list[Case], capability: Capability, folder: Path) -> None:
    """Assert that no kernel's machine code has a fault."""
    codes = read_all([case.spec for case in cases], capability, folder)
    found = [
        f"{build.arch_of(capability)} {case.spec.expression}: {fault}"
        for case, code in zip(cases, codes, strict=True)
        for fault in case.faults(code)
    ]
    assert not found, "\n".join(found)


FEW_BYTES, MANY_BYTES = 1 << 16, 1 << 30
MANY_ROWS = 1 << 16
WIDTHS = (1, 8, 32)  # lanes to a row


def reduce_cases(
    op: Operator, source: records.Element, acc: Dtype, num_bytes: int, *, aligned: bool = True
) -> list[Case]:
    """Return the kernels of a reduction: blocks, rows, and columns, of neighbouring elements."""
    rows_wide = aligned or (None if source.itemsize == 16 else False)
    leaves = len(records.field_dtypes(source))
    cuts = [rows.tile_rows(op, 1, num_bytes // source.itemsize, source)]
    cuts += [rows.tile_rows(op, MANY_ROWS, n * rows.row_items(source), source) for n in WIDTHS]
    assert [cut.width for cut in cuts] == [0, *WIDTHS]
    access = rows.flat(source, rows.row_items(source) if aligned else 1)
    cases = [Case(rows.rows_spec(op, source, acc, access, cut), rows_wide) for cut in cuts]
    widest = rows.column_items(source, acc, MANY_ROWS)
    items = widest if aligned else 1
    cut = rows.tile_columns(1, 1000, MANY_ROWS, widest, items, *(2 * [rows.packed_size(source)]))
    is_wide: bool | None = items * records.alignment_of(source) == templates.VECTOR_BYTES
    if leaves > 1 and not is_wide:
        is_wide = None  # whole records are, as partials
    return [*cases, Case(rows.columns_spec(op, source, acc, cut, True), is_wide)]


def strided_case(op: Operator, source: Dtype, acc: Dtype, **dims: bool) -> Case:
    """Return the kernel that reduces a few long rows of any strides, or of `policy.strided`'s."""
    cut = rows.tile_rows(op, 1, MANY_BYTES // source.itemsize, source)
    is_wide = None if records.alignment_of(source) == 16 else False
    access = rows.strided(source, **dims)
    return Case(rows.rows_spec(op, source, acc, access, cut), is_wide)


def loose_case(op: Operator, inputs: list[Dtype], result: Dtype) -> Case:
    """Return the kernel that transforms arrays without gaps, all inputs misaligned."""
    items = min(elements.LOOSE_ITEMS, elements.pack_items((result, *inputs), 16))
    loads, loose = elements.loads_in_flight(inputs, items), (1 << len(inputs)) - 1
    applied = elements.Applied(op, tuple(inputs), result)
    is_wide = None if max(dtype.itemsize for dtype in inputs) == 16 else False
    return Case(elements.flat_spec(applied, items, loads, loose=loose), is_wide)


def flat_case(op: Operator, inputs: list[Dtype], result: Dtype, *, aligned: bool = True) -> Case:
    """Return the kernel that transforms arrays without gaps."""
    operands = [result, *inputs]
    widest = max(dtype.itemsize for dtype in operands)
    items = elements.pack_items(tuple(operands), elements.VECTOR_BYTES if aligned else widest)
    loads = elements.loads_in_flight(inputs, items)
    read_bytes = max(items * dtype.itemsize for dtype in inputs)
    is_wide = None if widest == 16 else read_bytes >= elements.VECTOR_BYTES
    applied = elements.Applied(op, tuple(inputs), result)
    return Case(elements.flat_spec(applied, items, loads), is_wide)


def transform_cases(op: Operator, inputs: list[Dtype], result: Dtype) -> list[Case]:
    """Return the kernels of a transformation: without gaps, in rows, and turned."""
    applied = elements.Applied(op, tuple(inputs), result)
    every = (1 << len(inputs) + 1) - 1
    items = elements.pack_items((result, inputs[0]), elements.VECTOR_BYTES)
    loads = elements.loads_in_flight(inputs[:1], items)
    widths = max(items * dtype.itemsize for dtype in (result, inputs[0]))
    is_wide = widths >= elements.VECTOR_BYTES and None
    repeated = elements.OperandMasks(3, every & ~3)  # but the first input
    square = elements.SQUARE_ITEMS[max(inputs[-1].itemsize, result.itemsize)]
    last = 1 << len(inputs) - 1
    return [
        flat_case(op, inputs, result),
        Case(elements.rows_spec(applied, items, loads, repeated, True), is_wide),
        Case(elements.rows_spec(applied, 1, 4, elements.OperandMasks(0, 0), False), None),
        Case(elements.transposed_spec(applied, square, last, last - 1, True), None),
    ]


def transformed(
    fn: Callable[..., Any], inputs: list[Dtype], folder: Path, capability: Capability
) -> tuple[Dtype, Sass]:
    """Return the inferred dtype of a transformation, and its machine code."""
    ((result, code),) = all_transformed([fn], inputs, folder, capability)
    return result, code


def all_transformed(
    functions: Sequence[Callable[..., Any]], inputs: list[Dtype], folder: Path,
    capability: Capability,
) -> list[tuple[Dtype, Sass]]:  # fmt: skip
    """Return the inferred dtypes of transformations, and their machine code."""
    ops = list(map(Operator, functions))
    results = [build.result_dtype(op, tuple(inputs), None, capability) for op in ops]
    cases = [flat_case(op, inputs, result) for op, result in zip(ops, results, strict=True)]
    codes = read_all([case.spec for case in cases], capability, folder)
    return list(zip(results, codes, strict=True))


def check_links_once(
    monkeypatch: pytest.MonkeyPatch,
    spec: Callable[[Any], build.Spec],
    one: Any,
    same: Any,
    new: Any,
) -> None:
    """Assert that the specs of two captured values have one machine code, a third one's its own."""
    first = build.cubin(spec(one), (9, 0))

    def link(*_: Any) -> Any:
        raise AssertionError("linked")

    monkeypatch.setattr(compilers, "linked", link)
    assert build.cubin(spec(same), (9, 0)) is first
    with pytest.raises(AssertionError, match="linked"):
        build.cubin(spec(new), (9, 0))
