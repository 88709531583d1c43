"""out= in every layout gets what the call without it gives; what does not fit is refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from contract.case import Case, Shown, assert_bits, hosts, outputs_like, used
from contract.cases import each_case
from support import LAYOUTS, Array, Backend

Make = Callable[..., Array]
DTYPE_FROM_OUT = {"transform", "argsort", "searchsorted", "histogram"}  # without dtype=


def full(want: list[np.ndarray[Any, Any]]) -> bool:
    return all(x.size for x in want)


@each_case
def test_every_layout(backend: Backend, guarded: Make, case: Case) -> None:
    call, arrays = case.on(backend), case.arrays(backend)
    want = hosts(backend, call(*arrays))
    for layout in LAYOUTS if all(x.ndim for x in want) else ("contiguous", "offset"):
        out = outputs_like(want, lambda *how, layout=layout: guarded(*how, layout))
        assert call(*arrays, out=out) is out
        assert_bits(hosts(backend, out), want)


def refuse(
    backend: Backend, case: Case, kind: Any, message: str, change: Callable[[Array], Any],
    decides_dtype: bool = False,
) -> None:  # fmt: skip
    """Assert that each output, changed, is refused by name, and that none is written.

    Cold, and after a call with a good output of the same kind.
    """
    call, arrays = case.on(backend), case.arrays(backend)
    want = hosts(backend, call(*arrays))
    pattern = message if decides_dtype else rf"^{case.name}: {message}"
    for _ in range(2):
        for i in range(len(want)):
            outs = [used(backend)(x.shape, x.dtype) for x in want]
            bad = change(outs[i])
            before = [backend.to_host(x).tobytes() for x in (*outs, *held(bad))]
            given = (*outs[:i], bad, *outs[i + 1 :])
            name = f"out[{i}]" if len(want) > 1 else "out"
            with pytest.raises(kind, match=pattern) as caught:
                call(*arrays, out=given if len(given) > 1 else bad)
            assert decides_dtype or name in str(caught.value)
            assert "\n" not in str(caught.value)
            after = [backend.to_host(x).tobytes() for x in (*outs, *held(bad))]
            assert after == before
        call(*arrays, out=outputs_like(want, used(backend)))


def held(bad: Any) -> list[Any]:
    return [bad] if hasattr(bad, "tobytes") and hasattr(bad, "strides") else []


@each_case
def test_other_shapes(backend: Backend, case: Case) -> None:
    def one_more_axis(x: Array) -> Array:
        return backend.xp.ones((*x.shape, 1), x.dtype)

    def longer(x: Array) -> Array:
        return backend.xp.ones((*x.shape[:-1], x.shape[-1] + 1) if x.ndim else (2,), x.dtype)

    has_any_length = case.has_dynamic_length and not case.is_joined
    for change in (one_more_axis,) if has_any_length else (one_more_axis, longer):
        refuse(backend, case, ValueError, r"out.* has shape .*, the result has ", change)


@each_case
def test_other_dtypes(backend: Backend, case: Case) -> None:
    """Where out decides the dtype, it is one that the algorithm cannot give."""
    decides = case.name in DTYPE_FROM_OUT and "dtype" not in case.options
    refuse(
        backend, case, TypeError, "bool" if decides else r"out.* dtype bool",
        lambda x: backend.xp.ones(x.shape, bool), decides,
    )  # fmt: skip


@each_case
def test_no_arrays(backend: Backend, case: Case) -> None:
    bad: Any
    for bad in ([0.0], (), 3.0, "out", np.float32(0), {}):
        message = rf"out.* {type(bad).__name__}"
        refuse(backend, case, TypeError, message, partial(_instead, bad))


@each_case
def test_one_output_for_each_result(backend: Backend, case: Case) -> None:
    call, arrays = case.on(backend), case.arrays(backend)
    want = hosts(backend, call(*arrays))
    make = used(backend)
    outs = tuple(make(x.shape, x.dtype) for x in want)
    for out in (outs + outs[:1], outs[:-1], outs if len(outs) == 1 else outs[0]):
        with pytest.raises(TypeError, match=rf"^{case.name}: out .*(tuple|an array)"):
            call(*arrays, out=out)
    assert all((backend.to_host(x) == 1).all() for x in outs)


def _instead(bad: Any, x: Array) -> Any:
    return bad


def _read_only(x: Array) -> Array:
    x.flags.writeable = False
    return x


def _spread(x: Array) -> Array:
    return np.broadcast_to(x.reshape(-1)[0], x.shape)  # which is read-only, too


@each_case
def test_read_only(backend: Backend, case: Case) -> None:
    host = Backend(backend.name, np)
    if full(hosts(host, case.on(host)(*case.samples()))):
        for change in (_read_only, _spread):
            refuse(host, case, ValueError, r"out.* is read-only", change)


@each_case
def test_read_only_on_a_device(cuda: Backend, case: Case) -> None:
    call, arrays = case.on(cuda), case.arrays(cuda)
    want = hosts(cuda, call(*arrays))
    shown = outputs_like(want, lambda *how: Shown(used(cuda)(*how), readonly=True))
    with pytest.raises(ValueError, match=rf"^{case.name}: out.* is read-only"):
        call(*map(Shown, arrays), out=shown)


@each_case
def test_elements_that_share_memory(backend: Backend, case: Case) -> None:
    call, arrays = case.on(backend), case.arrays(backend)
    if any(x.size < 2 for x in hosts(backend, call(*arrays))):
        pytest.skip("no elements to share memory")
    as_strided = backend.xp.lib.stride_tricks.as_strided
    message = "out.* has elements that share memory"
    refuse(backend, case, ValueError, message, lambda x: as_strided(x, x.shape, (0,) * x.ndim))
    # Strides that differ from zero, as those of windows that slide along an array.
    windows = [x for x in hosts(backend, call(*arrays)) if sum(n > 1 for n in x.shape) > 1]
    if windows:
        refuse(
            backend, case, ValueError, message,
            lambda x: as_strided(x, x.shape, (x.itemsize,) * x.ndim),
        )  # fmt: skip


@each_case
def test_more_dimensions_than_arrays_have(backend: Backend, case: Case) -> None:
    many = [x.reshape((1,) * (33 - x.ndim) + x.shape) for x in case.arrays(Backend("cpu", np))]
    host = Backend(backend.name, np)
    name = r"lazy\.asarray" if case.is_lazy else case.name
    with pytest.raises(ValueError, match=rf"^{name}: .* has 33 dimensions, at most 32"):
        case.on(host)(*many)


@each_case
def test_the_other_side(cuda: Backend, case: Case) -> None:
    """An output is where the inputs are."""
    call, arrays = case.on(cuda), case.arrays(cuda)
    host = Backend("cuda", np)
    want = hosts(cuda, call(*arrays))
    for give, sources, make in (
        (call, arrays, used(host)), (case.on(host), case.samples(), used(cuda)),
    ):  # fmt: skip
        out = outputs_like(want, make)
        before = [x.tobytes() for x in hosts(cuda, out)]
        with pytest.raises(TypeError, match=rf"^{case.name}: out.* is .* but the input is"):
            give(*sources, out=out)
        assert [x.tobytes() for x in hosts(cuda, out)] == before
