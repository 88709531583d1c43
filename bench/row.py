"""A row of the benchmark: what is timed, as data, and the calls that it becomes when it runs."""

from __future__ import annotations

import inspect
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from bench import notes, peers
from bench.peers import OURS, Contender, Prepared

POISON = 77  # fills an output before a call, so that a value that was not written shows
CPU_CLOCKS = ("cpu", "wall")

Inputs = Callable[[Any, int], Any]  # a library and n to an array, or to a tuple of arguments
Call = Callable[..., Any]  # of the inputs
Key = tuple[str, int, str]
_DTYPE = re.compile(r"\b(?:(float|int|uint|f|i|u)(8|16|32|64)|(bool))\b")


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
        """Return the summary of rounds of samples, in six digits."""
        samples = sorted(sample for times in rounds for sample in times)
        quarters = samples[len(samples) // 4], samples[(3 * len(samples)) // 4]
        medians = tuple(float(f"{statistics.median(times):.6g}") for times in rounds)
        low, middle, high = (
            float(f"{x:.6g}") for x in (quarters[0], statistics.median(samples), quarters[1])
        )
        low, high = min(low, *medians, middle), max(high, *medians, middle)
        return cls(middle, low, high, len(samples), medians, memory)


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
    expected: Call | None = None  # without it NumPy's or CuPy's result
    tolerance: float = 0.0  # relative; 0 where the result is exact
    any_dtype: bool = False  # the libraries' results differ in dtype
    out_dtype: str | None = None  # of outputs, where the expected result has another
    beside: str = ""  # the one peer of the ratio; without it the fastest
    dtype: str = ""  # where the name does not say it
    of_its_size: bool = False  # n cannot be another
    entropy: float | None = None  # of the keys of a sort
    algorithm: str = ""  # the file that lists the row
    times: Mapping[str, Times] = field(default_factory=dict)  # by contender, after a run

    def __str__(self) -> str:
        return f"{self.name}, n={size_text(self.n)}, {self.clock}"

    @property
    def key(self) -> Key:
        return self.name, self.n, self.clock

    @property
    def dtypes(self) -> frozenset[str]:
        return dtypes_in(self.dtype or self.name)

    def at(self, n: int) -> Row:
        return replace(self, n=n, bytes_moved=self.bytes_moved * n / self.n)

    def timed(self, times: Mapping[str, Times]) -> Row:
        return replace(self, dtype=" ".join(sorted(self.dtypes)), times=times)

    def peer(self, among: Iterable[str] = ()) -> str | None:
        """Return the fastest peer: among those named, else the row's own, else all."""
        wanted = tuple(among) or (self.beside,)
        peers = [who for who in self.times if who != OURS and who.startswith(wanted)]
        return min(peers, key=lambda who: self.times[who].median, default=None)

    def ratio(self, among: Iterable[str] = ()) -> float | None:
        peer = self.peer(among)
        if peer is None or OURS not in self.times:
            return None
        return self.times[OURS].median / self.times[peer].median

    def rate(self, who: str = OURS) -> float | None:
        """Return the bytes that have to be moved over a contender's time, in GB/s."""
        if not self.bytes_moved or who not in self.times:
            return None
        return self.bytes_moved / self.times[who].median / 1e9

    def prepare(self) -> tuple[dict[str, Contender], Any]:
        """Return the calls of those that are here, ready to run, and the expected result."""
        xp = np if self.clock in CPU_CLOCKS else peers.gpu()
        inputs = self.inputs(xp, self.n)
        inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        reference: Any = self.expected or partial(self.calls["NumPy" if xp is np else "CuPy"], xp)
        expected = reference(*inputs)
        contenders = {}
        for who, call in self.calls.items():
            given = (xp, *inputs) if who in ("NumPy", "CuPy") else inputs
            ready = self._ready(who, call, given, expected) if peers.is_here(who) else None
            if ready is not None:
                contenders[who] = ready
        return contenders, expected

    def _ready(
        self, who: str, call: Call | Prepared, inputs: tuple[Any, ...], expected: Any
    ) -> Contender | None:
        """Return the call with its inputs and outputs; None where a peer cannot be prepared."""
        function = call.make if isinstance(call, Prepared) else call
        outputs = _outputs(function, expected, self.out_dtype)
        if who.startswith("torch"):
            inputs, outputs = peers.as_tensor(inputs), peers.as_tensor(outputs)
        ready: Contender = partial(function, *inputs, **outputs)
        try:
            return ready() if isinstance(call, Prepared) else ready
        except Exception as error:
            if who.startswith(OURS):
                raise
            notes.add(str(self), who, f"{type(error).__name__}: {error}")
            return None


def row(
    name: str, sizes: str, inputs: Inputs, bytes_each: float, ours: Any, numpy: Any = None, *,
    cub: Any = None, compute: Any = None, jax: Any = None, torch: Any = None, numba: Any = None,
    polars: Any = None, others: Mapping[str, Any] | None = None, **fields: Any,
) -> list[Row]:  # fmt: skip
    """Return a row for each size: "cpu 20* 22; device 20 24*", where --quick runs those with a *.

    A size below 64 is the exponent of a power of two. Without a clock it is "device". `numpy` is
    NumPy's call or CuPy's, by the clock.
    """
    found = []
    for group in sizes.split(";"):
        clock, *numbers = (group if group.strip()[0].isalpha() else f"device {group}").split()
        if clock in CPU_CLOCKS:
            calls = {OURS: ours, "NumPy": numpy, "numba": numba, "polars": polars}
        else:
            calls = {OURS: ours, "CUB": cub, "cuda.compute": compute, "CuPy": numpy, "JAX": jax,
                     "torch": torch}  # fmt: skip
        calls |= others or {}
        calls = {who: call for who, call in calls.items() if call is not None}
        for number in numbers:
            k = int(number.rstrip("*"))
            n = 1 << k if k < 64 else k
            found.append(Row(name, n, clock, inputs, calls, bytes_each * n, number[-1] == "*",
                             **fields))  # fmt: skip
    return found


def _outputs(function: Call, expected: Any, dtype: str | None) -> dict[str, Any]:
    """Return the outputs that a call requires: those of its parameters without a default."""
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # of some built-in functions
        return {}
    required = {name for name, each in parameters.items() if each.default is each.empty}
    found = {"out": _output(expected, dtype)} if "out" in required else {}
    if "out_count" in required:
        first = expected[0] if isinstance(expected, tuple) else expected
        found["out_count"] = module_of(first).zeros((), "int64")
    return found


def _output(like: Any, dtype: str | None) -> Any:
    if isinstance(like, tuple):
        return tuple(_output(each, dtype) for each in like)
    return module_of(like).full(like.shape, POISON, dtype or like.dtype)


def module_of(x: Any) -> Any:
    return np if isinstance(x, np.ndarray | np.generic) else peers.gpu()


def dtypes_in(text: str) -> frozenset[str]:
    """Return the short names of the dtypes in a text: f32 for float32."""
    return frozenset(kind[:1] + bits + bool_ for kind, bits, bool_ in _DTYPE.findall(text))


def size_of(text: str) -> int:
    """Return the number that "2^20" or "1000000" means; ValueError for anything else."""
    base, caret, power = text.strip().replace("**", "^").partition("^")
    if caret and not 0 <= int(power) < 64:  # a power of billions would be computed for hours
        raise ValueError(f"a size is below 2^63, not {text}")
    n = int(base) ** int(power) if caret else int(base)
    if not 1 <= n < 1 << 63:
        raise ValueError(f"a size is from 1 to 2^63 - 1, not {text}")
    return n


def size_text(n: int) -> str:
    power = n.bit_length() - 1
    return f"2^{power}" if n == 1 << power and power > 3 else str(n)
