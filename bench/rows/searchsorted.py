"""searchsorted, of random queries."""

import gpualgo as ga
from bench.inputs import uniform
from bench.peers import torch
from bench.row import row


def search(name, sizes, dtype="float32", share=1, are_sorted=False):
    """Return rows of as many queries as elements, or of one for `share` of them."""

    def inputs(xp, n):
        a, v = uniform(xp, n), uniform(xp, n // share, seed=1)
        if dtype != "float32":
            a, v = ((x * (1 << 24)).astype(dtype) for x in (a, v))
        return xp.sort(a), xp.sort(v) if are_sorted else v

    return row(f"searchsorted {name}", sizes, inputs, 0,
               lambda a, v, out: ga.searchsorted(a, v, out=out),
               lambda xp, a, v: xp.searchsorted(a, v),
               torch=lambda a, v: torch().searchsorted(a, v))  # fmt: skip


def sorted_and_queries(xp, n):
    return xp.sort(uniform(xp, n, "float64")), uniform(xp, n, "float64", 1)


ROWS = [
    *row("searchsorted f64", "cpu 20*", sorted_and_queries, 24, ga.searchsorted,
         lambda xp, a, v: xp.searchsorted(a, v)),
    *search("f32, random queries", "16 20 24* 28"),
    *search("f32, sorted queries", "16 20 24* 28", are_sorted=True),
    *search("i64, random queries", "16 20 24 28", "int64"),
    *search("f32, a query for 64", "16 20 24* 28", share=64),
]  # fmt: skip
