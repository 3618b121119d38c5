"""Certificates: boxes in which the closed equations are proved to have one solution (Krawczyk's step)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flint import arb, arb_mat, ctx
from sympy import Expr, Float, Rational, Symbol

from symcavity.errors import NotConverged, UnsupportedLaw
from symcavity.evaluate.averages.gaussian_laws import absorb, gaussian_laws
from symcavity.evaluate.certificates.enclosed import Undecided
from symcavity.evaluate.certificates.enclosure import Enclosure
from symcavity.evaluate.certificates.jets import Jet
from symcavity.evaluate.constants import BITS
from symcavity.evaluate.given.values import Given, Task
from symcavity.evaluate.solutions.solution import Solution
from symcavity.evaluate.watch import tick

BEYOND, SPARE = 14, 30  # bits beyond the requested digits, and beyond these to calculate with
COARSE = 24  # bits of derivatives
WIDER = (2, 8, 64, 4096)  # radii that are tried, compared with the step that Newton's method would make
ROUNDS = 4


def certify(solution: Solution) -> dict[Symbol, Any]:
    """Enclose a solution: in the box of these balls the closed equations have exactly one solution, proved.

    Parameters
    ----------
    solution : Solution

    Returns
    -------
    dict
        Every unknown as a python-flint ball (``arb``), and the parameters that were solved for.

    Raises
    ------
    UnsupportedLaw
        For averages over convex sets, polyhedra, several fields or several densities; over a field, without a closed
        form, together with a density; for limits: unknowns that are infinite, or states that vanish.
    NotConverged
        If the step does not prove a solution here.

    Notes
    -----
    Krawczyk (Computing 4, 187, 1969): if ``x - Y f(x) + (1 - Y f'(X))(X - x)`` lies inside of X, then X holds exactly
    one root of f.  Values are exact: rational numbers are enclosed, and a float stands for the binary number that it
    is.  The tails of integrals are bounded as far again as where they fall below the precision; beyond, they are taken
    to go on falling as they do there.
    """
    task, given = solution.task, solution.given
    balls, equations = enclosable(task, given)
    names = [*task.unknowns, *given.solve_for]
    values = [solution.values[s] for s in names]
    if solution.is_limit:
        raise UnsupportedLaw("A limit is not enclosed: an unknown is infinite, or states vanish.", "other values")
    before = ctx.prec
    try:
        ctx.prec = balls.bits + SPARE
        return _enclosed(balls, equations, names, values, given.exact)
    finally:
        ctx.prec = before


def enclosable(task: Task, given: Given) -> tuple[Enclosure, list[Any]]:
    """Return what encloses the closed equations at given values, and these equations.

    Gaussian parameters are averaged over in closed form where there is one.

    Raises
    ------
    UnsupportedLaw
        As :func:`certify`.
    """
    laws = {kind: replace(law, continuous=_exact(law.continuous)) for kind, law in given.laws.items()}
    gaussian = {q: v for law in laws.values() for q, v in gaussian_laws(law.continuous).items()}
    equations = [absorb(e.difference, gaussian).xreplace(task.units) for e in task.equations]
    balls = Enclosure(laws, int(given.dps * BITS) + BEYOND)
    for e in equations:
        balls.check(e)
    return balls, equations


def _exact(continuous: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Laws whose floats are the binary numbers that they are: SymPy would round what it makes of them."""
    floats = [(q, v, v.atoms(Float) if isinstance(v, Expr) else ()) for q, v in continuous]
    return [(q, v.xreplace({f: Rational(f) for f in found}) if found else v) for q, v, found in floats]


def _enclosed(
    balls: Enclosure, equations: list[Any], names: list[Symbol], values: list[Any], exact: Any
) -> dict[Symbol, Any]:
    count = len(names)
    fixed = {s: Jet(balls.number(v)) for s, v in exact.items()}
    place = [balls.number(v).mid() for v in values]

    def values_at(place: list[Any]) -> Any:
        """The equations at one place, sharply."""
        tick("the certificate")
        balls.bits = bits
        env = fixed | {s: Jet(v) for s, v in zip(names, place, strict=True)}
        return arb_mat([[balls(e, env).v] for e in equations])

    def slopes_on(box: list[Any]) -> Any:
        """Their derivatives on a box: a step needs few digits of them."""
        tick("the certificate")
        balls.bits = COARSE
        unit = [[arb(int(k == n)) for k in range(count)] for n in range(count)]
        env = fixed | {s: Jet(v, d) for s, v, d in zip(names, box, unit, strict=True)}
        found = [balls(e, env) for e in equations]
        return arb_mat([[*f.d, *[arb(0)] * (count - len(f.d))] for f in found])

    bits = balls.bits
    inverse = _inverse(slopes_on(place))
    least = arb(2) ** -bits
    for _ in range(ROUNDS):  # the digits of the solution, and then those of the certificate
        step = inverse * values_at(place)
        if all(abs(step[k, 0]) < least * (abs(x) + least) for k, x in enumerate(place)):
            break
        place = [(x - step[k, 0]).mid() for k, x in enumerate(place)]
    else:
        step = inverse * values_at(place)
    for factor in WIDER:
        radii = [factor * (abs(step[k, 0]).upper() + least * (abs(x) + least)) for k, x in enumerate(place)]
        box = [arb(x, r.upper()) for x, r in zip(place, radii, strict=True)]
        try:
            jacobian = slopes_on(box)
        except Undecided:
            break
        unit = arb_mat([[int(k == n) for k in range(count)] for n in range(count)])
        offset = arb_mat([[b - x] for b, x in zip(box, place, strict=True)])
        image = arb_mat([[x] for x in place]) - step + (unit - inverse * jacobian) * offset
        if all(b.contains_interior(image[k, 0]) for k, b in enumerate(box)):
            return {s: image[k, 0] for k, s in enumerate(names)}
    raise NotConverged(
        "The solution was not certified: no box around it is mapped into itself.",
        dict(zip(names, map(str, place), strict=True)),
        hint="more digits; parameters that are not at the edge of their range",
    )


def _inverse(slope: Any) -> Any:
    """An approximate inverse of the Jacobian at the middle of its balls."""
    try:
        return arb_mat(slope.mid()).inv().mid()
    except ZeroDivisionError:
        raise NotConverged("The equations are degenerate at the solution.", None) from None
