"""The garbage collector rests while a compiler is loaded or runs, and collects again after it."""

from __future__ import annotations

import gc
import os
import sys
import threading

import pytest

from gpualgo._base.imports import loading
from gpualgo._base.memo import paused


def test_it_rests_until_the_last_has_left() -> None:
    assert gc.isenabled()
    inside, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with paused():
            inside.set()
            leave.wait(30)

    thread = threading.Thread(target=stay)
    with paused(), paused():
        assert not gc.isenabled()
        thread.start()
        inside.wait(30)
    assert not gc.isenabled()
    leave.set()
    thread.join(30)
    assert gc.isenabled()


def test_it_collects_after_an_error() -> None:
    seen = []
    with pytest.raises(IndexError), loading():
        seen.append(gc.isenabled() or [][0])
    assert gc.isenabled()


def test_who_does_not_collect_does_not_afterwards() -> None:
    gc.disable()
    try:
        with paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.skipif(sys.platform == "darwin", reason="threads and forks do not mix there")
def test_a_forked_child_collects() -> None:
    with paused():
        child = os.fork()
        if not child:
            is_fine = gc.isenabled()
            with paused():
                is_fine &= not gc.isenabled()
            os._exit(not (is_fine and gc.isenabled()))
        assert os.waitpid(child, 0)[1] == 0
