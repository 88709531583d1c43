"""Calls of every function of `gpualgo`: arguments, and what they return.

In a template `f` stands for the function, for `prepare` of it, or for a plan; `o` is an operator
that captures the number K, `m` what a step adds (`out=`, `stream=`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from contract.state import references as ref

import gpualgo as ga

# Names of `gpualgo.__all__` that are called in other ways: as steps, or by tests of their own.
CALLED_AS_STEPS = {"explain", "graph", "lazy", "prepare", "temp_storage_bytes"}
NOT_CALLED = {
    "CompileError", "DeviceArray", "Explanation", "Graph", "MinMax", "NoDeviceError", "Operator",
    "Plan", "ReducedByKey", "RunLengthEncoded", "ShardedArray", "TopK", "__version__",
    "default_device", "distribute", "empty_pinned", "from_pointer", "set_memory_resource",
}  # fmt: skip

ADD, NEXT = "lambda a, b: a + b + K", "lambda a, b: a * 2 - b + K"
MAP, CHOICE, LESS = "lambda a: a * 2 + K", "lambda a: a < K", "lambda a, b: a // K < b // K"


@dataclass(frozen=True)
class Template:
    """A call: its arrays as `kind:shape`, how it is made, what it returns, its operator."""

    name: str
    arrays: str
    call: Callable[..., Any]
    want: Callable[..., Any]
    op: str = ""
    dtypes: str = "i4 f8 f4 i8 u1 i2"
    has_dynamic_length: bool = False  # how long results are depends on elements
    is_joined: bool = False  # of two results, which are one output
    has_out: bool = True
    reads_lazily: bool = False  # which takes aligned arrays alone
    tolerance: float = 0.0
    is_numpys: bool = False  # `want` is the same call of NumPy's function
    can_be_recorded: bool = True  # its arrays' library computes nothing

    @property
    def function(self) -> Callable[..., Any]:
        found: Any = operator.attrgetter(self.name)(ga)
        return found  # type: ignore[no-any-return]


T = Template


def _of_two(f: Any, x: Any, y: Any, o: Any, **m: Any) -> Any:
    return f(o, x, y, **m)


def _sorts(name: str) -> list[Template]:
    return [
        T(name, "x:n", lambda f, x, o, **m: f(x, **m), lambda x, o: np.sort(x)),
        T(name, "x:m", lambda f, x, o, **m: f(x, axis=0, **m), lambda x, o: np.sort(x, 0)),
        T(
            name, "x:n y:n", lambda f, x, y, o, **m: f(x, y, descending=True, **m),
            lambda x, y, o: tuple(ref.taken(z, ref.argsorted(x, descending=True)) for z in (x, y)),
        ),
    ]  # fmt: skip


def _scans(name: str, **how: Any) -> list[Template]:
    return [
        T(name, "x:n", lambda f, x, o, **m: f(x, **m), lambda x, o: ref.scanned(x, **how)),
        T(
            name, "x:m", lambda f, x, o, **m: f(x, 5, o, axis=0, **m),
            lambda x, o: ref.scanned(x, o, axis=0, init=5, **how), ADD,
        ),
        T(
            name, "x:m", lambda f, x, o, **m: f(x, 3, o, axis=1, reverse=True, **m),
            lambda x, o: ref.scanned(x, o, axis=1, init=3, reverse=True, **how), ADD,
        ),
        T(
            name, "x:m y:w", lambda f, x, y, o, **m: f(x, y, axis=0, **m),
            lambda x, y, o: ref.scanned(x, axis=0, init=y, **how),
        ),
    ]  # fmt: skip


def _by_key(name: str, **how: Any) -> list[Template]:
    return [
        T(
            name, arrays, lambda f, k, x, o, c=c, **m: f(k, x, 5, o, consecutive=c, **m),
            lambda k, x, o, c=c: ref.scanned_by_key(k, x, o, consecutive=c, init=5, **how), ADD,
        )
        for c, arrays in ((True, "k:n x:n"), (False, "k:n x:n"), (True, "k:m x:m"))
    ]  # fmt: skip


def _segments(name: str, **how: Any) -> list[Template]:
    return [
        T(
            name, "x:n o:5", lambda f, x, s, o, **m: f(x, s, **m),
            lambda x, s, o: ref.by_segment(x, s, lambda r: ref.scanned(r, **how)),
        ),
        T(
            name, "x:n o:5", lambda f, x, s, o, **m: f(x, s, 3, o, **m),
            lambda x, s, o: ref.by_segment(x, s, lambda r: ref.scanned(r, o, init=3, **how)), ADD,
        ),
    ]  # fmt: skip


def _extremes(name: str, first: Any) -> list[Template]:
    return [
        T(name, "x:n", lambda f, x, o, **m: f(x, **m), lambda x, o: first(x, None)),
        T(name, "x:m", lambda f, x, o, **m: f(x, 1, **m), lambda x, o: first(x, 1)),
    ]


TEMPLATES = [
    T("reduce", "x:n", lambda f, x, o, **m: f(x, **m), lambda x, o: x.sum(dtype=x.dtype)),
    T("reduce", "x:n", lambda f, x, o, **m: f(x, 7, o, **m),
      lambda x, o: ref.reduced(x, o, init=7), ADD),
    T("reduce", "x:n", lambda f, x, o, **m: f(x, op=max, **m), lambda x, o: x.max()),
    T("reduce", "x:m", lambda f, x, o, **m: f(x, None, o, axis=1, **m),
      lambda x, o: ref.reduced(x, o, 1), ADD),
    T("reduce", "x:m y:w", lambda f, x, y, o, **m: f(x, y, axis=0, **m),
      lambda x, y, o: x.sum(0, dtype=x.dtype) + y),
    T("reduce", "x:n y:n", lambda f, x, y, o, **m: f((x, y), (0, 0), o, **m),
      lambda x, y, o: (x.sum(dtype=x.dtype), np.append(y, y.dtype.type(0)).max()),
      "lambda a, b: (a[0] + b[0], max(a[1], b[1]))"),
    *_scans("inclusive_scan"), *_scans("exclusive_scan", exclusive=True),
    T("transform", "x:n", lambda f, x, o, **m: f(o, x, **m), lambda x, o: o(x), MAP),
    T("transform", "x:m y:m", _of_two, lambda x, y, o: o(x, y), NEXT),
    T("transform", "x:m y:w", _of_two, lambda x, y, o: o(x, y), NEXT),
    T("transform", "x:n", lambda f, x, o, **m: f(np.negative, x, **m), lambda x, o: -x),
    T("transform", "x:n y:n", lambda f, x, y, o, **m: f(operator.add, x, y, **m),
      lambda x, y, o: x + y),
    T("transform", "x:n y:n", lambda f, x, y, o, **m: f(o, (x, y), **m), lambda x, y, o: (y, x),
      "lambda p: (p[1], p[0])"),
    T("copy", "x:n", lambda f, x, o, **m: f(x, **m), lambda x, o: x),
    T("copy", "x:m", lambda f, x, o, **m: f(x, **m), lambda x, o: x),
    T("adjacent_difference", "x:n", lambda f, x, o, **m: f(x, **m),
      lambda x, o: np.concatenate([x[:1], np.diff(x)])),
    T("adjacent_difference", "x:m", lambda f, x, o, **m: f(x, o, axis=0, **m),
      lambda x, o: np.concatenate([x[:1], o(x[1:], x[:-1])]).astype(x.dtype), NEXT),
    T("rolling", "x:w", lambda f, x, o, **m: f(x, 3, **m), lambda x, o: ref.windows(x, 3)),
    T("rolling", "x:m", lambda f, x, o, **m: f(x, 2, o, axis=1, **m),
      lambda x, o: ref.windows(x, 2, o), ADD),
    *_sorts("radix_sort"), *_sorts("sort"), *_sorts("merge_sort"),
    T("merge_sort", "x:n", lambda f, x, o, **m: f(x, less=o, **m),
      lambda x, o: x[np.argsort(x // o.k, kind="stable")], LESS, "i4 i8 u1 i2"),
    T("argsort", "x:n", lambda f, x, o, **m: f(x, **m), lambda x, o: ref.argsorted(x)),
    T("argsort", "x:m", lambda f, x, o, **m: f(x, axis=0, descending=True, **m),
      lambda x, o: ref.argsorted(x, 0, descending=True)),
    T("merge", "s:n s:n", lambda f, x, y, o, **m: f(x, y, **m), lambda x, y, o: ref.merged(x, y)),
    T("merge", "s:n s:w", lambda f, x, y, o, **m: f(x, y, less=o, **m),
      lambda x, y, o: ref.merged(x, y), "lambda a, b: a * 1 < b"),
    T("top_k", "x:n", lambda f, x, o, **m: f(x, min(3, x.size), **m),
      lambda x, o: (ref.taken(x, i := ref.argsorted(x, descending=True)[:3]), i)),
    T("top_k", "x:m", lambda f, x, o, **m: f(x, min(3, x.shape[0]), axis=0, mode="smallest", **m),
      lambda x, o: (ref.taken(x, i := ref.argsorted(x, 0)[:3], 0), i)),
    T("kth_value", "x:n", lambda f, x, o, **m: f(x, x.size // 2, **m),
      lambda x, o: np.sort(x)[x.size // 2]),
    T("kth_value", "x:m", lambda f, x, o, **m: f(x, (0, 2), axis=1, **m),
      lambda x, o: np.sort(x, 1)[:, [0, 2]].T),
    T("searchsorted", "s:n x:n", lambda f, x, y, o, **m: f(x, y, **m),
      lambda x, y, o: x.searchsorted(y)),
    T("searchsorted", "s:n x:m", lambda f, x, y, o, **m: f(x, y, side="right", less=o, **m),
      lambda x, y, o: (x // o.k).searchsorted(y // o.k, "right"), LESS, "i4 i8 u1 i2"),
    *_extremes("argmin", np.argmin), *_extremes("argmax", np.argmax),
    *_extremes("minmax", lambda x, axis: (x.min(axis), x.max(axis))),
    T("select", "x:n", lambda f, x, o, **m: f(x, o, **m), lambda x, o: x[o(x)], CHOICE,
      has_dynamic_length=True),
    T("select", "x:m b:m", lambda f, x, b, o, **m: f(x, b, **m), lambda x, b, o: x[b],
      has_dynamic_length=True),
    T("stable_partition", "x:n", lambda f, x, o, **m: f(x, o, **m),
      lambda x, o: (x[o(x)], x[~o(x)]), CHOICE, has_dynamic_length=True, is_joined=True),
    T("select", "x:m", lambda f, x, o, **m: f(x, o, **m), lambda x, o: x[o(x)], CHOICE,
      has_dynamic_length=True),
    T("find", "x:n", lambda f, x, o, **m: f(x, o, **m), lambda x, o: ref.found_first(o(x)), CHOICE),
    T("find", "x:m b:m", lambda f, x, b, o, **m: f(x, b, axis=0, **m),
      lambda x, b, o: np.where(b.any(0), b.argmax(0) if b.size else 0, -1)),
    T("count", "x:n", lambda f, x, o, **m: f(x, o, **m), lambda x, o: np.count_nonzero(o(x)),
      CHOICE),
    T("count", "x:m b:m", lambda f, x, b, o, **m: f(x, b, axis=1, **m), lambda x, b, o: b.sum(1)),
    T("unique", "x:n", lambda f, x, o, **m: f(x, **m), lambda x, o: np.unique(x),
      has_dynamic_length=True),
    T("unique", "x:n", lambda f, x, o, **m: f(x, return_index=True, return_counts=True, **m),
      lambda x, o: np.unique(x, return_index=True, return_counts=True), has_out=False),
    T("unique", "x:n", lambda f, x, o, **m: f(x, return_inverse=True, **m),
      lambda x, o: np.unique(x, return_inverse=True), has_out=False),
    T("unique", "k:n", lambda f, x, o, **m: f(x, consecutive=True, **m),
      lambda x, o: ref.groups(x, consecutive=True)[0], has_dynamic_length=True),
    T("run_length_encode", "k:n", lambda f, x, o, **m: f(x, **m),
      lambda x, o: ref.run_lengths(x, operator.eq), has_dynamic_length=True),
    T("run_length_encode", "k:n", lambda f, x, o, **m: f(x, eq=o, **m), ref.run_lengths,
      "lambda a, b: a // K == b // K", "i4 i8 u1 i2", has_dynamic_length=True),
    T("reduce_by_key", "k:n x:n", lambda f, k, x, o, **m: f(k, x, op=o, **m),
      lambda k, x, o: ref.reduced_by_key(k, x, o, consecutive=False), ADD, has_dynamic_length=True),
    T("reduce_by_key", "k:n x:n", lambda f, k, x, o, **m: f(k, x, consecutive=True, **m),
      lambda k, x, o: ref.reduced_by_key(k, x, np.add, consecutive=True), has_dynamic_length=True),
    *_by_key("inclusive_scan_by_key"), *_by_key("exclusive_scan_by_key", exclusive=True),
    T("reduce_by_index", "i:n x:n", lambda f, i, x, o, **m: f(i, x, 7, **m),
      lambda i, x, o: ref.by_index(i, x, 7, np.add, 0)),
    T("reduce_by_index", "i:n x:n", lambda f, i, x, o, **m: f(i, x, 7, 2, o, **m),
      lambda i, x, o: ref.by_index(i, x, 7, o, 2), ADD),
    T("segmented_reduce", "x:n o:5", lambda f, x, s, o, **m: f(x, s, **m),
      lambda x, s, o: ref.of_segments(x, s, np.add, 0)),
    T("segmented_reduce", "x:n o:5", lambda f, x, s, o, **m: f(x, s, 3, o, **m),
      lambda x, s, o: ref.of_segments(x, s, o, 3), ADD),
    *_segments("segmented_inclusive_scan"), *_segments("segmented_exclusive_scan", exclusive=True),
    T("segmented_sort", "x:n o:5", lambda f, x, s, o, **m: f(x, s, **m),
      lambda x, s, o: ref.by_segment(x, s, np.sort)),
    T("segmented_sort", "x:n o:5 y:n", lambda f, x, s, y, o, **m: f(x, s, values=y, **m),
      lambda x, s, y, o: (ref.by_segment(x, s, np.sort), y[ref.by_segment(
          np.arange(x.size), s, lambda r: r[ref.argsorted(x[r])])])),
    T("histogram", "x:n", lambda f, x, o, **m: f(x, 7, (-9, 9), **m),
      lambda x, o: np.histogram(x, 7, (-9, 9))[0]),
    T("histogram", "x:m y:m", lambda f, x, y, o, **m: f(x, [-9, 0, 1, 9], weights=y, axis=1, **m),
      lambda x, y, o: np.array([np.histogram(r, [-9, 0, 1, 9], weights=w)[0]
                                for r, w in zip(x, y, strict=True)], y.dtype).reshape(-1, 3),
      dtypes="f8 f4"),
    T("reduce", "x:n y:n", lambda f, x, y, o, **m: f(ga.lazy.transform(o, x, y), 1, **m),
      lambda x, y, o: np.asarray(o(x, y)).sum(dtype=np.asarray(o(x, y)).dtype) + 1, NEXT,
      reads_lazily=True),
    T("inclusive_scan", "x:n i:n", lambda f, x, i, o, **m: f(ga.lazy.take(x, i), **m),
      lambda x, i, o: ref.scanned(x[i.astype(int) % max(x.size, 1)]), reads_lazily=True),
    T("copy", "x:m", lambda f, x, o, **m: f(ga.lazy.asarray(x) * 2 + ga.lazy.asarray(x), **m),
      lambda x, o: x * 2 + x, reads_lazily=True),
]  # fmt: skip
