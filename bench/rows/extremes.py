"""argmax, argmin and minmax."""

import numpy as np

import gpualgo as ga
from bench.inputs import matrix, uniform
from bench.peers import gpu
from bench.row import row


def argmax(name, sizes, axis=None, **given):
    # CuPy's need not be the first of equal ones.
    return row(name, sizes, uniform if axis is None else matrix, 4, lambda x: ga.argmax(x, axis),
               lambda xp, x: x.argmax(axis), torch=lambda x: x.argmax(axis), any_dtype=True,
               expected=lambda x: gpu().asarray(np.argmax(x.get(), axis)), **given)  # fmt: skip


ROWS = [
    *argmax("argmax f32", "16 20* 24 28*"),
    *argmax("argmax over axis 1, f32, beside torch", "28*", 1, beside="torch"),
    *argmax("argmax over axis 0, f32, beside torch", "28*", 0, beside="torch"),
    *row("minmax f32", "28*", uniform, 4, ga.minmax, lambda xp, x: (x.min(), x.max()),
         torch=lambda x: x.aminmax()),
    *row("argmax f32", "cpu 22*", uniform, 4, ga.argmax, lambda xp, x: xp.argmax(x)),
]  # fmt: skip
