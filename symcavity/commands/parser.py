"""The parser of the command line: each command with its options and examples."""

from __future__ import annotations

import argparse
from typing import Any

from symcavity.commands import actions, showing
from symcavity.commands.options import Help, Parser, add_command, add_digits, add_fresh, add_loudness, add_shown, later
from symcavity.writing.formats import FORMATS

_AS_DATA = (
    *("list", "show", "check", "simulate", "messages", "sweep", "sensitivity", "optimize", "boundary", "experiment"),
    "evolve",
    "report",
)


def _add_studies(commands: Any) -> None:
    """The commands that ask what comes after a solution."""
    parser = add_command(
        commands,
        "sensitivity",
        later("studying", "sensitivity"),
        "Differentiate an observable of the solved theory with respect to a parameter.",
        "symcavity sensitivity gardner kappa=1 --of alpha --by kappa --dps 50",
        values=True,
    )
    parser.add_argument("--of", required=True, metavar="OBSERVABLE", help="the observable that is differentiated")
    parser.add_argument("--by", required=True, metavar="PARAMETER", help="the parameter; all others are held fixed")
    add_digits(parser)
    parser = add_command(
        commands,
        "optimize",
        later("studying", "optimize"),
        "Find the value of a parameter at which an observable is smallest, or largest.",
        "symcavity optimize noisy_teacher alpha=2 t=1:1/2,-1:1/2 noise=1/2:1/2,-1/2:1/2 "
        '--of "average((w[i] - t[i])**2)" --over gamma=0.01,10',
        values=True,
    )
    parser.add_argument("--of", required=True, metavar="OBSERVABLE", help="the observable to make small")
    parser.add_argument("--over", required=True, metavar="gamma[=low,high]", help="the parameter, and its range")
    parser.add_argument("--maximize", action="store_true", help="make the observable large instead")
    add_digits(parser)
    parser = add_command(
        commands,
        "boundary",
        later("studying", "boundary"),
        "Find the phase boundary at which the solution, its stability or an order parameter is lost.",
        "symcavity boundary minority o=1:1/2,-1:1/2 --across alpha=0.3,0.6 --dps 20",
        "symcavity boundary competing_species A=2 K=1:1 --across sigma=0.5,1.5 --along g=0:1:5",
        values=True,
    )
    parser.add_argument(
        "--what", default="stability", metavar="WHAT", help="stability (default), feasibility, or an observable"
    )
    parser.add_argument("--across", required=True, metavar="alpha=1,3", help="the parameter to vary, and its range")
    parser.add_argument("--along", default="", metavar="g=0:1:5", help="a second parameter, and its values")
    add_digits(parser)
    parser.add_argument("--csv", metavar="F", help="write the points")
    parser.add_argument("--plot", metavar="F", help="draw the line")


def _add_derivations(commands: Any) -> None:
    """What shows declarations, derives them, and checks derivations."""
    words = "Show the derivations that are installed."
    listed = add_command(commands, "list", showing.show_list, words, "symcavity list --parameters", target=False)
    listed.add_argument("--parameters", action="store_true", help="list the parameters of each")
    add_command(
        commands,
        "show",
        showing.show,
        "Show a declaration, its parameters, and its file.",
        "symcavity show sparse_regression",
        "symcavity show my_problem.py --json",
    )
    paper = add_command(
        commands,
        "paper",
        actions.paper,
        "Show every displayed equation of the paper (Clark and Sompolinsky): derived, declared, verified or corrected, "
        "with the method and the place.",
        "symcavity paper",
        "symcavity paper --json",
        target=False,
    )
    paper.add_argument("--json", action="store_true", help="print JSON: number, verdict, witness, where, remark")
    derive = add_command(
        commands,
        "derive",
        actions.derive,
        "Derive the theory of a declared problem, and print every step with its reason.",
        "symcavity derive gardner",
        "symcavity derive gardner --method naive",
        "symcavity derive kernel_ridge --object from_loss",
        "symcavity derive my_problem.py --latex my.tex --html my.html",
    )
    derive.add_argument(
        "--detail", choices=("full", "paper"), default="full", help="every step, or as short as a paper (default: full)"
    )
    derive.add_argument(
        "--fragment", action="store_true", help="with --latex: without preamble and title, to be read into a document"
    )
    for name, one in FORMATS.items():
        optional: dict[str, Any] = {"nargs": "?", "const": "-"} if one.alone else {}
        where = "(default: stdout)" if one.alone else "('-' for stdout)"
        derive.add_argument(f"--{name}", metavar="F", help=f"{one.says} {where}", **optional)
    check = add_command(
        commands,
        "check",
        actions.verify,
        "Verify every claim of a derivation, and name the method. The exit status is 1 if a claim fails.",
        "symcavity check gardner",
        "symcavity check my_problem.py --dps 30",
    )
    add_digits(check, 50, "digits of the numerical checks")


def _add_solve(commands: Any) -> None:
    """Numbers of the theory."""
    solve = add_command(
        commands,
        "solve",
        actions.solve,
        "Solve the closed equations at given values.",
        "symcavity solve gardner kappa=1/2 --dps 50",
        "symcavity solve gardner alpha=1.2                    # for kappa instead",
        "symcavity solve output_bias kappa=1 f=0.8",
        "symcavity solve anisotropic kappa=1/2 l=0.2,1.8 --json",
        'symcavity solve soft_margin alpha=2 C=1 --show "average(xi[mu])" --show "average(xi[mu] > 1)"',
        values=True,
    )
    add_digits(solve)
    solve.add_argument("--timeout", type=float, metavar="SECONDS", help="stop after this many seconds")
    solve.add_argument("--certify", action="store_true", help="prove in which intervals the numbers lie")
    solve.add_argument("--json", action="store_true", help="print JSON; numbers are strings, with all digits")
    add_shown(solve, "print this observable too")


def _add_instances(commands: Any) -> None:
    """Finite instances, and messages on them, beside the theory."""
    simulate = add_command(
        commands,
        "simulate",
        actions.simulate,
        "Solve finite instances of the declared problem, and compare them with the theory.",
        "symcavity simulate gardner alpha=1.2 --N 400 --seeds 20",
        "symcavity simulate soft_margin alpha=2 C=1 --N 100,200,400",
        "symcavity simulate gardner kappa=1 --N 200              # at the load that the theory gives",
        "symcavity simulate gardner alpha=1.2 --N 200 --couplings rademacher --plot z.pdf",
        'symcavity simulate soft_margin alpha=2 C=1 --N 100 --show "average(fresh(Sum(x[mu,i]*w[i], (i,1,N)) < 1))"',
        "symcavity simulate anisotropic alpha=0.8 l=0.2:1/2,1.8:1/2 --N 200 --method naive",
        values=True,
        instances="several",
    )
    add_shown(simulate, "compare only this observable")
    add_fresh(simulate)
    simulate.add_argument("--csv", metavar="F", help="write the table")
    simulate.add_argument("--plot", metavar="F", help="draw the z-scores")
    messages = add_command(
        commands,
        "messages",
        actions.messages,
        "Pass messages on finite instances, and compare each step with state evolution.",
        "symcavity messages gardner alpha=0.5 --N 1000 --seeds 5",
        'symcavity messages soft_margin alpha=2 C=3/4 --steps 20 --show "average(xi[mu])" --plot steps.pdf',
        values=True,
        instances="one",
    )
    messages.add_argument("--steps", type=int, default=40, help="steps of each kind of site (default: 40)")
    messages.add_argument("--damping", type=float, default=0.0, help="damping factor d: new = d*old + (1 - d)*update")
    add_shown(messages, "compare only this observable")
    messages.add_argument("--plot", metavar="F", help="draw the first observable, step by step")


def _add_sweep(commands: Any) -> None:
    """The theory over a grid, with or without instances."""
    sweep = add_command(
        commands,
        "sweep",
        actions.sweep,
        "Solve the theory over a grid of parameters, and instances with --simulate.",
        "symcavity sweep gardner kappa=0:3:61 --csv capacity.csv --plot capacity.pdf",
        "symcavity sweep gardner kappa=0.2:2:7 --simulate --N 200 --seeds 10 --plot capacity.pdf",
        "symcavity sweep soft_margin alpha=0.5:3:11 C=1,10 --csv soft.csv --resume",
        'symcavity sweep soft_margin alpha=0.5:3:11 C=1 --y "average(xi[mu])" --plot slack.pdf',
        values=True,
        instances="several",
        notes="\n\ngrids:\n  kappa=0:3:61    start:stop:count, both ends included\n  kappa=0.5,1,2   these values",
    )
    add_fresh(sweep)
    sweep.add_argument("--simulate", action="store_true", help="simulate at every point of the grid")
    sweep.add_argument(
        "--csv", metavar="F", help="write rows as they finish (simulations go to F's name with .simulation)"
    )
    sweep.add_argument("--resume", action="store_true", help="keep the rows that are in the file already")
    sweep.add_argument("--overwrite", action="store_true", help="begin the file again")
    sweep.add_argument("--plot", metavar="F", help="draw theory as a line, simulations as points")
    sweep.add_argument("--x", default="", help="horizontal axis (default: the first grid)")
    sweep.add_argument("--y", default="", help="the vertical axis (default: alpha, where it is an unknown)")
    add_shown(sweep, "a column for this observable")


def _add_motion(commands: Any) -> None:
    """States that move in time, and instances that get one site more."""
    evolve = add_command(
        commands,
        "evolve",
        later("moving", "evolve"),
        "Run a theory forward in time: a declared system in time, or gradient descent on a problem.",
        "symcavity evolve reciprocal_network g=3/2 r=1/2 h=1/2 a=1:1/2,-1:1/2 --until 20 --plot network.pdf",
        'symcavity evolve reciprocal_network g=3/2 r=1/2 h=1/2 a=1 --until 9 --show "average(x[i, t]*x[i, s])" --json',
        "symcavity evolve chaotic_network g=2 a=1:1/2,-1:1/2 --until 6 --step 1/5",
        "symcavity evolve noisy_teacher alpha=2 gamma=1 t=1:1/2,-1:1/2 noise=0 --rate 1/10 --until 20",
        "symcavity evolve noisy_teacher alpha=2 gamma=1 t=1:1/2,-1:1/2 noise=0 --until 4 --step 1/20    # flow",
        "symcavity evolve my_system.py alpha=2 --until 10 --N 300 --seeds 8    # compared with instances",
        values=True,
        instances="one",
    )
    evolve.add_argument("--until", metavar="T", required=True, help="the last step, or time")
    evolve.add_argument("--step", metavar="DT", help="time step in continuous time, such as 1/20")
    evolve.add_argument("--paths", type=int, default=20000, help="paths to sample, where laws are not linear")
    evolve.add_argument("--seed", type=int, default=0, help="seed of the paths (default: 0)")
    evolve.add_argument("--dps", type=int, help="digits of an exact run (default: fractions, or double)")
    evolve.add_argument("--rate", metavar="R", help="learning rate of gradient descent on a convex problem")
    evolve.add_argument("--momentum", metavar="M", help="momentum of gradient descent on a convex problem")
    add_shown(evolve, "show only this observable")
    evolve.add_argument("--plot", metavar="F", help="draw the observables of one time")
    experiment = add_command(
        commands,
        "experiment",
        actions.experiment,
        "Add one feature, and one datum, to solved instances, and compare the change with the cavity method.",
        "symcavity experiment gardner alpha=0.5 --N 200 --seeds 50",
        "symcavity experiment soft_margin alpha=2 C=1 --N 200 --seeds 50 --plot cavity.pdf",
        values=True,
        instances="one",
    )
    experiment.add_argument("--plot", metavar="F", help="draw the new variables against their prediction")


def _add_reports(commands: Any) -> None:
    """Folders of results, and the geometry of points."""
    report = add_command(
        commands,
        "report",
        later("reporting", "make_report"),
        "Write the derivation, its checks, numbers, plots and a page of all of them into a folder.",
        "symcavity report gardner -o gardner",
        "symcavity report gardner kappa=1/2 -o gardner --sweep kappa=0:3:31",
        "symcavity report my_problem.py alpha=2 C=1 -o mine --N 100,200 --seeds 20",
        "symcavity report mine/report.json -o again             # the same once more",
        values=True,
        instances="several",
    )
    report.set_defaults(N="100")
    report.add_argument("-o", "--output", metavar="DIR", required=True, help="the folder")
    add_digits(report, 30, "digits of numbers and checks")
    add_shown(report, "report this observable too")
    report.add_argument("--sweep", action="append", default=[], metavar="name=grid", help="draw the theory over a grid")
    manifold = add_command(
        commands,
        "manifold",
        actions.manifold,
        "Measure the capacity, the effective radius and the effective dimension of manifolds of points.",
        "symcavity manifold points.npy                        # manifolds x points x dimensions",
        "symcavity manifold points.npy --kappa 0.1 --samples 16384 --csv geometry.csv",
        target=False,
    )
    manifold.add_argument("points", metavar="points.npy", help="an array of manifolds x points x dimensions")
    manifold.add_argument("--kappa", default="0", help="margin, in units of a center's distance")
    manifold.add_argument("--samples", type=int, default=4096, help="samples for each manifold (default: 4096)")
    manifold.add_argument("--seed", type=int, default=0, help="seed of the quasi-random sources (default: 0)")
    manifold.add_argument("--subtract-mean", action="store_true", help="center all data first")
    manifold.add_argument("--oblique", action="store_true", help="keep deviations along the center")
    manifold.add_argument("--json", action="store_true", help="print JSON")
    manifold.add_argument("--csv", metavar="F", help="write the table")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    from symcavity import __version__

    parser = Parser(
        prog="symcavity",
        description="Derive, print, evaluate and test cavity theories of high-dimensional learning problems.",
        epilog="examples:\n"
        "  symcavity list\n"
        "  symcavity derive gardner --latex gardner.tex\n"
        "  symcavity solve gardner kappa=1/2 --dps 50\n"
        "  symcavity simulate gardner alpha=1.2 --N 200 --seeds 20\n"
        "  symcavity check my_problem.py\n\n'symcavity COMMAND --help' explains a command by examples.",
        formatter_class=Help,
    )
    parser.add_argument("--version", action="version", version=f"symcavity {__version__}")
    add_loudness(parser, default=False)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_derivations(commands)
    _add_solve(commands)
    _add_instances(commands)
    _add_sweep(commands)
    _add_studies(commands)
    _add_motion(commands)
    _add_reports(commands)
    for name in _AS_DATA:
        commands.choices[name].add_argument("--json", action="store_true", help="print JSON")
    return parser
