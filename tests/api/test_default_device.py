"""How long `default_device` holds, and for whom."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import numpy as np
import pytest

import gpualgo as ga
from gpualgo._driver import default_device


def test_a_device_for_a_function() -> None:
    @ga.default_device("cpu")
    def device() -> str:
        return str(ga.explain(ga.reduce, np.arange(3.0))).partition("\n")[0]

    assert all("chosen by gpualgo.default_device('cpu')" in device() for _ in range(2))
    assert "chosen by" not in str(ga.explain(ga.reduce, np.arange(3.0))).partition("\n")[0]


def test_devices_of_generators_that_end_in_the_order_of_their_begin() -> None:
    def generator() -> Iterator[None]:
        with ga.default_device("cpu"):
            yield

    one, two = generator(), generator()
    before = default_device.why()
    next(one)
    next(two)
    one.close()
    assert default_device.why() != before
    two.close()
    assert default_device.why() == before


def test_a_device_of_a_generator_that_is_closed_in_another_task() -> None:
    async def generator() -> AsyncIterator[None]:
        with ga.default_device("cpu"):
            yield

    async def closes() -> str:
        made = generator()
        await asyncio.create_task(anext(made))  # type: ignore[arg-type]
        await made.aclose()
        return str(ga.explain(ga.reduce, np.arange(3.0))).partition("\n")[0]

    assert "chosen by" not in asyncio.run(closes())


def test_a_device_for_what_runs_later() -> None:
    """The block of a decorator would have ended before their bodies run."""

    async def coroutine() -> None: ...

    def generator() -> Iterator[None]:
        yield

    async def generator_of_tasks() -> AsyncIterator[None]:
        yield

    for function in (coroutine, generator, generator_of_tasks):
        with pytest.raises(TypeError, match=f"{function.__name__} is a coroutine or generator"):
            ga.default_device("cpu")(function)
