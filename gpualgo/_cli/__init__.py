"""The command gpualgo: a demo, a check of the installation, the kernel cache."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (without the program's name) and return its exit code."""
    try:
        try:
            return _run(argv)
        finally:
            if sys.stdout is not None:  # None if the program was started with `>&-`
                sys.stdout.flush()  # also after --help, which raises SystemExit
    except BrokenPipeError:  # the reader ended, as `| head` does
        null_device = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_device, sys.stdout.fileno())  # Python flushes the remaining output there
        os.close(null_device)
        return 128 + 13  # the exit code after SIGPIPE


def _run(argv: Sequence[str] | None) -> int:
    parser = _parser()
    arguments = sys.argv[1:] if argv is None else argv
    if arguments and arguments[0] == "bench":
        parser.error("the benchmark runs from a checkout of gpualgo: python -m bench")
    args = parser.parse_args(arguments)
    # Each command imports its own dependencies: a missing one does not affect other commands.
    if args.command == "demo":
        from gpualgo._cli import demo

        return demo.run(args.device)
    if args.command == "doctor":
        from gpualgo._cli import doctor

        return doctor.run(as_json=args.json)
    if args.command == "warmup":
        from gpualgo._cli import warmup

        return warmup.run(args.ops, args.arch, args.jobs)
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
    demo = commands.add_parser("demo", help="ask questions about 3.4 million flights, beside NumPy")
    demo.add_argument(
        "--device", metavar="NAME", help="cpu, cuda or cuda:1; without it, a GPU if there is one"
    )
    doctor = commands.add_parser("doctor", help="check the installation and say what to mend")
    doctor.add_argument("--json", action="store_true", help="print the findings as JSON")
    warmup = commands.add_parser("warmup", help="compile kernels ahead, with or without a GPU")
    warmup.add_argument(
        "--ops", metavar="MODULE:FUNCTION", nargs="+", default=[],
        help="operators, or functions without arguments that make calls, instead of what is known",
    )  # fmt: skip
    warmup.add_argument(
        "--arch", metavar="sm_90", nargs="+", help="GPUs; without it those that are here"
    )
    warmup.add_argument("--jobs", metavar="N", type=int, help="how many compile at a time")
    cache = commands.add_parser("cache", help="look at the cache of compiled kernels, or empty it")
    actions = cache.add_subparsers(dest="action", required=True, metavar="action")
    info = actions.add_parser("info", help="say where it is, and how large")
    info.add_argument("--json", action="store_true", help="print it as JSON")
    actions.add_parser("clear", help="delete every compiled kernel")
    completion = commands.add_parser("completion", help="print what completes these commands")
    completion.add_argument("shell", choices=["bash", "zsh", "fish"])
    return parser
