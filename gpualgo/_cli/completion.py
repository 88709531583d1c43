"""``gpualgo completion``: prints a shell script that completes the commands.

The script contains all words, so completing does not start Python.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

_BASH = """\
# For bash: eval "$(gpualgo completion bash)"
_gpualgo() {{
    local path="gpualgo" word
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$path $word" in
            {paths}) path="$path $word" ;;
        esac
    done
    case "$path" in
{cases}
    esac
}}
complete -F _gpualgo gpualgo
"""
_ZSH = """\
#compdef gpualgo
# For zsh: eval "$(gpualgo completion zsh)", after compinit
_gpualgo() {{
    local path_="gpualgo" word
    for word in "${{(@)words[2,CURRENT-1]}}"; do
        case "$path_ $word" in
            {paths}) path_="$path_ $word" ;;
        esac
    done
    case "$path_" in
{cases}
    esac
}}
compdef _gpualgo gpualgo
"""


class Level(NamedTuple):
    """The words that may follow a sequence of commands: commands, choices and options."""

    path: tuple[str, ...]
    words: dict[str, str]  # with their help texts


def run(parser: argparse.ArgumentParser, shell: str) -> int:
    levels = levels_of(parser, ("gpualgo",))
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](levels), end="")
    return 0


def levels_of(parser: argparse.ArgumentParser, path: tuple[str, ...]) -> list[Level]:
    words: dict[str, str] = {}
    nested_levels: list[Level] = []
    for action in parser._actions:  # argparse has no public name for it
        help_text = action.help if action.help not in (None, argparse.SUPPRESS) else ""
        if isinstance(action, argparse._SubParsersAction):
            helps = {each.dest: each.help or "" for each in action._choices_actions}
            for name, subparser in action.choices.items():
                words[name] = helps.get(name, "")
                nested_levels += levels_of(subparser, (*path, name))
        elif action.option_strings:
            words[max(action.option_strings, key=len)] = help_text or ""
        elif action.choices is not None:
            words.update((str(choice), "") for choice in action.choices)
    return [Level(path, words), *nested_levels]


def _paths(levels: list[Level]) -> str:
    return "|".join(f'"{" ".join(level.path)}"' for level in levels[1:])


def _bash(levels: list[Level]) -> str:
    line = '        "{}") COMPREPLY=($(compgen -W "{}" -- "${{COMP_WORDS[COMP_CWORD]}}")) ;;'
    cases = [line.format(" ".join(path), " ".join(words)) for path, words in levels]
    return _BASH.format(paths=_paths(levels), cases="\n".join(cases))


def _zsh(levels: list[Level]) -> str:
    cases = [f'        "{" ".join(path)}") compadd -- {" ".join(words)} ;;'
             for path, words in levels]  # fmt: skip
    return _ZSH.format(paths=_paths(levels), cases="\n".join(cases))


def _fish(levels: list[Level]) -> str:
    lines = ["# For fish: gpualgo completion fish | source", "complete -c gpualgo -f"]
    for path, words in levels:
        conditions = [f"__fish_seen_subcommand_from {name}" for name in path[1:]]
        subcommands = [level.path[-1] for level in levels if level.path[:-1] == path]
        if subcommands:
            conditions.append(f"not __fish_seen_subcommand_from {' '.join(subcommands)}")
        condition = "; and ".join(conditions)
        for word, help_text in words.items():
            completion = f"-l {word[2:]}" if word.startswith("--") else f"-a {word}"
            description = help_text.replace("\\", "\\\\").replace("'", "\\'")
            lines.append(f"complete -c gpualgo -n '{condition}' {completion} -d '{description}'")
    return "\n".join(lines) + "\n"
