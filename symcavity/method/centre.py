"""What is written in other words before the method begins: what is sent, and means.

What is sent through couplings gets a name where it is no linear function of states. Couplings are centred, and the
averages over all sites that their means leave are global variables.
"""

from __future__ import annotations

from sympy import sqrt

from symcavity.model.centring import mean_at
from symcavity.model.equations import Equation
from symcavity.model.kinds import N
from symcavity.model.system import System
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker


def emission_steps(system: System, make: StepMaker) -> list[Step]:
    """The variables that the reading of a declaration has brought in for what is sent; nothing where it has none."""
    emissions, make = system.centring.emissions, make.within("The problem")
    if not emissions.equations:
        return []
    claims = [Equation(e.lhs, e.rhs) for e in emissions.equations]
    claims += [Equation(total, new) for total, new in emissions.replaced.items()]
    return [make("emissions", "emissions", claims, data={"states": list(emissions.variables)}, rests_on=("problem",))]


def centre_steps(system: System, make: StepMaker) -> list[Step]:
    """What the reading of a declaration with means has put in the place of its sums; nothing where it has none.

    A coupling is its centred part plus its mean; each field is the sum of the centred couplings, plus the parameters
    of its own site times averages over the sites that it hears; each of these averages is a global variable.
    """
    centring, make = system.centring, make.within("The problem")
    if not centring:
        return []
    changed = {x: z for x, z in centring.families.items() if x.mean != 0 or x in centring.units}
    couplings = {x.at_site(): z.at_site() for x, z in changed.items()}
    claims = [Equation(x, centring.units.get(x.family, 1) * z + mean_at(x)) for x, z in couplings.items()]
    whole = {g: total / sqrt(N) for g, total in centring.remainders.items() if g not in centring.balances}
    whole |= {g: g + sqrt(N) * balance.average for g, balance in centring.balances.items()}
    claims += [Equation(total, new.xreplace(whole)) for total, new in centring.replaced.items()]
    claims += [Equation(g, centring.meaning(g)) for g in centring.globals]
    return [
        make(
            "centre",
            "centre",
            claims,
            data={
                "couplings": list(couplings),
                "centred": list(couplings.values()),
                "means": any(x.mean != 0 for x in changed),
                "units": any(x in centring.units for x in changed),
                "globals": list(centring.averages),
                "remainders": list(centring.balances),
                "norms": list(centring.norms),
            },
            rests_on=("problem",),
        )
    ]
