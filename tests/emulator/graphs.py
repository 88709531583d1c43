"""Graphs: work that was taken down, queued as a whole as often as wanted."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence

from emulator import memory, work
from emulator.work import Work


class Node:
    """One piece of work and the nodes that come before it."""

    __slots__ = ("before", "run")

    def __init__(self, run: Callable[[], None] | None, before: Sequence[Node]) -> None:
        self.run, self.before = run, tuple(before)


class Graph:
    """Nodes, each behind those that it waits for."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._memory: set[int] = set()  # that it has allocated
        self._last: Work | None = None  # of the latest launch: one follows the other

    def own(self, address: int) -> None:
        """Free memory with the graph, and not before."""
        self._memory.add(address)
        weakref.finalize(self, memory.free, address).atexit = False

    def owns(self, address: int) -> bool:
        return address in self._memory

    def add(self, run: Callable[[], None] | None, before: Sequence[Node]) -> Node:
        made = Node(run, before)
        self.nodes.append(made)
        return made

    def include(self, part: Graph, before: Sequence[Node]) -> list[Node]:
        """Take another graph in as a part; return the node that stands for its end."""
        copies: dict[Node, Node] = {}
        for node in part.nodes:
            copies[node] = self.add(node.run, [*before, *(copies[each] for each in node.before)])
        return [self.add(None, [*before, *copies.values()])]

    def is_behind(self, leaves: Sequence[Node]) -> bool:
        """Return whether every node leads to one of these."""
        seen: set[Node] = set()
        ahead = list(leaves)
        while ahead:
            node = ahead.pop()
            if node not in seen:
                seen.add(node)
                ahead += node.before
        return len(seen) == len(self.nodes)

    def follow(self, earlier: Graph) -> None:
        """Run after the launches of a graph whose place it takes."""
        self._last = earlier._last

    def queue(self, start: Work | None) -> Work:
        """Queue all nodes behind some work; return what comes behind them all."""
        made: dict[Node, Work] = {}
        first = [start, self._last]
        for node in self.nodes:
            made[node] = Work(node.run, [*first, *(made[each] for each in node.before)])
        end = Work(None, [*first, *made.values()])
        self._last = end
        for each in (*made.values(), end):
            work.enter(each)
        return end
