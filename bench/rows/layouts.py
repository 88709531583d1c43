"""Arrays that are broadcast, transposed, short or narrow, beside a copy where it is the bound."""

import math
from functools import partial

import gpualgo as ga
from bench.inputs import integers
from bench.peers import Prepared, gpu
from bench.row import row
from bench.rows.copy import copied


def of_shapes(name, shapes, bytes_each, ours, numpy=None, **given):
    return [
        found
        for shape in shapes
        for found in row(f"{name}, {shape}", f"{math.prod(shape)}*",
                         lambda xp, n, shape=shape: integers(xp, n, -2, 3).reshape(shape),
                         bytes_each, ours, numpy, dtype="f32", of_its_size=True, **given)
    ]  # fmt: skip


def both(theirs):
    """Return CuPy's and PyTorch's function where they are written alike."""
    return {"numpy": lambda xp, x: theirs(x), "torch": theirs}


def difference(p, q):
    return p - q


LARGE = ((1 << 18, 1 << 10), (1 << 22, 64))
ROWS = [
    *of_shapes("transform, x - row", LARGE, 8, lambda x: ga.transform(difference, x, x[:1]),
               **both(lambda x: x - x[:1])),
    *of_shapes("transform, x - column", LARGE, 8, lambda x: ga.transform(difference, x, x[:, :1]),
               **both(lambda x: x - x[:, :1])),
    *of_shapes("transform, x.T into C order", LARGE, 8,
               lambda x, out: ga.transform(lambda a: a, x.T, out=out),
               lambda xp, x: xp.ascontiguousarray(x.T), torch=lambda x: x.T.contiguous(),
               others={"copy": lambda x, out: copied(gpu(), x, out.reshape(x.shape)).T},
               beside="copy", expected=lambda x: x.T),
    *of_shapes("sum over axis 0", ((1 << 26, 3), (1 << 10, 1 << 18)), 4,
               lambda x: ga.reduce(x, axis=0), **both(lambda x: x.sum(0))),
    *of_shapes("sum over axis 1", ((1 << 24, 16),), 4,
               lambda x: ga.reduce(x, axis=1), **both(lambda x: x.sum(1))),
    *of_shapes("sum of x[:, ::2]", ((1 << 18, 1 << 10), (1 << 26, 3)), 4,
               lambda x: ga.reduce(x[:, ::2]), **both(lambda x: x[:, ::2].sum())),
    *of_shapes("cumsum over axis 0", ((1 << 21, 128), (1 << 22, 64), (1 << 23, 32), (1 << 24, 16)),
               8, lambda x, out: ga.inclusive_scan(x, axis=0, out=out),
               others={"copy": Prepared(lambda x, out: partial(copied, gpu(), x.cumsum(0), out))},
               beside="copy", expected=lambda x: x.cumsum(0)),
]  # fmt: skip
