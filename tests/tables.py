"""Tables of calls, a line each: Python, with choices ``${a|b}``, of which ``$1`` is the first."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

_CHOICE = re.compile(r"\$\{(.*?)\}")


def lines(table: Path, pattern: str) -> Iterator[tuple[list[str], str]]:
    """Yield the words of the heading and the text of each line that matches a pattern.

    Once for each choice. A heading begins with ``# ``.
    """
    words = list[str]()
    for line in table.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            words = line[2:].split()
        elif words and re.match(pattern, line):
            pieces = _CHOICE.split(line)
            for chosen in itertools.product(*(choice.split("|") for choice in pieces[1::2])):
                text = "".join(map(str.__add__, pieces[::2], (*chosen, "")))
                for number, value in enumerate(chosen, 1):
                    text = text.replace(f"${number}", value)
                yield words, text
