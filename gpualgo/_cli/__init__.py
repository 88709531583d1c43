"""Run the demo, check the installation, and manage the cache of compiled kernels."""

from __future__ import annotations

import argparse
import io
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from gpualgo._base import log

# --- ``gpualgo completion``: prints a shell script that completes the commands.
#
# The script contains all words, so completing does not start Python.

VALUES = {
    "--device": ("auto", "cpu", "cuda", *(f"cuda:{i}" for i in range(8))),
    "--arch": tuple(f"sm_{number}" for number in (75, 80, 86, 87, 89, 90, 100, 120)),
}
"""The values of options that take a value from a list. Others take none that is known."""

_SCRIPT = """\
{head}
_gpualgo() {{
    local path_="gpualgo" word option=""
    for word in {given}; do
        case "$path_ $word" in
            {paths}) path_="$path_ $word" option="" ;;
            {valued}) option="$word" ;;
            *" -"*) option="" ;;
            *" =") ;;
            *) case "$option" in {several}) ;; *) option="" ;; esac ;;
        esac
    done
    case "$path_ $option" in
{cases}
    esac
}}
{tail}
"""
# For each shell: the first lines, the words before the cursor, a case, and the last line. To bash
# the `=` of an option is a word.
_SHELLS = {
    "bash": (
        '# For bash: eval "$(gpualgo completion bash)"', '"${COMP_WORDS[@]:1:COMP_CWORD-1}"',
        '        {}) COMPREPLY=($(compgen -W "{}" -- "${{COMP_WORDS[COMP_CWORD]#=}}")) ;;',
        "complete -F _gpualgo gpualgo",
    ),
    "zsh": (
        '#compdef gpualgo\n# For zsh: eval "$(gpualgo completion zsh)", after compinit',
        '"${(@)words[2,CURRENT-1]}"', "        {}) compadd -- {} ;;", "compdef _gpualgo gpualgo",
    ),
}  # fmt: skip


class Level(NamedTuple):
    """The words that may follow a sequence of commands: commands, choices and options."""

    path: tuple[str, ...]
    words: dict[str, str]  # with their help texts
    options: dict[str, bool]  # those that take a value, and whether they take several


def run(parser: argparse.ArgumentParser, shell: str) -> int:
    levels = levels_of(parser, ("gpualgo",))
    print(_fish(levels) if shell == "fish" else _script(levels, shell), end="")
    return 0


def levels_of(parser: argparse.ArgumentParser, path: tuple[str, ...]) -> list[Level]:
    words: dict[str, str] = {}
    options: dict[str, bool] = {}
    nested_levels: list[Level] = []
    for action in parser._actions:  # argparse has no public name for it
        help_text = action.help if action.help not in (None, argparse.SUPPRESS) else ""
        if isinstance(action, argparse._SubParsersAction):
            helps = {each.dest: each.help or "" for each in action._choices_actions}
            for name, subparser in action.choices.items():
                words[name] = helps.get(name, "")
                nested_levels += levels_of(subparser, (*path, name))
        elif action.option_strings:
            name = max(action.option_strings, key=len)
            words[name] = help_text or ""
            if action.nargs != 0:
                options[name] = action.nargs is not None
        elif action.choices is not None:
            words.update((str(choice), "") for choice in action.choices)
    return [Level(path, words, options), *nested_levels]


def _patterns(levels: list[Level]) -> dict[str, str]:
    options = [
        (f"{' '.join(level.path)} {name}", name, takes_several)
        for level in levels
        for name, takes_several in level.options.items()
    ]
    found = {
        "paths": [" ".join(level.path) for level in levels[1:]],
        "valued": [place for place, _, _ in options],
        "several": sorted({name for _, name, takes_several in options if takes_several}),
    }
    return {key: "|".join(f'"{text}"' for text in texts) for key, texts in found.items()}


def _cases(levels: list[Level], line: str) -> str:
    cases = []
    for level in levels:
        path = " ".join(level.path)
        for name, takes_several in level.options.items():
            words = [*VALUES.get(name, ()), *(level.words if takes_several else ())]
            cases.append(line.format(f'"{path} {name}"', " ".join(words)))
        cases.append(line.format(f'"{path} "', " ".join(level.words)))
    return "\n".join(cases)


def _script(levels: list[Level], shell: str) -> str:
    head, given, case, tail = _SHELLS[shell]
    cases = _cases(levels, case)
    return _SCRIPT.format(head=head, given=given, cases=cases, tail=tail, **_patterns(levels))


def _fish(levels: list[Level]) -> str:
    lines = ["# For fish: gpualgo completion fish | source", "complete -c gpualgo -f"]
    for path, words, options in levels:
        conditions = [f"__fish_seen_subcommand_from {name}" for name in path[1:]]
        subcommands = [level.path[-1] for level in levels if level.path[:-1] == path]
        if subcommands:
            conditions.append(f"not __fish_seen_subcommand_from {' '.join(subcommands)}")
        condition = "; and ".join(conditions)
        for word, help_text in words.items():
            completion = f"-l {word[2:]}" if word.startswith("--") else f"-a {word}"
            if word in options:
                completion += f" -x -a '{' '.join(VALUES.get(word, ()))}'"
            description = help_text.replace("\\", "\\\\").replace("'", "\\'")
            lines.append(f"complete -c gpualgo -n '{condition}' {completion} -d '{description}'")
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (without the program's name) and return its exit code."""
    log.tell_no_times()
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # paths may hold any character
    try:
        try:
            return _run(argv)
        finally:
            if sys.stdout is not None:  # None if the program was started with `>&-`
                sys.stdout.flush()  # also after --help, which raises SystemExit
    except BrokenPipeError:  # the reader ended, as `| head` does
        _discard_output()
        return 128 + 13  # the exit code after SIGPIPE
    except OSError as error:
        if error.filename is not None or sys.stdout is None:  # it is not about the output
            raise
        _discard_output()
        print(f"gpualgo: the output cannot be written: {error.strerror}", file=sys.stderr)
        return 1


def _discard_output() -> None:
    """Let Python flush the remaining output to the null device when it exits."""
    null_device = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null_device, sys.stdout.fileno())
    os.close(null_device)


def _run(argv: Sequence[str] | None) -> int:
    parser = _parser()
    arguments = sys.argv[1:] if argv is None else argv
    if arguments and arguments[0] == "bench":
        command = shlex.join(["python", "-m", *arguments])
        parser.error(f"no command 'bench'; it runs from a checkout of gpualgo: {command}")
    args = parser.parse_args(arguments)
    # Each command imports its own dependencies: a missing one does not affect other commands.
    if args.command == "demo":
        from gpualgo._cli import demo

        return demo.run(args.device)
    if args.command == "doctor":
        from gpualgo._cli import doctor

        return doctor.run(as_json=args.json, verbose=args.verbose)
    if args.command == "warmup":
        from gpualgo._cli import cache

        return cache.warmup(args.ops, args.arch, args.jobs)
    if args.command == "completion":
        return run(parser, args.shell)
    from gpualgo._cli import cache

    return cache.clear() if args.action == "clear" else cache.info(as_json=args.json)


def _parser() -> argparse.ArgumentParser:
    import gpualgo

    parser = argparse.ArgumentParser(prog="gpualgo", description=__doc__)
    parser.add_argument("--version", action="version", version=f"gpualgo {gpualgo.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    def command(group: Any, name: str, text: str) -> Any:
        return group.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")

    demo = command(
        commands, "demo",
        "answer nine questions about the flights that left New York City in 2013, each "
        "counted ten times (3.4 million), and compare answers and times with NumPy",
    )  # fmt: skip
    demo.add_argument(
        "--device", metavar="NAME",
        help="cpu, cuda, cuda:1, ... or auto; the default is GPUALGO_DEVICE, else auto",
    )  # fmt: skip
    doctor = command(commands, "doctor", "check the installation and say how to repair it")
    doctor.add_argument("--json", action="store_true", help="print the findings as JSON")
    doctor.add_argument(
        "--verbose", action="store_true", help="also print paths, and which device auto chooses"
    )
    warmup = command(commands, "warmup", "compile kernels in advance, with or without a GPU")
    warmup.add_argument(
        "--ops", metavar="MODULE:FUNCTION", nargs="+", default=[],
        help="compile for these operators, or for the calls that these functions without "
        "arguments make; the default is the built-in operators",
    )  # fmt: skip
    warmup.add_argument(
        "--arch", metavar="sm_90", nargs="+",
        help="compile for these GPUs; the default is the GPUs of this machine",
    )  # fmt: skip
    warmup.add_argument("--jobs", metavar="N", type=int, help="compile so many at a time")
    cache = command(commands, "cache", "show or clear the cache of compiled kernels")
    actions = cache.add_subparsers(dest="action", required=True, metavar="action")
    info = command(actions, "info", "print where the cache is and how large it is")
    info.add_argument("--json", action="store_true", help="print it as JSON")
    command(actions, "clear", "delete every compiled kernel")
    completion = command(
        commands, "completion", "print a shell script that completes commands, options and values"
    )
    completion.add_argument("shell", choices=["bash", "zsh", "fish"])
    return parser
