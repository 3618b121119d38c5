"""The parser of a command, with the options that several commands share."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NoReturn

_TARGET = "a name that 'symcavity list' shows, or FILE.py with a declaration of your own"
_VALUES = """values:
  kappa=1/2   kappa=0.5   alpha=1e-3     exact decimals and fractions
  y=1:0.8,-1:0.2                         a law of a quenched parameter, value:weight
  l=0.2,1.8                              an array, one value per site
  rho=@modes.csv   rho=@modes.npy        an array from a file
  "g_S=Ball(2,1)"  g_S=@points.npy       a convex set (quoted, for the shell)
  K/N=3/2          K=150                 the number of sites of another kind
"""


class Parser(argparse.ArgumentParser):
    """A parser that suggests what was meant."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and what may have been meant."""
        found = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        near = get_close_matches(found[1], re.findall(r"[\w-]+", found[2]), n=1) if found else []
        super().error(f"{message}; did you mean {near[0]}?" if near else message)

    def refuse(self, words: Sequence[str], values: bool) -> NoReturn:
        """Refuse words that were not read, by what may have been meant."""
        names = [word.partition("=")[0] for word in words if word.startswith("-")]
        options = [option for action in self._actions for option in action.option_strings]
        near = [option for name in names for option in get_close_matches(name, options, n=1, cutoff=0.75)]
        message = f"unrecognized arguments: {' '.join(words)}"
        if values and not near and names:
            message += "; values of parameters have no dashes: alpha=2"
        super().error(f"{message}; did you mean {near[0]}?" if near else message)


class Help(argparse.RawDescriptionHelpFormatter):
    """Examples keep their lines; what is one line is wrapped."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        wrapped = argparse.HelpFormatter._fill_text(self, text, width, indent)  # noqa: SLF001 - argparse has no other way
        return super()._fill_text(text, width, indent) if "\n" in text else wrapped


def add_loudness(parser: argparse.ArgumentParser, default: Any) -> None:
    """The options of how much is printed."""
    parser.add_argument("-q", "--quiet", action="store_true", default=default, help="results and errors only")
    parser.add_argument("-v", "--verbose", action="store_true", default=default, help="tracebacks, and the time spent")


def _seeds(text: str) -> int | list[int]:
    """How many instances, or the seeds of a part of them, ``40:50``, as the jobs of an array share them out."""
    first, colon, last = text.partition(":")
    return list(range(int(first), int(last))) if colon else int(text)


def later(module: str, verb: str) -> Callable[[argparse.Namespace], int]:
    """A command whose file is loaded when it is used."""

    def run(args: argparse.Namespace) -> int:
        return int(getattr(import_module(f"symcavity.commands.{module}"), verb)(args))

    return run


def add_command(
    commands: Any,
    name: str,
    run: Callable[[argparse.Namespace], int],
    words: str,
    *examples: str,
    target: bool = True,
    values: bool = False,
    instances: str = "",
    notes: str = "",
) -> Any:
    """Add a command, with what it takes of a declaration, of values and of instances."""
    epilog = "\n  ".join(["examples:", *examples]) + notes + (f"\n\n{_VALUES}" if values else "")
    parser = commands.add_parser(name, help=words, description=words, epilog=epilog, formatter_class=Help)
    parser.set_defaults(run=run, parser=parser)
    add_loudness(parser, argparse.SUPPRESS)
    add = parser.add_argument
    if target:
        add("target", metavar="NAME|FILE.py", help=_TARGET)
    if values:
        add("values", nargs="*", metavar="name=value", help="values of parameters; see below")
    if target:
        add("--object", default="", metavar="OBJECT", help="name of the problem, if the file declares several")
        add("--method", choices=("cavity", "naive"), default="cavity", help="the analysis (default: cavity)")
    if instances:
        if instances == "several":
            sizes = "number of features; several (100,200,400) are extrapolated to the limit"
            add("--N", metavar="N[,N...]", help=sizes)
        else:
            add("--N", help="number of features")
        add("--seeds", type=_seeds, default=10, help="instances at every point (default: 10), or their seeds: 40:50")
        add("--couplings", default="gaussian", help="gaussian (default), rademacher or uniform")
        add("--jobs", type=int, metavar="JOBS", help="processes to run on (default: this one)")
    return parser


def add_digits(parser: argparse.ArgumentParser, default: int = 15, what: str = "significant digits") -> None:
    """How many digits there are."""
    parser.add_argument("--dps", type=int, default=default, help=f"{what} (default: {default})")


def add_shown(parser: argparse.ArgumentParser, what: str) -> None:
    """Which observables are shown."""
    parser.add_argument("--show", action="append", default=[], metavar="OBSERVABLE", help=f"{what} (repeatable)")


def add_fresh(parser: argparse.ArgumentParser) -> None:
    """How many fresh sites there are."""
    words = "fresh sites in each instance, for average(fresh(...)) (default: 1000)"
    parser.add_argument("--fresh", type=int, default=1000, metavar="COUNT", help=words)
