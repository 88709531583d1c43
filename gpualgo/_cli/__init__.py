"""Run the demo, check the installation, and manage the cache of compiled kernels."""

from __future__ import annotations

import argparse
import io
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Any


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (without the program's name) and return its exit code."""
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
        from gpualgo._cli import completion

        return completion.run(parser, args.shell)
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
        "answer nine questions about the 336,776 flights that left New York City in 2013, each "
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
