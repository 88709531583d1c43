"""What was called before, and by whom, makes no difference to what an operator computes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from support import Backend

import gpualgo as ga
from gpualgo._operators.key import resolve
from gpualgo._operators.operator import retried

HALF = np.float16(2)
Make = Callable[..., Callable[..., Any]]


def check(backend: Backend, op: Callable[..., Any], x: np.ndarray[Any, Any]) -> None:
    with np.errstate(all="ignore"):
        expected = np.array([op(item) for item in x])
    found = backend.to_host(ga.transform(op, backend.to_device(x)))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


BRANCHES: list[tuple[Make, tuple[Any, ...]]] = [
    (lambda k: lambda a: (k if k else 2.5) * a, (5, 6, 7, 0, 9)),
    (lambda k: lambda a: 1.5 if k == 2 else a, (1, 3, 2, 4)),
    (lambda k: lambda a: a if k < 2.0 else np.float64(a), (1.0, 3.0, 1.5)),
    (lambda k: lambda a: 0.5 if not k else a, (1, 2, 0, 3)),
    (lambda k: lambda a: a * min(k, 3.5), (2, 3, 1, 5)),
    (lambda k: lambda a: a * max(k, 1), (2.0, 0.5, 3.0)),
    (lambda k: lambda a: a + max(k, -5), (2, 3, -6)),
]


@pytest.mark.parametrize(("make", "values"), BRANCHES)
def test_a_value_that_is_not_chosen_has_no_part_in_the_type(
    backend: Backend, make: Make, values: tuple[Any, ...]
) -> None:
    for value in values:
        check(backend, make(value), np.arange(5, dtype=np.int8))


def counted_down(k: Any) -> Callable[..., Any]:
    def op(a):  # type: ignore[no-untyped-def]
        n = k
        while n > 0:
            a, n = a + 1, n - 1
        return a

    return op


def grown(k: Any) -> Callable[..., Any]:
    def op(a):  # type: ignore[no-untyped-def]
        n = k
        while n < 1000:
            n = n * 3
        return a + n

    return op


@pytest.mark.parametrize("make", [counted_down, grown])
def test_a_loop_may_change_what_begins_as_a_number(backend: Backend, make: Make) -> None:
    for value in (3, 4, 5, 200, 2.5, 7.5):
        check(backend, make(value), np.arange(4, dtype=np.float32))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "complex64"])
def test_integers_become_floats_by_way_of_a_double(backend: Backend, name: str) -> None:
    def make(k: Any) -> Callable[..., Any]:
        return lambda a: a * k

    dtype = ga_dtype(name)
    for value in (2**54 + 1, 2**54 + 2**30 + 1, 2**62 + 2**38 + 1, 2**40 + 2**32 + 1):
        found = backend.to_host(ga.transform(make(value), backend.to_device(np.ones(2, dtype))))
        assert found.dtype == dtype  # older ml_dtypes and NumPy make float32 of bfloat16 here
        with np.errstate(over="ignore"):  # of float16
            want = np.full(2, np.float64(value)).astype(dtype)
        np.testing.assert_array_equal(found, want)


def ga_dtype(name: str) -> np.dtype[Any]:
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name, name))


POWERS: list[tuple[Make, Any]] = [
    (lambda k: lambda a: k**a, 8),
    (lambda k: lambda a: np.power(k, a), 2),
    (lambda k: lambda a: np.power(a, k), -1),
    (lambda k: lambda a: a**k, np.int64(2)),
    (lambda k: lambda a: a**k, np.int8(-1)),
]


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize(("make", "value"), POWERS)
def test_a_power_has_the_same_bits_whether_a_number_is_data_or_not(
    backend: Backend, make: Make, value: Any, name: str
) -> None:
    x = backend.to_device(np.abs(np.random.default_rng(5).standard_normal(5000) * 5).astype(name))
    kind = type(value)
    first, *_, again = (
        backend.to_host(ga.transform(make(k), x)) for k in (value, kind(5), kind(-2), value)
    )
    assert first.tobytes() == again.tobytes()


def test_defaults_within_are_weak_and_narrow_as_outside(backend: Backend) -> None:
    x = np.arange(4, dtype=np.int8)

    def by_tuple(a, factors=(2, 3)):  # type: ignore[no-untyped-def]
        return a * factors[0]

    def by_half(a, factor=HALF):  # type: ignore[no-untyped-def]
        return a * factor

    for op in (by_tuple, lambda a: by_tuple(a), lambda a: by_half(a)):
        check(backend, op, x)


@pytest.mark.parametrize("kind", [float, np.float16, np.float32, np.float64, np.complex64])
def test_zeros_of_either_sign_are_two_defaults(backend: Backend, kind: Any) -> None:
    for value in (0.0, -0.0, 0.0):

        def by_value(a, factor=kind(value)):  # type: ignore[no-untyped-def]  # noqa: B008
            return a * factor.real

        def by_tuple(a, factors=(kind(value),)):  # type: ignore[no-untyped-def]  # noqa: B008
            return a * factors[0].real

        for helper in (by_value, by_tuple):
            found = ga.transform(lambda a: helper(a), backend.to_device(np.ones(2)))  # noqa: B023
            assert bool(np.signbit(backend.to_host(found)).all()) == bool(np.signbit(value))


@pytest.fixture
def often_interrupted() -> Iterator[None]:
    """Let threads take turns far more often than they do."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def together(work: Callable[[int], None], count: int) -> list[Exception]:
    """Run work(i) in threads that begin at once; return what they raised."""
    barrier, errors = threading.Barrier(count), []

    def run(i: int) -> None:
        barrier.wait()
        try:
            work(i)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


@pytest.mark.usefixtures("often_interrupted")
def test_threads_read_numbers_of_their_own_helpers(backend: Backend) -> None:
    def make(k: float) -> Callable[..., Any]:
        def helper(a):  # type: ignore[no-untyped-def]
            return a * k

        return lambda a: helper(a)

    x = backend.to_device(np.ones(2))
    ga.transform(make(0.0), x)
    count = 1000 if backend.name == "cpu" else 100
    found: list[set[float]] = [set() for _ in range(4)]

    def work(i: int) -> None:
        op = make(float(i))
        for _ in range(count):
            found[i].add(float(backend.to_host(ga.transform(op, x))[1]))

    assert not together(work, 4)
    assert found == [{0.0}, {1.0}, {2.0}, {3.0}]


def test_threads_may_need_a_value_at_the_same_time(backend: Backend) -> None:
    for _ in range(3):
        found: dict[int, float] = {}
        x = backend.to_device(np.ones(2))

        def work(i: int, x: Any = x, found: dict[int, float] = found) -> None:
            k = float(i + 1)
            found[i] = float(backend.to_host(ga.transform(lambda a: a * (1 / k), x))[0])

        assert not together(work, 4)
        assert found == {i: 1 / (i + 1) for i in range(4)}


def test_a_number_is_data_again_where_a_second_try_was_interrupted() -> None:
    k = 0.5
    op = lambda a: a + k  # noqa: E731
    key = resolve(op).key

    def interrupted() -> None:
        assert not resolve(op).key.numbers
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        retried(TypeError("op is no good"), op, key, interrupted)
    assert resolve(op).key is key


def test_attributes_of_an_operator_mean_nothing(backend: Backend) -> None:
    for k in (2.0, 4.0):

        def op(a, k=k):  # type: ignore[no-untyped-def]
            return a * (1 / k)

        op.fn = "a note of the author's"  # type: ignore[attr-defined]
        check(backend, op, np.arange(3.0))
