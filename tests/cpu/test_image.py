"""Objects for AArch64 are linked on any machine: what each instruction refers to is looked up."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from gpualgo._cpu import image

pytestmark = pytest.mark.skipif(not image.SUPPORTED, reason="no images on this system")
binding = pytest.importorskip("llvmlite.binding")

MODULE = """
@bytes = internal constant i8 90
@halves = internal constant i16 12345
@words = internal constant i32 123456789
@longs = internal constant i64 1234567890123456789
@vectors = internal constant <2 x i64> <i64 111, i64 222>, align 16
@table = internal constant [3 x i64] [i64 1001, i64 1002, i64 1003]
@functions = internal constant [2 x ptr] [ptr @inner, ptr @sin]
@gpualgo_words_1 = external global [9 x i64]
declare double @sin(double)
declare i64 @next(i64)

define internal i64 @inner(i64 %i) noinline { ret i64 %i }

define i64 @gpualgo_entry(i64 %i) {
    %a = load volatile i8, ptr @bytes
    %b = load volatile i16, ptr @halves
    %c = load volatile i32, ptr @words
    %d = load volatile i64, ptr @longs
    %e = load volatile <2 x i64>, ptr @vectors
    %f = getelementptr [3 x i64], ptr @table, i64 0, i64 %i
    %g = load volatile i64, ptr %f
    %h = getelementptr [2 x ptr], ptr @functions, i64 0, i64 %i
    %j = load ptr, ptr %h
    %k = call i64 %j(i64 %g)
    %l = load i64, ptr @gpualgo_words_1
    %m = call i64 @inner(i64 %l)
    %n = call i64 @next(i64 %m)
    %o = tail call i64 @next(i64 %n)
    ret i64 %o
}
"""


def compiled(module: str) -> bytes:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    try:
        target = binding.Target.from_triple("aarch64-unknown-linux-gnu")
    except RuntimeError:
        pytest.skip("this LLVM does not compile for AArch64")
    if binding.llvm_version_info < (16,):
        pytest.skip("this LLVM has typed pointers")
    machine = target.create_target_machine(reloc="pic", codemodel="small")
    content: bytes = machine.emit_object(binding.parse_assembly(module))
    return content


def references(content: bytes) -> Iterator[tuple[str, int]]:
    """Yield what the block's instructions refer to: how, and at what offset."""
    pages: dict[int, int] = {}  # by register
    for here in range(0, len(content) - 3, 4):
        (code,) = struct.unpack_from("<I", content, here)
        if code >> 26 in (0b100101, 0b000101):  # bl, b
            yield "branch", here + 4 * ((code & 0x3FFFFFF ^ 1 << 25) - (1 << 25))
        elif code >> 24 & 0x9F == 0x90:  # adrp
            distance = (code >> 5 & 0x7FFFF) << 2 | code >> 29 & 3
            pages[code & 31] = (here & -4096) + ((distance ^ 1 << 20) - (1 << 20) << 12)
        elif code >> 22 == 0b1001000100 and (code >> 5 & 31) in pages:  # add
            yield "add", pages[code >> 5 & 31] + (code >> 10 & 0xFFF)
        elif code >> 24 & 0x3B == 0x39 and (code >> 5 & 31) in pages:  # ldr
            shift = 4 if code >> 30 == 0 and code >> 26 & 1 and code >> 23 & 1 else code >> 30
            yield f"load {1 << shift}", pages[code >> 5 & 31] + ((code >> 10 & 0xFFF) << shift)


@pytest.mark.parametrize("padding", [0, *range(3600, 4100, 50), 10_000, 300_000])
def test_what_code_for_aarch64_refers_to(padding: int) -> None:
    """Constants lie on the code's page, across its end, and on later ones."""
    more = f"@long = internal constant [{padding} x i8] zeroinitializer, align 16\n"
    use = "    %z = load volatile i8, ptr @long\n    %a ="
    block = image.link(
        compiled(more + MODULE.replace("    %a =", use) if padding else MODULE), "gpualgo_entry"
    )
    assert block is not None
    content, others = block.content, dict(block.others)
    found = set(references(content))

    def is_found(how: str, value: bytes) -> bool:
        return any(each == how and content[at:].startswith(value) for each, at in found)

    assert is_found("load 1", b"\x5a")
    assert is_found("load 2", struct.pack("<H", 12345))
    assert is_found("load 4", struct.pack("<I", 123456789))
    assert is_found("load 8", struct.pack("<Q", 1234567890123456789))
    assert is_found("load 16", struct.pack("<2Q", 111, 222))
    assert is_found("add", struct.pack("<3Q", 1001, 1002, 1003))
    (inner,) = (struct.unpack_from("<Q", content, at)[0] for at in block.own)
    assert ("branch", inner) in found
    assert content[inner : inner + 4] == struct.pack("<I", 0xD65F03C0)  # ret
    assert ("add", block.own[0]) in found
    assert others.pop(block.own[0] + 8) == "sin"
    (words,) = (at for at, name in others.items() if name == "gpualgo_words_1")
    assert ("load 8", words) in found
    (far,) = (at for at, name in others.items() if name == "next")
    assert [how for how, at in references(content) if at == far - 8] == ["branch", "branch"]
    assert struct.unpack_from("<2I", content, far - 8) == (0x58000050, 0xD61F0200)
    assert far % 8 == 0


def test_what_is_left_to_llvm() -> None:
    for line in ("@variable = internal global i64 5", "@variable = thread_local global i64 5"):
        module = MODULE + line
        module = module.replace("ptr @longs", "ptr @variable")
        assert image.link(compiled(module), "gpualgo_entry") is None
    assert image.link(compiled(MODULE), "another") is None
