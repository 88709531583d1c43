"""Arrays that a GPU copies first: without one stride for all elements, and any others in scans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import Backend

import gpualgo as ga
from gpualgo._algorithms.transform import cuda
from gpualgo._arrays.view import placeholder

LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda x: x.T,
    "with gaps between rows": lambda x: x[:, 2:],
    "reversed rows": lambda x: x[::-1],
    "both axes reversed": lambda x: x[::-1, ::-1],
    "every second column": lambda x: x[:, ::2],
    "one column": lambda x: x[:, :1],
    "three axes": lambda x: x.reshape(37, 11, -1).transpose(2, 0, 1),
}


def last(a: Any, b: Any) -> Any:
    return b


def small(a: Any) -> Any:
    return a < 30


def as_lists(got: Any, backend: Backend) -> list[Any]:
    """Return the results of a call as lists."""
    parts = got if isinstance(got, tuple) else (got,)
    return [backend.to_host(part).tolist() for part in parts]


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "select": lambda x, mask: ga.select(x, small),
    "select by a mask": ga.select,
    "stable_partition": lambda x, mask: ga.stable_partition(x, small),
    "count": lambda x, mask: ga.count(x, small),
    "find": lambda x, mask: ga.find(x, lambda a: a == 98),
    "reduce": lambda x, mask: ga.reduce(x),
    "reduce in order": lambda x, mask: ga.reduce(x, None, last),
    "argmax": lambda x, mask: ga.argmax(x),
    "minmax": lambda x, mask: ga.minmax(x),
    "reduce_by_key": lambda x, mask: ga.reduce_by_key(mask, x, None, last, consecutive=True),
    "reduce_by_key in any order": lambda x, mask: ga.reduce_by_key(x, x),
    "inclusive_scan_by_key": lambda x, mask: ga.inclusive_scan_by_key(mask, x, consecutive=True),
    "reduce_by_index": lambda x, mask: ga.reduce_by_index(x, x, 99, 0, last),
    "run_length_encode": lambda x, mask: ga.run_length_encode(mask),
    "unique": lambda x, mask: ga.unique(x, return_counts=True),
    "inclusive_scan": lambda x, mask: ga.inclusive_scan(x),
    "inclusive_scan in order": lambda x, mask: ga.inclusive_scan(x, 5, last),
    "exclusive_scan": lambda x, mask: ga.exclusive_scan(x, 5),
    "scan along the last axis": lambda x, mask: ga.inclusive_scan(x, axis=-1),
    "scan along the first axis": lambda x, mask: ga.exclusive_scan(x, 3, axis=0),
    "scan of pairs": lambda x, mask: ga.inclusive_scan(
        (x, x), None, lambda a, b: (a[0] + b[0], b[1])
    ),
    "adjacent_difference": lambda x, mask: ga.adjacent_difference(x),
    "adjacent_difference, first axis": lambda x, mask: ga.adjacent_difference(x, axis=0),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("call", CALLS)
def test_results_are_those_of_a_copy(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, call: str, layout: str
) -> None:
    from gpualgo._algorithms.transform import cuda

    monkeypatch.setattr(cuda, "COPIED_FROM", 1)
    x = np.random.default_rng(1).integers(0, 99, (37, 44)).astype(np.int32)
    mask = x > 20
    given = [LAYOUTS[layout](backend.to_device(each)) for each in (x, mask)]
    wanted = [np.ascontiguousarray(LAYOUTS[layout](each)) for each in (x, mask)]
    got = as_lists(CALLS[call](*given), backend)
    assert got == as_lists(CALLS[call](*map(backend.to_device, wanted)), backend)


@pytest.mark.parametrize("dtype", ["int8", "float64"])
def test_scans_of_steps(backend: Backend, dtype: str) -> None:
    """Into results with gaps too, and in place."""
    x = np.random.default_rng(2).integers(-9, 9, 5003).astype(dtype)
    for part in (np.s_[::-1], np.s_[::3], np.s_[4000:3:-2]):
        want = np.cumsum(x[part], dtype=dtype)
        given = backend.to_device(x)
        np.testing.assert_array_equal(backend.to_host(ga.inclusive_scan(given[part])), want)
        out = backend.to_device(np.zeros(2 * len(want) + 1, dtype))
        ga.inclusive_scan(given[part], out=out[1::2])
        np.testing.assert_array_equal(backend.to_host(out)[1::2], want)
        assert not backend.to_host(out)[::2].any()
        ga.inclusive_scan(given[part], out=given[part])
        np.testing.assert_array_equal(backend.to_host(given)[part], want)


@pytest.mark.parametrize(
    ("shape", "strides", "is_uneven"),
    [
        ((512, 600), (4, 2048), True),  # transposed
        ((512, 600), (4096, 4), True),  # gaps between rows
        ((512, 600), (2400, 4), False),
        ((1 << 19,), (-8,), False),  # evenly spaced
        ((1 << 10, 1 << 10), (4, 4), False),  # windows
        ((1 << 10, 1 << 10), (4, 0), False),  # repeated
        ((100, 100), (4, 400), False),  # few
    ],
)
def test_what_is_copied(shape: tuple[int, ...], strides: tuple[int, ...], is_uneven: bool) -> None:
    from gpualgo._algorithms.transform import cuda
    from gpualgo._arrays.view import dense_view

    view = dense_view(1 << 20, shape, np.dtype(np.float32), 0)._replace(strides=strides)
    assert cuda._is_uneven(view, (), only_transposed=False) is is_uneven


@pytest.mark.parametrize("is_by_key", [True, False])
def test_equal_keys_of_a_transposed_array(
    backend: Backend, is_by_key: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sort of equal keys moves none: it has to copy them all the same."""
    monkeypatch.setattr(cuda, "COPIED_FROM", 1)
    n = 300
    keys = backend.to_device(np.full((n, n), 5, np.int32))
    values = backend.to_device(np.ones((n, n), np.int32))
    if is_by_key:
        assert as_lists(ga.reduce_by_key(keys.T, values.T), backend) == [[5], [n * n]]
    else:
        sums = backend.to_host(ga.reduce_by_index(keys.T, values.T, 70_000))
        assert sums[5] == sums.sum() == n * n


def test_placeholders_of_a_plan_are_apart() -> None:
    views = [placeholder((4,), np.dtype(np.int8), 0) for _ in range(3)]
    assert len({view.ptr for view in views}) == 3
