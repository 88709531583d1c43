"""How far a run is: a bar with the time left on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gpualgo._bench.support import Row


@contextmanager
def shown(total: int) -> Iterator[Callable[[Row], None]]:
    """Give a function that is told of each row as it begins."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as Left
    except ImportError:
        yield lambda row: None
        return
    console = Console(stderr=True)
    columns = (MofNCompleteColumn(), BarColumn(), Left(), TextColumn("{task.description}"))
    hidden = not sys.stderr.isatty()
    # It is drawn between rows alone: a thread that draws would be timed with them.
    with Progress(*columns, console=console, disable=hidden, auto_refresh=False) as bar:
        task = bar.add_task("", total=total)
        begun = 0

        def step(row: Row) -> None:
            nonlocal begun
            bar.update(task, completed=begun, description=str(row))
            bar.refresh()
            begun += 1

        yield step
        bar.update(task, completed=total, description="")
