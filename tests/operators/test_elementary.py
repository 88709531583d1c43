"""exp, expm1, log, log1p and tanh on the CPU: how accurate, and the same bits at every place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpualgo as ga

Array = np.ndarray[Any, Any]
FUNCTIONS = (np.exp, np.expm1, np.log, np.log1p, np.tanh)
# Units in the last place. A float32 is computed in float64 and rounded, a float64 as it is.
MOST = {"float32": 0.52, "float64": 1.5}
_HAS_WIDER = np.finfo(np.longdouble).nmant >= 63


@pytest.fixture(autouse=True)
def on_cpu() -> Any:
    with ga.default_device("cpu"):
        yield


def _samples(dtype: str) -> Array:
    random, count = np.random.default_rng(0), 40_000
    bits = random.integers(0, 2 ** (8 * np.dtype(dtype).itemsize), count, np.uint64)
    near = 2.0 ** random.integers(-60, 12, count)
    made = [
        bits.astype(f"u{np.dtype(dtype).itemsize}").view(dtype),  # all exponents, and NaNs
        (random.uniform(-1, 1, count) * near).astype(dtype),
        random.uniform(-2, 2, count).astype(dtype),
        (1 + random.uniform(-1, 1, count) / near).astype(dtype),
        random.uniform(-760, 720, count).astype(dtype),
        random.uniform(-110, 92, count).astype(dtype),
    ]
    return np.concatenate(made)


@pytest.mark.skipif(not _HAS_WIDER, reason="no float here is wider than float64")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
def test_accuracy(fn: Callable[..., Any], dtype: str) -> None:
    x = _samples(dtype)
    found = ga.transform(fn, x)
    with np.errstate(all="ignore"):
        exact = fn(x.astype(np.longdouble))
        want = exact.astype(dtype)
        is_finite = np.isfinite(want)
        assert np.array_equal(found[~is_finite], want[~is_finite], equal_nan=True)
        error = np.abs(found - exact)[is_finite] / np.spacing(np.abs(want[is_finite]))
    assert error.max() <= MOST[dtype]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
def test_edges(fn: Callable[..., Any], dtype: str) -> None:
    """What NumPy gives for zeros, infinities and NaN, and around where results end."""
    info = np.finfo(dtype)
    ends = [np.log(info.max), np.log(info.tiny), np.log(float(info.smallest_subnormal)) - 1]
    plain = [
        0.0,
        1.0,
        np.inf,
        np.nan,
        info.max,
        info.tiny,
        info.smallest_subnormal,
        info.eps,
        *ends,
    ]
    x = np.array(plain + [-value for value in plain], dtype)
    with np.errstate(all="ignore"):
        x = np.concatenate((x, np.nextafter(x, np.inf), np.nextafter(x, -np.inf)))
        want = fn(x)
    found = ga.transform(fn, x)
    is_plain = ~np.isfinite(want) | (want == 0)
    assert np.array_equal(found[is_plain], want[is_plain], equal_nan=True)
    is_zero = want == 0
    assert np.array_equal(np.signbit(found[is_zero]), np.signbit(want[is_zero]))
    np.testing.assert_array_max_ulp(found[~is_plain], want[~is_plain], 4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
def test_the_same_bits_at_every_place(fn: Callable[..., Any], dtype: str) -> None:
    """In vectors, in what is left of a loop, alone, as a row with gaps, and in a reduction."""
    x = np.abs(_samples(dtype)[40_000:41_000])
    whole = ga.transform(fn, x)
    for start in range(8):
        for count in range(40):
            part = ga.transform(fn, x[start : start + count])
            assert part.tobytes() == whole[start : start + count].tobytes()
    assert ga.transform(fn, x[::3]).tobytes() == whole[::3].tobytes()
    lazy = fn(ga.lazy.asarray(x))
    assert np.asarray(lazy).tobytes() == whole.tobytes()
    largest = ga.reduce(lazy, np.array(-np.inf, dtype), lambda a, b: a if a > b else b)
    assert largest == whole.max()


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
    x = np.linspace(0.5, 1.5, 100).astype(dtype)
    nobodys = 1 + int(np.random.default_rng().integers(1 << 30))  # a kernel that no cache has
    made = ga.transform(lambda a: fn(a) if a > -nobodys else a, x)
    np.testing.assert_array_max_ulp(made, fn(x), 4)
    assert objects
    name = fn.__name__.encode()
    for symbol in (name, name + b"f"):
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
    usual = cpu_target.target_context.codegen()._tm
    assert machines[0] is not usual
    kernels.clear()
    machines.clear()
    assert np.array_equal(ga.transform(lambda a: a * nobodys, x), x * nobodys)
    assert "ymm" in kernels[0] or "zmm" in kernels[0]
    assert machines[0] is usual
