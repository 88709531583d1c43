"""Functions put into the places of their calls, in PTX: what libNVVM prints, taken apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_driver
import numpy as np
import pytest
import sass
from fake_driver import FakeArray
from sass import needs_compilers

import gpualgo as ga
from gpualgo._cuda import build, compilers

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n\n"
CALL = """\
	{ // callseq 0, 0
	.reg .b32 temp_param_reg;
	.param .b32 param0;
	st.param.b32 	[param0+0], %r7;
	.param .b64 param1;
	st.param.b64 	[param1+0], %rd3;
	.param .align 8 .b8 retval0[16];
	call.uni (retval0),
	_Z_words,
	(
	param0,
	param1
	);
	ld.param.b32 	%r8, [retval0+0];
	ld.param.b64 	%rd4, [retval0+8];
	} // callseq 0
"""
KERNEL = f"""{HEAD}.extern .func  (.param .align 8 .b8 func_retval0[16]) _Z_words
(
	.param .b32 _Z_words_param_0,
	.param .b64 _Z_words_param_1
)
;
.weak .global .align 4 .u32 _ZN7gpualgo6unusedE = 16;
.weak .global .align 4 .u32 _ZN7gpualgo4usedE = 4;
.visible .const .align 8 .b8 gpualgo_state[512];

.visible .func  (.param .b64 func_retval0) gpualgo_number(
	.param .b32 gpualgo_number_param_0
)
{{
	.reg .b32 	%r<2>;
	.reg .b64 	%rd<2>;

	ld.param.u32 	%r1, [gpualgo_number_param_0];
	cvt.u64.u32 	%rd1, %r1;
	st.param.b64 	[func_retval0+0], %rd1;
	ret;

}}
	// .weak	kernel
.weak .entry kernel(
	.param .u64 kernel_param_0
)
{{
	.reg .b16 	%rs<9>;
	.reg .b32 	%r<9>;
	.reg .b64 	%rd<9>;

	mov.b32 %r7, _ZN7gpualgo4usedE;
{CALL}	st.global.u32 	[%rd4], %r8;
{CALL}	ret;

}}
"""


def _operator(body: str, before: str = "") -> str:
    return f"""{HEAD}	// .globl	gpualgo_operator_words
{before}
.visible .func  (.param .align 8 .b8 func_retval0[16]) gpualgo_operator_words(
	.param .b32 gpualgo_operator_words_param_0,
	.param .b64 gpualgo_operator_words_param_1
)
{{
	.reg .pred 	%p<2>;
	.reg .b32 	%r<9>;
	.reg .b64 	%rd<9>;

{body}
}}
"""


BODY = """\
	ld.param.b32 	%r7, [gpualgo_operator_words_param_0];
	ld.param.b64 	%rd3, [gpualgo_operator_words_param_1];
	st.param.b32 	[func_retval0+0], %r7;
	st.param.b64 	[func_retval0+8], %rd3;
	ret;
"""


def _joined(body: str, before: str = "") -> list[str]:
    """Return the lines of the kernel with an operator, without spaces at their ends."""
    text = compilers.inlined(KERNEL, _operator(body, before))
    assert "call" not in text.replace("callseq", "")
    assert ".extern" not in text
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def test_words_are_moved_both_ways() -> None:
    """Registers of the function have names of their own; each call has its own block."""
    lines = _joined(BODY)
    taken = ["mov.b32 %in_r7, %r7;", "mov.b64 %in_rd3, %rd3;"]
    stored = ["mov.b32 %in_result0_32, %in_r7;", "mov.b64 %in_result8_64, %in_rd3;"]
    given = ["mov.b32 %r8, %in_result0_32;", "mov.b64 %rd4, %in_result8_64;"]
    start = lines.index(taken[0])
    assert lines[start : start + 7] == [*taken, *stored, *given, "}"]
    assert [lines.count(line) for line in taken + given] == [2] * 4
    assert ".reg .b32 %in_r<9>;" in lines
    assert lines.count(".version 9.0") == 1
    assert lines[-2:] == ["ret;", "}"]


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        ("ld.param.u8 	%rs1, [gpualgo_operator_words_param_0]", "cvt.u8.u32 %rs1, %in_whole;"),
        ("ld.param.s16 	%rs1, [gpualgo_operator_words_param_0]", "cvt.s16.s32 %rs1, %in_whole;"),
        (
            "ld.param.u32 	%r1, [gpualgo_operator_words_param_1]",
            "cvt.u32.u64 %in_r1, %in_whole;",
        ),
        ("ld.param.f32 	%f1, [gpualgo_operator_words_param_1]", "mov.b32 %f1, %in_part;"),
        ("ld.param.f32 	%f1, [gpualgo_operator_words_param_0]", "mov.b32 %f1, %r7;"),
        (
            "ld.param.u32 	%rd1, [gpualgo_operator_words_param_0]",
            "cvt.u32.u32 %in_rd1, %in_whole;",
        ),
    ],
)
def test_parts_of_words(load: str, expected: str) -> None:
    """LLVM loads what it needs of a parameter."""
    lines = _joined(f"\t{load};\n{BODY}")
    assert sum(expected in line for line in lines) == 2


def test_registers_that_are_wider_than_a_word() -> None:
    """A store takes their lowest bits."""
    kernel = KERNEL.replace("st.param.b32 	[param0+0], %r7", "st.param.b32 	[param0+0], %rd7")
    text = compilers.inlined(kernel, _operator(BODY.replace("+0], %r7", "+0], %rd8")))
    assert text.count("cvt.u32.u64 %in_whole, %rd7;\ncvt.u32.u32 %in_r7, %in_whole; }") == 2
    assert text.count("cvt.u32.u64 %in_whole, %in_rd8;\ncvt.u32.u32 %in_result0_32,") == 2


def test_the_upper_half_of_a_word() -> None:
    lines = _joined(f"\tld.param.u32 	%r1, [gpualgo_operator_words_param_1+4];\n{BODY}")
    assert lines.count("shr.u64 %in_whole, %in_whole, 32;") == 2


def test_words_that_are_halved_within_a_call() -> None:
    """NVRTC stores a word of two 16-bit numbers so, for sm_100 and newer GPUs."""
    halved = "mov.b32 	{%rs1, %rs2}, %r7;"
    stored = f"{halved}\n	st.param.v2.b16 	[param0+0], {{%rs1, %rs2}}"
    kernel = KERNEL.replace("st.param.b32 	[param0+0], %r7", stored)
    wide = "	ld.param.u32 	%rd1, [gpualgo_operator_words_param_0];\n"
    text = compilers.inlined(kernel, _operator(wide + BODY))
    assert text.count(halved) == text.count("mov.b32 %in_r7, {%rs1, %rs2};") == 2
    assert text.count("mov.b32 %in_halves, {%rs1, %rs2};") == 2
    assert text.count("mov.b32 %in_whole, %in_halves;\ncvt.u32.u32 %in_rd1, %in_whole; }") == 2


def test_vectors_of_results() -> None:
    loaded = "ld.param.v2.b32 {%r8, %r9}, [retval0+0];"
    stored = "st.param.v2.b32 [func_retval0+0], {%r7, 5}"
    kernel = KERNEL.replace("ld.param.b32 	%r8, [retval0+0];", loaded)
    body = BODY.replace("st.param.b32 	[func_retval0+0], %r7", stored)
    text = compilers.inlined(kernel, _operator(body))
    assert text.count("mov.b32 %in_result0_32, %in_r7;\nmov.b32 %in_result4_32, 5;") == 2
    assert text.count("mov.b32 %r8, %in_result0_32;\nmov.b32 %r9, %in_result4_32;") == 2


def test_labels_are_those_of_the_function() -> None:
    """The kernel has labels of the same names, which a branch within must not reach."""
    lines = _joined(f"\t@%p1 bra \t$L__BB0_2;\n\n$L__BB0_2:\n{BODY}")
    assert lines.count("@%in_p1 bra $L_in__BB0_2;") == lines.count("$L_in__BB0_2:") == 2


def test_an_early_return_leaves_the_block() -> None:
    lines = _joined(f"\t@%p1 bra 	$L__BB0_2;\n{BODY}\n$L__BB0_2:\n{BODY}")
    assert lines.count("bra $L_returned;") == 2
    assert lines.count("$L_returned:") == 2


def test_a_result_that_nobody_reads() -> None:
    kernel = KERNEL.replace("	ld.param.b64 	%rd4, [retval0+8];\n", "")
    text = compilers.inlined(kernel, _operator(BODY))
    assert "mov.b64 %rd4" not in text
    assert text.count("mov.b32 %r8, %in_result0_32;") == 2


def test_functions_of_the_kernel_within_the_operator() -> None:
    call = """\
	{ // callseq 3, 0
	.param .b32 param0;
	st.param.b32 	[param0+0], 2;
	.param .b64 retval0;
	call.uni (retval0), gpualgo_number, (param0);
	ld.param.b64 	%rd5, [retval0+0];
	} // callseq 3
"""
    before = ".extern .func  (.param .b64 func_retval0) gpualgo_number\n(\n\t.param .b32 x\n)\n;\n"
    lines = _joined(call + BODY, before)
    assert lines.count("mov.b32 %in_in_r1, 2;") == 2
    assert lines.count("mov.b64 %in_result0_64, %in_in_rd1;") == 2
    assert lines.count("mov.b64 %in_rd5, %in_result0_64;") == 2


def test_constants_of_the_operator_go_along() -> None:
    """What the kernel defines is the kernel's."""
    table = ".global .align 8 .b8 table[16] = {1, 2};\n"
    before = f"{table}.extern .const .align 8 .b64 gpualgo_state[64];\n"
    text = compilers.inlined(KERNEL, _operator(f"\tmov.b64 %rd1, table;\n{BODY}", before))
    assert text.index(table) < text.index(".weak .entry")
    assert text.count(" gpualgo_state[") == 1
    assert text.count("mov.b64 %in_rd1, table;") == 2


@pytest.mark.parametrize(
    ("line", "is_simple"),
    [
        ("add.rn.f32 %f1, %f1, %f2;", True),
        ("div.rn.f32 %f1, %f1, %f2;", False),
        ("@%p1 rcp.rn.f64 %fd1, %fd2;", False),
        ("{ // callseq 0, 0\n\tcall.uni (retval0), \n\tgpualgo_number, (param0);\n\t}", True),
        ("call.uni (retval0), __internal_trig_reduction_slowpathd, (param0);", False),
        (".local .align 8 .b8 __local_depot0[40];", False),
        ("add.s32 %r1, %r1, %r2;\n" * 500, False),
    ],
)
def test_which_operators_are_simple(line: str, is_simple: bool) -> None:
    assert compilers.is_simple(_operator(f"\t{line}\n{BODY}")) is is_simple


def test_the_newest_version_of_the_notation() -> None:
    operator = _operator(BODY).replace(".version 9.0", ".version 9.10")
    text = compilers.inlined(KERNEL, operator)
    assert text.startswith(".version 9.10\n")
    assert text.count(".version") == 1


def test_constants_that_nobody_reads() -> None:
    text = compilers.without_unused_data(KERNEL)
    assert "unused" not in text
    assert "_ZN7gpualgo4usedE = 4" in text
    assert "gpualgo_state" in text


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ("st.param.v2.b32 	[func_retval0+8], {%r1, %r2}", "{%in_result8_32, %in_result12_32}"),
        ("st.param.b64 	[func_retval0+8], %rd1", "%in_result8_64"),
    ],
)
def test_a_word_in_two_halves(stored: str, expected: str) -> None:
    body = BODY.replace("st.param.b64 	[func_retval0+8], %rd3", stored)
    assert _joined(body).count(f"mov.b64 %rd4, {expected};") == 2


def test_an_argument_in_two_halves() -> None:
    kernel = KERNEL.replace(
        "st.param.b64 	[param1+0], %rd3", "st.param.v2.b32 [param1], {%r1, %f2}"
    )
    text = compilers.inlined(kernel, _operator(BODY))
    assert text.count("mov.b64 %in_rd3, {%r1, %f2};") == 2


def test_a_result_that_is_not_stored_is_refused() -> None:
    body = BODY.replace("	st.param.b64 	[func_retval0+8], %rd3;\n", "")
    with pytest.raises(ValueError, match="is not in"):
        _joined(body)


@pytest.mark.parametrize(
    ("kernel", "operator"),
    [
        (
            KERNEL.replace("%rd4, [retval0+8];", "%rd4, [retval0+8];\n\tadd.s64 %rd4, %rd4, 1;"),
            BODY,
        ),
        (KERNEL, BODY.replace("ret;", "ret.uni;")),
        (KERNEL, BODY.replace("ret;", "exit;")),
        (KERNEL, f"\tmov.b64 %rd1, gpualgo_operator_words_param_0;\n{BODY}"),
        (KERNEL.replace(".param .b64 _Z_words_param_1", ".param .b32 _Z_words_param_1"), BODY),
        (KERNEL.replace("func_retval0[16]) _Z", "func_retval0[24]) _Z"), BODY),
        (KERNEL.replace(".entry", ".func"), BODY),
    ],
)
def test_what_is_not_understood_is_refused(kernel: str, operator: str) -> None:
    assert kernel != KERNEL or operator != BODY
    with pytest.raises(ValueError, match=r"within a call|another way|takes|no kernel"):
        compilers.inlined(kernel, _operator(operator))


def test_small_parts_of_results() -> None:
    """What lies between words is never read: zero. Another part is taken from its word."""
    loaded = "ld.param.b32 	%r8, [retval0+0];"
    kernel = KERNEL.replace(loaded, f"{loaded}\n\tld.param.v2.b8 {{%rs1, %rs2}}, [retval0+3];")
    text = compilers.inlined(kernel, _operator(BODY))
    assert text.count("shr.u32 %in_whole, %in_whole, 24;\ncvt.u8.u32 %rs1, %in_whole;") == 2
    assert text.count("mov.b16 %rs2, 0;") == 2


@needs_compilers
def test_ptx_does_not_depend_on_earlier_compilations() -> None:
    """An option of an earlier one (--gen-opt-lto) would leave arrays in local memory."""
    dtype = np.dtype(np.float32)
    factor = 0.5
    op = ga.Operator(lambda a, b: a * factor + b)
    spec = sass.reduce_cases(op, dtype, dtype, sass.MANY_BYTES)[0].spec
    first = build.compile_for_operator(spec, (9, 0), True)
    build.compile_for_operator(spec, (9, 0), False)
    assert build.compile_for_operator(spec, (9, 0), True) == first


WAYS: list[tuple[str, str, Callable[..., object]]] = [
    ("PTX", "reduce", lambda x, i: ga.reduce(x, 0, lambda a, b: a if a > b else b)),
    ("PTX", "numbers", lambda x, i: ga.transform(lambda a: a * 2.5, x)),
    ("PTX", "scan of pairs", lambda x, i: ga.inclusive_scan((x, i), op=lambda a, b: b)),
    ("PTX", "by key", lambda x, i: ga.reduce_by_key(i, x, op=lambda a, b: max(a, b, 1))),
    ("LTOIR", "division", lambda x, i: ga.transform(lambda a: a / 3, x)),
    ("PTX", "bytes", lambda x, i: ga.transform(lambda a: np.int8(a), x)),
    ("PTX", "differences", lambda x, i: ga.adjacent_difference(x, lambda a, b: a - b)),
    ("LTOIR", "sum of bytes", lambda x, i: ga.reduce(FakeArray((5000,), np.int8), 0,
                                                     lambda a, b: a + b)),
    ("LTOIR", "selection", lambda x, i: ga.select(x, lambda a: a > 2)),
    ("LTOIR", "computed", lambda x, i: ga.reduce(ga.lazy.asarray(x) * 2, 0, lambda a, b: b)),
    ("LTOIR", "random", lambda x, i: ga.transform(
        lambda a: a * 2, ga.lazy.random(x.shape, seed=1, dtype="f4"), out=x)),
]  # fmt: skip


@needs_compilers
@pytest.mark.parametrize(("kind", "call"), [(kind, call) for kind, _, call in WAYS],
                         ids=[name for _, name, _ in WAYS])  # fmt: skip
def test_which_way_is_taken(
    kind: str, call: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the ways that ADR 42 names, and none falls back."""
    fake_driver.install(monkeypatch)
    fake_driver.register_arrays(monkeypatch)
    monkeypatch.setenv("GPUALGO_CACHE_DIR", str(tmp_path))
    for name, value in list(vars(build).items()):
        if isinstance(value, build.Memo):
            monkeypatch.setattr(build, name, build.Memo(value.limit))
    kinds = []

    def linked(parts: Any, arch: str, what: str, kind: str = "LTOIR") -> bytes:
        kinds.append(kind)
        return original(parts, arch, what, kind)

    original = compilers.linked
    monkeypatch.setattr(compilers, "linked", linked)
    call(FakeArray((5000,), np.float32), FakeArray((5000,), np.int32))
    assert set(kinds) == {kind}
