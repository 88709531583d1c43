"""Plays a program on a backend, beside NumPy: the first step that goes wrong is a `Fault`."""

from __future__ import annotations

import inspect
import warnings
from collections import Counter
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from contract.state.failing import Operator, driver_fails
from contract.state.memory import Host, Memory, Place
from contract.state.numpys import NAMES, templates_of
from contract.state.program import Program, Step
from contract.state.templates import TEMPLATES, Template
from contract.state.values import SHAPES, Fault, assert_same, dtype_of, listed, values_of
from support import Backend

import gpualgo as ga
import gpualgo.numpy as gnp

REFUSABLE = {"itself", "last input", "reversed input", "overlapping", "other dtype", "swapped",
             "broadcast", "read-only"}  # fmt: skip
REFUSED = (TypeError, ValueError, RuntimeError, IndexError)
_OF_ONE_KIND = (TypeError, ValueError, IndexError, ZeroDivisionError)

# Outputs that NumPy refuses or writes in ways of its own, by name; others take their place.
_WITH_GAPS = ("step", "fortran")  # NumPy 2.4 with AVX-512 writes other elements of these
FRESH_INSTEAD = {
    "numpy.dot": ("swapped",), "numpy.isinf": _WITH_GAPS, "numpy.isnan": _WITH_GAPS,
    "numpy.signbit": _WITH_GAPS,
    # NumPy takes some that are too large, and writes a part.
    "numpy.median": ("other shape",), "numpy.nanmedian": ("other shape",),
    "numpy.cumulative_prod": ("other shape",), "numpy.cumulative_sum": ("other shape",),
}  # fmt: skip

# NumPy writes their result of at most one element to a part of a larger output.
SCANS = ("numpy.cumprod", "numpy.cumsum", "numpy.nancumprod", "numpy.nancumsum")

calls: Counter[str] = Counter()  # by function
outcomes: dict[Any, tuple[str, Program]] = {}  # what calls of one kind came to, and where first


def templates() -> dict[str, list[Template]]:
    """Return all templates, by name."""
    found: dict[str, list[Template]] = {}
    for template in TEMPLATES:
        found.setdefault(template.name, []).append(template)
    found.update({f"numpy.{name}": templates_of(name) for name in NAMES})
    return found


def play(program: Program, backend: Backend) -> None:
    """Run a program from its first step on."""
    from gpualgo.numpy import _call

    with (
        pytest.MonkeyPatch.context() as patch,
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
    ):
        warnings.simplefilter("ignore")
        if not program.few_to_numpy:
            patch.setattr(_call, "is_few", lambda size, few: False)
        _Player(program, Backend(backend.name, np) if program.on_host else backend).play()


def _real(x: Any) -> Any:
    return ga.copy(x) if type(x).__name__ == "LazyArray" else x


class _Player:
    """What a program has while it runs."""

    def __init__(self, program: Program, backend: Backend) -> None:
        self.program, self.backend = program, backend
        self.template = templates()[program.name][program.number]
        self.memory = Memory(backend)
        has_op = bool(self.template.op)
        self.op = Operator(self.template, program, backend) if has_op else None
        self.plan: Any = None
        self.plan_key: Any = None
        self.recorded: Any = None

    def play(self) -> None:
        for number, step in enumerate(self.program.steps):
            try:
                self.step(step)
            except Fault as fault:
                raise Fault(f"step {number}, {step}: {fault}") from fault.__cause__

    # --- the arrays of a step

    def inputs(self, step: Step) -> list[Place]:
        self.memory.begin(again=step.again)
        rng = np.random.default_rng(step.seed)
        kinds, places = self.template.arrays.split(), list[Place]()
        layouts = step.layouts or ("plain",) * len(kinds)
        for spec, layout in zip(kinds, layouts, strict=True):
            kind, _, form = spec.partition(":")
            shape, dtype = SHAPES[form](self.program.n), dtype_of(kind, self.program.dtype)
            first = places[0] if places else None
            is_like = first is not None and (first.shape, first.dtype) == (shape, dtype)
            if is_like and kind in "xy" and layout in ("same", "overlapping"):
                places.append(first if layout == "same" else first.shifted())
                continue
            layout = "plain" if layout in ("same", "overlapping") else layout
            place = self.memory.new(layout, shape, dtype)
            self.memory.fill(place, self.values(kind, place, rng))
            places.append(place)
        return places

    def values(self, kind: str, place: Place, rng: np.random.Generator) -> Host:
        values = values_of(kind, place.shape, place.dtype, self.program.n, rng)
        if "prod" in self.program.name and self.program.n > 40 and values.dtype.kind != "b":
            values = np.sign(values)  # others overflow, and NaN depends on the order of zeros
        return values

    def outs(self, step: Step, places: list[Place], want: Any) -> tuple[Any, list[Place]]:
        """Return what out= is, and where it lies."""
        if step.out == "none":
            return None, []
        if step.out == "list":
            return [0.0], []
        results = self.results(want)
        kinds = (step.out, *["fresh"] * len(results))
        found = [self._out(kind, places, like) for kind, like in zip(kinds, results, strict=False)]
        arrays = tuple(map(self.memory.array, found))
        is_one = self.template.is_joined or not isinstance(want, tuple)
        return arrays[0] if is_one else arrays, found

    def results(self, want: Any) -> list[Host]:
        """Return arrays like those that results are written to."""
        found = list(map(np.asarray, want if isinstance(want, (tuple, list)) else (want,)))
        if not self.template.has_dynamic_length:
            return found
        longest = int(np.prod(SHAPES[self.template.arrays.split()[0][-1]](self.program.n)))
        if self.template.is_joined:
            return [np.zeros(longest, found[0].dtype)]
        return [np.zeros(longest, x.dtype) for x in found]

    def _out(self, kind: str, places: list[Place], like: Host) -> Place:
        shape, dtype, first = like.shape, like.dtype, places[0]
        source = places[-1] if kind == "last input" else first
        if kind in ("itself", "last input", "reversed input", "overlapping"):
            if (source.shape, source.dtype) == (shape, dtype) and 0 not in source.strides:
                source = source if kind != "overlapping" else source.shifted()
                return source.reversed() if kind == "reversed input" else source
            kind = "fresh"
        is_numpys = self.template.is_numpys
        if kind in FRESH_INSTEAD.get(self.program.name, ()) or (kind == "broadcast" and is_numpys):
            kind = "fresh"
        if kind == "0-d" and self.program.few_to_numpy:
            kind = "other shape"  # NumPy's own scans crash
        if kind == "other shape" and shape[-1:] in ((0,), (1,)) and self.program.name in SCANS:
            kind = "fresh"
        is_wider = is_numpys or dtype.kind == "b"  # NumPy converts to bools before it adds
        kind, shape, dtype = {
            "other dtype": ("plain", shape, np.dtype("c16" if is_wider else "?")),
            "other shape": ("plain", self._other_shape(shape), dtype), "0-d": ("plain", (), dtype),
            "fresh": ("plain", shape, dtype),
        }.get(kind, (kind, shape, dtype))  # fmt: skip
        place = self.memory.new(kind, shape, dtype)
        self.memory.send(place.buffer)
        return place

    def _other_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return what no result fits."""
        if self.template.has_dynamic_length:
            return (*shape, 1)
        return (*shape[:-1], shape[-1] + 1) if shape else (2,)

    # --- what a step should do, and does

    def step(self, step: Step) -> None:
        calls[self.program.name] += 1
        if step.way == "graph" and not self.template.can_be_recorded:
            step = replace(step, way="call")
        if step.way == "replay":
            if self.recorded is not None:
                self.replay(step)
            return
        places = self.inputs(step)
        want, error = self.wanted(places, step.k)
        if error is not None and not self.template.is_numpys and step.out != "none":
            step = replace(step, out="none")
        out, outs = self.outs(step, places, want) if error is None else (None, [])
        if self.template.is_numpys and step.out != "none" and error is None:
            want, error = self.written_by_numpy(places, outs, out, want)
        must_fail = error is not None or self._must_fail(step, outs, want)
        got, raised = self.call(step, places, out)
        self.judge_outcome(step, raised, must_fail, error)
        if raised is not None:
            if step.fails.startswith("driver") or self.program.few_to_numpy:
                for place in outs:  # where a part may be: NumPy, too, writes and then refuses
                    self.memory.mirrors[place.buffer][...] = self.memory.found(place.buffer)
        else:
            self.compare(got, want, out, outs)
            if step.way == "graph":
                self.recorded = (*self.recorded[:4], outs, got)
        if changed := self.memory.differs():
            raise Fault(changed + (f", after {raised!r}" if raised else ""))

    def wanted(self, places: list[Place], k: int) -> tuple[Any, Exception | None]:
        copies = [np.array(self.memory.mirror(p), order="C") for p in places]
        template = self.template
        op = self.op.reference(k) if self.op else None
        try:
            if template.is_numpys:
                return template.call(template.want, *copies, op), None
            copies = [x.astype(x.dtype.newbyteorder("=")) for x in copies]
            return template.want(*copies, op), None
        except (TypeError, ValueError, IndexError) as error:
            return None, error

    def written_by_numpy(
        self, places: list[Place], outs: list[Place], out: Any, want: Any
    ) -> tuple[Any, Exception | None]:
        """Return what NumPy writes to such outputs, or what it raises."""
        if not outs:
            return None, TypeError("a list")
        if outs[0].shape == () != self.results(want)[0].shape:
            return None, ValueError("NumPy's own scans crash")
        copies = [np.array(self.memory.mirror(p), order="C") for p in places]
        scratch = [mirror.copy() for mirror in self.memory.mirrors]
        views = tuple(place.of(scratch[place.buffer]) for place in outs)
        given = views if isinstance(out, tuple) else views[0]
        try:
            self.template.call(self.template.want, *copies, None, out=given)
        except (TypeError, ValueError, IndexError) as error:
            return None, error
        return views if isinstance(out, tuple) else views[0], None

    def _must_fail(self, step: Step, outs: list[Place], want: Any) -> bool:
        if step.fails == "operator" and self.op is not None:
            return self.program.n > 0
        if self.template.is_numpys or not outs:
            return step.out == "list"
        place = outs[0]
        return (
            step.out == "other shape"
            or (step.out == "read-only" and place.size > 0 and self.backend.xp is np)
            or (step.out == "broadcast" and place.size > 1)
            or (step.out == "0-d" and self.results(want)[0].ndim > 0)
        )

    def judge_outcome(
        self, step: Step, raised: Exception | None, must_fail: bool, error: Exception | None
    ) -> None:
        if raised is None:
            if must_fail:
                raise Fault(f"took what NumPy refuses: {error!r}" if error else "is not refused")
        elif step.fails.startswith("driver") and isinstance(raised, (RuntimeError, MemoryError)):
            return
        elif error is not None and self.template.is_numpys and step == replace(step, way="call"):
            if not any(isinstance(raised, k) and isinstance(error, k) for k in _OF_ONE_KIND):
                raise Fault(f"raised {raised!r}, NumPy {error!r}") from raised
        elif not must_fail and not self._may_fail(step, raised):
            raise Fault(f"raised {type(raised).__name__}: {raised}") from raised
        if step.fails.startswith("driver"):
            return
        key = (replace(self.program, steps=()), replace(step, seed=0, again=False), self.plan_key)
        outcome = "result" if raised is None else type(raised).__name__
        first, where = outcomes.setdefault(key, (outcome, self.program))
        if first != outcome:
            raise Fault(f"gives {outcome} ({raised}), and gave {first} in\n{where}") from raised

    def _may_fail(self, step: Step, raised: Exception) -> bool:
        if step.way in ("plan", "graph", "lazy") and isinstance(raised, REFUSED):
            return True
        refusable = (
            step.fails == "operator" or step.out in REFUSABLE or "swapped" in step.layouts
            or ("misaligned" in (*step.layouts, step.out) and self._needs_alignment)
        )  # fmt: skip
        kinds = (TypeError, ValueError) if refusable else gnp.NotTaken
        return isinstance(raised, kinds)

    @property
    def _needs_alignment(self) -> bool:
        return self.template.reads_lazily or self.backend.xp is not np

    def call(self, step: Step, places: list[Place], out: Any) -> tuple[Any, Exception | None]:
        """Make the call; return what comes of it."""
        arrays = list(map(self.memory.array, places))
        if self.op is not None:
            self.op.set(object() if step.fails == "operator" else step.k)
        more: dict[str, Any] = {} if out is None else {"out": out}
        f = self.template.function
        failing = driver_fails(step.fails) if self.backend.name == "cuda" else nullcontext()
        try:
            with failing:
                return getattr(self, "_" + step.way)(step, f, arrays, places, more), None
        except Fault:
            raise
        except Exception as error:
            return None, error

    def _call(self, step: Step, f: Any, arrays: Any, places: Any, more: Any) -> Any:
        found = self.template.call(f, *arrays, self.op and self.op.function, **more)
        return tuple(map(_real, found)) if isinstance(found, tuple) else _real(found)

    def _explain(self, step: Step, f: Any, arrays: Any, places: Any, more: Any) -> Any:
        if not self.template.is_numpys and self.program.name.partition(".")[0] != "numpy":
            with suppress(*REFUSED):
                self._call(step, partial(ga.explain, f), arrays, places, more)
        return self._call(step, f, arrays, places, more)

    def _stream(self, step: Step, f: Any, arrays: Any, places: Any, more: Any) -> Any:
        if self.backend.xp is not np and not self.program.name.startswith("numpy."):
            more = {**more, "stream": self.backend.xp.cuda.get_current_stream()}
        return self._call(step, f, arrays, places, more)

    def _lazy(self, step: Step, f: Any, arrays: Any, places: Any, more: Any) -> Any:
        f = self.template.want if self.template.is_numpys else f
        return self._call(step, f, list(map(ga.lazy.asarray, arrays)), places, more)

    def _plan(self, step: Step, f: Any, arrays: Any, places: Any, more: Any) -> Any:
        if self.program.name.startswith("numpy."):
            return self._call(step, f, arrays, places, more)
        if self.plan is None:
            self.plan = self._call(step, partial(ga.prepare, f), arrays, places, {})
            self.plan_key = step.layouts

        def by_plan(*args: Any, **options: Any) -> Any:
            given = inspect.signature(f).bind(*args, **options).arguments
            data = [
                v for k, v in given.items() if k not in more and k != "arrays" and self._is_data(v)
            ]
            data += list(given.get("arrays", ()))
            return self.plan(*data, **more)

        return self._call(step, by_plan, arrays, places, more)

    def _is_data(self, value: Any) -> bool:
        if isinstance(value, tuple):
            return bool(value) and all(map(self._is_data, value))
        return isinstance(value, (np.ndarray, self.backend.xp.ndarray)) or hasattr(
            value, "__array_ufunc__"
        )

    def _graph(self, step: Step, f: Any, arrays: Any, places: Any, more: Any) -> Any:
        self.recorded = None
        before = [self.memory.found(p.buffer) for p in places]
        with ga.graph() as graph:
            got = self._call(step, f, arrays, places, more)
        for place, bytes_before in zip(places, before, strict=True):
            if not np.array_equal(self.memory.found(place.buffer), bytes_before):
                raise Fault("recording has changed an array")
        self.memory.keep()
        graph.launch()
        self.recorded = graph, places, step, more.get("out"), [], got
        return got

    def replay(self, step: Step) -> None:
        """Launch the recording anew, its arrays holding other values."""
        graph, places, recorded, out, outs, got = self.recorded
        rng = np.random.default_rng(step.seed)
        for spec, place in zip(self.template.arrays.split(), places, strict=True):
            kind = spec.partition(":")[0]
            self.memory.fill(place, self.values(kind, place, rng))
        self.memory.begin(again=False)
        self.memory.watch([*places, *outs])
        want, error = self.wanted(places, recorded.k)
        assert error is None, error
        graph.launch()
        self.compare(got, want, out, outs)
        self.memory.keep()
        if changed := self.memory.differs():
            raise Fault(changed)

    # --- what is compared

    def compare(self, got: Any, want: Any, out: Any, outs: list[Place]) -> None:
        """Compare results and what lies in outputs; the mirrors hold it from then on."""
        by_numpy = (
            self.program.few_to_numpy and type(got) is not tuple and not np.ndim(got)
        )  # its `dot` returns a number
        if out is not None and not self.template.has_dynamic_length and got is not out:
            same = isinstance(got, tuple) and isinstance(out, tuple) and len(got) == len(out)
            same = same and all(x is y for x, y in zip(got, out, strict=True))
            if not same and not by_numpy:
                raise Fault(f"returns {type(got).__name__} instead of out")
        found, wanted = listed(got), listed(want)
        if len(found) != len(wanted):
            raise Fault(f"returns {len(found)} results, wanted {len(wanted)}")
        for x, y in zip(found, wanted, strict=True):
            self._compare_one(x, y, is_out=out is not None)
        if self.template.is_joined and outs:
            wanted = [np.concatenate(wanted)]
        for place, y in zip(outs, wanted if outs else (), strict=True):
            y, mirror = np.asarray(y), self.memory.mirror(place)
            part = tuple(slice(0, n) for n in y.shape) if self.template.has_dynamic_length else ...
            written = place.of(self.memory.found(place.buffer))
            assert_same(written[part], y.astype(place.dtype), self.template.tolerance, "in out")
            mirror[part] = written[part]

    def _compare_one(self, got: Any, want: Any, *, is_out: bool) -> None:
        xp = self.backend.xp
        host = np.array(self.backend.to_host(got))
        kind = xp.ndarray if xp is not np or is_out or np.ndim(want) else (np.generic, np.ndarray)
        if self.template.is_numpys and xp is np and not is_out:
            kind = type(want)
        if not isinstance(got, kind):
            raise Fault(f"returns {type(got)}, wanted {kind}")
        wanted = np.asarray(want)
        dtype = host.dtype if is_out else wanted.dtype
        if host.dtype.newbyteorder("=") == dtype.newbyteorder("="):
            dtype = host.dtype  # of the other byte order, some results are, and some are not
        if host.dtype != dtype:
            raise Fault(f"dtype {host.dtype}, wanted {dtype}")
        assert_same(host, wanted.astype(host.dtype), self.template.tolerance, "result")
