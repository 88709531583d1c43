"""A program: calls of one template, one after the other; how it is drawn, and how it shrinks.

What a program prints as makes it again: `Program(...)` is Python.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from contract.state.memory import LAYOUTS
from contract.state.templates import Template

# How a step calls: `plan` by the program's one plan, `graph` records and launches, `replay`
# launches the last recording once more, `explain` asks first what a call would do.
WAYS = ("call", "lazy", "plan", "graph", "replay", "explain", "stream")
# `same` is the first input itself, `overlapping` begins one element later.
INPUTS = (*LAYOUTS, "same", "overlapping")
OUTS = ("none", "fresh", "itself", "last input", "reversed input", "overlapping", "step",
        "misaligned", "read-only", "other dtype", "other shape", "broadcast", "swapped", "0-d",
        "fortran", "offset", "padded", "list")  # fmt: skip
IN_PLACE = ("itself", "last input", "reversed input", "overlapping")
# What holds the number that an operator captures.
STYLES = {
    "closure": "def make(K):\n def op({0}): return {1}\n return op",
    "global": "def make(k):\n global K\n K = k\n def op({0}): return {1}\n return op",
    "default": "def make(k):\n def op({0}, K=k): return {1}\n return op",
    "array": "def make(K):\n def op({0}): return {1}\n return op",
}


@dataclass(frozen=True)
class Step:
    """A call: how it is made, how its arrays lie, what the operator captures, whether it fails."""

    way: str = "call"
    layouts: tuple[str, ...] = ()
    out: str = "none"
    k: int = 3
    seed: int = 0
    again: bool = False  # its arrays lie where those of the last step did
    fails: str = ""  # "operator": it cannot be compiled; "driver 3": the third call of the driver

    def __repr__(self) -> str:
        told = [f"{f.name}={value!r}" for f in fields(self)
                if (value := getattr(self, f.name)) != f.default]  # fmt: skip
        return f"Step({', '.join(told)})"


@dataclass(frozen=True)
class Program:
    """Calls of one template with arrays of one dtype and length."""

    name: str
    number: int  # of the template among those of this name
    dtype: str
    n: int
    style: str = "closure"
    on_host: bool = False  # arrays are NumPy's whatever the backend
    few_to_numpy: bool = False  # functions of `gpualgo.numpy` may leave few elements to NumPy
    steps: tuple[Step, ...] = ()

    def __str__(self) -> str:
        head = repr(replace(self, steps=())).removesuffix("steps=())")
        return "\n".join([head + "steps=(", *(f"    {step}," for step in self.steps), "))"])


def takes_out(template: Template) -> bool:
    try:
        return template.has_out and "out" in inspect.signature(template.function).parameters
    except ValueError:  # a ufunc of NumPy's
        return True


def drawn(
    rng: random.Random, template: Template, number: int, *, sizes: tuple[int, ...], deep: bool,
    has_device: bool,
) -> Program:  # fmt: skip
    """Draw a program: deep ones are longer, of any dtype and style."""
    dtypes = template.dtypes.split()
    has_out = takes_out(template)
    return Program(
        template.name, number,
        rng.choice(dtypes) if deep and rng.random() < 0.3 else dtypes[0],
        rng.choice(sizes),
        rng.choice(list(STYLES)) if deep and template.op else "closure",
        has_device and rng.random() < 0.25,
        template.is_numpys and rng.random() < 0.2,
        tuple(
            _step(rng, template, has_out, has_device, is_first=not i)
            for i in range(rng.randint(3, 8 if deep else 5))
        ),
    )  # fmt: skip


def _step(
    rng: random.Random, template: Template, has_out: bool, has_device: bool, is_first: bool
) -> Step:  # fmt: skip
    """Draw a step: the first one mostly of a rare kind, most of the others ordinary ones."""
    rare = 0.7 if is_first else 0.25

    def drawn(usual: Any, others: tuple[Any, ...], chance: float = rare) -> Any:
        return rng.choice(others) if rng.random() < chance else usual

    fails = "operator" if "K" in template.op and rng.random() < rare / 4 else ""
    if has_device and rng.random() < rare / 4:
        fails = f"driver {rng.randint(1, 8)}"
    layouts = tuple(drawn("plain", INPUTS, rare / 2) for _ in template.arrays.split())
    out = drawn(rng.choice(("none", "fresh")), drawn(OUTS, (IN_PLACE,), 0.5)) if has_out else "none"
    return Step(
        drawn("call", WAYS, 0.4), layouts if set(layouts) != {"plain"} else (), out,
        drawn(3, (1, 2, 7), 0.4) if "K" in template.op else 3, rng.randint(0, 9),
        rng.random() < 0.5, fails,
    )  # fmt: skip


def shrunk(program: Program, still_fails: Callable[[Program], bool], budget: int = 40) -> Program:
    """Return a smaller program that fails as well: fewer steps, plainer ones."""
    is_smaller = True
    while is_smaller and budget > 0:
        is_smaller = False
        for smaller in _smaller(program):
            budget -= 1
            if budget < 0:
                break
            if still_fails(smaller):
                program, is_smaller = smaller, True
                break
    return program


def _smaller(program: Program) -> Iterator[Program]:
    steps = program.steps
    if len(steps) > 2:
        yield replace(program, steps=steps[len(steps) // 2 :])
    for i in range(len(steps)):
        if len(steps) > 1:
            yield replace(program, steps=steps[:i] + steps[i + 1 :])
    for i, step in enumerate(steps):
        for f in fields(step):
            if getattr(step, f.name) != f.default:
                plainer = replace(step, **{f.name: f.default})
                yield replace(program, steps=(*steps[:i], plainer, *steps[i + 1 :]))
    if program.style != "closure":
        yield replace(program, style="closure")
    if program.n > 7:
        yield replace(program, n=7)
