"""Arrays of several libraries on one GPU in one call: its results, and the order of its streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from contract.case import Case, assert_bits
from contract.cases import cases_of, each_case, each_function
from contract.libraries import Libraries, joins, torch_on_gpu
from gate import Gate
from support import Array, Backend

import gpualgo as ga
import gpualgo.numpy as gnp
from gpualgo._cuda.plan import Plan


@pytest.fixture
def libraries(cuda: Backend, monkeypatch: pytest.MonkeyPatch) -> Iterator[Libraries]:
    found = Libraries(cuda, monkeypatch)
    with found.current:
        yield found
    found.synchronize()


@each_case
def test_results_are_the_first_array_s(cuda: Backend, libraries: Libraries, case: Case) -> None:
    """Whatever library the calls before were of; outputs are any library's."""
    has_out, case = not case.is_joined, replace(case, is_joined=False)
    call, arrays = case.on(cuda), case.arrays(cuda)
    want = libraries.hosts(call(*arrays))
    for first in (0, 1, 2, 1, 0):
        mixed = libraries.mixed(arrays, first)
        result = call(*mixed)
        assert libraries.are_of(result, first)
        assert_bits(libraries.hosts(result), want)
        if has_out:
            out, plain = libraries.outputs(want, first + 1)
            assert call(*mixed, out=out) is out
            assert_bits(libraries.hosts(tuple(plain)), want)
    assert_bits(libraries.hosts(tuple(arrays)), case.samples())


@each_case
def test_plans(cuda: Backend, libraries: Libraries, case: Case) -> None:
    has_out, case = not case.is_joined, replace(case, is_joined=False)
    call, arrays = case.on(cuda), case.arrays(cuda)
    want = libraries.hosts(call(*arrays))
    args, options = call.arguments(arrays)
    size = ga.temp_storage_bytes(case.function, *args, **options)
    steps = ga.explain(case.function, *args, **options).steps
    for first in (0, 1, 2):
        mixed = libraries.mixed(arrays, first)
        args, options = call.arguments(mixed)
        assert ga.temp_storage_bytes(case.function, *args, **options) == size
        if not case.reads_last_alone:  # else an element of the first array is read, too
            assert ga.explain(case.function, *args, **options).steps == steps
        plan = call.prepare(*mixed)
        assert plan.temp_storage_bytes == size
        for _ in range(2):
            assert_bits(libraries.hosts(plan(*mixed)), want)
        if has_out and not case.has_dynamic_length:
            storage = libraries.given(cuda.xp.zeros(size, np.uint8), (first + 2) % 3)
            for more in ({}, {"temp_storage": storage}):
                out, plain = libraries.outputs(want, first + 1)
                assert plan(*mixed, out=out, **more) is out
                assert_bits(libraries.hosts(tuple(plain)), want)


@each_case
def test_graphs(cuda: Backend, libraries: Libraries, case: Case) -> None:
    """A launch waits for what writes the arrays, each on its library's stream."""
    if not case.can_be_recorded:
        pytest.skip("the host looks at the elements")
    call = case.on(cuda)
    wanted = [libraries.hosts(call(*case.arrays(cuda, seed))) for seed in (1, 2)]
    for first in (0, 1):
        arrays = case.arrays(cuda)
        libraries.synchronize()
        mixed = libraries.mixed(arrays, first)
        out, plain = libraries.outputs(wanted[0], first + 1)
        with ga.graph() as g:
            result = call(*mixed)
            call(*mixed, out=out)
        for seed, want in enumerate(wanted, 1):
            others = case.arrays(cuda, seed)
            libraries.synchronize()
            write(libraries, arrays, others, first)
            g.launch()
            assert_bits(libraries.hosts(result), want)
            assert_bits(libraries.hosts(tuple(plain)), want)


X, MARKS = np.arange(2000) * 37 % 101 - 7, np.arange(2000) % 3 == 0
EDGES, MANY = np.arange(0, 90, 9), np.arange(-1500, 1500)
PLACES = np.arange(300) * 7 % 200

# Calls of two arrays, that read the second one first, or the first one nowhere.
LED: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "find": (lambda x, y: ga.find(x, y), MARKS[::-1].copy()),
    "count": (lambda x, y: ga.count(x, y), MARKS),
    "count: lazy": (lambda x, y: ga.count(ga.lazy.asarray(x) * 2, y), MARKS),
    "take": (lambda x, y: ga.copy(ga.lazy.take(x, y)), PLACES),
    "take: axis": (lambda x, y: ga.copy(ga.lazy.take(x[:, None], y, axis=0)), PLACES),
    "take: none": (lambda x, y: ga.copy(ga.lazy.take(x, y[:0])), PLACES),
    "gnp.sum": (lambda x, y: gnp.sum(x, where=y), MARKS),
    "gnp.sum: lazy": (lambda x, y: gnp.sum(ga.lazy.asarray(x), axis=0, where=y), MARKS),
    "gnp.var": (lambda x, y: gnp.var(x, where=y), MARKS),
    "gnp.max": (lambda x, y: gnp.max(x, initial=3, where=y), MARKS),
    "gnp.nanstd": (lambda x, y: gnp.nanstd(x, where=y), MARKS),
    "gnp.add": (lambda x, y: gnp.add(x, 2, where=y, out=x.copy()), MARKS),
    "gnp.quantile": (lambda x, y: gnp.quantile(x, y), np.arange(5) / 4),
    "gnp.average": (lambda x, y: gnp.average(x, weights=y), X + 8),
    "gnp.digitize": (lambda x, y: gnp.digitize(x, y), EDGES),
    "gnp.digitize: many": (lambda x, y: gnp.digitize(x, y), MANY),
    "gnp.lexsort": (lambda x, y: gnp.lexsort((x, y)), PLACES[np.arange(2000) % 300]),
    "gnp.isin": (lambda x, y: gnp.isin(x, y), EDGES),
    "gnp.isin: many": (lambda x, y: gnp.isin(x, y), MANY),
    "gnp.isin: complex": (lambda x, y: gnp.isin(x, y), EDGES * 1j),
    "gnp.compress": (lambda x, y: gnp.compress(y, x[:, None], 0), MARKS),
}  # fmt: skip


@pytest.mark.parametrize("name", LED)
def test_results_are_the_first_argument_s(cuda: Backend, libraries: Libraries, name: str) -> None:
    call, second = LED[name]
    x, y = cuda.to_device(X), cuda.to_device(second)
    libraries.synchronize()
    (want,) = libraries.hosts(call(x, y))
    with ga.default_device("cpu"):
        np.testing.assert_allclose(want, np.asarray(call(X, second)), rtol=1e-12)
    for first in (0, 1, 0):
        for _ in range(2):
            found = call(libraries.given(x, first), libraries.given(y, 1 - first))
            assert libraries.are_of(found, first)
            assert_bits(libraries.hosts(found), [want])


def test_the_first_argument_s_stream(cuda: Backend, libraries: Libraries, gate: Gate) -> None:
    """A call runs on the stream of the first argument, and waits for that of the one it reads."""
    plain, marks = cuda.to_device(X), cuda.to_device(MARKS)
    libraries.synchronize()
    x, y = libraries.given(plain, 0), libraries.given(marks, 1)
    made: list[Any] = []
    joins(libraries, gate, lambda: made.append(ga.count(x, y)))
    assert_bits(libraries.hosts(tuple(made)), [np.asarray(MARKS.sum())] * len(made))


def write(libraries: Libraries, arrays: list[Array], others: list[Any], first: int) -> None:
    """Fill arrays with others, each on the stream of its library."""
    for i, (array, other) in enumerate(zip(arrays, others, strict=True)):
        with libraries.streams[(first + i) % 3]:
            array[...] = other


class Sequence:
    """Inputs are written, a call reads them and writes outputs, inputs are overwritten.

    Each on the stream of its array's library; the outputs are of another library than the inputs.
    """

    def __init__(self, libraries: Libraries, case: Case, with_stream: bool) -> None:
        cuda = self.cuda = libraries.cuda
        self.libraries, self.call = libraries, case.on(cuda)
        self.arrays, self.later = case.arrays(cuda), case.arrays(cuda, 1)
        self.zeros = [x * 0 for x in self.later]
        self.want = libraries.hosts(self.call(*self.later))
        self.mixed = libraries.mixed(self.arrays, 0)
        self.out, self.plain = libraries.outputs(self.want, 1)
        self.given = {"stream": cuda.xp.cuda.Stream(non_blocking=True)} if with_stream else {}
        self.stream = self.given.get("stream", libraries.current)
        self.found: list[Array] = []

    def __call__(self) -> None:
        write(self.libraries, self.arrays, self.later, 0)
        write(self.libraries, self.plain, [1 for _ in self.plain], 1)
        self.call(*self.mixed, out=self.out, **self.given)
        write(self.libraries, self.arrays, self.zeros, 0)
        self.found = []
        for i, x in enumerate(self.plain):
            with self.libraries.streams[(1 + i) % 3]:
                self.found.append(x.copy())

    def check(self) -> None:
        assert_bits(self.libraries.hosts(tuple(self.found)), self.want)


@pytest.mark.parametrize("with_stream", [False, True], ids=["", "a stream"])
@each_function
def test_order_of_streams(
    libraries: Libraries, gate: Gate, function: Callable[..., Any], with_stream: bool
) -> None:
    case = replace(cases_of(function)[0], is_joined=False)
    if function is ga.stable_partition:
        pytest.skip("out= takes both results as one array")
    run = Sequence(libraries, case, with_stream)
    for _ in range(2):
        run()
        run.check()
    with gate.hold(libraries.streams[1]):  # of an output, and of an input
        run()
        assert gate.holds(run.stream)
    run.check()
    with gate.hold(run.stream):
        run()
        assert gate.holds(libraries.streams[1])
    run.check()


@pytest.mark.parametrize("has_out", [False, True])
def test_inputs(cuda: Backend, libraries: Libraries, gate: Gate, has_out: bool) -> None:
    """Calls whose results are of the first input's library are joined with the second one's."""
    x, plain, out = (cuda.to_device(np.arange(3001)) for _ in range(3))
    libraries.synchronize()
    y, more = libraries.given(plain, 1), {"out": out} if has_out else {}
    made: list[Any] = []
    joins(libraries, gate, lambda: made.append(ga.transform(lambda a, b: a - 2 * b, x, y, **more)))
    assert all(type(z) is type(x) for z in made)
    assert_bits(libraries.hosts(tuple(made)), [-np.arange(3001)] * len(made))


@pytest.mark.parametrize("has_storage", [False, True])
def test_errors_half_way(
    cuda: Backend, libraries: Libraries, gate: Gate, monkeypatch: pytest.MonkeyPatch,
    has_storage: bool,
) -> None:  # fmt: skip
    x, plain = cuda.to_device(np.arange(5003)), cuda.to_device(np.arange(5003))
    plan, queue = ga.prepare(ga.inclusive_scan, x), Plan.queue
    storage = libraries.given(cuda.xp.zeros(plan.temp_storage_bytes, np.uint8), 1)
    libraries.synchronize()

    def failing(*arguments: Any) -> None:
        queue(*arguments)
        raise MemoryError("no more")

    def call() -> None:
        if has_storage:
            plan(x, out=plain, temp_storage=storage)
        else:
            ga.inclusive_scan(x, out=libraries.given(plain, 1))

    def run() -> None:
        with pytest.raises(MemoryError, match="no more"):
            call()

    monkeypatch.setattr(Plan, "queue", failing)
    joins(libraries, gate, run)


def test_inputs_of_a_lazy_array(cuda: Backend, libraries: Libraries, gate: Gate) -> None:
    x, plain, out = (cuda.to_device(np.arange(3001)) for _ in range(3))
    libraries.synchronize()
    whole = ga.lazy.asarray(x) - ga.lazy.asarray(libraries.given(plain, 1)) * 2
    joins(libraries, gate, lambda: ga.copy(whole, out=out))
    assert_bits(libraries.hosts(out), [-np.arange(3001)])


def test_temporary_storage(cuda: Backend, libraries: Libraries, gate: Gate) -> None:
    x = cuda.to_device(np.arange(20_003))
    plan, out = ga.prepare(ga.inclusive_scan, x), cuda.xp.zeros(20_003, np.int64)
    plain = cuda.xp.zeros(plan.temp_storage_bytes, np.uint8)
    libraries.synchronize()
    storage = libraries.given(plain, 1)
    assert storage.size
    joins(libraries, gate, lambda: plan(x, out=out, temp_storage=storage))
    assert_bits(libraries.hosts(out), [np.cumsum(np.arange(20_003))])


def test_captured_arrays(cuda: Backend, libraries: Libraries, gate: Gate) -> None:
    x, plain = cuda.to_device(np.arange(3001)), cuda.to_device(np.arange(8) * 10)
    out, (table,) = cuda.xp.zeros(3001, np.int64), libraries.mixed([plain], 1)
    libraries.synchronize()
    joins(libraries, gate, lambda: ga.transform(lambda a: table[a & 7], x, out=out))
    assert_bits(libraries.hosts(out), [np.arange(3001) % 8 * 10])


def test_cupy_and_torch(cuda: Backend) -> None:
    torch = torch_on_gpu()
    cp = cuda.xp
    x, y = cp.arange(1000.0), torch.arange(1000.0, dtype=torch.float64, device="cuda")
    shown = ga.copy(y.__dlpack__())  # known by a protocol alone
    for _ in range(2):
        for arrays, kind in (((x, y), cp.ndarray), ((y, x), torch.Tensor), ((shown, y, x), None)):
            found = ga.transform(lambda a, b, *c: a + b, *arrays[:2])
            assert type(found) is (kind or ga.DeviceArray)
            assert (cp.asnumpy(cp.asarray(found)) == 2 * np.arange(1000.0)).all()
    out = torch.zeros(1000, dtype=torch.float64, device="cuda")
    assert ga.inclusive_scan(x, out=out) is out
    assert (out.cpu().numpy() == np.cumsum(np.arange(1000.0))).all()
    keys = torch.arange(1000, device="cuda") // 7
    count = torch.zeros((), dtype=torch.int64, device="cuda")
    outs = cp.zeros(1000, np.int64), torch.zeros(1000, dtype=torch.float64, device="cuda")
    found = ga.reduce_by_key(keys, x, consecutive=True, out=outs, out_count=count)
    assert found is outs
    assert int(count) == 143
    sums = np.add.reduceat(np.arange(1000.0), np.arange(0, 1000, 7))
    assert (outs[1].cpu().numpy()[:143] == sums).all()
