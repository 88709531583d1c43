"""Single-pass scan on the CPU: threads share rows that are cut into links and never wait.

A thread publishes its link's aggregate before it scans the link. It computes the link's prefix from
the aggregates before it, strictly from left to right, so the prefix has the same bits in every
thread. An aggregate that is not published in time is recomputed.
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
"""f(table, scratch, chain, link, prefix, aggregate): addresses, except chain and link.

aggregate reduces a link. fold advances the chain's prefix to a link from the aggregates of the link
and of the one before; link 0 initialises it. emit scans a link from its prefix.
"""

_words = pointer_to(types.intp)


def inline(function: Callable[..., Any]) -> Any:
    """Compile a function that is called from compiled code, on its first call."""
    return numba.njit(error_model="numpy")(function)


def _take(_typing: Any, pointer: Any, index: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        address = builder.gep(args[0], [args[1]])
        return builder.atomic_rmw("add", address, ir.Constant(ir.IntType(64), 1), "monotonic")

    return types.intp(pointer, types.intp), generate


def _publish(_typing: Any, pointer: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        address = builder.gep(args[0], [args[1]])
        builder.store_atomic(ir.Constant(ir.IntType(64), 1), address, "release", 8)
        return context.get_dummy_value()

    return types.void(pointer, types.intp), generate


def _is_published(_typing: Any, pointer: Any, index: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        builder.fence("acquire")  # orders the flag after all earlier reads
        flag = builder.load_atomic(builder.gep(args[0], [args[1]]), "acquire", 8)
        return builder.icmp_signed("!=", flag, ir.Constant(ir.IntType(64), 0))

    return types.boolean(pointer, types.intp), generate


take, publish, is_published = intrinsic(_take), intrinsic(_publish), intrinsic(_is_published)


def emit_all(table: int, scratch: int, first: int, last: int) -> None:
    """Emit links of rows that are not cut; they are independent."""
    p = _words(table)
    for task in range(first, last):
        chain, link = task // load(p, LINKS), task % load(p, LINKS)
        call(load(p, EMIT), (table + 8 * CHAIN_TAIL, scratch, chain, link, 0, 0))


def take_links(table: int, scratch: int, first: int, last: int) -> None:
    """Take links in task order until last - first are done or none remain."""
    p = _words(table)
    flags, chains, links = _words(load(p, FLAGS)), load(p, CHAINS), load(p, LINKS)
    arguments, size = table + 8 * CHAIN_TAIL, load(p, AGGREGATE_BYTES)
    recomputed = scratch + load(p, SCRATCH_BYTES)
    folded, prefixes = _words(recomputed + size), recomputed + size + 8 * chains
    for _ in range(first, last):
        task = take(p, NEXT)
        if task >= load(p, TASKS):
            break
        if load(p, LINK_MAJOR):
            chain, link = task % chains, task // chains
        else:
            chain, link = task // links, task % links
        link_args = (arguments, scratch, chain)
        prefix, first_flag = prefixes + chain * load(p, PREFIX_BYTES), chain * links
        aggregates = load(p, AGGREGATES) + first_flag * size
        own_aggregate = aggregates + link * size
        call(load(p, AGGREGATE), (*link_args, link, prefix, own_aggregate))
        publish(flags, first_flag + link)
        for j in range(load(folded, chain), link + 1):
            source, polls = aggregates + j * size, load(p, PATIENCE)
            while polls > 0 and not is_published(flags, first_flag + j):
                polls -= 1
            if not is_published(flags, first_flag + j):
                call(load(p, AGGREGATE), (*link_args, j, prefix, recomputed))
                # if it is published by now, its thread may be overwriting the link
                if not is_published(flags, first_flag + j):
                    source = recomputed
            call(load(p, FOLD), (*link_args, j, prefix, source))
        store(folded, chain, link + 1)
        call(load(p, EMIT), (*link_args, link, prefix, own_aggregate))
