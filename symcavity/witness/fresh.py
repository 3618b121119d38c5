"""A witness of what is said of fresh sites: many are drawn, with the moments that their couplings have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sympy import Add, Dummy, Expr, Mul, S, Sum, Symbol, expand, sqrt

from symcavity.algebra.compiled import compiled
from symcavity.algebra.precision import mp
from symcavity.evaluate.averages.quenched import SiteLaw
from symcavity.finite.drawn_labels import draw_label
from symcavity.finite.given_values import draw_quenched
from symcavity.model.averages import Average, Fresh, average
from symcavity.model.couplings import Coupling, correlation_of
from symcavity.model.kinds import Kind, N, kind_of_range
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities
from symcavity.record.derivation import Step, Verdict
from symcavity.witness.points import solved_point
from symcavity.witness.registry import numeric, witness

DRAWS, FAR, SEED = 1 << 16, 6.0, 20
IN_DOUBLE = 15


@witness("fresh")
def fresh(step: Step, dps: int) -> list[Verdict]:
    """Each claim against the average over drawn fresh sites, whose sums the witness reads as they are written."""
    theory = step.evidence["theory"]
    solution, _, where = solved_point(theory, min(dps, IN_DOUBLE))  # draws give a few digits
    if solution is None:
        return [Verdict(numeric(dps), None, where)]
    worst = 0.0
    for claim in step.claims:
        asked = theory.system.named.get(claim.lhs, claim.lhs)
        samples = _FreshSites(theory.system, solution).samples(asked)
        error = float(np.std(samples)) / np.sqrt(DRAWS)
        gap = abs(float(np.mean(samples)) - float(solution.number(claim.rhs)))
        worst = max(worst, gap / error if error > 0 else np.inf if gap > 0 else 0.0)
    detail = f"{mp.nstr(mp.mpf(worst), 3)} standard errors of {DRAWS} draws, {where}"
    return [Verdict("fresh sites that are drawn", bool(worst < FAR), detail)]


@dataclass
class _Term:
    """A sum over couplings, ``sum of own * x * sent``: what its hearer and its senders multiply it with.

    Attributes
    ----------
    total : int
        The place of the sum that it is a term of.
    x : SiteQuantity
    sender : Kind
    own, sent : Expr
        The factors of the hearer, with that of the variance, and of the sender.
    spread : Expr
        The sender's factor of ``N`` times the variance.
    means : tuple of (Expr, Expr)
        The mean of the whole, as a sum of factors of the hearer and averages over the senders.
    """

    total: int
    x: SiteQuantity
    sender: Kind
    own: Expr
    sent: Expr
    spread: Expr
    means: tuple[tuple[Expr, Expr], ...]


def _term(place: int, term: Expr, index: Symbol, sender: Kind) -> _Term:
    """Read one term of the body of a sum over a sender's index."""
    (x,) = site_quantities(term, Coupling)

    def parted(expr: Expr) -> tuple[Expr, Expr]:
        theirs = [q for q in site_quantities(expr) if index in q.indices]
        own, sent = expr.as_independent(*theirs, as_Add=False) if theirs else (expr, S.One)
        return own, sent.xreplace({index: sender.index})

    def at(moment: Expr) -> Expr:
        return moment.xreplace(dict(zip(x.family.ends, x.indices, strict=False)))

    own, sent = parted(term / x)
    mine, spread = parted(expand(N * at(x.family.variance)))
    means = (parted(expand(N * part) * term / x) for part in Add.make_args(expand(at(x.family.mean))) if part != 0)
    return _Term(place, x, sender, own * sqrt(mine), sent, spread, tuple(means))


class _FreshSites:
    """Fresh sites of one kind at a solved point.

    Parameters
    ----------
    system : System
    solution : Solution
        Gives averages over sites that took part.
    """

    def __init__(self, system: Any, solution: Any) -> None:
        self.system, self.solution = system, solution
        self.rng = np.random.default_rng(SEED)

    def samples(self, expr: Expr) -> np.ndarray:
        """An expression with the values at drawn sites in the place of its one average over fresh sites."""
        (node,) = (a for a in expr.atoms(Average) if isinstance(a.body, Fresh))
        mark = Dummy(real=True)
        return self._evaluated(expr.xreplace({node: mark}), {mark: self._at_sites(self.system.own(node.body.body))})

    def _evaluated(self, expr: Expr, known: dict[Any, np.ndarray]) -> np.ndarray:
        """An expression of quantities that have one value a site, and of averages and parameters that have one."""
        names = {key: Dummy(real=True) for key in known}
        expr = expr.xreplace({a: S(float(self.solution.number(a))) for a in expr.atoms(Average)}).xreplace(names)
        numbers = {s: S(float(self.solution.number(s))) for s in expr.free_symbols - set(names.values())}
        with np.errstate(all="ignore"):
            found = compiled(list(names.values()), expr.xreplace(numbers))(*known.values())
        return np.asarray(found, dtype=float) * np.ones(DRAWS)

    def _at_sites(self, body: Expr) -> np.ndarray:
        """An expression of one site at all drawn sites."""
        (kind,) = (k for k in self.system.kinds if any(k.index in q.free_symbols for q in self._outside(body)))
        law = self.system.laws[kind]
        labels = [q.family for q in site_quantities(body, Quenched) if q.family.given is not None]
        sums = {f.symbol: f.as_sum for f in law.fields}
        told = {u.given: next(e.rhs for e in law.equations if e.lhs == u.given).xreplace(sums) for u in labels}
        written = [s for e in (body, *told.values()) for s in e.atoms(Sum) if kind_of_range(s.limits[0])]
        totals = {total: Dummy("h", real=True) for total in dict.fromkeys(written)}
        known = self._quenched(kind)
        known |= dict(zip(totals.values(), self._fields(list(totals), known), strict=True))
        for label in labels:
            parameters = {s: float(self.solution.number(s)) for s in self.system.parameters}
            known[label.at_site()] = draw_label(label, told[label.given].xreplace(totals), known | parameters, self.rng)
        return self._evaluated(body.xreplace(totals), known)

    @staticmethod
    def _outside(body: Expr) -> set[Expr]:
        """The quantities of an expression with the indices that its sums leave free."""
        bound = {s: [lim[0] for lim in s.limits] for s in body.atoms(Sum)}
        inner = {q.xreplace(dict.fromkeys(ks, S.Zero)) for s, ks in bound.items() for q in site_quantities(s.function)}
        return inner | set(site_quantities(body.xreplace(dict.fromkeys(bound, S.One))))

    def _quenched(self, kind: Kind) -> dict[Any, np.ndarray]:
        """The parameters of the drawn sites, by their law at this point."""
        law = self.solution.given.laws.get(kind) or SiteLaw()
        weights = np.array([float(w) for w in law.weights])
        pick = self.rng.choice(len(weights), DRAWS, p=weights / weights.sum())
        out = {q.at_site(): np.array([float(p[k]) for p in law.points])[pick] for k, q in enumerate(law.names)}
        return out | {q.at_site(): draw_quenched(q, variable, DRAWS, self.rng) for q, variable in law.continuous}

    def _fields(self, totals: list[Sum], known: dict[Any, np.ndarray]) -> list[np.ndarray]:
        """The sums at the drawn sites: Gaussian, with the means and covariances that their couplings give."""
        terms: list[_Term] = []
        for place, total in enumerate(totals):
            ((index, *_),) = total.limits
            sender = kind_of_range(total.limits[0])
            assert sender is not None  # noqa: S101 - chosen so
            terms += [_term(place, term, index, sender) for term in Add.make_args(expand(total.function))]
        covariance = np.array([[self._covariance(a, b) for b in terms] for a in terms])
        values, vectors = np.linalg.eigh(covariance)
        noise = (vectors * np.sqrt(np.clip(values, 0, None))) @ self.rng.standard_normal((len(terms), DRAWS))
        fields = [np.zeros(DRAWS) for _ in totals]
        for term, sample in zip(terms, noise, strict=True):
            fields[term.total] = fields[term.total] + self._evaluated(term.own, known) * sample
            for own, sent in term.means:
                fields[term.total] = fields[term.total] + self._evaluated(own, known) * self._over(term.sender, sent)
        return fields

    def _covariance(self, a: _Term, b: _Term) -> float:
        same = a.x.family == b.x.family
        rho = S.One if same else correlation_of(a.x.family, b.x.family) if a.sender == b.sender else S.Zero
        return self._over(a.sender, Mul(rho, sqrt(a.spread * b.spread), a.sent, b.sent)) if rho != 0 else 0.0

    def _over(self, sender: Kind, body: Expr) -> float:
        """A sum over all senders, divided by N."""
        return float(self.solution.number(sender.ratio * average(body)))
