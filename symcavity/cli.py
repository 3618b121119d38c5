"""The command line: paper, derive, check, solve, simulate, messages, sweep, experiment, report, manifold."""

from __future__ import annotations

import argparse
import gc
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from symcavity.commands import actions
from symcavity.commands.arguments import in_shell
from symcavity.errors import SymcavityError
from symcavity.evaluate.progress import silent

REFUSED, INTERNAL, INTERRUPTED, BROKEN_PIPE = 2, 3, 130, 141
TRACEBACK = "SYMCAVITY_TRACEBACK"

_TARGET = "a name that 'symcavity list' shows, or FILE.py with a declaration of your own"
_VALUES = """values:
  kappa=1/2   kappa=0.5   alpha=1e-3     exact decimals and fractions
  y=1:0.8,-1:0.2                         a law of a quenched parameter, value:weight
  l=0.2,1.8                              an array, one value a site
  rho=@modes.csv   rho=@modes.npy        an array from a file
  g_S=Ball(2,1)    g_S=@points.npy       a convex set
  K/N=3/2          K=150                 the number of sites of a further kind
"""


def _examples(*lines: str) -> str:
    return "examples:\n" + "\n".join(f"  {line}" for line in lines)


# -- the parser ----------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """A parser that suggests what was meant."""

    def error(self, message: str) -> NoReturn:
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


class _Help(argparse.RawDescriptionHelpFormatter):
    """Examples keep their lines; what is one line is wrapped."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        wrapped = argparse.HelpFormatter._fill_text(self, text, width, indent)  # noqa: SLF001 - argparse has no other way
        return super()._fill_text(text, width, indent) if "\n" in text else wrapped


def _add_loudness(parser: argparse.ArgumentParser, default: Any) -> None:
    parser.add_argument("-q", "--quiet", action="store_true", default=default, help="results and errors only")
    parser.add_argument("-v", "--verbose", action="store_true", default=default, help="tracebacks, and the time spent")


def _add(commands: Any, name: str, run: Callable[[argparse.Namespace], int], words: str, epilog: str) -> Any:
    parser = commands.add_parser(
        name,
        help=words,
        description=words,
        epilog=epilog,
        formatter_class=_Help,
    )
    parser.set_defaults(run=run, parser=parser)
    _add_loudness(parser, argparse.SUPPRESS)
    return parser


def _add_target(parser: argparse.ArgumentParser, *, values: bool = False) -> None:
    parser.add_argument("target", metavar="NAME|FILE.py", help=_TARGET)
    if values:
        parser.add_argument("values", nargs="*", metavar="name=value", help="values of parameters; see below")
    parser.add_argument("--object", default="", metavar="OBJECT", help="which object of the file is meant")
    parser.add_argument(
        "--method", choices=("cavity", "naive"), default="cavity", help="the analysis (default: cavity)"
    )


def _add_instances(parser: argparse.ArgumentParser) -> None:
    sizes = "features of an instance, as 400; several, as 100,200,400, extrapolate"
    parser.add_argument("--N", metavar="N[,N...]", help=sizes)
    parser.add_argument("--seeds", type=int, default=10, help="instances at every point (default: 10)")
    parser.add_argument("--couplings", default="gaussian", help="gaussian (default), rademacher or uniform")
    parser.add_argument("--jobs", type=int, metavar="JOBS", help="processes to run on (default: this one)")


def _add_studies(commands: Any) -> None:
    """The commands that ask what comes after a solution."""

    def later(verb: str) -> Callable[[argparse.Namespace], int]:
        def run(args: argparse.Namespace) -> int:
            from symcavity.commands import studying

            return int(getattr(studying, verb)(args))

        return run

    parser = _add(
        commands,
        "sensitivity",
        later("sensitivity"),
        "Differentiate an observable of the solved theory with respect to a parameter.",
        _examples("symcavity sensitivity gardner kappa=1 --of alpha --by kappa --dps 50") + "\n\n" + _VALUES,
    )
    _add_target(parser, values=True)
    parser.add_argument("--of", required=True, metavar="OBSERVABLE", help="the observable that is differentiated")
    parser.add_argument("--by", required=True, metavar="PARAMETER", help="the parameter; all others are held")
    parser.add_argument("--dps", type=int, default=15, help="significant digits (default: 15)")

    parser = _add(
        commands,
        "optimize",
        later("optimize"),
        "Find the value of a parameter at which an observable is smallest, or largest.",
        _examples("symcavity optimize noisy_teacher alpha=2 t=1:1/2,-1:1/2 noise=1/2:1/2,-1/2:1/2 "
            '--of "average((w[i] - t[i])**2)" --over gamma=0.01,10')
        + "\n\n"
        + _VALUES,
    )
    _add_target(parser, values=True)
    parser.add_argument("--of", required=True, metavar="OBSERVABLE", help="the observable to make small")
    parser.add_argument("--over", required=True, metavar="gamma[=low,high]", help="the parameter, and its range")
    parser.add_argument("--maximize", action="store_true", help="make the observable large instead")
    parser.add_argument("--dps", type=int, default=15, help="significant digits (default: 15)")

    parser = _add(
        commands,
        "boundary",
        later("boundary"),
        "Follow the line on which stability, the solution or an order parameter is lost.",
        _examples(
            "symcavity boundary minority o=1:1/2,-1:1/2 --across alpha=0.3,0.6 --dps 20",
            "symcavity boundary competing_species A=2 K=1:1 --across sigma=0.5,1.5 --along g=0:1:5",
        )
        + "\n\n"
        + _VALUES,
    )
    _add_target(parser, values=True)
    parser.add_argument(
        "--what", default="stability", metavar="WHAT", help="stability (default), feasibility, or an observable"
    )
    parser.add_argument("--across", required=True, metavar="alpha=1,3", help="the parameter to vary, and its range")
    parser.add_argument("--along", default="", metavar="g=0:1:5", help="a second parameter, and its values")
    parser.add_argument("--dps", type=int, default=15, help="significant digits (default: 15)")
    parser.add_argument("--csv", metavar="F", help="write the points")
    parser.add_argument("--plot", metavar="F", help="draw the line")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    from symcavity import __version__

    parser = _Parser(
        prog="symcavity",
        description="Derive, print, evaluate and test cavity theories of convex learning problems.",
        epilog=_examples(
            "symcavity list",
            "symcavity derive gardner --latex gardner.tex",
            "symcavity solve gardner kappa=1/2 --dps 50",
            "symcavity simulate gardner alpha=1.2 --N 200 --seeds 20",
            "symcavity check my_problem.py",
        )
        + "\n\n'symcavity COMMAND --help' explains a command by examples.",
        formatter_class=_Help,
    )
    parser.add_argument("--version", action="version", version=f"symcavity {__version__}")
    _add_loudness(parser, default=False)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    words = "Show the derivations that are installed."
    _add(commands, "list", actions.show_list, words, _examples("symcavity list"))

    paper = _add(
        commands,
        "paper",
        actions.paper,
        "Show every displayed equation of the paper (Clark and Sompolinsky): derived, declared, verified or corrected, "
        "by what, and where.",
        _examples("symcavity paper", "symcavity paper --json"),
    )
    paper.add_argument("--json", action="store_true", help="print JSON: number, verdict, witness, where, remark")

    derive = _add(
        commands,
        "derive",
        actions.derive,
        "Derive the theory of a declared problem, and print every step with its reason.",
        _examples(
            "symcavity derive gardner",
            "symcavity derive gardner --method naive",
            "symcavity derive kernel_ridge --object from_loss",
            "symcavity derive my_problem.py --latex my.tex --html my.html",
        ),
    )
    _add_target(derive)
    derive.add_argument("--latex", metavar="F", help="write a complete LaTeX document ('-' for stdout)")
    derive.add_argument("--html", metavar="F", help="write a self-contained page ('-' for stdout)")
    derive.add_argument(
        "--json", metavar="F", nargs="?", const="-", help="write a record for machines, with verdicts (default: stdout)"
    )
    derive.add_argument("--lean", metavar="F", help="write what is plain algebra as Lean 4 statements")

    check = _add(
        commands,
        "check",
        actions.verify,
        "Check every claim of a derivation, and say by what. The exit status is 1 if a claim fails.",
        _examples("symcavity check gardner", "symcavity check my_problem.py --dps 30"),
    )
    _add_target(check)
    check.add_argument("--dps", type=int, default=50, help="digits of the checks by number (default: 50)")

    solve = _add(
        commands,
        "solve",
        actions.solve,
        "Solve the closed equations at given values.",
        _examples(
            "symcavity solve gardner kappa=1/2 --dps 50",
            "symcavity solve gardner alpha=1.2                    # for kappa instead",
            "symcavity solve output_bias kappa=1 y=1:0.8,-1:0.2",
            "symcavity solve anisotropic kappa=1/2 l=0.2,1.8 --json",
            'symcavity solve soft_margin alpha=2 C=1 --show "average(xi[mu])" --show "average(xi[mu] > 1)"',
        )
        + "\n\n"
        + _VALUES,
    )
    _add_target(solve, values=True)
    solve.add_argument("--dps", type=int, default=15, help="significant digits (default: 15)")
    solve.add_argument("--timeout", type=float, metavar="SECONDS", help="stop after so many seconds")
    solve.add_argument("--certify", action="store_true", help="prove in which intervals the numbers lie")
    solve.add_argument("--json", action="store_true", help="print JSON; numbers are strings, with all digits")
    solve.add_argument(
        "--show", action="append", default=[], metavar="OBSERVABLE", help="print this observable too (repeatable)"
    )

    simulate = _add(
        commands,
        "simulate",
        actions.simulate,
        "Solve finite instances of the declared problem, and hold them against the theory.",
        _examples(
            "symcavity simulate gardner alpha=1.2 --N 400 --seeds 20",
            "symcavity simulate soft_margin alpha=2 C=1 --N 100,200,400",
            "symcavity simulate gardner kappa=1 --N 200              # at the load that the theory gives",
            "symcavity simulate gardner alpha=1.2 --N 200 --couplings rademacher --plot z.pdf",
            "symcavity simulate anisotropic alpha=0.8 l=0.2:1/2,1.8:1/2 --N 200 --method naive",
        )
        + "\n\n"
        + _VALUES,
    )
    _add_target(simulate, values=True)
    _add_instances(simulate)
    simulate.add_argument(
        "--show", action="append", default=[], metavar="OBSERVABLE", help="compare only this observable (repeatable)"
    )
    simulate.add_argument("--plot", metavar="F", help="draw the z-scores")

    messages = _add(
        commands,
        "messages",
        actions.messages,
        "Pass messages on finite instances, and hold every step against the closed equations, read as a map.",
        _examples(
            "symcavity messages gardner alpha=0.5 --N 1000 --seeds 5",
            'symcavity messages soft_margin alpha=2 C=3/4 --steps 20 --show "average(xi[mu])" --plot steps.pdf',
        )
        + "\n\n"
        + _VALUES,
    )
    _add_target(messages, values=True)
    _add_instances(messages)
    messages.add_argument("--steps", type=int, default=40, help="steps of each kind of site (default: 40)")
    messages.add_argument("--damping", type=float, default=0.0, help="the share of each move that is not made")
    messages.add_argument(
        "--show", action="append", default=[], metavar="OBSERVABLE", help="compare only this observable (repeatable)"
    )
    messages.add_argument("--plot", metavar="F", help="draw the first observable, step by step")

    sweep = _add(
        commands,
        "sweep",
        actions.sweep,
        "Solve the theory over a grid of parameters, with simulations beside it.",
        _examples(
            "symcavity sweep gardner kappa=0:3:61 --csv capacity.csv --plot capacity.pdf",
            "symcavity sweep gardner kappa=0.2:2:7 --simulate --N 200 --seeds 10 --plot capacity.pdf",
            "symcavity sweep soft_margin alpha=0.5:3:11 C=1,10 --csv soft.csv --resume",
            'symcavity sweep soft_margin alpha=0.5:3:11 C=1 --y "average(xi[mu])" --plot slack.pdf',
        )
        + "\n\ngrids:\n  kappa=0:3:61    start:stop:count, both ends included\n"
        + "  kappa=0.5,1,2   these values\n\n"
        + _VALUES,
    )
    _add_target(sweep, values=True)
    _add_instances(sweep)
    sweep.add_argument("--simulate", action="store_true", help="simulate at every point of the grid")
    sweep.add_argument(
        "--csv", metavar="F", help="write rows as they finish (simulations go to F's name with .simulation)"
    )
    sweep.add_argument("--resume", action="store_true", help="keep the rows that are in the file already")
    sweep.add_argument("--overwrite", action="store_true", help="begin the file again")
    sweep.add_argument("--plot", metavar="F", help="draw theory as a line, simulations as points")
    sweep.add_argument("--x", default="", help="horizontal axis (default: the first grid)")
    sweep.add_argument("--y", default="", help="the vertical axis (default: alpha, where it comes out)")
    sweep.add_argument(
        "--show", action="append", default=[], metavar="OBSERVABLE", help="a column for this observable (repeatable)"
    )

    _add_studies(commands)

    experiment = _add(
        commands,
        "experiment",
        actions.experiment,
        "Add one feature, and one datum, to solved instances, and measure what the cavity method claims.",
        _examples(
            "symcavity experiment gardner alpha=0.5 --N 200 --seeds 50",
            "symcavity experiment soft_margin alpha=2 C=1 --N 200 --seeds 50 --plot cavity.pdf",
        )
        + "\n\n"
        + _VALUES,
    )
    _add_target(experiment, values=True)
    _add_instances(experiment)
    experiment.add_argument("--plot", metavar="F", help="draw the new variables against their prediction")

    report = _add(
        commands,
        "report",
        _report,
        "Write the derivation, its checks, numbers, plots and a page of all of them into a folder.",
        _examples(
            "symcavity report gardner -o gardner",
            "symcavity report gardner kappa=1/2 -o gardner --sweep kappa=0:3:31",
            "symcavity report my_problem.py alpha=2 C=1 -o mine --N 100,200 --seeds 20",
            "symcavity report mine/report.json -o again             # the same once more",
        )
        + "\n\n"
        + _VALUES,
    )
    _add_target(report, values=True)
    _add_instances(report)
    report.set_defaults(N="100")
    report.add_argument("-o", "--output", metavar="DIR", required=True, help="the folder")
    report.add_argument("--dps", type=int, default=30, help="digits of numbers and checks (default: 30)")
    report.add_argument(
        "--show", action="append", default=[], metavar="OBSERVABLE", help="report this observable too (repeatable)"
    )
    report.add_argument("--sweep", action="append", default=[], metavar="name=grid", help="draw the theory over a grid")

    manifold = _add(
        commands,
        "manifold",
        actions.manifold,
        "Measure the capacity, the effective radius and the effective dimension of manifolds of points.",
        _examples(
            "symcavity manifold points.npy                        # manifolds x points x dimensions",
            "symcavity manifold points.npy --kappa 0.1 --samples 16384 --csv geometry.csv",
        ),
    )
    manifold.add_argument("points", metavar="points.npy", help="an array of manifolds x points x dimensions")
    manifold.add_argument("--kappa", default="0", help="margin, in units of a centre's distance")
    manifold.add_argument("--samples", type=int, default=4096, help="sources for each (default: 4096)")
    manifold.add_argument("--seed", type=int, default=0, help="seed of the quasi-random sources (default: 0)")
    manifold.add_argument("--subtract-mean", action="store_true", help="centre all data first")
    manifold.add_argument("--oblique", action="store_true", help="keep deviations along the centre")
    manifold.add_argument("--json", action="store_true", help="print JSON")
    manifold.add_argument("--csv", metavar="F", help="write the table")
    return parser


def _report(args: argparse.Namespace) -> int:
    from symcavity.commands.reporting import make_report

    return make_report(args)


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
        args = _parse(build_parser(), argv)
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
