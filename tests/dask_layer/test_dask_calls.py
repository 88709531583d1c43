"""Functions of dask arrays, in chunks of all kinds, beside those of whole arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from chunked import built, check, cut, ones
from pieces import faults

WAYS: dict[str, Callable[[int], tuple[int, ...]]] = {
    "one": lambda n: (n,),
    "uneven": lambda n: (min(1, n), n // 2, 0, n - n // 2 - min(1, n)),
    "ones": lambda n: (*ones(min(15, n)), n - min(15, n), 0),
    "even": lambda n: (-(-n // 3), -(-n // 3), n - 2 * -(-n // 3)) if n > 3 else (n,),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_call(way: str) -> None:
    def in_chunks(x: np.ndarray[Any, Any], axis: int = 0) -> Any:
        return cut(x, *map(WAYS[way], x.shape))

    assert not (found := faults("dask", in_chunks, built, check)), "\n".join(found)
