"""How much memory new calls keep: for each a line of JSON, its name and KiB a call.

`test_growth_of_memory.py` runs it in a process of its own: `python growth.py DEVICE KIND NAME...`.
On "cuda" arrays are CuPy's, and the GPU's memory is measured as well: the larger growth counts.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from contract.case import TABLE, Call, Case
from contract.cases import CASES

import gpualgo as ga
import gpualgo.numpy as gnp
from gpualgo._driver import device, driver

FIRST, NEW = 60, 100  # calls that are not counted, until budgets are full; and that are
FIRST_LENGTHS = 10  # lengths shrink by one a call, and ranks are to stay below them
FEW_FIRST, FEW_NEW = 6, 20  # of a sample of what compiles
LARGE = 20_000  # elements of new tables and edges
LEAST = 150  # an extent that may become shorter by one with each call

Calls = dict[str, Callable[[int], Any]]
DEVICE = sys.argv[1]
xp: Any = importlib.import_module("cupy") if DEVICE == "cuda" else np
put = xp.asarray


def new_arrays(case: Case) -> list[Any]:
    return [put(x) for x in case.samples()]


def used() -> tuple[int, int]:
    """Return the KiB of the host and of the GPU's pools that are in use, without what is free."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * 4
    if xp is np:
        return resident, 0
    xp.cuda.Device().synchronize()
    lent, handle = xp.get_default_memory_pool().used_bytes(), device.get(0).pool._handle
    if handle is not None:
        kind = driver.api().CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT
        found = driver.api().cuMemPoolGetAttribute(handle, kind)
        lent += int(driver.check(found, "cuMemPoolGetAttribute"))
    return resident, lent >> 10


def growth(call: Callable[[int], Any], first: int, new: int) -> float:
    """Return by how many KiB each new call lets the process grow, on the host or on the GPU.

    Memory that is taken once does not count: of two halves of the calls the smaller growth does.
    """
    for k in range(first):
        call(k)
    half, grown = new // 2, []
    for begin in (first, first + half):
        before = used()
        for k in range(begin, begin + half):
            call(k)
        grown.append([(now - then) / half for now, then in zip(used(), before, strict=True)])
    return max(map(min, zip(*grown, strict=True)))


def lengths() -> Calls:
    """Return calls of each algorithm, each with another length."""
    found: Calls = {}
    for case in CASES:
        extents = [n for shape, _ in case.elements for n in shape]
        if max(extents, default=0) < LEAST:
            continue
        found[str(case)] = lambda k, case=case: _shorter(case, k)
    return found


def _shorter(case: Case, k: int) -> None:
    def cut(shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(n - k if n >= LEAST else n for n in shape)

    new = replace(case, inputs=tuple((cut(shape), dtype) for shape, dtype in case.inputs))
    call, arrays = Call(new, put(TABLE)), new_arrays(new)
    for _ in range(2):
        call(*arrays)


def of_operators(make: Callable[[Case, list[Any], int], None]) -> Calls:
    """Return calls of each algorithm that takes an operator, which make changes in each."""
    found: Calls = {}
    for case in CASES:
        if case.captures and case.name not in found:
            found[case.name] = partial(make, case, new_arrays(case))
    return found


def _with_table(case: Case, arrays: list[Any], k: int) -> None:
    call = Call(case, put(np.arange(3, LARGE + k, dtype=TABLE.dtype)))
    for _ in range(2):
        call(*arrays)


def _with_code(case: Case, arrays: list[Any], k: int) -> None:
    call = Call(case, put(TABLE))
    assert isinstance(call.op, types.FunctionType)
    code = call.op.__code__
    call.op = types.FunctionType(
        code.replace(co_consts=(*code.co_consts, f"new {k}")), call.op.__globals__,
        closure=call.op.__closure__,
    )  # fmt: skip
    call(*arrays)


def edges() -> Calls:
    """Return histograms, each with new edges."""
    x = put(np.random.default_rng(0).random(5000))
    even = np.linspace(0, 1, LARGE)
    more: dict[str, dict[str, Any]] = {"edges": {}, "edges, weights": {"weights": x}}
    found: Calls = {
        name: lambda k, given=given: ga.histogram(x, even + k * 1e-9, **given)
        for name, given in more.items()
    }
    found["joint edges"] = lambda k: ga.histogram((x, x), (even + k * 1e-9, 3), (None, (0, 1)))
    for name in ("histogram", "digitize", "searchsorted"):
        function = getattr(gnp, name)
        first = name != "searchsorted"
        found[f"gnp.{name}"] = lambda k, function=function, first=first: (
            function(x, put(even + k * 1e-9)) if first else function(put(even + k * 1e-9), x)
        )
    found["bins"] = lambda k: ga.histogram(x, LARGE + k, (0.0, 1.0))
    found["own range"] = lambda k: ga.histogram(x * (1 + k / 100), LARGE)
    return found


def names() -> Calls:
    """Return calls of NumPy's names, each with another length; names that take none of them lack.

    Each takes the first kind of arguments that it does not refuse.
    """
    found: Calls = {}
    for name in gnp.__all__:
        function = getattr(gnp, name)
        is_asked = not sys.argv[3:] or f"gnp.{name}" in sys.argv[3:]
        if isinstance(function, type) or not callable(function) or not is_asked:
            continue
        for arguments in _ARGUMENTS:
            with contextlib.suppress(Exception):
                function(*arguments(5000))
                found[f"gnp.{name}"] = lambda k, function=function, arguments=arguments: function(
                    *arguments(5000 - k)
                )
                break
    return found


_X = put(np.random.default_rng(1).random(6000) + 0.5)
_I = put(np.random.default_rng(2).integers(1, 50, 6000))
_ARGUMENTS: list[Callable[[int], tuple[Any, ...]]] = [
    lambda n: (_X[:n],),
    lambda n: (_I[:n],),
    lambda n: (_X[:n], _X[:n]),
    lambda n: (_I[:n], _I[:n]),
    lambda n: (_X[:n], 3),
    lambda n: (_X[:n], 50.0),
    lambda n: (_X[:n], 0.5),
    lambda n: ((_X[:n], _X[:n]),),
    lambda n: (_X[:n] > 1, _X[:n], 0.0),
    lambda n: (_X[:n], 0.0, 1.0),
    lambda n: (_X[:n], _X[:n], 5),
    lambda n: (_X[:n], xp.sort(_X[:100]), _X[:100]),
    lambda n: (_X[:n], [0, 3]),
    lambda n: (_X[:n, None] > 1,),
    lambda n: (_X[:n, None],),
    lambda n: (_X[:n, None], _I[:n, None] * 0, 1),
    lambda n: (np.multiply, 0, _X[:n]),
]

KINDS: dict[str, Callable[[], Calls]] = {
    "lengths": lengths, "tables": partial(of_operators, _with_table),
    "operators": partial(of_operators, _with_code), "edges": edges, "names": names,
}  # fmt: skip


def measured(kind: str, names: Sequence[str]) -> Iterator[tuple[str, float]]:
    """Measure the calls of a kind, all or those of these names."""
    counts = (FIRST_LENGTHS if kind == "lengths" else FIRST, NEW)
    if kind == "operators" and (names or DEVICE == "cuda"):  # each takes long to compile
        counts = (FEW_FIRST, FEW_NEW)
    for name, call in KINDS[kind]().items():
        if not names or name in names:
            yield name, growth(call, *counts)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with ga.default_device(DEVICE), np.errstate(all="ignore"):
        for pair in measured(sys.argv[2], sys.argv[3:]):
            print(json.dumps(pair), flush=True)
