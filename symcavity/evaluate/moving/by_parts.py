"""Mean responses of states that jump: from averages with the noise that their fields are drawn from.

A law that jumps has no tangents, and yet a mean response: by Gaussian integration by parts the average of a state times
a cavity field is the sum over all earlier fields, of the response to each times its covariance with that one.  The
fields of a path are ``L z``, with a Cholesky factor L of their covariance and independent normal numbers z; so that a
row S of responses follows from ``S L = <x z>``, back from the last field to the first.

H. Eissfeller, M. Opper, Phys. Rev. Lett. 68, 2094 (1992), on spins in discrete time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sympy import Expr

from symcavity.errors import UnsupportedLaw
from symcavity.evaluate.moving.plan import MovingPlan
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind
from symcavity.model.quantities import SiteQuantity, site_quantities


def has_parts(plan: MovingPlan, kind: Kind) -> bool:
    """Whether the covariances of the fields of a kind are the same at all sites, and they stand there with numbers."""
    fields = [h.declared for h in plan.sites[kind].heard]
    terms = [term.factor for f in fields for g in fields for term in plan.covariances[f, g]]
    return not any(site_quantities(e) for e in (*terms, *(plan.factors[f] for f in fields)))


class ByParts:
    """The mean responses of one run by integration by parts.

    Parameters
    ----------
    run : PathRun
    """

    def __init__(self, run: Any) -> None:
        self.run = run
        self._rows: dict[tuple[SiteQuantity, int, Expr], np.ndarray] = {}

    def mean(self, q: SiteQuantity, g: RandomField, t: int, s: int, weight: Expr) -> np.ndarray:
        """The mean response of a state at one step to a source at another, times a weight, by batch.

        Raises
        ------
        UnsupportedLaw
            If a field vanishes, where no average tells how a state answers to it.
        """
        drawn = self.run.drawn[g.hearer]
        step, asked = (t if q.time is not None else 0), (g, s if g.time is not None else 0)
        count = self._count(q, step, drawn)
        if asked not in drawn[:count]:
            return np.zeros(self.run.batches)
        if (q, step, weight) not in self._rows:
            value = self.run.value(weight, step) * self.run.states[q][step]
            self._rows[q, step, weight] = self.run.noise[g.hearer].answers(value, count)
        place = drawn.index(asked)
        if self.run.noise[g.hearer].vanishes[place]:
            law = self.run.plan.rows[q].update.equation
            raise UnsupportedLaw(
                f"The field {g.as_sum} vanishes at the step {asked[1]}, and {law} jumps.",
                "emissions that do not all vanish at the beginning",
                "an initial value that is not zero",
            )
        found: np.ndarray = self._rows[q, step, weight][:, place] / float(self.run.plan.factors[g])
        return found

    def _count(self, q: SiteQuantity, step: int, drawn: list[tuple[RandomField, int]]) -> int:
        """How many of the fields that were drawn a state may follow from: the last of them, and all before it."""
        instant = self.run.plan.motion.is_instant

        def heard(f: RandomField, s: int) -> bool:
            return f.time is None or (q.time is not None and (s < step or (s == step and instant(q, f))))

        return 1 + max((k for k, (f, s) in enumerate(drawn) if heard(f, s)), default=-1)
