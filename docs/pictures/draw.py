"""Draw the manual's pictures: `python docs/pictures/draw.py`. They are kept beside this file."""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER))

import folds  # noqa: E402
import moves  # noqa: E402
import others  # noqa: E402
import speed  # noqa: E402

sys.path.remove(str(FOLDER))


def pictures() -> dict[str, str]:
    """Return the text of each file by its name."""
    drawn = [draw() for part in (folds, moves, others, speed) for draw in part.ALL]
    return {f"{picture.name}.svg": picture.svg() for picture in drawn}


if __name__ == "__main__":
    for name, text in pictures().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
