"""Implicit laws as functions with names: they are written out once, where they are defined, and named from there on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from symcavity.method.close import over_sites
from symcavity.method.named_laws import NamedAverages, integrates, named_averages
from symcavity.method.naming import at_zero
from symcavity.model.averages import SiteResponse
from symcavity.model.equations import Equation
from symcavity.record.derivation import Derivation, Step
from symcavity.record.symbols import AtStep, LabelSlope
from symcavity.sites.thermal.summed import weight_of


def with_named_laws(derivation: Derivation) -> Derivation:
    """Return the derivation with averages over implicit laws as averages of the functions that the laws define."""
    theory = next((s.evidence["theory"] for s in derivation.steps if "theory" in s.evidence), None)
    if theory is None or not any(step.rule in ("implicit", "fluctuation", "thermal_sum") for step in derivation.steps):
        return derivation
    averages = named_averages(theory.inserted)
    if averages is None:
        return derivation
    laws = _Laws(theory, averages)
    laws.identity = next((s.claims[1] for s in derivation.steps if s.rule == "work_identity"), None)
    steps = [new for step in derivation.steps if (new := laws.step(step)) is not None]
    return replace(derivation, steps=tuple(steps), results=tuple(map(laws.claim, derivation.results)))


class _Laws:
    """What each claim is with named laws."""

    def __init__(self, theory: Any, averages: NamedAverages) -> None:
        self.theory, self.averages = theory, averages
        self.identity: Equation | None = None
        self.equations = averages.closed(theory)

    def claim(self, claim: Any) -> Any:
        """A closed equation with named laws."""
        return self.equations.get(claim, claim)

    def step(self, step: Step) -> Step | None:
        """A step with named laws; None for one that says nothing then."""
        kind: Any = step.data.get("kind")
        law = self.averages.laws.get(kind) if kind is not None else None
        if law is not None and step.rule == "implicit":
            own = law.defined(kind)
            others = [c for c in step.claims if c.lhs not in {e.lhs for e in own}]
            return replace(step, claims=(*others, *own), data={**step.data, **law.told(kind)})
        if law is not None and step.rule in ("fluctuation", "thermal_sum"):
            return replace(step, claims=(*step.claims, *law.defined(kind)), data={**step.data, **law.told(kind)})
        if not any(map(integrates, step.claims)):
            return step
        if step.rule in ("site_average", "elimination"):
            return None  # with names they repeat the closed equations
        if step.rule == "consistency" and self.identity is not None:
            return replace(step, claims=(Equation(*map(self.averages.of, (self.identity.lhs, self.identity.rhs))),))
        if law is not None and step.rule == "response":
            claims = tuple(self._response(claim, law, kind) for claim in step.claims)
            drawn = law.told(kind)["labels"] if any(c.rhs.has(LabelSlope) for c in claims) else []
            return replace(step, claims=claims, data={**step.data, "drawn": drawn} | ({"jumps": []} if drawn else {}))
        if step.rule == "stability_average":
            return replace(step, claims=tuple(self._average(claim) for claim in step.claims))
        if step.rule == "free_energy":
            later = [c for c in step.claims if integrates(c)]
            weighed = [weight_of(law.site.problem) for law in self.averages.laws.values() if law.is_thermal]
            integral = {"field": weighed[0].is_field, "states": [w.state for w in weighed]}
            left = tuple(c for c in step.claims if c not in later)
            return replace(step, claims=left, data={**step.data, "left": [c.lhs for c in later], **integral})
        if step.rule == "state_evolution":
            later = [c for c in step.claims if integrates(c)]
            left = tuple(c for c in step.claims if c not in later)
            said = [c.lhs for c in later if isinstance(c.lhs, AtStep)]
            data = {**step.data, "likewise": said, "conditions": len(said) < len(later)}
            return replace(step, claims=left, data=data)
        return replace(step, claims=tuple(map(self.claim, step.claims)))

    def _response(self, claim: Equation, law: Any, kind: Any) -> Equation:
        found = {at_zero(r, kind): r for m in self.theory.order_parameters.values() for r in m.atoms(SiteResponse)}
        (here,) = claim.lhs.args
        return Equation(claim.lhs, law.at_site(found[here])) if here in found else claim  # at any site

    def _average(self, claim: Equation) -> Equation:
        if not integrates(claim):
            return claim
        nodes = {node: self.averages.of(node) for node in over_sites(claim.lhs)}
        return Equation(claim.lhs, claim.lhs.xreplace(nodes))
