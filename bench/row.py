"""What is timed, as data; what a run found, and the JSON that it goes to and comes back from."""

from __future__ import annotations

import inspect
import json
import math
import os
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench import peers
from bench.peers import OURS, Call, Prepared

POISON = 77  # fills an output before a call, so that a value that was not written shows
FORMAT = 1  # of files
STORED = ("name", "n", "clock", "algorithm", "bytes_moved", "beside", "times")
CPU_CLOCKS = ("cpu", "wall")
CLOCKS = {  # with the titles of their tables
    "device": "Device time",
    "host": "Host time per call, nothing awaited",
    "cpu": "CPU backend, time to the result",
    "wall": "NumPy arrays beside a GPU, time to the result",
    "start": "Start-up",
}

Inputs = Callable[[Any, int], Any]  # a library and n to an array, or to a tuple of arguments
Key = tuple[str, int, str]


@dataclass(frozen=True)
class Times:
    """One contender's samples of one row, in seconds for a call.

    `low` and `high` hold the middle half of the samples and the median of every round: the spread
    within a round and the drift between rounds.
    """

    median: float
    low: float
    high: float
    count: int
    rounds: tuple[float, ...] = ()
    memory: int | None = None  # bytes that a call holds at once, its result included

    @classmethod
    def of(cls, rounds: Sequence[Sequence[float]], memory: int | None = None) -> Times:
        samples = sorted(sample for times in rounds for sample in times)
        count = len(samples)
        found = [statistics.median(samples), samples[count // 4], samples[3 * count // 4],
                 *map(statistics.median, rounds)]  # fmt: skip
        rounded = [float(f"{each:.6g}") for each in found]
        return cls(rounded[0], min(rounded), max(rounded), count, tuple(rounded[3:]), memory)


@dataclass(frozen=True)
class Row:
    """One line of the results. Arrays are made when it runs, and freed after it.

    `calls` maps each contender to a function of the inputs. NumPy's and CuPy's take the library
    before them; PyTorch's inputs are tensors of the same memory. A function that requires `out`
    gets an output of its own, one that requires `out_count` an int64.
    """

    name: str
    n: int
    # "device": time on the GPU; "host": until the call returns; "cpu": until the result is there;
    # "wall": the same, for NumPy arrays beside a GPU; "start": of a new process
    clock: str
    inputs: Inputs = lambda xp, n: ()
    calls: Mapping[str, Any] = field(default_factory=dict)  # functions, or `Prepared`
    bytes_moved: float = 0.0
    quick: bool = True  # whether --quick runs it
    expected: Callable[..., Any] | None = None  # without it NumPy's or CuPy's result
    tolerance: float = 0.0  # relative; 0 where the result is exact
    any_dtype: bool = False  # the libraries' results differ in dtype
    out_dtype: str | None = None  # of outputs, where the expected result has another
    beside: str = ""  # the one peer of the ratio; without it the fastest
    of_its_size: bool = False  # n cannot be another
    algorithm: str = ""  # whose table lists the row
    times: Mapping[str, Times] = field(default_factory=dict)  # by contender, after a run

    def __str__(self) -> str:
        return f"{self.name}, n={size_text(self.n)}, {self.clock}"

    @property
    def key(self) -> Key:
        return self.name, self.n, self.clock

    @property
    def device(self) -> str:
        return "cpu" if self.clock == "cpu" or self.name.startswith("CPU: ") else "cuda"

    def at(self, n: int) -> Row:
        return replace(self, n=n, bytes_moved=self.bytes_moved * n / self.n)

    def peer(self, among: Iterable[str] = ()) -> str | None:
        """Return the fastest peer: among those named, else the row's own, else all."""
        wanted = tuple(among) or (self.beside,)
        there = [who for who in self.times if who != OURS and who.startswith(wanted)]
        return min(there, key=lambda who: self.times[who].median, default=None)

    def ratio(self, among: Iterable[str] = ()) -> float | None:
        peer, times = self.peer(among), self.times
        return times[OURS].median / times[peer].median if peer and OURS in times else None

    def rate(self, who: str = OURS) -> float | None:
        """Return the bytes that have to be moved over a contender's time, in GB/s."""
        has_rate = self.bytes_moved and who in self.times
        return self.bytes_moved / self.times[who].median / 1e9 if has_rate else None

    def prepare(self) -> tuple[dict[str, Call], Any]:
        xp = np if self.clock in CPU_CLOCKS else peers.gpu()
        inputs = self.inputs(xp, self.n)
        inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        reference: Any = self.expected or partial(self.calls["NumPy" if xp is np else "CuPy"], xp)
        expected = reference(*inputs, **dict.fromkeys(required(reference) & {"out"}))
        found: dict[str, Call | None] = {}
        for who in filter(peers.is_here, self.calls):
            with peers.left_out_if_it_fails(self, who):
                found[who] = self._ready(who, xp, inputs, expected)
        return {who: ready for who, ready in found.items() if ready is not None}, expected

    def _ready(self, who: str, xp: Any, inputs: tuple[Any, ...], expected: Any) -> Call | None:
        call = self.calls[who]
        function = call.make if isinstance(call, Prepared) else call
        outputs = {"out": self._output(expected)} if "out" in required(function) else {}
        if "out_count" in required(function):
            outputs["out_count"] = xp.zeros((), "int64")
        if who.startswith("torch"):
            inputs, outputs = peers.as_tensor(inputs), peers.as_tensor(outputs)
        inputs = (xp, *inputs) if who in ("NumPy", "CuPy") else inputs
        ready: Call = partial(function, *inputs, **outputs)
        return ready() if isinstance(call, Prepared) else ready

    def _output(self, like: Any) -> Any:
        if isinstance(like, tuple):
            return tuple(map(self._output, like))
        return module_of(like).full(like.shape, POISON, self.out_dtype or like.dtype)


def required(function: Callable[..., Any]) -> set[str]:
    given = inspect.signature(function).parameters.values()
    return {each.name for each in given if each.default is each.empty}


def row(
    name: str, sizes: str, inputs: Inputs, bytes_each: float, ours: Any, numpy: Any = None, *,
    alike: Any = None, cub: Any = None, compute: Any = None, jax: Any = None, torch: Any = None,
    numba: Any = None, polars: Any = None, others: Mapping[str, Any] | None = None, **fields: Any,
) -> list[Row]:  # fmt: skip
    """Return a row for each size: "cpu 20* 22; device 20 24*", where --quick runs those with a *.

    A size below 64 is the exponent of a power of two. Without a clock it is "device". `numpy` is
    NumPy's call or CuPy's, by the clock, `alike` one that is also PyTorch's. Of `others` NumPy's
    are for the CPU, CuPy's for a GPU.
    """
    if alike is not None:
        numpy, torch = (lambda xp, *arrays: alike(*arrays)), alike
    on_cpu = {"NumPy": numpy, "numba": numba, "polars": polars and peers.in_polars(polars)}
    on_gpu = {"CUB": cub, "cuda.compute": compute, "CuPy": numpy,
              "JAX": jax and peers.in_jax(jax), "torch": torch}  # fmt: skip
    found = []
    for group in sizes.split(";"):
        clock, *numbers = (group if group.strip()[0].isalpha() else f"device {group}").split()
        calls = {OURS: ours, **(on_cpu if clock in CPU_CLOCKS else on_gpu), **(others or {})}
        absent = {"cpu": ("CuPy",), "wall": ()}.get(clock, ("NumPy",))
        calls = {who: call for who, call in calls.items()
                 if call is not None and not who.startswith(absent)}  # fmt: skip
        for number in numbers:
            k = int(number.rstrip("*"))
            n, quick = 1 << k if k < 64 else k, number.endswith("*")
            found.append(Row(name, n, clock, inputs, calls, bytes_each * n, quick, **fields))
    return found


def module_of(x: Any) -> Any:
    return np if isinstance(x, np.ndarray | np.generic) else peers.gpu()


def size_of(text: str) -> int:
    """Return the number that "2^20" or "1000000" means; ValueError for anything else."""
    found = re.fullmatch(r"\s*(?:2(?:\^|\*\*)(\d\d?)|(\d{1,18}))\s*", text)
    n = (1 << int(found[1]) if found[1] else int(found[2])) if found else 0
    if not 1 <= n < 1 << 63:
        raise ValueError(f"a size is from 1 to 2^63 - 1, not {text}")
    return n


def size_text(n: int) -> str:
    power = n.bit_length() - 1
    return f"2^{power}" if n == 1 << power and power > 3 else str(n)


@dataclass(frozen=True)
class Report:
    environment: dict[str, Any]
    rows: tuple[Row, ...]
    left_out: tuple[dict[str, str], ...] = ()

    @property
    def by_key(self) -> dict[Key, Row]:
        return {row.key: row for row in self.rows}

    def __str__(self) -> str:
        """Return it as JSON, a row to a line, so that two of them can be compared by diff."""
        text = partial(json.dumps, ensure_ascii=False, default=asdict)
        rows = ",\n".join(text({name: getattr(row, name) for name in STORED}) for row in self.rows)
        notes = "\n" + ",\n".join(map(text, self.left_out)) + "\n" if self.left_out else ""
        return (
            f'{{\n"format": {FORMAT},\n"environment": {text(self.environment)},\n'
            f'"rows": [\n{rows}\n],\n"left_out": [{notes}]\n}}\n'
        )

    def write(self, path: Path) -> None:
        """Write the file in one step: what was there stays until the new one is whole."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            part.write_text(str(self), encoding="utf-8")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    def over(self, second: Report) -> Report:
        later, every = set(map(str, second.rows)), set(map(str, (*self.rows, *second.rows)))
        notes = [note for note in self.left_out if note["row"] not in later]
        notes += [note for note in second.left_out
                  if note["row"] in later or note["row"] not in every]  # fmt: skip
        kept = {(note["row"], note["who"]): note for note in notes}
        rows = (self.by_key | second.by_key).values()
        return Report(self.environment, tuple(rows), tuple(kept.values()))


def read(path: Path) -> Report:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        told, rows = dict(found["environment"]), tuple(map(_row, found["rows"]))
        notes = tuple({name: note[name] for name in ("row", "who", "reason")}
                      for note in found["left_out"])  # fmt: skip
        if found["format"] != FORMAT or len({row.key for row in rows}) < len(rows):
            raise ValueError(f"it is not of format {FORMAT}, or has a row twice")
        math.isfinite((told.get("load") or 0) + len(told["versions"]))  # numbers, as they are used
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path} holds no results of gpualgo's benchmark: {error}") from error
    return Report(told, rows, notes)


def _row(found: Any) -> Row:
    times = {who: Times(**each | {"rounds": tuple(each["rounds"])})
             for who, each in found["times"].items()}  # fmt: skip
    seconds = [(each.low, each.median, each.high, *each.rounds) for each in times.values()]
    is_above_0 = all(0 < one < math.inf for each in seconds for one in each)
    if found["n"] < 1 or found["clock"] not in CLOCKS or not is_above_0:
        raise ValueError(f"row {found['name']!r} has another clock, size or time than there can be")
    return Row(**{name: found[name] for name in STORED} | {"times": times})


def merged(first: Report, second: Report) -> Report:
    """Return two runs of one machine, software and commit as one; ValueError if they are not."""
    a, b = first.environment, second.environment
    loads = {"load", "load_after"} & (a.keys() | b.keys())
    unlike = [f"{name} {a.get(name)} and {b.get(name)}" for name in sorted(a.keys() | b.keys())
              if name not in {"date", *loads} and a.get(name) != b.get(name)]  # fmt: skip
    if unlike:
        raise ValueError(f"runs that differ are not merged: {'; '.join(unlike)}")
    dates = {date for each in (a, b) for date in str(each.get("date", "")).split(" and ") if date}
    greater = {name: max(a.get(name) or 0.0, b.get(name) or 0.0) for name in loads}
    told = a | greater | {"date": " and ".join(sorted(dates))}  # the greater load: a doubt stays
    return replace(first.over(second), environment=told)
