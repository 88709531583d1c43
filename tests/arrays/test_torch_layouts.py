"""Tensors without memory of their own are refused by name."""

from __future__ import annotations

import numpy as np
import pytest

import gpualgo as ga

torch = pytest.importorskip("torch")


def test_no_memory_of_its_own() -> None:
    dense = torch.eye(3)
    ragged = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    for x in (dense.to_sparse(), dense.to_sparse_csr(), ragged, torch._efficientzerotensor(3)):
        with pytest.raises(TypeError, match="to_dense"):
            ga.reduce(x, 0.0)


def test_empty_tensors_need_no_memory() -> None:
    assert float(ga.reduce(torch.zeros(0), 2.0)) == 2
    assert tuple(ga.transform(np.exp, torch.zeros(0, 3)).shape) == (0, 3)


def test_an_empty_tensor_beside_others() -> None:
    x, none = torch.arange(6.0).reshape(2, 3), torch.zeros(0)
    assert tuple(ga.merge(none, torch.tensor([2.0])).tolist()) == (2.0,)
    assert ga.transform(np.exp, torch.zeros(0, 3), out=torch.zeros(0, 3)).shape == (0, 3)
    assert ga.reduce(x[:, :0], 1.0, axis=1).tolist() == [1.0, 1.0]
