"""The arguments of ``gpualgo bench``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from gpualgo._bench.sizes import size_of
from gpualgo._bench.support import NO_PEER, PEERS

T = TypeVar("T")


def _listed(kind: Callable[[str], T], what: str) -> Callable[[str], list[T]]:
    """Return a reader of values between commas, of which there is one at least."""

    def read(text: str) -> list[T]:
        try:
            found = [kind(each.strip()) for each in text.split(",") if each.strip()]
        except ValueError:
            found = []
        if not found:  # an empty list would choose all
            raise argparse.ArgumentTypeError(f"{text!r} is no list of {what}")
        return found

    return read


def _amount(text: str) -> float:
    """Return a number that is 0 or more: NaN compares with nothing."""
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not found >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of 0 or more")
    return found


def _peer(text: str) -> str:
    """Return the beginning of a peer's name, or "none"."""
    if text.lower() != NO_PEER and not any(
        peer.lower().startswith(text.lower()) or text.lower().startswith(peer.lower())
        for peer in PEERS
    ):
        raise ValueError(text)
    return text


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add all arguments to a parser."""
    chosen = parser.add_argument_group("which rows")
    chosen.add_argument("algorithms", nargs="*", metavar="ALGORITHM", help="all without a name")
    names = _listed(str, "names")
    chosen.add_argument("--dtypes", type=names, default=[], metavar="f32,u64", help="these alone")
    chosen.add_argument(
        "--sizes", type=_listed(size_of, "sizes such as 2^20,1000000"), default=[],
        metavar="2^20,2^24", help="numbers of elements, instead of each row's own",
    )  # fmt: skip
    chosen.add_argument(
        "--entropies", type=_listed(float, "numbers"), default=[], metavar="1,0.544,0",
        help="rows whose keys have this share of random bits",
    )  # fmt: skip
    chosen.add_argument(
        "--peers", type=_listed(_peer, f"peers, which are {', '.join(PEERS)}, or {NO_PEER}"),
        default=[], metavar="CuPy,CUB", help="of those that are here, these; none for no peer",
    )  # fmt: skip
    chosen.add_argument("--rows", default="", metavar="TEXT", help="whose title has this text")
    chosen.add_argument("--quick", action="store_true", help="one size of most, fewer samples")
    chosen.add_argument("--device", choices=["cpu", "cuda"], help="rows of one device alone")
    chosen.add_argument("--cold", action="store_true", help="first calls of new processes, too")
    chosen.add_argument("--targets", action="store_true", help="rows with a target: met or not")
    chosen.add_argument("--list", action="store_true", help="print the rows and run none")
    chosen.add_argument(
        "--seconds", type=_amount, default=float("inf"), help="begin no row later than this"
    )
    kept = parser.add_argument_group("what becomes of the results")
    kept.add_argument("--json", type=Path, metavar="FILE", help="write them there")
    kept.add_argument("--no-write", action="store_true", help="write no file")
    kept.add_argument("--plots", type=Path, metavar="FOLDER", help="draw them as SVG files there")
    kept.add_argument("--commit", metavar="NAME", help="what was measured, where git cannot tell")
    other = parser.add_argument_group("instead of a run")
    one = other.add_mutually_exclusive_group()
    one.add_argument(
        "--compare", nargs=2, type=Path, metavar=("A.json", "B.json"), help="say what got slower"
    )
    other.add_argument("--floor", type=_amount, help="a change below this share is none (0.03)")
    one.add_argument(
        "--merge", nargs=2, type=Path, metavar=("A.json", "B.json"),
        help="add to A the rows of B, a run of the same machine, software and commit",
    )  # fmt: skip
    one.add_argument("--show", type=Path, metavar="A.json", help="print a file's tables")
    one.add_argument(
        "--write-docs", action="store_true", help="write the figures of a checkout's pages anew"
    )
