"""Look for the rescaling of the datum states that makes the naive analysis right.

The naive mean field differs from the cavity theory in one number a site: the self-coupling of the feature
side.  If that number can be absorbed by rescaling the datum states, while the rest of the declared law
stays as it is, the naive analysis gives the same load, norm and states (paper, section 2.7, equation 53).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from sympy import Dummy, Expr, Symbol, cancel

from symcavity.algebra.nonzero import differs
from symcavity.method.sources import source_of
from symcavity.model.couplings import Coupling, correlation_of
from symcavity.model.equations import Equation
from symcavity.model.kinds import DATUM, FEATURE
from symcavity.model.laws import Law
from symcavity.model.quantities import Field, Quenched, SiteQuantity, Variable, site_quantities
from symcavity.model.system import System
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker

FACTOR = Symbol("A", positive=True)


@dataclass(frozen=True)
class Symmetry:
    """The rescaling that was found, or the reason why there is none; truthy if it was found.

    Attributes
    ----------
    found : bool
    scaled : tuple of SiteQuantity
        Datum variables that are divided by the factor A.
    feature_scaled : tuple of SiteQuantity
        Feature variables (multipliers) that are divided by A as well.
    obstacle : str
        The name of what breaks it; empty where there is a symmetry.
    values : dict
        What the obstacle is about.
    offending : object
        The equation, condition or quenched parameter that breaks it.
    """

    found: bool
    scaled: tuple[SiteQuantity, ...] = ()
    feature_scaled: tuple[SiteQuantity, ...] = ()
    obstacle: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    offending: Any = None

    def __bool__(self) -> bool:
        return self.found


def _broken_by(obstacle: str, offending: Any = None, **values: Any) -> Symmetry:
    return Symmetry(False, obstacle=obstacle, values=values, offending=offending)


def find_symmetry(system: System) -> Symmetry:
    """Find the rescaling symmetry of a system, or say what breaks it."""
    if not _is_looked_for(system):
        return _broken_by("not_bipartite")
    emitted = [q for f in system.feature.fields for q in f.states()]
    for f in system.feature.fields:
        if not _homogeneous(f.emission, dict.fromkeys(f.states(), 1), 1):
            return _broken_by("datum_emission", f.emission, emission=f.emission)
    datum = _scaling(system.datum, emitted, system)
    if isinstance(datum, Symmetry):
        return datum
    feature = _feature_side(system)
    if isinstance(feature, Symmetry):
        return feature
    return Symmetry(
        True,
        tuple(q for q, weight in datum.items() if weight),
        tuple(q for q, weight in feature.items() if weight),
    )


def _scaling(law: Law, emitted: Sequence[SiteQuantity], system: System) -> dict[SiteQuantity, int] | Symmetry:
    """Weights 0 or 1 for the variables of a datum: emitted states scale, fields do not."""
    fields = [q for q in law.unknowns if isinstance(q.family, Field)]  # of sums, whose names do not scale either
    free = [q for q in law.unknowns if q not in emitted and q not in fields]
    conditions = [parts[law.kind] for parts in system.global_conditions if law.kind in parts]
    broken: list[list[Any]] = []
    known: dict[Any, bool] = {}
    for choice in product((0, 1), repeat=len(free)):
        weights = {**dict.fromkeys(fields, 0), **dict.fromkeys(emitted, 1), **dict(zip(free, choice, strict=True))}
        found = _broken(law, weights, conditions, known)
        if not found:
            return weights
        broken.append(found)

    def cost(found: list[Any]) -> tuple[int, int]:  # what ties a message to other variables is no obstacle: they follow
        return len(found), sum(_expression(b).has(*emitted) for b in found)

    worst = min(broken, key=cost)[0]
    shown = worst.xreplace({f.symbol: f.as_sum for f in law.fields})
    obstacle = "datum_condition" if worst in conditions else "datum_law"
    return _broken_by(obstacle, shown, states=list(emitted), kind=law.kind, equation=shown)


def _broken(
    law: Law, weights: dict[SiteQuantity, int], conditions: Sequence[Expr], known: dict[Any, bool]
) -> list[Any]:
    """The equations and conditions that the weights do not leave as they are.

    What is ``known`` of one of them holds for all weights of variables that it does not hold: there are many choices.
    """

    def kept(expr: Expr) -> bool:
        own = {q: weight for q, weight in weights.items() if expr.has(q)}
        key = expr, tuple(own.items())
        if key not in known:
            known[key] = any(_homogeneous(expr, own, power) for power in (0, 1))
        return known[key]

    found: list[Any] = [e for e in law.equations if not kept(e.difference)]
    found += [member for pair in law.pairs for member in pair.pair if not kept(member)]
    return found + [body for body in conditions if not kept(body)]


def _expression(entry: Any) -> Expr:
    """What an equation or a condition is about."""
    return entry.difference if isinstance(entry, Equation) else entry


def _homogeneous(expr: Expr, weights: dict[SiteQuantity, int], power: int) -> bool:
    """Whether an expression takes the factor A**power when each variable takes A**weight."""
    factor = Dummy("A", positive=True)
    gap = expr.xreplace({q: factor * q for q, weight in weights.items() if weight}) - factor**power * expr
    return not differs(gap) and bool(cancel(gap.expand()) == 0)


def _tied(one: Coupling, other: Coupling) -> bool:
    """Whether couplings are the same or correlated."""
    return one == other or correlation_of(one, other) != 0


def _feature_side(system: System) -> dict[SiteQuantity, int] | Symmetry:
    """Check that the states respond to the field by one common factor, site by site."""
    law = system.feature
    states = [q for f in system.datum.fields for q in f.states()]
    multipliers = [q for q in law.unknowns if q not in states]
    for f in system.datum.fields:  # of given emissions, such as a teacher's weights, something comes back as well
        back = f.states() or any(_tied(f.coupling.family, g.coupling.family) for g in law.fields)
        if back and not _homogeneous(f.emission, dict.fromkeys(f.states(), 1), 1):
            return _broken_by("feature_emission", f.emission, emission=f.emission)
    varying = sorted(
        {
            q
            for f in (*system.feature.fields, *system.datum.fields)
            for q in site_quantities(f.coupling.family.variance, Quenched)
            if FEATURE in q.site
        },
        key=str,
    )
    if varying:
        return _broken_by("variance", varying[0], parameter=varying[0])
    echoes: dict[Expr, Equation] = {}  # the weight of an echo against the curvature of the state that hears it
    for equation in law.equations:
        fields = [f.symbol for f in law.fields if equation.difference.has(f.symbol)]
        marks = {q: Dummy() for q in (*states, *multipliers)}
        expr = equation.difference.xreplace(marks)
        carries = [marks[q] for q in states if expr.has(marks[q])]
        for mark in carries:
            slope = expr.diff(mark)
            if fields and slope.has(*marks.values()):
                return _broken_by("not_linear", equation, equation=equation)
            for f in (f for f in law.fields if f.symbol in fields):
                echoes[cancel(law.coefficient(f) * f.coupling.family.variance / slope)] = equation
            quenched = site_quantities(slope, Quenched)
            if fields and quenched:
                return _broken_by("response", quenched[0], parameter=quenched[0])
        rest = equation.difference.xreplace(dict.fromkeys(states, 0)) if fields else equation.difference
        weights = dict.fromkeys((*multipliers, *fields), 1)
        if fields and not _homogeneous(rest, weights, 1):
            said = equation.xreplace({f.symbol: f.as_sum for f in law.fields})
            return _broken_by("feature_law", said, equation=said)
        still = equation.difference.xreplace(dict.fromkeys(states, 0))
        if carries and not fields and not _homogeneous(still, weights, 1):  # one state is another one, shifted
            return _broken_by("feature_law", equation, equation=equation)
        if fields and any(
            law.coefficient(f).has(Quenched) or site_quantities(law.coefficient(f), Quenched) for f in law.fields
        ):
            quenched = site_quantities(law.coefficient(law.fields[0]), Quenched)
            return _broken_by("factor", quenched[0], parameter=quenched[0])
    if len(echoes) > 1:
        first, *_, last = echoes.values()
        return _broken_by("different_responses", last, first=first, last=last)
    for pair in law.pairs:
        for member in pair.pair:
            here = site_quantities(member, Variable, Field)
            mixed = any(q in multipliers for q in here) and any(q in states for q in here)
            if mixed or not any(_homogeneous(member, dict.fromkeys(multipliers, 1), power) for power in (0, 1)):
                return _broken_by("pair", member, member=member)
    return dict.fromkeys(multipliers, 1)


def _is_looked_for(system: System) -> bool:
    return system.is_bipartite and set(system.laws) == {FEATURE, DATUM}


def symmetry_steps(system: System, make: StepMaker) -> list[Step]:
    """Whether a rescaling makes the naive analysis right; nothing where it is not looked for."""
    if not _is_looked_for(system):
        return []
    found, make = find_symmetry(system), make.within("Symmetry")
    return [
        make(
            "symmetry",
            "symmetry",
            generalised(system) if found else (),
            data={
                "found": bool(found), "obstacle": found.obstacle, "values": found.values,
                "factor": FACTOR, "scaled": [*found.scaled, *found.feature_scaled],
            },
        )
    ]


def generalised(system: System) -> list[Equation]:
    """The laws of a feature with a factor in front of what it hears, which the rescaled states absorb."""
    law = system.feature
    rule = {f.symbol: f.as_sum for f in law.fields}
    still = dict.fromkeys((q for f in system.datum.fields for q in f.states()), 0)
    out: dict[Equation, Expr] = {}
    for f in law.fields:
        carrier = law.carrier(f)
        forces = -carrier.difference.xreplace(still)
        whole = Equation((carrier.difference + forces).expand().xreplace(rule), forces.xreplace(rule))
        out[whole] = out.get(whole, whole.rhs) + source_of(system, f).at_site()
    return [Equation(whole.lhs, FACTOR * heard) for whole, heard in out.items()]
