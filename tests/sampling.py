"""A run of the whole suite takes a sample of each test's cases; `--all` takes every case.

A run that names files, folders or tests takes every case of them.
"""

from __future__ import annotations

import zlib
from collections import defaultdict

import pytest

FEWEST, SHARE = 3, 6  # of a test's cases: at least three, and one in six


def add_options(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all", action="store_true", help="run every case of each test, and those marked as slow"
    )


def configure(config: pytest.Config) -> None:
    """Decide whether this run takes a sample; the workers of a run do as it does."""
    if not hasattr(config, "workerinput"):
        names_tests = config.args_source is pytest.Config.ArgsSource.ARGS
        is_full = config.getoption("--all") or config.getoption("--exhaustive") or names_tests
        config.option.takes_sample = not is_full


def sample(config: pytest.Config, items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the tests to run, in their order: the same ones in each run."""
    if not config.option.takes_sample:
        return items
    items = [item for item in items if not item.get_closest_marker("slow")]
    if config.getoption("--one-of-each"):
        return items
    cases: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        cases[item.nodeid.partition("[")[0]].append(item)
    taken: set[pytest.Item] = set()
    for test, group in cases.items():
        step = min(SHARE, max(1, len(group) // FEWEST))
        taken.update(group[zlib.crc32(test.encode()) % step :: step])  # other cases of other tests
    return [item for item in items if item in taken]
