"""From policies to machine code without a GPU or a driver: what kernels hold, what caches keep."""

from __future__ import annotations

import itertools
import operator
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sass
from sass import Capability, Dtype, needs_compilers, needs_cuobjdump
from support import run_python

from gpualgo._algorithms.reduce import policy as rows
from gpualgo._base import disk_cache, dtypes
from gpualgo._cuda import build
from gpualgo._operators.operator import Operator

MAIN: Capability = (9, 0)  # every dtype is compiled for this architecture, some for the others
FLOAT32 = np.dtype("float32")
ADD, MULTIPLY = Operator(operator.add), Operator(operator.mul)
RECOGNISED = {"b": Operator(np.logical_or), "u": ADD, "i": ADD, "f": Operator(max), "c": MULTIPLY}
LAMBDA = Operator(lambda a, b: b if a == b else a + b)


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUALGO_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


# --- machine code -------------------------------------------------------------------------


@needs_cuobjdump
@pytest.mark.parametrize("is_recognised", [True, False], ids=["recognised", "lambda"])
@pytest.mark.parametrize("name", sass.sampled(dtypes.NAMES))
def test_every_dtype(name: str, is_recognised: bool, tmp_path: Path) -> None:
    dtype = sass.dtype_of(name)
    op = RECOGNISED[dtypes.kind(dtype)] if is_recognised else LAMBDA
    cases = sass.reduce_cases(op, dtype, dtype, sass.MANY_BYTES)
    sass.check([*cases, *sass.transform_cases(op, [dtype, dtype], dtype)], MAIN, tmp_path)


@needs_cuobjdump
@pytest.mark.parametrize(
    ("capability", "names"),  # one for a recognised operator, one for a lambda
    [
        ((7, 5), "float16 int64"),
        ((8, 0), "complex64 bfloat16"),
        pytest.param((10, 0), "int8 float32", marks=pytest.mark.exhaustive),
        ((12, 0), "float64 complex128"),
    ],
)
def test_every_architecture(capability: Capability, names: str, tmp_path: Path) -> None:
    for name, op in zip(names.split(), (ADD, LAMBDA), strict=True):
        dtype = sass.dtype_of(name)
        cases = sass.reduce_cases(op, dtype, dtype, sass.FEW_BYTES)
        sass.check([*cases, *sass.transform_cases(op, [dtype, dtype], dtype)], capability, tmp_path)


@needs_cuobjdump
@pytest.mark.parametrize(
    "name", ["float32", pytest.param("bool", marks=pytest.mark.exhaustive), "complex128"]
)
def test_unaligned_and_strided(name: str, tmp_path: Path) -> None:
    dtype = sass.dtype_of(name)
    ops = (LAMBDA, Operator(LAMBDA.fn, commutative=True))
    cases = [sass.strided_case(op, dtype, dtype) for op in ops]
    cases += sass.reduce_cases(LAMBDA, dtype, dtype, sass.FEW_BYTES, aligned=False)
    cases += [sass.flat_case(LAMBDA, [dtype, dtype], dtype, aligned=False)]
    sass.check(cases, MAIN, tmp_path)


@needs_cuobjdump
@pytest.mark.parametrize("names", ["int8 int64", "bfloat16 float32", "float32 complex128"])
def test_mixed_dtypes(names: str, tmp_path: Path) -> None:
    narrow, wide = map(sass.dtype_of, names.split())
    cases = sass.reduce_cases(ADD, narrow, wide, sass.MANY_BYTES)
    cases += sass.transform_cases(LAMBDA, [narrow, wide], wide)
    sass.check(cases, MAIN, tmp_path)


@needs_cuobjdump
@pytest.mark.parametrize("capability", [(7, 5), MAIN, (12, 0)])
def test_weak_literals_stay_single(capability: Capability, tmp_path: Path) -> None:
    result, code = sass.transformed(lambda a: a * 2.0 + 1, [FLOAT32], tmp_path, capability)
    assert result == FLOAT32
    assert code.count("F(MUL|ADD)") > 0
    assert code.count(sass.DOUBLE) == 0


@needs_cuobjdump
def test_what_is_looked_for_can_be_found(tmp_path: Path) -> None:
    """Double precision, and calls: ptxas makes a division's rare cases a subroutine."""
    result, code = sass.transformed(lambda a: 1 / (a * np.float64(2)), [FLOAT32], tmp_path, MAIN)
    assert result == np.float64
    assert code.count(sass.DOUBLE) > 0
    assert code.calls()


@needs_cuobjdump
def test_products_and_sums_round_apart(tmp_path: Path) -> None:
    for letter, dtype in (("F", FLOAT32), ("D", np.dtype("float64"))):
        _, code = sass.transformed(lambda a, b, c: a * b + c, [dtype] * 3, tmp_path, MAIN)
        assert code.count(letter + "FMA") == 0
        assert code.count(letter + "MUL") > 0
        assert code.count(letter + "ADD") > 0
    complex64 = np.dtype("complex64")
    case = sass.flat_case(MULTIPLY, [complex64] * 2, complex64)
    assert sass.read(case.spec, MAIN, tmp_path).count("FFMA") == 0


@needs_cuobjdump
def test_closures_are_constants(tmp_path: Path) -> None:
    scale, shift = np.float32(0.5), 3

    def scaled(a: Any) -> Any:
        return a * scale

    result, code = sass.transformed(lambda a: scaled(a) + shift, [FLOAT32], tmp_path, MAIN)
    assert result == FLOAT32
    assert code.count(sass.DOUBLE) == 0


# --- processes ----------------------------------------------------------------------------

PROCESS = """if True:
    import hashlib, operator, sys
    import numpy as np
    from gpualgo._algorithms.reduce import policy as rows
    from gpualgo._cuda import build
    from gpualgo._operators.operator import Operator
    def halved(a): return a * 0.5
    def joined(a, b): return halved(a) + halved(b)
    op, dtype = Operator({op}), np.dtype(np.float32)
    if op.name is None:
        assert build.result_dtype(op, (dtype, dtype), None, (9, 0)) == dtype
    cut = rows.cut_rows(op, 1, 1 << 20, dtype)
    code, name = build.cubin(rows.rows_spec(op, dtype, dtype, rows.flat(True), cut), (9, 0))
    print(name, hashlib.sha256(code).hexdigest())
    print(*sorted({{"numba", "cuda.core", "cuda.bindings"}} & sys.modules.keys()))
"""


def _in_new_process(op: str, folder: Path) -> tuple[str, set[str]]:
    """Build a kernel where no GPU can be seen; return its name and hash, and what was loaded."""
    code = PROCESS.format(op=op)
    done = run_python(code, GPUALGO_CACHE_DIR=str(folder), CUDA_VISIBLE_DEVICES="-1")
    assert done.returncode == 0, done.stderr
    built, loaded = done.stdout.splitlines()
    return built, set(loaded.split())


@needs_compilers
def test_recognised_operators_need_no_numba(tmp_path: Path) -> None:
    _, loaded = _in_new_process("operator.add", tmp_path)
    assert "cuda.core" in loaded
    assert "numba" not in loaded


@needs_compilers
def test_a_known_kernel_loads_no_compiler(tmp_path: Path) -> None:
    """Nor does it ask a driver, though the operator calls functions."""
    first, loaded = _in_new_process("joined", tmp_path)
    assert loaded >= {"numba", "cuda.core"}
    assert _in_new_process("joined", tmp_path) == (first, set())


# --- caches -------------------------------------------------------------------------------


def _forget(patch: pytest.MonkeyPatch) -> None:
    """Empty the memory caches, as in a new process."""
    for name, value in list(vars(build).items()):
        if isinstance(value, build.Memo):
            patch.setattr(build, name, build.Memo(value.limit))


def _spec(fn: Callable[..., Any], dtype: Dtype = FLOAT32, **options: Any) -> build.Spec:
    op = Operator(fn, **options)
    cut = rows.cut_rows(op, 1, 1 << 20, dtype)
    return rows.rows_spec(op, dtype, dtype, rows.flat(True), cut)


@needs_compilers
def test_a_new_lambda_runs_no_nvrtc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUALGO_CACHE_DIR", str(tmp_path))
    _forget(monkeypatch)
    first = build.cubin(_spec(lambda a, b: a * 2 + b), MAIN)

    def nvrtc(*_: Any) -> Any:
        raise AssertionError("NVRTC ran")

    monkeypatch.setattr(build, "_compile", nvrtc)
    assert build.cubin(_spec(lambda a, b: a * 3 + b), MAIN)[1] == first[1]
    _forget(monkeypatch)
    assert build.cubin(_spec(lambda a, b: a * 2 + b), MAIN) == first
    assert build.cubin(_spec(lambda a, b: a * 4 + b), MAIN)[1] == first[1]


Built = list[tuple[build.Spec, Capability]]


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Built:
    """Start with empty caches and list what is built, without building it."""
    made: Built = []

    def fake(spec: build.Spec, capability: Capability) -> tuple[bytes, str]:
        time.sleep(0.01)  # for other threads to come by
        made.append((spec, capability))
        return bytes(100), "kernel"

    monkeypatch.setattr(build, "_build", fake)
    monkeypatch.setenv("GPUALGO_CACHE_DIR", str(tmp_path / "cache"))
    _forget(monkeypatch)
    return made


def test_what_shares_a_cubin(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    def scaled(k: Any) -> Callable[..., Any]:
        return lambda a, b: a * k + b

    specs = [
        *map(_spec, (lambda a, b: a + b * 2, scaled(2), scaled(2.0), operator.add, max)),
        _spec(lambda a, b: a + b * 3),
        _spec(lambda a, b: a + b * 3, commutative=True),
        _spec(lambda a, b: a + b * 3, np.dtype("float64")),
    ]
    for _ in range(2):
        for spec, capability in itertools.product(specs, [MAIN, (8, 0)]):
            build.cubin(spec, capability)
        assert len(built) == 2 * len(specs)
        for equal in (lambda a, b: a + b * 2, scaled(2), np.add, np.maximum):
            build.cubin(_spec(equal), MAIN)
        assert len(built) == 2 * len(specs)
        _forget(monkeypatch)


def test_a_changed_source_is_another_kernel(
    built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cuda_src"
    shutil.copytree(build.source_folder(), folder)
    monkeypatch.setattr(build, "source_folder", lambda: folder)
    for count, path in enumerate(sorted(folder.rglob("*.cuh")), 1):
        build._source_digest.cache_clear()
        build.cubin(_spec(operator.add), MAIN)
        assert len(built) == count
        path.write_text(path.read_text() + "\n")
    for name in ("parts", "pieces"):  # where a header lies counts, too
        (folder / "parts").rename(folder / name)
        build._source_digest.cache_clear()
        build.cubin(_spec(operator.add), MAIN)
    assert len(built) == count + 2
    build._source_digest.cache_clear()


def test_a_damaged_entry_is_written_anew(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    want = build.cubin(_spec(operator.add), MAIN)
    (path,) = disk_cache.folder().iterdir()
    content = path.read_bytes()
    for damaged in (b"", content[:-1], content[:-1] + b"x", disk_cache.encode((b"one field",))):
        built.clear()
        path.write_bytes(damaged)
        for _ in range(2):
            _forget(monkeypatch)
            assert build.cubin(_spec(operator.add), MAIN) == want
        assert len(built) == 1
        assert path.read_bytes() == content


def test_threads_build_once(built: Built) -> None:
    ready = threading.Barrier(4)

    def ask(_: int) -> tuple[bytes, str]:
        ready.wait()
        return build.cubin(_spec(operator.add), MAIN)

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(ask, range(4)))) == 1
    assert len(built) == 1


def test_a_failure_is_not_kept(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(build, "_build", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            build.cubin(_spec(operator.add), MAIN)
    build.cubin(_spec(operator.add), MAIN)
    assert len(built) == 1
