"""What the kernels may hold: CUDA beyond C++ has two headers, and stands nowhere else.

So a compiler of C++ alone can be given others in their place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from support import REPOSITORY

SOURCES = REPOSITORY / "cuda_src"
PTX = [SOURCES / "parts/ptx.cuh", SOURCES / "parts/intrinsics.cuh"]
# Attributes take arguments, too.
ELSEWHERE = re.compile(
    r"\b(asm|volatile|__shared__|atomic[A-Z]\w*|__(?!launch_bounds__|align__)\w+(?=\s*\())"
)
FUNCTION = re.compile(r"^__device__ inline [^(]*?(\w+)\(", re.MULTILINE)


def beyond_cpp(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines, from 1 on, and words of a source that belong in one of the two headers."""
    for number, line in enumerate(text.splitlines(), 1):
        code, _, _ = line.partition("//")
        for word in ELSEWHERE.findall(code):
            yield number, word


def test_kernels_are_cpp_but_for_two_headers() -> None:
    others = sorted(set(SOURCES.rglob("*.cuh")) - set(PTX))
    assert len(others) > 20, "the kernels lie elsewhere"
    found = [
        f"{path.relative_to(REPOSITORY)}:{line}: {word} belongs in cuda_src/parts/ptx.cuh"
        for path in others
        for line, word in beyond_cpp(path.read_text())
    ]
    assert not found, "\n".join(found)


def test_both_headers_hold_what_is_used_alone() -> None:
    text = "".join(path.read_text() for path in SOURCES.rglob("*.cuh"))
    used = set(re.findall(r"\bptx::(?!gpualgo_)(\w+)", text))  # gpualgo_: the build defines them
    functions = {name for path in PTX for name in FUNCTION.findall(path.read_text())}
    assert {"syncthreads", "ld_relaxed_gpu", "shared_memory", "popc"} <= functions
    assert functions == used


def test_the_emulated_machine_has_the_same_functions() -> None:
    include = REPOSITORY / "tests/emulator/include"
    for path in PTX:
        text = (include / path.relative_to(SOURCES)).read_text()
        public = re.sub(r"namespace detail \{.*?\}  // namespace detail", "", text, flags=re.DOTALL)
        stands_in = set(re.findall(r"^STEP [^(]*?(\w+)\(", public, re.MULTILINE))
        assert stands_in == set(FUNCTION.findall(path.read_text())), path.name


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ('  asm volatile("bar.sync 0;");', "asm"),
        ("  volatile int ready;", "volatile"),
        ("__shared__ int words[4];", "__shared__"),
        ("  if (threadIdx.x == 0) __syncthreads();", "__syncthreads"),
        ("  return __popc (x);", "__popc"),
        ("  atomicAdd(counter, 1);", "atomicAdd"),
        ("  auto add = atomicAdd_block<int>;", "atomicAdd_block"),
        ("  __builtin_assume(x > 0);", "__builtin_assume"),
    ],
)
def test_what_belongs_in_the_headers_is_found(code: str, word: str) -> None:
    assert (2, word) in beyond_cpp(f"\n{code}  // a comment\n")


@pytest.mark.parametrize(
    "code",
    [
        "__global__ void __launch_bounds__(256) kernel(const __grid_constant__ Params params) {",
        "  __device__ explicit Table(uint32* words) : words(words) {}",
        "struct __align__(16) Pair;",
        "  ptx::syncthreads();  // not asm, __syncthreads() or volatile",
        "  const int thread = threadIdx.x + blockIdx.x * blockDim.x;",
    ],
)
def test_attributes_and_comments_may_stand_anywhere(code: str) -> None:
    assert not list(beyond_cpp(code))
