"""The law of a site whose stationary states are Gaussian: one rate, linear in its state, fields and noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sympy import Add, Expr, S, Symbol

from symcavity.algebra.flow import Rate
from symcavity.algebra.precision import mp
from symcavity.errors import NotConverged, UnsupportedLaw
from symcavity.evaluate.averages.compiler import to_mpf
from symcavity.evaluate.moving.hermite import Profile, common
from symcavity.evaluate.moving.plan import MovingPlan
from symcavity.evaluate.moving.values import read_run_values
from symcavity.model.noise import Noise
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities
from symcavity.model.site_sums import is_affine

SUPPORTED = (
    "one state with a rate, linear in it and in fields; functions of it at once, linear where they come back; noise"
)
SAMPLED = 'theory.stationary(values, until=20, step="1/10") samples it; theory.evolve(values, until=...)'
X = Symbol("x", real=True)


@dataclass(frozen=True)
class LawWithoutMemory:
    """The law of a site without memory.

    Attributes
    ----------
    state : SiteQuantity
    rate, mean : number
        How fast it forgets, and what it relaxes to without fields.
    velocity : number
        Half of the variance of its noise: minus the slope of the covariance at lag zero.
    pairs : list of (number, Profile, Profile)
        The covariance of its fields: weights, and functions of the state at two times.
    known : dict
        Other states, as functions of this one.
    echoes : list of (number, Expr, Expr)
        The feedback in its rate: factors of mean responses, the responses, and the messages, in this state.
    """

    state: SiteQuantity
    rate: Any
    mean: Any
    velocity: Any
    pairs: list[tuple[Any, Profile, Profile]]
    known: dict[SiteQuantity, Expr]
    echoes: list[tuple[Any, Expr, Expr]]

    def series(self, variance: Any, dps: int) -> list[Any]:
        """The covariance of the fields as a power series in the correlation of the state at two times."""
        total: list[Any] = []
        for weight, f, g in self.pairs:
            one, other = common(*(h.coefficients(self.mean, variance, dps) for h in (f, g)))
            found = [weight * mp.mpf(a) * mp.mpf(b) for a, b in zip(one, other, strict=True)]
            size = max(len(total), len(found))
            total, found = (e + [mp.mpf(0)] * (size - len(e)) for e in (total, found))
            total = [a + b for a, b in zip(total, found, strict=True)]
        return total


def read_law(theory: Any, values: Any, dps: int) -> tuple[LawWithoutMemory, MovingPlan]:
    """The law of a theory whose stationary state can be found.

    Raises
    ------
    UnsupportedLaw
        If it is of another form.
    """
    system = theory.system
    plan = MovingPlan(theory, read_run_values(system, _without_beginning(system, values), dps))
    if not system.flowing:
        raise _not("the states move in steps", SAMPLED.replace(', step="1/10"', ""))
    if len(system.laws) != 1 or any(not isinstance(q, Noise) for q in system.drawn_anew):
        raise _not("there are several kinds of sites, or numbers that are drawn in steps")
    if plan.shared:
        raise _not(f"all sites share {next(iter(plan.shared))}")
    rows = {q: row for q, row in plan.rows.items() if isinstance(row.update.equation.lhs, Rate)}
    if len(rows) != 1:
        raise _not(f"{len(rows)} states have rates")
    ((x, row),) = rows.items()
    known: dict[SiteQuantity, Expr] = {}
    for q in plan.motion.order:
        if q in plan.rows and q != x:
            if plan.rows[q].fields or q.time is None:
                raise _not(f"{q} hears a field, or keeps still")
            known[q] = plan.rows[q].rhs.xreplace(known)
    rhs = row.rhs.xreplace(known)
    noises = site_quantities(rhs, Noise)
    if site_quantities(rhs, Quenched) or not is_affine(rhs, [x, *noises]):
        raise _not(f"{row.update.equation} is not linear, or holds quenched parameters")
    with mp.workdps(dps + 20):
        rate = to_mpf(-rhs.diff(x))
        if not rate > 0:
            raise NotConverged(f"Without input {x} does not come to rest, so that there is no stationary state.")
        mean = to_mpf(rhs.xreplace(dict.fromkeys([x, *noises], S.Zero))) / rate
        sizes = (to_mpf(rhs.diff(q)) ** 2 * to_mpf(plan.values.put_into(q.family.variance)) for q in noises)
        velocity = mp.fsum(sizes) / 2
        pairs, echoes = _pairs(plan, row.fields, known, x), _echoes(plan, row.fields, known, x)
    return LawWithoutMemory(x, rate, mean, velocity, pairs, known, echoes), plan


def _without_beginning(system: Any, values: Any) -> Any:
    """The values, with any number for quenched parameters of the beginning: it is forgotten."""
    if not isinstance(values, Mapping):
        return values
    named = {str(getattr(key, "family", key)) for key in values}
    laws = [e.difference for law in system.laws.values() for e in law.equations]
    here = {q.family for e in laws for q in site_quantities(e, Quenched)}
    return {**{q: 0 for q in system.quenched if q.law is None and q not in here and q.name not in named}, **values}


def _pairs(plan: MovingPlan, fields: Any, known: Any, x: SiteQuantity) -> list[tuple[Any, Profile, Profile]]:
    out = []
    for f, one in fields:
        for g, other in fields:
            for term in plan.covariances[f, g]:
                if term.kernel is None or site_quantities(Add(term.factor, one, other)):
                    raise _not(f"the variance of {f.as_sum} holds quenched parameters")
                _, body = plan.kernels[term.kernel.base]
                parts = plan.split(body)
                if parts is None:
                    raise _not(f"{body} is not a product")
                second = parts[1].xreplace({plan.second: plan.time})
                profiles = [_profile(part, known, x) for part in (parts[0], second)]
                out.append((to_mpf(term.factor * one * other), *profiles))
    return out


def _echoes(plan: MovingPlan, fields: Any, known: Any, x: SiteQuantity) -> list[tuple[Any, Expr, Expr]]:
    out = []
    for f, one in fields:
        for echo in plan.echoes[f]:
            for term in echo.terms:
                r = plan.responses.get(term.kernel.base)
                if r is None or site_quantities(Add(term.factor, one, r.weight)):
                    raise _not(f"what comes back to {f.as_sum} holds more than a mean response")
                answer, sent = (e.xreplace(known).xreplace({x: X}) for e in (r.state.now, echo.emission))
                out.append((to_mpf(term.factor * one * r.weight), answer, sent))
    return out


def _profile(expr: Expr, known: Any, x: SiteQuantity) -> Profile:
    body = expr.xreplace(known).xreplace({x: X})
    if site_quantities(body):
        raise _not(f"{expr} holds more than {x}")
    return Profile(body, X)


def _not(why: str, hint: str = SAMPLED) -> UnsupportedLaw:
    return UnsupportedLaw(f"No closed form of the stationary state is known: {why}.", SUPPORTED, hint)
