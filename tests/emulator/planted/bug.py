"""What a planted bug is."""

from __future__ import annotations

from dataclasses import dataclass

WRONG = "WRONG"  # no report, but another result than NumPy's


@dataclass(frozen=True)
class Bug:
    """One change of a kernel that makes it wrong, and what the emulated GPU is to say."""

    name: str
    header: str  # of cuda_src
    old: str  # its text, of which there is one in the header
    new: str
    case: str  # of planted/cases.py
    shows: tuple[str, ...]  # the kinds of reports, or WRONG, by which it counts as caught
    missed: str = ""  # why it is not caught
    seeds: int = 3  # it shows under one of the first so many


def bug(name: str, header: str, old: str, new: str, case: str, *shows: str, seeds: int = 3) -> Bug:
    """Return a bug that is caught."""
    return Bug(name, header, old, new, case, shows, seeds=seeds)


def missed(name: str, header: str, old: str, new: str, case: str, why: str) -> Bug:
    """Return a bug that is not caught."""
    return Bug(name, header, old, new, case, (), why)
