"""Insert: a new site shifts the fields of its neighbors (verb one of the method)."""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Expr, S, Sum, Symbol

from symcavity.algebra.indexed import fresh_index
from symcavity.method.naming import at_zero
from symcavity.model.equations import Equation
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind
from symcavity.model.quantities import SiteQuantity, site_quantities
from symcavity.model.system import System
from symcavity.model.times import other_times
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.symbols import Emission, Perturbation, opened


@dataclass(frozen=True)
class Inserted:
    """What a site 0 of a kind adds to the fields of those that hear it.

    Attributes
    ----------
    kind : Kind
    shifts : dict
        For each random field that sums what the kind emits: the shift, at the hearer's canonical index.
    step : Step
    """

    kind: Kind
    shifts: dict[RandomField, Expr]
    step: Step


def insert(system: System, kind: Kind, make: StepMaker) -> Inserted:
    """Insert a site 0 with fresh couplings (paper, before equations 28 and 41).

    Each field that the site speaks into grows by ``coupling * emission``.
    """
    shifts = {g: _shift(g) for g in system.sent_by(kind)}
    states = list(dict.fromkeys(at_zero(q, kind) for g in shifts for q in g.states()))
    heard = system.laws[kind].fields
    common = [*system.globals, *(q.now for e in system.shared for q in site_quantities(e.lhs))]
    shared = (("shared", {"globals": common}),) if common else ()
    step = make(
        f"{kind.key}.insert",
        "insert",
        [Equation(Perturbation(g.as_sum), opened(shift)) for g, shift in shifts.items()],
        data={
            "kind": kind,
            "hearers": hearers(shifts),
            "senders": list(dict.fromkeys(f.sender for f in heard)),
            "bipartite": system.is_bipartite,
            "states": states,
            "couplings": list(dict.fromkeys([*map(fresh, shifts), *(at_zero(f.coupling, kind) for f in heard)])),
            "globals": common,
        },
        assumptions=(("independence", {}), *shared),
        rests_on=("sources",),
    )
    return Inserted(kind, shifts, step)


def hearers(shifts: dict[RandomField, Expr]) -> list[Kind]:
    """The kinds of sites that hear the inserted one."""
    return list(dict.fromkeys(g.hearer for g in shifts))


def fresh(g: RandomField) -> SiteQuantity:
    """The coupling of a hearer to the inserted site, at the hearer's canonical index."""
    return g.coupling.xreplace({g.sender_index: S.Zero})


def _shift(g: RandomField) -> Expr:
    """What the new site adds to a field: its emission, seen through a fresh coupling."""
    emission = Emission(at_zero(g.emission, g.sender))
    if not g.inner:
        return fresh(g) * emission
    moved = second_component(g)
    body = (fresh(g) * emission).xreplace(moved)
    return Sum(body, (moved[g.inner[0]], *g.inner[1:]))


def second_component(f: RandomField) -> dict[Symbol, Symbol]:
    """Another name for the index that a field keeps, where it has one: of a component, or the time."""
    if f.time is not None:
        return {f.time: other_times(f.time)[0]}
    limits = f.inner or f.components
    return {limits[0]: fresh_index(limits[0], {limits[0]})} if limits else {}


def second_site(kind: Kind, *fields: RandomField) -> Symbol:
    """Another index of the sites of a kind, which no component of the fields has."""
    inner = {index for f in fields for pair in second_component(f).items() for index in pair}
    return fresh_index(kind.index, {kind.index, *inner})
