"""The record of the scatter of the minimum between instances: share, close, coincide."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sympy import Add, Expr

from symcavity.method.fluctuations import shared_overlaps, single_site_minima
from symcavity.method.naming import at_zero
from symcavity.method.theory import Theory
from symcavity.model.averages import Average
from symcavity.model.equations import Equation
from symcavity.model.kinds import Kind, N, in_units_of_n
from symcavity.model.quantities import Variable
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.symbols import OrderParameter

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
    """

    theory: Theory
    minima: dict[Kind, Expr]
    overlaps: Expr

    @cached_property
    def names(self) -> dict[Kind, Any]:
        """The name of what a site of each kind adds."""
        taken = set(self.theory.system.variables)
        letter = next(name for name in ("M", "E", "m_e") if name not in taken)
        return {kind: Variable(letter, kind.index).at_site() for kind, m in self.minima.items() if m != 0}

    @property
    def symbol(self) -> OrderParameter:
        """The variance."""
        taken = {str(p) for p in self.theory.system.parameters} | set(self.theory.system.variables)
        return OrderParameter(next(name for name in ("V", "V_E") if name not in taken), positive=True)

    @property
    def equation(self) -> Equation:
        """The variance between instances of the minimum, over N, by the minima of single sites."""
        parts = [
            in_units_of_n(kind.size / N) * (Average(m**2) - Average(m) ** 2) for kind, m in self.names.items()
        ]
        return Equation(self.symbol, Add(*parts) - self.theory.observable(self.overlaps))


def fluctuations_of(theory: Theory) -> Fluctuations:
    """The scatter of the minimum; raises UnsupportedLaw as :func:`single_site_minima`."""
    return Fluctuations(theory, single_site_minima(theory), shared_overlaps(theory))


def fluctuation_steps(found: Fluctuations) -> list[Step]:
    """What follows of two copies that share their couplings in part, after the record of the theory."""
    theory = found.theory
    make = StepMaker(theory.system.source, theory.is_naive, SECTION)
    families = list(dict.fromkeys(f.coupling for f in theory.system.fields))
    quenched = [q.at_site() for q in theory.system.quenched]
    minima = [Equation(at_zero(name, kind), at_zero(found.minima[kind], kind)) for kind, name in found.names.items()]
    steps = [
        make(
            "fluctuations.share",
            "two_copies",
            data={"couplings": families, "quenched": quenched},
            rests_on=("disorder",),
        ),
        make(
            "fluctuations.minima",
            "site_minima",
            minima,
            assumptions=(("independence", {}),),
            rests_on=tuple(f"{kind.key}.effective_law" for kind in theory.inserted),
        ),
        make(
            "fluctuations.coincide",
            "copies_coincide",
            [found.equation],
            data={"variance": found.symbol, "quenched": quenched},
            assumptions=(("self_averaging", {}),),
            rests_on=("fluctuations.share", "fluctuations.minima"),
        ),
    ]
    return [replace(step, evidence={"theory": theory, "fluctuations": found}) for step in steps]
