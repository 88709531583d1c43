"""`pytest --backend emulated`: a seed for each test, its failures, and what the session did."""

from __future__ import annotations

import gc
import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
import support

from emulator import install, memory, process, streams, toolchain, trial, work
from emulator.trial import CAPPED

_FIXTURES = ("backend", "cuda")


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("emulator")
    group.addoption("--emulator-seed", type=int, default=1, help="what the emulator draws from")
    group.addoption("--emulated-gpus", type=int, default=1, help="how many GPUs there are")
    group.addoption("--seeds", type=int, default=1, help="run each test under so many seeds")
    group.addoption(
        "--blocks-in-any-order",
        action="store_true",
        help="show which kernels rely on blocks that begin in the order of their indices",
    )
    group.addoption(
        "--build-kernels",
        action="store_true",
        help="also build each kernel for sm_90, by NVIDIA's compilers",
    )
    group.addoption(
        "--one-of-each",
        action="store_true",
        help="run one case of every second test, drawn from the seed: what CI does; with --all of "
        "each test",
    )


def check(config: pytest.Config) -> None:
    """Refuse a session that asks for the emulator where it cannot be built."""
    if toolchain.find_compiler() is None:
        raise pytest.UsageError(
            "--backend emulated: no C++ compiler was found; install clang++ or g++, or name one by "
            "GPUALGO_EMULATOR_CXX"
        )


def how_to_ask() -> str:
    """Return how the tests of GPUs can be run on a machine without one."""
    if toolchain.find_compiler() is None:
        return "the emulated GPU needs a C++ compiler, and none was found"
    return "those of GPUs run by --backend emulated"


class Plugin:
    """Runs tests on the emulated GPU; tells what ran, what did not, and why."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        num_gpus = config.getoption("--emulated-gpus")
        self._driver = install.install(num_gpus)
        support.count_gpus = lambda: num_gpus
        support.is_emulated = True
        process.install()
        self._num_elsewhere = self._num_others = 0
        self._workers: list[dict[str, Any]] = []
        self._seed = config.getoption("--emulator-seed")
        install.builds_kernels = config.getoption("--build-kernels")
        trial.blocks_in_any_order = config.getoption("--blocks-in-any-order")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave out what asks for no GPU, and all cases but one of each test if so told."""
        kept = [item for item in items if _is_emulated(item)]
        self._num_elsewhere = len(items) - len(kept)
        if config.getoption("--one-of-each"):
            one = _one_of_each(kept, self._seed, is_whole=config.getoption("--all"))
            self._num_others = len(kept) - len(one)
            kept = one
        chosen = set(map(id, kept))
        config.hook.pytest_deselected(items=[item for item in items if id(item) not in chosen])
        items[:] = kept

    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        """Run a test under each seed, up to the first that fails."""
        from _pytest.runner import runtestprotocol

        count = self._config.getoption("--seeds")
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for number in range(count):
            self._seed = self._config.getoption("--emulator-seed") + number
            if number:
                item._initrequest()  # type: ignore[attr-defined]
            trial.begin(item.nodeid, self._seed)
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
            if number == count - 1 or not all(report.passed for report in reports):
                break
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Any:
        """Run what is queued before a test ends; fail a test whose kernels failed."""
        gc.disable()  # what is collected is given back: by chance no sooner, no later
        try:
            outcome = yield
            work.finish_all()
        finally:
            if trial.current.has_ended:
                streams.renew()
            gc.enable()
            gc.collect(1)
        if trial.current.capped and not trial.current.failures:
            outcome.force_exception(pytest.skip.Exception(CAPPED + trial.current.capped))
            return
        failures = trial.current.failures
        if failures and (outcome.excinfo is None or not _is_told(outcome.excinfo[1])):
            outcome.force_exception(EmulationError("\n\n".join(failures)))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: Any) -> Any:
        outcome = yield
        report = outcome.get_result()
        if report.failed:
            told = [f"seed {self._seed}; the same again:", f"    {self._command(item)}"]
            report.sections.append(("emulator", "\n".join([*trial.current.failures, *told])))

    def _command(self, item: pytest.Item) -> str:
        return f'pytest --backend emulated --emulator-seed {self._seed} "{item.nodeid}"'

    # --- the session's end

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        told = {
            "counts": dict(trial.figures.counts), "seconds": dict(trial.figures.seconds),
            "left": dict(_leaks()), "elsewhere": self._num_elsewhere, "others": self._num_others,
        }  # fmt: skip
        output = getattr(self._config, "workeroutput", None)
        if output is None:
            self._workers.append(told)
        else:
            output["emulator"] = told

    def pytest_testnodedown(self, node: Any) -> None:
        told = getattr(node, "workeroutput", {}).get("emulator")
        if told is not None:
            self._workers.append(told)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say what ran, what was left out and why, and how long the parts took."""
        stats = terminalreporter.stats
        reasons = Counter(_reason(report) for report in stats.get("skipped", ()))
        capped = {r: n for r, n in reasons.items() if r.startswith(CAPPED)}
        other = {r: n for r, n in reasons.items() if not r.startswith(CAPPED)}
        ran = sum(len(stats.get(kind, ())) for kind in ("passed", "failed", "xfailed", "xpassed"))
        write = terminalreporter.write_line
        terminalreporter.section("emulated GPU")
        elsewhere = max((told["elsewhere"] for told in self._workers), default=0)
        write(f"{ran} ran, {sum(capped.values())} were capped, {sum(other.values())} do not apply; "
              f"{elsewhere} others ask for no GPU")  # fmt: skip
        others = max((told["others"] for told in self._workers), default=0)
        if others:
            write(f"  --one-of-each left out {others} more cases of the same tests")
        for kind, found in (("capped", capped), ("does not apply", other)):
            for reason, count in sorted(found.items(), key=lambda pair: -pair[1]):
                write(f"  {kind}, {count}: {reason.removeprefix(CAPPED)}")
        counts, left = Counter[str](), Counter[str]()
        seconds: dict[str, float] = defaultdict(float)
        for told in self._workers:
            counts.update(told["counts"])
            for what, spent in told["seconds"].items():
                seconds[what] += spent
            left.update(told["left"])
        for what, count in sorted(counts.items()):
            write(f"{count} {what} in {seconds[what]:.1f} s")
        if left:
            write(f"device memory still allocated: {sum(left.values())} bytes")
            for where, size in left.most_common(10):
                write(f"  {size} by {where}")


class EmulationError(AssertionError):
    """What a kernel, or a copy, did wrong on the emulated GPU."""


def _is_emulated(item: pytest.Item) -> bool:
    """Return whether a test is of this GPU: it takes one, or is the emulator's own."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    return _is_own(item) or any(params.get(name) == "emulated" for name in _FIXTURES)


def _is_own(item: pytest.Item) -> bool:
    return item.path.is_relative_to(toolchain.HERE)


# Of how many tests one is taken; of the NumPy layer, which has no kernels of its own, of more.
_EACH = {"contract": 1, "numpy_layer": 4}
_OF_OTHERS = 2


def _one_of_each(items: list[pytest.Item], seed: int, *, is_whole: bool) -> list[pytest.Item]:
    """Return one case of each test, or of some tests unless the run is whole; all of our own."""
    groups: defaultdict[tuple[str, str], list[pytest.Item]] = defaultdict(list)
    for item in items:
        name = item.name if _is_own(item) else getattr(item, "originalname", item.name)
        groups[str(item.path), name].append(item)
    kept = []
    for (path, name), group in groups.items():
        chance = random.Random(f"{seed} {name}")
        case = chance.choice(group)
        folder = Path(path).relative_to(toolchain.HERE.parent).parts[0]
        share = 1 if is_whole or _is_own(case) else _EACH.get(folder, _OF_OTHERS)
        if chance.random() * share < 1:
            kept.append(case)
    return kept


def _is_told(error: BaseException) -> bool:
    """Return whether a test ends by what is no failure of its own, and may hide one."""
    return isinstance(error, EmulationError)


def _reason(report: Any) -> str:
    where = report.longrepr
    reason = where[2] if isinstance(where, tuple) else str(where)
    return str(reason).removeprefix("Skipped: ")


_KEPT = ("cuMemAlloc in",)  # workspaces, of which each stream keeps its own


def _leaks() -> Counter[str]:
    gc.unfreeze()
    gc.collect()
    work.finish_all()
    gc.collect()
    work.finish_all()
    found = memory.left()
    return Counter({where: size for where, size in found.items() if not where.startswith(_KEPT)})
