"""``python -m gpualgo``: the same as the command ``gpualgo``."""

from __future__ import annotations

import sys

from gpualgo._cli import main

if __name__ == "__main__":
    sys.exit(main())
