"""``gpualgo cache info`` and ``gpualgo cache clear``."""

from __future__ import annotations

import json


def info(as_json: bool = False) -> int:
    """Print where the compiled kernels are kept, and how many bytes they take."""
    from gpualgo._base import disk_cache as cache

    found = cache.info()
    if as_json:
        print(json.dumps(found, indent=2))
        return 0
    print(f"path     {found['path']}")
    print(f"entries  {found['entries']}, {found['cpu_entries']} of them for the CPU")
    print(f"size     {size_text(found['bytes'])}")
    print(f"damaged  {found['damaged']}")
    print(f"writable {'yes' if found['writable'] else 'no'}")
    return 0


def clear() -> int:
    """Delete every compiled kernel of the disk cache and print how many there were."""
    from gpualgo._base import disk_cache as cache

    try:
        removed = cache.clear()
    except OSError as error:
        print(f"gpualgo cache clear: {error}; remove the folder by hand.")
        return 1
    print(f"removed {entries_text(removed)}")
    return 0


def entries_text(count: int) -> str:
    """Write a number of cache entries."""
    return "1 entry" if count == 1 else f"{count} entries"


def size_text(count: int) -> str:
    """Write a number of bytes in the largest binary unit in which it is 1 or more."""
    if count < 1024:
        return f"{count} B"
    power = min((count.bit_length() - 1) // 10, 4)
    return f"{count / 1024**power:.1f} {' KMGT'[power]}iB"
