"""Tables of docs/scale.md, of what `python -m bench.scaling` has stored.

python -m bench.scaling_table bench/results/scaling/h200-x2.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HEAD = ("1 GPU", "2 GPUs", "weak scaling", "of it peer copies", "the same elements on 2")


def table(path: Path) -> str:
    """Return a table of one and two GPUs: elements on each GPU in its head, times in ms."""
    rows: dict[tuple[str, int, str], dict[str, Any]] = {}
    for row in json.loads(path.read_text(encoding="utf-8"))["rows"]:
        rows[row["case"], row["gpus"], row["scaling"]] = row
    cases = list(dict.fromkeys(case for case, *_ in rows))
    size = rows[cases[0], 1, "weak"]["per_gpu"]
    lines = [(f"2^{size.bit_length() - 1} elements on each GPU, ms", *HEAD)]
    for case in cases:
        one, two = rows[case, 1, "weak"], rows[case, 2, "weak"]
        strong = rows[case, 2, "strong"]
        parts = f"{two['efficiency']:.0%}", f"{two['exchange_share']:.0%}"
        times = [f"{row['seconds'] * 1e3:#.3g}".rstrip(".") for row in (one, two, strong)]
        lines.append((case, *times[:2], *parts, times[2]))
    rule = "|---|" + "---:|" * len(HEAD)
    return "\n".join(["| " + " | ".join(lines[0]) + " |", rule] +
                     ["| " + " | ".join(line) + " |" for line in lines[1:]])  # fmt: skip


if __name__ == "__main__":
    print(table(Path(sys.argv[1])))
