"""python -m bench: the command ``gpualgo bench`` of this checkout."""

from __future__ import annotations

import sys

from gpualgo._cli import main

if __name__ == "__main__":
    sys.exit(main(["bench", *sys.argv[1:]]))
