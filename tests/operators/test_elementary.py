"""Elementary functions on the CPU: how accurate, and the same bits at every place.

`--exhaustive` walks over all float32, and over ten million float64 of every function.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import a_few

import gpualgo as ga
from gpualgo._operators.numpy_rules import elementary

Array = np.ndarray[Any, Any]
OF_ONE = (
    np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.sinh, np.cosh, np.tanh,
    np.arcsinh, np.arccosh, np.arctanh, np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan,
    np.cbrt,
)  # fmt: skip
FUNCTIONS = (*OF_ONE, np.arctan2, np.hypot, np.power)
# Units in the last place. A float32 is computed in float32, or in float64 and rounded.
MOST = {"float32": 1.0, "float64": 1.5}
_HAS_WIDER = np.finfo(np.longdouble).nmant >= 63


@pytest.fixture(autouse=True)
def on_cpu() -> Any:
    with ga.default_device("cpu"):
        yield


def _samples(dtype: str, count: int = 30_000, seed: int = 0) -> Array:
    random = np.random.default_rng(seed)
    bits = random.integers(0, 2 ** (8 * np.dtype(dtype).itemsize), count, np.uint64)
    near = 2.0 ** random.integers(-60, 12, count)
    info = np.finfo(dtype)
    ends = random.choice([info.minexp - info.nmant, info.minexp, info.maxexp], count)
    ends += random.integers(-info.nmant, info.nmant, count) * (ends != info.maxexp)
    made = [
        bits.astype(f"u{np.dtype(dtype).itemsize}").view(dtype),  # all exponents, and NaNs
        (random.uniform(-1, 1, count) * near).astype(dtype),
        random.uniform(-2, 2, count).astype(dtype),
        (1 + random.uniform(-1, 1, count) / near).astype(dtype),
        random.uniform(-760, 720, count).astype(dtype),
        random.uniform(-110, 92, count).astype(dtype),
        (random.integers(-9999, 9999, count) * (np.pi / 4)).astype(dtype),
        np.ldexp(random.uniform(-1, 1, count).astype(dtype), ends),  # subnormal, and largest
    ]
    return np.concatenate(made)


def _arguments(fn: Any, x: Array) -> list[Array]:
    """Return x, and for two arguments others with it, for powers such that many are finite."""
    if fn.nin == 1:
        return [x]
    other = np.random.default_rng(1).permutation(x)
    if fn is np.power:
        half = other.size // 2
        limits = (-745, 710) if x.dtype == np.float64 else (-104, 89)
        size = np.random.default_rng(2).uniform(*limits, half)
        with np.errstate(all="ignore"):
            other[:half] = size / np.log(np.abs(x[:half].astype(np.float64)))
    return [x, other]


def _check(fn: Any, arguments: list[Array], reference: Any, most: float) -> None:
    found = ga.transform(fn, *arguments)
    with np.errstate(all="ignore"):
        exact = fn(*(a.astype(reference) for a in arguments))
        want = exact.astype(found.dtype)
        is_finite = np.isfinite(want) & np.isfinite(found)
        rest = [values[~is_finite] for values in (found, want)]
        ours = fn(*(a[~is_finite] for a in arguments))  # NumPy's may be infinite a little earlier
        same = (rest[0] == rest[1]) | (rest[0] == ours) | (np.isnan(rest[0]) & np.isnan(rest[1]))
        assert same.all()
        error = np.abs(found - exact)[is_finite] / np.spacing(np.abs(want[is_finite]))
    assert error.max(initial=0) <= most
    is_zero = (want == 0) & (found == 0)
    assert np.array_equal(np.signbit(found[is_zero]), np.signbit(want[is_zero]))


@pytest.mark.skipif(not _HAS_WIDER, reason="no float here is wider than float64")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
def test_accuracy(fn: Callable[..., Any], dtype: str) -> None:
    _check(fn, _arguments(fn, _samples(dtype)), np.longdouble, MOST[dtype])


@pytest.mark.exhaustive
@pytest.mark.parametrize("fn", OF_ONE, ids=lambda fn: fn.__name__)
def test_accuracy_of_all_float32(fn: Callable[..., Any]) -> None:
    step = 1 << 24
    for start in range(0, 1 << 32, step):
        x = np.arange(start, start + step, dtype=np.uint64).astype(np.uint32).view(np.float32)
        _check(fn, [x], np.float64, MOST["float32"])


@pytest.mark.skipif(not _HAS_WIDER, reason="no float here is wider than float64")
@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
def test_accuracy_of_many_float64(fn: Callable[..., Any], seed: int) -> None:
    _check(fn, _arguments(fn, _samples("float64", 150_000, seed)), np.longdouble, MOST["float64"])


def test_numbers_next_to_multiples_of_a_quarter_turn() -> None:
    """Those float64 and float32 that are nearest to one, relatively; J.-M. Muller, 2006."""
    nearest = 6381956970095103 * 2.0**797
    for dtype, x in (("float64", nearest), ("float32", 16367173 * 2.0**72)):
        found = ga.transform(np.cos, np.array([x, -x], dtype))
        want = -4.68716592425462761112e-19 if dtype == "float64" else np.cos(x)
        np.testing.assert_array_max_ulp(found, np.full(2, want, dtype), 1)


def _edges(fn: Any, dtype: str) -> list[Array]:
    """Return zeros, infinities, NaN, and numbers around where floats and results end."""
    info = np.finfo(dtype)
    ends = [np.log(info.max), np.log(info.tiny), np.log(float(info.smallest_subnormal)) - 1]
    small = [info.tiny, info.smallest_subnormal, info.eps]
    plain = [0.0, 1.0, np.inf, np.nan, info.max, *small, *ends]
    x = np.array(plain + [-value for value in plain], dtype)
    with np.errstate(all="ignore"):
        x = np.concatenate((x, np.nextafter(x, np.inf), np.nextafter(x, -np.inf)))
        return [a.ravel() for a in np.meshgrid(*[x] * fn.nin)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
def test_edges(fn: Callable[..., Any], dtype: str) -> None:
    """What NumPy gives for zeros, infinities and NaN, and around where results end."""
    arguments = _edges(fn, dtype)
    with np.errstate(all="ignore"):
        want = fn(*arguments)
    found = ga.transform(fn, *arguments)
    is_plain = ~np.isfinite(want) | (want == 0)
    assert np.array_equal(found[is_plain], want[is_plain], equal_nan=True)
    is_zero = want == 0
    assert np.array_equal(np.signbit(found[is_zero]), np.signbit(want[is_zero]))
    np.testing.assert_array_max_ulp(found[~is_plain], want[~is_plain], 4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
def test_the_same_bits_at_every_place(fn: Callable[..., Any], dtype: str) -> None:
    """In vectors, in what is left of a loop, alone, as a row with gaps, and in a reduction."""
    x = np.abs(_samples(dtype)[30_000:31_000])
    arguments = _arguments(fn, x)
    whole = ga.transform(fn, *arguments)
    for start in range(8):
        for count in range(40):
            part = ga.transform(fn, *(a[start : start + count] for a in arguments))
            assert part.tobytes() == whole[start : start + count].tobytes()
    assert ga.transform(fn, *(a[::3] for a in arguments)).tobytes() == whole[::3].tobytes()
    lazy = fn(*map(ga.lazy.asarray, arguments))
    assert np.asarray(lazy).tobytes() == whole.tobytes()
    largest = ga.reduce(lazy, np.array(-np.inf, dtype), lambda a, b: np.fmax(a, b))
    assert largest == np.nanmax(whole)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("fn", [np.sin, np.cos, np.tan], ids=lambda fn: fn.__name__)
def test_large_arguments_among_others(fn: Callable[..., Any], dtype: str) -> None:
    """Vector code leaves large ones to another function; it keeps the others' bits."""
    x = np.linspace(-9, 9, 1_000).astype(dtype)
    powers = -(2.0 ** np.arange(13, 99))
    large = np.array([*powers, 1e30, -1e38, np.inf, np.nan], dtype)
    mixed = x.copy()
    mixed[::7] = np.resize(large, len(mixed[::7]))
    found = ga.transform(fn, mixed)
    is_usual = mixed == x
    assert found[is_usual].tobytes() == ga.transform(fn, x)[is_usual].tobytes()
    alone = np.concatenate([ga.transform(fn, large[i : i + 1]) for i in range(len(large))])
    assert np.array_equal(found[::7], np.resize(alone, len(found[::7])), equal_nan=True)
    _check(fn, [mixed], np.longdouble if _HAS_WIDER else np.float64, MOST[dtype])
    halved = ga.transform(lambda a: fn(a) if a > 0 else a, mixed)
    assert np.array_equal(halved, np.where(mixed > 0, found, mixed), equal_nan=True)


_BITS = """
import hashlib
import sys
sys.path[:0] = {path!r}
import numpy as np
import gpualgo as ga
import test_elementary as tests

for fn in map(np.__dict__.get, {names!r}):
    for dtype in ("float32", "float64"):
        samples = tests._arguments(fn, tests._samples(dtype, 3_000))
        for arguments in (samples, tests._edges(fn, dtype)):
            found = ga.transform(fn, *arguments)
            found[np.isnan(found)] = np.nan
            print(fn.__name__, dtype, len(found), hashlib.sha256(found.tobytes()).hexdigest())
"""


def test_the_same_bits_without_fused_multiply_add() -> None:
    """And on any other processor: exact products have the same bits with and without it."""
    names = [fn.__name__ for fn in a_few(FUNCTIONS, 3)]

    def run(**variables: str) -> set[str]:
        program = _BITS.format(path=[os.path.dirname(__file__), *sys.path], names=names)
        environment = {**os.environ, "GPUALGO_DEVICE": "cpu", **variables}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, check=True, stdout=subprocess.PIPE
        )
        return set(done.stdout.decode().splitlines())

    others = run(NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="") - run()
    assert not others


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
def test_no_library_is_called(
    fn: Callable[..., Any], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call would keep the loop at one element at a time."""
    from gpualgo._cpu import image

    objects: list[bytes] = []
    of_object = image.of_object
    monkeypatch.setattr(
        image, "of_object", lambda made, needed: objects.append(made) or of_object(made, needed)
    )
    x = np.linspace(0.5, 0.95, 100).astype(dtype) + (fn is np.arccosh)
    x = x.astype(dtype)
    nobodys = 1 + int(np.random.default_rng().integers(1 << 30))  # a kernel that no cache has
    if fn.nin == 1:
        made = ga.transform(lambda a: fn(a) if a > -nobodys else a, x)
    else:
        made = ga.transform(lambda a: fn(a, a) if a > -nobodys else a, x)
    np.testing.assert_array_max_ulp(made, fn(*[x] * fn.nin), 4)
    assert objects
    for name in elementary.FUNCTIONS:
        for symbol in (name.encode(), name.encode() + b"f"):
            assert b"\0" + symbol + b"\0" not in b"".join(objects)


def test_heavy_arithmetic_has_the_widest_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """And little arithmetic has LLVM's own choice: the clock could be lower for as much work."""
    from llvmlite import binding
    from numba.core.registry import cpu_target

    from gpualgo._cpu import compiler

    if not binding.get_host_cpu_features().get("avx512f"):
        pytest.skip("no AVX-512 here")
    kernels: list[str] = []
    machines: list[Any] = []
    joined = compiler.link_modules

    def noted(shell: bytes, operator: bytes | None) -> Any:
        module, machine = joined(shell, operator)
        if operator is not None:
            kernels.append(machine.emit_assembly(module))
            machines.append(machine)
        return module, machine

    monkeypatch.setattr(compiler, "link_modules", noted)
    nobodys = 1 + int(np.random.default_rng().integers(1 << 30))  # a kernel that no cache has
    x = np.linspace(0.5, 1.5, 100)
    assert np.array_equal(
        ga.transform(lambda a: np.exp(a) * nobodys, x), ga.transform(np.exp, x) * nobodys
    )
    assert "zmm" in kernels[0]
    usual = compiler._target_machine(
        cpu_target.target_context.codegen(), reloc="pic", codemodel="small"
    )
    assert machines[0] is not usual
    kernels.clear()
    machines.clear()
    assert np.array_equal(ga.transform(lambda a: a * nobodys, x), x * nobodys)
    assert "ymm" in kernels[0] or "zmm" in kernels[0]
    assert machines[0] is usual


def test_worst_known_points() -> None:
    """Found by search, as evenly drawn numbers miss them: `power` near sqrt(2), `sinh`."""
    bases = [float.fromhex(x) for x in ("0x1.69e0ac267495dp-1", "0x1.697ef0aaa7bfdp-1")]
    exponents = [float.fromhex(x) for x in ("0x1.fd62b245544e1p+10", "0x1.eae35fd3171a3p+10")]
    x = np.array([float.fromhex("0x1.261c284536a2ep+4")])
    with ga.default_device("cpu"):
        powers, sines = (
            ga.transform(np.power, np.array(bases), np.array(exponents)),
            ga.transform(np.sinh, x),
        )
    for got, want in (
        (powers, np.power(np.array(bases, np.longdouble), np.array(exponents, np.longdouble))),
        (sines, np.sinh(x.astype(np.longdouble))),
    ):
        assert (abs(got - want) <= 1.1 * np.spacing(abs(got))).all()
