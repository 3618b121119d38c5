"""A system in steps beside a second one that differs from it by little: what becomes of a small change of all states.

The change of a state is a state of its own. It moves by the slopes of the laws, and is heard through the same
couplings: ``x[i, t + 1] = Sum(J[i, j]*phi(x[j, t]), (j, 1, N))`` has beside it
``d[i, t + 1] = Sum(J[i, j]*phi'(x[j, t])*d[j, t], (j, 1, N))``. Both together are a system as any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sympy import Add, Dummy, Expr, S, Sum

from symcavity.algebra.hinges import finite_slope
from symcavity.model.averages import Average
from symcavity.model.equations import Equation
from symcavity.model.quantities import Quenched, SharedState, SiteQuantity, Variable, site_quantities
from symcavity.model.system import System


@dataclass(frozen=True)
class Nearby:
    """A system with the small changes of its states.

    Attributes
    ----------
    system : System
    changes : tuple of SiteQuantity
        The change of each state of a site.
    beginnings : tuple of Quenched
        What the changes are at the beginning, one for each kind of site whose states have one.
    """

    system: System
    changes: tuple[SiteQuantity, ...]
    beginnings: tuple[Quenched, ...]


def nearby(system: System) -> Nearby:
    """A system in steps, and what becomes of a small change of all states.

    Raises
    ------
    UnsupportedLaw
        If a law jumps: small changes do not stay small.
    """
    equations = system.typed[0]
    exprs = [e.difference for e in equations]
    taken = {q.family.name for e in exprs for q in site_quantities(e)} | {str(s) for e in exprs for s in e.free_symbols}
    moving = {q.family for e in exprs for q in _states(e)}
    made = {f: f.renamed(_free(f"change_of_{f.name}", taken)) for f in sorted(moving, key=lambda f: f.name)}
    kinds = dict.fromkeys(kind for f in made for kind in f.slots)
    first = {kind: Quenched(_free(f"first_{kind.index.name}", taken), kind.index) for kind in kinds}

    def change(q: SiteQuantity) -> SiteQuantity:
        return q.func(made[q.family], *q.args[1:])

    found = [Equation(change(e.lhs), _change(e.rhs, change, e)) for e in equations if _states(e.lhs)]
    begin = [
        Equation(change(e.lhs), first[e.lhs.family.slots[0]][e.lhs.args[1]] if e.lhs.site else S.Zero)
        for e in system.initial
    ]
    both = System([*equations, *found], system.stated, initial=[*system.initial, *begin])
    used = tuple(q for q in first.values() if any(q.at_site() in site_quantities(e.rhs) for e in begin))
    return Nearby(both, tuple(f.at_site() for f in made.values() if f.slots), used)


def _states(expr: Expr) -> list[SiteQuantity]:
    return [q for q in site_quantities(expr, Variable, SharedState) if q.time is not None]


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _change(expr: Expr, change: Any, equation: Equation) -> Expr:
    """The first-order change of an expression, sums and averages term by term."""
    every = expr.atoms(Sum, Average)
    parts = [p for p in every if not any(p in q.args[0].atoms(Sum, Average) for q in every)]  # the outermost
    marks = {p: Dummy(real=True) for p in parts}
    outer = expr.xreplace(marks)
    out = [_slope(outer, mark, equation) * p.func(_change(p.args[0], change, equation), *p.args[1:])
           for p, mark in marks.items()]
    out += [_slope(outer, q, equation) * change(q) for q in _states(outer)]
    return Add(*out).xreplace({mark: p for p, mark in marks.items()})


def _slope(expr: Expr, variable: Any, equation: Equation) -> Expr:
    said = f"{equation} jumps: changes do not stay small, however small they are, and no exponent says how they grow."
    return finite_slope(expr, variable, said, "laws without jumps")
