"""numba's parts of an operator's inner functions are freed once it is compiled, or refused."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from numba.core.registry import CPUDispatcher

import gpualgo as ga

pytestmark = pytest.mark.usefixtures("own_cache")


def _dispatchers(name: str) -> list[Any]:
    gc.collect()
    found = [x for x in gc.get_objects() if type(x) is CPUDispatcher]
    return [x for x in found if x.py_func.__name__ == name]


@pytest.mark.parametrize("is_refused", [False, True])
def test_inner_functions_are_freed(is_refused: bool) -> None:
    table, number = np.arange(9), 3

    def inner_function(a: Any) -> Any:
        return table[a] + number

    def accepted(a: Any) -> Any:
        return inner_function(a)

    def refused(a: Any) -> Any:
        return str(inner_function(a))

    with ga.default_device("cpu"):
        if is_refused:
            with pytest.raises((TypeError, ga.CompileError)):
                ga.transform(refused, np.arange(5))
        else:
            assert ga.transform(accepted, np.arange(5)).tolist() == [3, 4, 5, 6, 7]
    assert not _dispatchers("inner_function")
