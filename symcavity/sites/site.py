"""The inserted site of one kind: its law solved, its fields' statistics, its averages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sympy import Expr, Heaviside, S, Symbol, sign

from symcavity.model.equations import Equation
from symcavity.model.kinds import Kind
from symcavity.model.laws import Law
from symcavity.model.quantities import SiteQuantity
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.symbols import DisorderAverage
from symcavity.sites.labels import LabelledEnsemble
from symcavity.sites.protocol import Ensemble, Heard, SiteProblem, Strategy


@dataclass(frozen=True)
class Site:
    """A site of one kind in the theory.

    Attributes
    ----------
    problem : SiteProblem
        Its law, with those self-couplings that do not vanish.
    strategy : Strategy
        How the law was solved.
    generic : Solved
        The solution with self-couplings as symbols.
    signs : mapping
        The signs of self-couplings that are proved, or that the law needs.
    covariance : mapping
        Covariances of the cavity fields, in order parameters and the site's quenched parameters.
    means : mapping
        The mean of each self-coupling; zero where the feedback is dropped.
    """

    problem: SiteProblem
    strategy: Strategy
    generic: Any
    signs: Mapping[Symbol, int]
    covariance: Mapping[tuple[Symbol, Symbol], Expr]
    means: Mapping[Symbol, Expr]

    @property
    def kind(self) -> Kind:
        """The kind of site."""
        return self.problem.kind

    @property
    def law(self) -> Law:
        """The declared law."""
        return self.problem.law

    @property
    def heard(self) -> tuple[Heard, ...]:
        """Its random fields."""
        return self.problem.heard

    @cached_property
    def solution(self) -> Any:
        """The states as functions of the fields, at the mean self-couplings."""
        return self.generic.at(self.means, self.covariance)

    @cached_property
    def ensemble(self) -> Ensemble:
        """The Gaussian ensemble of the site, its labels averaged."""
        labels = tuple(q for q in self.law.quenched() if q.given is not None)
        return LabelledEnsemble(self.at_labels, labels) if labels else self.at_labels

    @cached_property
    def at_labels(self) -> Any:
        """The Gaussian ensemble of the site at given labels."""
        return self.strategy.ensemble(self)

    def equations(self) -> list[Equation]:
        """The law of the inserted site, with cavity fields, self-couplings and sources."""
        return self.problem.equations()

    def sources(self) -> dict[SiteQuantity | None, tuple[Symbol, Symbol, Expr]]:
        """By what names a field's equation: its source, the field, and the field's factor there.

        Without a name the only field of states is meant, where all others are given.
        """
        plain, heard = self.problem.plain_sources(), self.problem.ordered()
        moving = [h for h in heard if h.declared.states()]
        named = [(h.carrier, h) for h in heard] + [(None, h) for h in moving if len(moving) == 1]
        return {name: (plain[h.source], h.eta, h.factor) for name, h in named}


def response_steps(site: Site, make: StepMaker, wanted: Sequence[Expr], after: str) -> list[Step]:
    """The averaged responses that the theory needs of a site, which rest on the step ``after``; none without a need."""
    zero = {site.kind.index: S.Zero}
    claims = [Equation(DisorderAverage(r.xreplace(zero)), site.ensemble.at_site(r).xreplace(zero)) for r in wanted]
    key = site.kind.key
    jumps = [h for h in jumping(site) if any(r.has(h.carrier) for r in wanted if h.carrier is not None)]
    data = {"kind": site.kind, "jumps": [h.carrier.xreplace(zero) for h in jumps if h.carrier is not None]}
    return [make(f"{key}.response", "response", claims, data=data, rests_on=(after,))] if claims else []


def jumping(site: Site) -> list[Heard]:
    """The fields of given emissions with which the law of a site jumps: by a sign, or as labels are drawn on them."""
    tests = [node.args[0] for e in site.law.equations for node in e.difference.atoms(sign, Heaviside)]
    tests += [node.args[0] for p in site.law.pairs for q in p.pair for node in q.atoms(sign, Heaviside)]
    tests += [q.given for q in site.law.quenched() if q.given is not None]
    given = [h for h in site.heard if not h.declared.states()]
    return [h for h in given if any(t.has(h.declared.symbol, *([h.carrier] if h.carrier else [])) for t in tests)]
