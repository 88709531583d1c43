"""`gpualgo completion`: its scripts have every command and option, and shells run them."""

from __future__ import annotations

import argparse
import shutil
import subprocess

import pytest

from gpualgo import _cli
from gpualgo._cli import _parser, main

LEVELS = _cli.levels_of(_parser(), ("gpualgo",))


def script(capsys: pytest.CaptureFixture[str], shell: str) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def test_levels_are_those_of_the_parser() -> None:
    found = {" ".join(level.path): set(level.words) for level in LEVELS}
    assert {"demo", "doctor", "cache", "completion", "--version", "--help"} <= found["gpualgo"]
    assert found["gpualgo cache"] == {"--help", "info", "clear"}
    assert found["gpualgo cache info"] == {"--help", "--json"}
    assert found["gpualgo completion"] == {"--help", "bash", "zsh", "fish"}


def test_options_with_values() -> None:
    found = {" ".join(level.path): level.options for level in LEVELS}
    assert found["gpualgo demo"] == {"--device": False}
    assert found["gpualgo warmup"] == {"--ops": True, "--arch": True, "--jobs": False}
    assert set(_cli.VALUES) <= {name for options in found.values() for name in options}


def test_hidden_help_and_quotes() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--secret", help=argparse.SUPPRESS, action="store_true")
    parser.add_argument("--own", help="a user's own", action="store_true")
    (level,) = _cli.levels_of(parser, ("gpualgo",))
    assert level.words == {"--secret": "", "--own": "a user's own"}
    assert r"-d 'a user\'s own'" in _cli._fish([level])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_have_every_word(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    text = script(capsys, shell)
    for level in LEVELS:
        for word in level.words:
            assert word.lstrip("-") in text


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("gpualgo do", "doctor"),
        ("gpualgo cache ", "--help info clear"),
        ("gpualgo cache info --j", "--json"),
        ("gpualgo completion z", "zsh"),
        ("gpualgo doctor --json x", ""),
        ("gpualgo demo --device a", "auto"),
        ("gpualgo demo --device cp", "cpu"),
        ("gpualgo demo --device = c", "cpu cuda " + " ".join(f"cuda:{i}" for i in range(8))),
        ("gpualgo demo --device cpu -", "--help --device"),
        ("gpualgo warmup --arch sm_90 sm_12", "sm_120"),
        ("gpualgo warmup --arch sm_90 --j", "--jobs"),
        ("gpualgo warmup --jobs ", ""),
        ("gpualgo warmup --jobs 2 --a", "--arch"),
    ],
)
def test_bash_completes(capsys: pytest.CaptureFixture[str], line: str, found: str) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    words = line.split(" ")
    ask = f"""
COMP_WORDS=({" ".join(repr(word) for word in words)}) COMP_CWORD={len(words) - 1}
_gpualgo; echo "${{COMPREPLY[@]}}" """
    done = subprocess.run(
        [bash, "-c", script(capsys, "bash") + ask], capture_output=True, text=True, check=True
    )
    assert sorted(done.stdout.split()) == sorted(found.split())


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_read_their_scripts(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([found, "-n", "-c", script(capsys, shell)], check=True)
