"""NVRTC and nvJitLink: a kernel's machine code, and that of a kernel with operators.

Both are called through cuda.bindings: cuda.core takes 100 ms to load and passes `-fma=false`, which
nvJitLink refuses. They run without the GIL.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from gpualgo._base.errors import CompileError
from gpualgo._driver import driver

_HINT = "pip install 'gpualgo[cu13]'"
OPTIONS = (
    "--std=c++17",
    "--fmad=false",  # a * b + c rounds twice, as in NumPy and on the CPU
    "--device-as-default-execution-space",  # needed for generic lambdas up to NVRTC 13.0
)


def bindings(name: str, what: str) -> Any:
    try:
        return driver.bindings(name)
    except ImportError as error:
        raise CompileError(f"{what} a kernel needs cuda-bindings: {_HINT} ({error})") from error


@cache
def nvrtc_version() -> str:
    """Return NVRTC's version; an older nvJitLink cannot read a newer NVRTC's LTO-IR."""
    version = bindings("nvrtc", "compiling").nvrtcVersion()
    return ".".join(map(str, _checked(version)))


def compiled(
    source: str, expression: str, arch: str, folder: Path, kind: str = "CUBIN", *options: str
) -> tuple[bytes, str]:
    """Return a kernel's code, of a kind that NVRTC makes, and its mangled name."""
    nvrtc = bindings("nvrtc", "compiling")
    all_options = [f"--gpu-architecture={arch}", f"--include-path={folder}", *OPTIONS, *options]
    try:
        program = _checked(nvrtc.nvrtcCreateProgram(source.encode(), b"gpualgo", 0, [], []))
    except Exception as error:  # the library is missing
        raise CompileError(f"NVRTC failed on {expression}: {error}") from error
    try:
        _checked(nvrtc.nvrtcAddNameExpression(program, expression.encode()))
        done = nvrtc.nvrtcCompileProgram(
            program, len(all_options), [os.fsencode(each) for each in all_options]
        )
        if done[0] != 0:
            log = _filled(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
            text = log.rstrip(b"\0").decode(errors="replace")
            raise RuntimeError(f"{done[0].name}: {text}")
        name = _checked(nvrtc.nvrtcGetLoweredName(program, expression.encode()))
        size, fill = (getattr(nvrtc, f"nvrtcGet{kind}{end}") for end in ("Size", ""))
        return _filled(size, fill, program), name.decode()
    except RuntimeError as error:
        raise CompileError(f"NVRTC failed on {expression}: {error}") from error
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _filled(size: Any, fill: Any, program: Any) -> bytes:
    buffer = bytearray(_checked(size(program)))
    _checked(fill(program, buffer))
    return bytes(buffer)


def _checked(result: tuple[Any, ...]) -> Any:
    """Return the values of an NVRTC call; raise RuntimeError if it failed."""
    if result[0] != 0:
        raise RuntimeError(result[0].name)
    return result[1] if len(result) == 2 else result[1:]


def linked(parts: tuple[bytes, ...], arch: str, what: str, kind: str = "LTOIR") -> bytes:
    """Return the machine code of PTX, or of LTO-IR, whose calls are inlined."""
    nvjitlink = bindings("nvjitlink", "linking")
    options = [f"-arch={arch}", "-O3", "-fma=0", *(["-lto"] if kind == "LTOIR" else [])]
    linker = nvjitlink.create(len(options), options)
    try:
        for code in parts:
            nvjitlink.add_data(
                linker, getattr(nvjitlink.InputType, kind), code, len(code), "gpualgo"
            )
        nvjitlink.complete(linker)
        cubin = bytearray(nvjitlink.get_linked_cubin_size(linker))
        nvjitlink.get_linked_cubin(linker, cubin)
        return bytes(cubin)
    except nvjitlink.nvJitLinkError as error:
        log = bytearray(nvjitlink.get_error_log_size(linker))
        nvjitlink.get_error_log(linker, log)
        raise CompileError(
            f"nvJitLink failed on {what}: {error}: {log.decode(errors='replace')}; it "
            "must be at least as new as NVRTC and NVVM: `gpualgo doctor` compares them"
        ) from error
    finally:
        nvjitlink.destroy(linker)


def with_operator(kernel: bytes, operator: str, arch: str, what: str) -> bytes:
    """Return the machine code of a kernel in PTX, where an operator's code replaces its calls."""
    try:
        text = inlined(kernel.decode(), operator)
    except (AttributeError, LookupError, TypeError, ValueError) as error:  # another notation
        raise CompileError(f"the calls in {what} cannot be replaced: {error!r}") from error
    return linked((text.encode(),), arch, what, "PTX")


# --- PTX: the code of functions is put into the places where a kernel calls them, as text.
#
# ptxas keeps calls as they are. Linking LTO-IR would inline them, but optimises the whole kernel
# anew for each operator, which takes longer than everything else. What is read here is NVIDIA's
# notation of calls (PTX ISA, "call"): numbers are stored to parameters, and results are loaded.

_FUNCTION = re.compile(r"\.func\s*(?:\([^()]*\))?\s*([\w$]+)\s*(?:\([^()]*\))?[^;{]*(?=[;{])")
_ENTRY = re.compile(r"^[^\n/]*\.entry\s", re.MULTILINE)
_CALL = re.compile(r"\{\s*// callseq [^\n]*\n(.*?)\}\s*// callseq [^\n]*\n", re.DOTALL)
_CALLED = re.compile(r"\bcall(?:\.uni)?\s+(?:\(\w+\),)?\s*([\w$]+)")
_OF_CALL = re.compile(r"\.(?:reg|param)\s[^;]*;|\bcall(?:\.uni)?\s[^;]*;")
# A word is halved before its halves are stored.
_HALVED = re.compile(r"(?:mov\.b\d+\s+\{[^}]*\},\s*[%\w]+;\s*)+")
_REGISTERS = re.compile(r"\.reg\s+\.[a-z]+(\d*)\s+%(\w+?)<\d+>;")
# A store to a parameter, or a load from one: vectors are in braces.
_MOVE = re.compile(
    r"(?P<kind>st|ld)\.param(?:\.v\d)?\.(?P<type>\w+)\s+"
    r"(?:(?P<loaded>\{[^}]*\}|\S+),\s*)?\[(?P<place>[\w$]+)(?:\+(?P<offset>\d+))?\]"
    r"(?:,\s*(?P<stored>\{[^}]*\}|\S+))?;"
)
_EXTERN = re.compile(r"^\.extern\s[^;]*?([\w$]+)\s*(?:\[\d*\]|\([^()]*\))?\s*;\n?", re.MULTILINE)
_DATA = re.compile(
    r"^(?:\.weak\s+)?\.(?:global|const)\s[^;=\[]*?([\w$]+)(?:\[\d*\])*\s*(?:=[^;]*)?;\n",
    re.MULTILINE,
)
_VERSION = re.compile(r"^\.version (\d+)\.(\d+)", re.MULTILINE)
_HEAVY = re.compile(r"\b(?:div|rem|sqrt|rcp)\.|\.local\b")
WORDS = "_words"
MOST_TEXT = 10_000  # characters: each call gets a copy


@dataclass(frozen=True)
class _Word:
    """A register, or a number, that is stored to a parameter or loaded from one."""

    register: str
    type: str  # b32, say
    offset: int  # in the parameter
    held: int  # bits of the register, of which a store takes the lowest and a load fills all

    @property
    def bits(self) -> int:
        return int(self.type.lstrip("busf"))

    def overlaps(self, other: _Word) -> bool:
        end, other_end = (word.offset + word.bits // 8 for word in (self, other))
        return self.offset < other_end and other.offset < end

    def part(self, target: _Word) -> str:
        """Return how a register takes the part of this word in which it lies."""
        wide, narrow, start = self.bits, target.bits, 8 * (target.offset - self.offset)
        if self.held == wide == narrow == target.held:
            return f"mov.b{wide} {target.register}, {self.register};"
        taken = f"mov.b{wide}" if self.held == wide else f"cvt.u{wide}.u{self.held}"
        lines = [f"{{ .reg .b{wide} %in_whole;", f"{taken} %in_whole, {self.register};"]
        if start:
            lines += [f"shr.u{wide} %in_whole, %in_whole, {start};"]
        if target.type[0] == "f":
            lines += [f".reg .b{narrow} %in_part;", f"cvt.u{narrow}.u{wide} %in_part, %in_whole;"]
            lines += [f"mov.b{narrow} {target.register}, %in_part; }}"]
        else:
            sign = "s" if target.type[0] == "s" else "u"
            lines += [f"cvt.{sign}{narrow}.{sign}{wide} {target.register}, %in_whole; }}"]
        return "\n".join(lines)


def _taken(words: list[_Word], target: _Word) -> str:
    """Return how a register takes what lies in its place: a part of a word, a word, or two."""
    start, end = target.offset, target.offset + target.bits // 8
    within = sorted(filter(target.overlaps, words), key=lambda word: word.offset)
    first = within[0] if within else target
    if len(within) == 1 and first.offset <= start and first.offset + first.bits // 8 >= end:
        return first.part(target)
    if [word.bits for word in within] == [target.bits // 2] * 2 and within[0].offset == start:
        low, high = (word.register for word in within)
        whole = f"mov.b{target.bits} {{}}, {{{{{low}, {high}}}}};"
        if target.held == target.bits:
            return whole.format(target.register)
        widened = _Word("%in_halves", f"b{target.bits}", start, target.bits).part(target)
        declared = f".reg .b{target.bits} %in_halves;"
        return "\n".join(("{", declared, whole.format("%in_halves"), widened, "}"))
    raise ValueError(f"{target} is not in {words}")


def _held(text: str) -> dict[str, int]:
    """Return the bits of registers, by the first part of their names."""
    return {name: int(bits or 1) for bits, name in _REGISTERS.findall(text)}


def _words(move: re.Match[str], held: Mapping[str, int]) -> list[_Word]:
    """Return what a move stores or loads, word by word."""
    registers = (move["loaded"] or move["stored"]).strip("{}").split(",")
    start, bits = int(move["offset"] or 0), int(move["type"].lstrip("busf"))
    words = []
    for i, register in enumerate(map(str.strip, registers)):
        size = held.get(register.lstrip("%").rstrip("0123456789"), bits)
        words.append(_Word(register, move["type"], start + i * bits // 8, size))
    return words


class Function:
    """A device function, of which calls get copies."""

    def __init__(self, name: str, body: str) -> None:
        self.name, self.body = name, body  # what is between its braces

    @cached_property
    def _pieces(self) -> list[str | tuple[int | None, list[_Word]]]:
        """Its code, its registers and labels renamed: text, and words passed by calls.

        A number is that of the parameter from which words are loaded; None: the result.
        """
        held = _held(self.body)
        body = re.sub(rf"%({'|'.join(held)})(?=\d|<)", r"%in_\1", self.body)
        held = _held(body)
        body = re.sub(r"\bret;\s*$", "", body.replace("$L_", "$L_in_"))
        if re.search(r"\bret;", body):
            body = re.sub(r"\bret;", "bra $L_returned;", body) + "$L_returned:\n"
        if re.search(r"\b(?:ret|exit)\b", body):
            raise ValueError(f"{self.name} ends in another way than by ret")
        pieces: list[str | tuple[int | None, list[_Word]]] = []
        end = 0
        for move in _MOVE.finditer(body):
            place = move["place"]
            is_loaded = move["kind"] == "ld" and place.startswith(f"{self.name}_param_")
            if is_loaded or (move["kind"] == "st" and place == "func_retval0"):
                number = int(place.rpartition("_")[2]) if is_loaded else None
                pieces += body[end : move.start()], (number, _words(move, held))
                end = move.end()
        pieces.append(body[end:])
        if any(f"{self.name}_param_" in piece for piece in pieces if isinstance(piece, str)):
            raise ValueError(f"{self.name} takes the address of a parameter")
        return pieces

    def at(self, arguments: Mapping[int, list[_Word]], results: list[_Word]) -> str:
        """Return its code for one call, in braces: the names in there are its own."""
        lines, stored = [], {}
        for piece in self._pieces:
            if isinstance(piece, str):
                lines.append(piece)
            elif piece[0] is None:
                for word in piece[1]:
                    place = f"%in_result{word.offset}_{word.bits}"
                    stored[place] = _Word(place, f"b{word.bits}", word.offset, word.bits)
                    lines.append(word.part(stored[place]))
            else:
                lines += [_taken(arguments[piece[0]], word) for word in piece[1]]
        declared = [f".reg .b{word.bits} {word.register};" for word in stored.values()]
        words = [*stored.values()]
        for word in results:
            if word.bits >= 32 or any(each.overlaps(word) for each in words):
                lines.append(_taken(words, word))
            else:  # what lies between two words
                lines.append(f"mov.b{word.held} {word.register}, 0;")
        return "\n".join(("{", *declared, *lines, "}\n"))


def functions_of(text: str) -> dict[str, Function]:
    """Return the functions that a module defines."""
    found = {}
    for head in _FUNCTION.finditer(text):
        if text[head.end()] == "{":
            start = head.end() + 1
            found[head[1]] = Function(head[1], text[start : _end(text, start) - 1])
    return found


def _end(text: str, start: int) -> int:
    """Return where what a brace before `start` opens is closed."""
    depth = 1
    for brace in re.compile("[{}]").finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    raise ValueError("PTX with an open brace")


class _Call(NamedTuple):
    """A call of a function: its text, what it stores before, and the words that it passes."""

    name: str
    text: str
    before: str
    arguments: dict[int, list[_Word]]  # by number of the parameter
    results: list[_Word]


@lru_cache(maxsize=16)  # some MB; each new operator asks for the calls of the same kernels
def _calls(text: str) -> list[str | _Call]:
    """Return a module's or a function's code: its calls, and the text between them."""
    held = _held(text)
    pieces: list[str | _Call] = []
    end = 0
    for found in _CALL.finditer(text):
        called = _CALLED.search(found[1])
        if called is None:
            continue
        arguments: defaultdict[int, list[_Word]] = defaultdict(list)
        results = []
        for move in _MOVE.finditer(found[1]):
            if move["kind"] == "ld":
                results += _words(move, held)
            else:
                arguments[int(move["place"].removeprefix("param"))] += _words(move, held)
        before = _OF_CALL.sub("", _MOVE.sub("", found[1])).strip()
        call = _Call(called[1], found[0], before, dict(arguments), results)
        pieces += text[end : found.start()], call
        end = found.end()
    return [*pieces, text[end:]]


def with_calls_replaced(text: str, function: Callable[[str], Function | None]) -> str:
    """Put functions into the places where they are called; others are called as before."""

    def replaced(call: _Call) -> str:
        inlined = function(call.name)
        if inlined is None:
            return call.text
        if call.before and not _HALVED.fullmatch(call.before):
            raise ValueError(f"within a call: {call.before}")
        return f"{call.before}\n{inlined.at(call.arguments, call.results)}"

    return "".join(each if isinstance(each, str) else replaced(each) for each in _calls(text))


def is_simple(operator: str) -> bool:
    """Return whether a kernel with this operator is as fast as if both were optimised together.

    Divisions and roots are functions of the assembler, which it does not inline into a module.
    """
    calls = {*_CALLED.findall(operator)} - {"gpualgo_number"}
    return not calls and len(operator) < MOST_TEXT and _HEAVY.search(operator) is None


def inlined(kernel: str, operator: str) -> str:
    """Return a kernel's module with the function that a simple operator's module defines."""
    functions = functions_of(kernel)
    (own,) = (each for name, each in functions_of(operator).items() if name.endswith(WORDS))
    own = Function(own.name, with_calls_replaced(own.body, functions.get))
    data = "".join(found[0] for found in _DATA.finditer(operator))
    called = {_signature(found[0]) for found in _FUNCTION.finditer(kernel) if WORDS in found[1]}
    defined = {_signature(found[0]) for found in _FUNCTION.finditer(operator) if WORDS in found[1]}
    if called - defined or len(defined) > 1:
        raise ValueError(f"the operator takes {defined}, but calls pass {called}")
    kernel = _EXTERN.sub(lambda extern: "" if WORDS in extern[1] else extern[0], kernel)
    kernel = with_calls_replaced(kernel, lambda called: own if WORDS in called else None)
    newest = max(_version(kernel), _version(operator))
    kernel = _VERSION.sub(f".version {newest[0]}.{newest[1]}", kernel, count=1)
    entry = _ENTRY.search(kernel)
    if entry is None:
        raise ValueError("no kernel")
    return kernel[: entry.start()] + data + kernel[entry.start() :]


def _signature(head: str) -> tuple[tuple[str, str], ...]:
    """Return types and sizes of a function's result and parameters."""
    return tuple(re.findall(r"\.param\s+((?:\.align\s+\d+\s+)?\.\w+)\s+[\w$]+(\[\d+\])?", head))


def _version(module: str) -> tuple[int, int]:
    found = _VERSION.search(module)
    if found is None:
        raise ValueError("no version")
    return int(found[1]), int(found[2])


def without_unused_data(module: str) -> str:
    """Return a module without the constants that none of its functions reads."""
    uses = Counter(re.findall(r"[\w$]+", module))
    return _DATA.sub(lambda data: data[0] if uses[data[1]] > 1 else "", module)
