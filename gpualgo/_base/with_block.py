"""Context managers that are of use in a ``with`` statement alone, and say so."""

from __future__ import annotations

import warnings

_NOTHING = "{0} is no statement of its own and has changed nothing; write `with {0}:`"


class WithBlock:
    """What warns when it goes if it was never entered."""

    def __init__(self, shown: str) -> None:
        """`shown`: the call that made it."""
        self.is_entered = False
        self._shown = shown

    def __del__(self) -> None:
        if not self.is_entered:
            warnings.warn(_NOTHING.format(self._shown), RuntimeWarning, stacklevel=2)
