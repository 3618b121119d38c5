"""The record of the scatter of the minimum between instances: share, close, coincide."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sympy import Expr, S

from symcavity.method.fluctuations import scatter, shared_overlaps, single_site_minima
from symcavity.method.given_emissions import Curvature, curvatures
from symcavity.method.minimum import in_fields, names_of_minima
from symcavity.method.naming import at_zero
from symcavity.method.theory import Theory
from symcavity.model.equations import Equation
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Variable
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.order_parameters import OrderParameter

SECTION = "How the minimum scatters between instances"


@dataclass(frozen=True)
class Fluctuations:
    """The variance of the minimum of a convex problem between instances, as a formula.

    Attributes
    ----------
    theory : Theory
    minima : dict
        What a site of each kind adds to the minimum, in its states and fields.
    overlaps : Expr
        The overlaps of messages times those of emissions, summed over the couplings, per feature.
    given : tuple of Curvature
        What emissions that are given feel of the minima of their neighbors, by the names of these.
    """

    theory: Theory
    minima: dict[Kind, Expr]
    overlaps: Expr

    @cached_property
    def given(self) -> tuple[Curvature, ...]:
        """The curvatures that emissions which are given feel; raises UnsupportedLaw as :func:`curvatures`."""
        return tuple(curvatures(self.theory, self.names))

    @cached_property
    def names(self) -> dict[Kind, Any]:
        """The name of what a site of each kind adds, as in the minimum of the problem."""
        _, letters = names_of_minima(self.theory)
        return {kind: Variable(letters[kind], kind.index).at_site() for kind, m in self.minima.items() if m != 0}

    @cached_property
    def bends(self) -> tuple[OrderParameter, ...]:
        """The names of the curvatures."""
        taken = {*map(str, self.theory.system.parameters), *self.theory.system.variables}
        letter = next(name for name in ("K", "B", "K_E") if name not in taken)
        several = len(self.given) > 1
        return tuple(OrderParameter(f"{letter}_{n}" if several else letter) for n in range(1, len(self.given) + 1))

    @property
    def bent(self) -> list[tuple[Kind, Expr]]:
        """What given emissions add to the minima of the kinds that send them."""
        return [(c.sender, bend * c.emissions / 2) for c, bend in zip(self.given, self.bends, strict=True)]

    @property
    def symbol(self) -> OrderParameter:
        """The variance."""
        taken = {str(p) for p in self.theory.system.parameters} | set(self.theory.system.variables)
        return OrderParameter(next(name for name in ("V", "V_E") if name not in taken), positive=True)

    @property
    def equation(self) -> Equation:
        """The variance between instances of the minimum, over N, by the minima of single sites."""
        every = {kind: self.names.get(kind, S.Zero) for kind in self.minima}
        return Equation(self.symbol, scatter(every, self.bent) - self.theory.observable(self.overlaps))

    def curvatures(self) -> list[Equation]:
        """The curvatures by the minima of single sites."""
        known = {meaning: symbol for symbol, meaning in self.theory.order_parameters.items()}
        return [Equation(bend, c.value.xreplace(known)) for c, bend in zip(self.given, self.bends, strict=True)]


def fluctuations_of(theory: Theory) -> Fluctuations:
    """The scatter of the minimum; raises UnsupportedLaw as :func:`variance_of_minimum`."""
    found = Fluctuations(theory, single_site_minima(theory), shared_overlaps(theory))
    _ = found.given
    return found


def fluctuation_steps(found: Fluctuations) -> list[Step]:
    """What follows of two copies that share their couplings in part, after the record of the theory."""
    theory = found.theory
    make = StepMaker(theory.system.source, theory.is_naive, SECTION)
    quenched = [q.at_site() for q in theory.system.quenched]
    minima = [
        at_zero(Equation(name, in_fields(theory.inserted[kind], found.minima[kind])), kind)
        for kind, name in found.names.items()
    ]
    steps = [
        share_step(theory, make, "fluctuations.share"),
        make(
            "fluctuations.minima",
            "site_minima",
            minima,
            assumptions=(("independence", {}),),
            rests_on=tuple(f"{kind.key}.effective_law" for kind in theory.inserted),
        ),
        *_bent(found, make),
        make(
            "fluctuations.coincide",
            "copies_coincide",
            [found.equation],
            data={"variance": found.symbol, "quenched": quenched},
            assumptions=(("self_averaging", {}),),
            rests_on=("fluctuations.share", "fluctuations.minima", *(["fluctuations.given"] if found.given else [])),
        ),
    ]
    return [replace(step, evidence={"theory": theory, "fluctuations": found}) for step in steps]


def share_step(theory: Theory, make: StepMaker, key: str) -> Step:
    """Two copies that share their couplings in part."""
    families = list(dict.fromkeys(f.coupling for f in theory.system.fields))
    quenched = [q.at_site() for q in theory.system.quenched]
    return make(key, "two_copies", data={"couplings": families, "quenched": quenched}, rests_on=("disorder",))


def _bent(found: Fluctuations, make: StepMaker) -> list[Step]:
    """What emissions that are given add; nothing where there are none."""
    if not found.given:
        return []
    fields = [h.declared for site in found.theory.inserted.values() for h in site.heard if not h.declared.states()]
    return [
        make(
            "fluctuations.given",
            "given_emissions",
            found.curvatures(),
            data={
                "emissions": list(dict.fromkeys(f.emission for f in fields)),
                "fields": list(dict.fromkeys(f.as_sum for f in fields)),
                "added": [at_zero(more, sender) for sender, more in found.bent],
            },
            assumptions=(("independence", {}),),
            rests_on=("fluctuations.minima",),
        )
    ]
