"""The command line: paper, derive, check, solve, simulate, messages, sweep, evolve, experiment, report, manifold."""

from __future__ import annotations

import argparse
import gc
import os
import re
import sys
import time
from collections.abc import Sequence
from importlib import import_module

from symcavity.commands.arguments import in_shell
from symcavity.commands.parser import build_parser
from symcavity.errors import SymcavityError
from symcavity.evaluate.progress import silent

REFUSED, INTERNAL, INTERRUPTED, BROKEN_PIPE = 2, 3, 130, 141
TRACEBACK = "SYMCAVITY_TRACEBACK"


def _parse(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the arguments; values may stand on either side of an option."""
    if not (sys.argv[1:] if argv is None else argv):
        parser.print_help(sys.stderr)
        parser.exit(REFUSED)
    args, rest = parser.parse_known_args(argv)
    if rest:
        if not hasattr(args, "values") or any(word.startswith("-") or "=" not in word for word in rest):
            args.parser.refuse(rest, hasattr(args, "values"))
        args.values += rest
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; those of the process by default.
    """
    if argv is None:
        gc.freeze()  # what was loaded is never garbage: it is not looked through, nor at the end
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    tracebacks, began = bool(os.environ.get(TRACEBACK)), time.monotonic()
    hush = silent.set(False)
    try:
        parser = build_parser()
        if "_ARGCOMPLETE" in os.environ:
            import_module("symcavity.commands.completing").complete(parser)
        args = _parse(parser, argv)
        tracebacks |= args.verbose
        silent.set(args.quiet)
        status = args.run(args)
        sys.stdout.flush()
        if args.verbose:
            print(f"symcavity: {time.monotonic() - began:.1f} s", file=sys.stderr)
    except SymcavityError as error:
        if tracebacks:
            raise
        _complain(in_shell(str(error)))
        return REFUSED
    except MemoryError as error:
        if tracebacks:
            raise
        size = re.search(r"allocate ([\d.]+ \w+)", str(error))
        _complain(f"The memory is not enough{f': {size[1]} are needed at once' if size else ''}.\nTry: a smaller --N")
        return REFUSED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt as stop:
        resume = "; go on with --resume" if getattr(stop, "kept", "") else ""
        _complain(f"stopped{f': {stop}{resume}' if str(stop) else ''}")
        return INTERRUPTED
    except Exception as error:  # a defect of ours is said in a sentence
        if tracebacks:
            raise
        _complain(
            f"This is a defect of symcavity: {type(error).__name__}: {error}\n"
            "Try: --verbose shows where it happened; please report it with the declaration."
        )
        return INTERNAL
    finally:
        silent.reset(hush)
    return int(status)


def _complain(text: str) -> None:
    print(f"symcavity: {text}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
