"""How threads share rows that are cut into links: one pass, without waiting for one another.

Each link's aggregate is published before the link is gone through; a thread makes the prefix of its
link of the aggregates before it, strictly from left to right, so that it is the same whoever makes
it. An aggregate that is not there in time is computed once more rather than waited for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gpualgo._algorithms.scan.cpu_parameters import (
    AGGREGATE,
    AGGREGATE_BYTES,
    AGGREGATES,
    CHAIN_TAIL,
    CHAINS,
    EMIT,
    FLAGS,
    FOLD,
    LINK_MAJOR,
    LINKS,
    NEXT,
    PATIENCE,
    PREFIX_BYTES,
    SCRATCH_BYTES,
    TASKS,
)  # fmt: skip
from gpualgo._cpu.pointers import call, load, pointer_to, store

Function = Callable[[int, int, int, int, int, int], None]
"""f(table, scratch, chain, link, prefix, aggregate): addresses, and two numbers between them.

aggregate folds a link; fold brings the chain's prefix to a link, by the aggregates of the link and
of the one before, and begins it at link 0; emit goes through a link from its prefix.
"""

_words = pointer_to(types.intp)


def inline(function: Callable[..., Any]) -> Any:
    """Compile what such functions call, when they do."""
    return numba.njit(error_model="numpy")(function)


def _take(_typing: Any, pointer: Any, index: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        place = builder.gep(args[0], [args[1]])
        return builder.atomic_rmw("add", place, ir.Constant(ir.IntType(64), 1), "monotonic")

    return types.intp(pointer, types.intp), generate


def _publish(_typing: Any, pointer: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        place = builder.gep(args[0], [args[1]])
        builder.store_atomic(ir.Constant(ir.IntType(64), 1), place, "release", 8)
        return context.get_dummy_value()

    return types.void(pointer, types.intp), generate


def _is_published(_typing: Any, pointer: Any, index: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        builder.fence("acquire")  # what was read before was read before the flag
        flag = builder.load_atomic(builder.gep(args[0], [args[1]]), "acquire", 8)
        return builder.icmp_signed("!=", flag, ir.Constant(ir.IntType(64), 0))

    return types.boolean(pointer, types.intp), generate


take, publish, is_published = intrinsic(_take), intrinsic(_publish), intrinsic(_is_published)


def emit_all(table: int, scratch: int, first: int, last: int) -> None:
    """Emit links of rows that are not cut: they do not depend on each other."""
    p = _words(table)
    for task in range(first, last):
        chain, link = task // load(p, LINKS), task % load(p, LINKS)
        call(load(p, EMIT), (table + 8 * CHAIN_TAIL, scratch, chain, link, 0, 0))


def take_links(table: int, scratch: int, first: int, last: int) -> None:
    """Take links, in the order of tasks, until last - first are done or none is left."""
    p = _words(table)
    flags, chains, links = _words(load(p, FLAGS)), load(p, CHAINS), load(p, LINKS)
    arguments, size = table + 8 * CHAIN_TAIL, load(p, AGGREGATE_BYTES)
    again = scratch + load(p, SCRATCH_BYTES)
    known, prefixes = _words(again + size), again + size + 8 * chains
    for _ in range(first, last):
        task = take(p, NEXT)
        if task >= load(p, TASKS):
            break
        if load(p, LINK_MAJOR):
            chain, link = task % chains, task // chains
        else:
            chain, link = task // links, task % links
        at = (arguments, scratch, chain)
        prefix, flag = prefixes + chain * load(p, PREFIX_BYTES), chain * links
        aggregates = load(p, AGGREGATES) + flag * size
        own = aggregates + link * size
        call(load(p, AGGREGATE), (*at, link, prefix, own))
        publish(flags, flag + link)
        for j in range(load(known, chain), link + 1):
            source, patience = aggregates + j * size, load(p, PATIENCE)
            while patience > 0 and not is_published(flags, flag + j):
                patience -= 1
            if not is_published(flags, flag + j):
                call(load(p, AGGREGATE), (*at, j, prefix, again))
                if not is_published(flags, flag + j):  # else its link may be overwritten by now
                    source = again
            call(load(p, FOLD), (*at, j, prefix, source))
        store(known, chain, link + 1)
        call(load(p, EMIT), (*at, link, prefix, own))
