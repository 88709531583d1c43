"""A run of the whole suite takes a sample of each test's cases; `--all` takes every case.

A run that names files, folders or tests takes every case of them, unless `--sample` is given.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from typing import Any

import pytest

SHARE = 24  # of the cases of a test, one in so many, and at least one


def add_options(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all", action="store_true", help="run every case of each test, and those marked as slow"
    )
    parser.addoption(
        "--sample", action="store_true", help="take a sample, also of files that are named"
    )


_TAKES_SAMPLE = pytest.StashKey[bool]()


def configure(config: pytest.Config) -> bool:
    """Return whether this run takes a sample; a worker does as the run that it works for."""
    sent = getattr(config, "workerinput", None)
    if sent is None:
        names_tests = config.args_source is pytest.Config.ArgsSource.ARGS
        names_tests = names_tests and not config.getoption("--sample")
        is_full = config.getoption("--all") or config.getoption("--exhaustive") or names_tests
        config.stash[_TAKES_SAMPLE] = not is_full
    else:
        config.stash[_TAKES_SAMPLE] = sent["takes_sample"]
    return config.stash[_TAKES_SAMPLE]


def configure_worker(config: pytest.Config, sent: dict[str, Any]) -> None:
    sent["takes_sample"] = config.stash[_TAKES_SAMPLE]


def sample(config: pytest.Config, items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the tests to run, in their order: the same ones in each run."""
    if not config.stash[_TAKES_SAMPLE]:
        return items
    items = [item for item in items if not item.get_closest_marker("slow")]
    if config.getoption("--one-of-each"):
        return items
    cases: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        cases[item.nodeid.partition("[")[0]].append(item)
    taken: set[pytest.Item] = set()
    for test, group in cases.items():
        step = min(SHARE, len(group))
        # Others of other tests. Of many cases a file's tests take the same: they share what they
        # compile.
        chosen_by = test if len(group) < SHARE else test.partition("::")[0]
        taken.update(group[zlib.crc32(chosen_by.encode()) % step :: step])
    return [item for item in items if item in taken]
