"""``gpualgo cache info`` and ``gpualgo cache clear``."""

from __future__ import annotations

import json


def info(as_json: bool = False) -> int:
    from gpualgo._base import disk_cache as cache

    state = cache.info()
    if as_json:
        print(json.dumps(state, indent=2))
        return 0
    print(f"path     {state['path']}")
    print(f"entries  {state['entries']}, {state['cpu_entries']} of them for the CPU")
    print(f"size     {size_text(state['bytes'])}")
    print(f"damaged  {state['damaged']}")
    print(f"writable {'yes' if state['writable'] else 'no'}")
    return 0


def clear() -> int:
    from gpualgo._base import disk_cache as cache

    try:
        removed = cache.clear()
    except OSError as error:
        print(f"gpualgo cache clear: {error}; remove the folder by hand.")
        return 1
    print(f"removed {entries_text(removed)}")
    return 0


def entries_text(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def size_text(count: int) -> str:
    """Return a number of bytes as text, in the largest binary unit in which it is at least 1."""
    if count < 1024:
        return f"{count} B"
    power = min((count.bit_length() - 1) // 10, 4)
    return f"{count / 1024**power:.1f} {' KMGT'[power]}iB"
