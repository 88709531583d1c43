"""A copy of an array: what memory allows, and the roofline of the plots."""

import gpualgo as ga
from bench.inputs import uniform
from bench.row import row


def copied(xp, x, out):
    xp.copyto(out, x)
    return out


ROWS = row("copy f32", "device 16* 20* 24* 28*; cpu 16* 20* 24*", uniform, 8,
           lambda x, out: ga.copy(x, out=out), copied,
           torch=lambda x, out: out.copy_(x), expected=lambda x: x)  # fmt: skip
