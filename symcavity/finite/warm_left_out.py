"""Predictions for data that are left out, by messages at a temperature: averages without the energy of a datum.

The field of a datum over the measure of all others is a Gaussian about its cavity field, whose variance is the
self-coupling over beta.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sympy import Dummy, Expr, Sum, cancel

from symcavity.errors import UnsupportedLaw, ValuesError
from symcavity.finite.left_out import LeftOut
from symcavity.finite.warm_sites import WarmSites
from symcavity.model.averages import SiteResponse
from symcavity.model.fields import RandomField
from symcavity.model.kinds import DATUM, kind_of_range
from symcavity.model.quantities import SiteQuantity, Variable, site_quantities


class WarmLeftOut(LeftOut):
    """Thermal averages of expressions of a datum at every datum, over the measure of all other data.

    ``out[Sum(x[mu, i]*w[i], (i, 1, N))]`` has shape (instances, P); ``log(expect(exp(-loss)))`` in such sums is the
    logarithm of the probability that the others give to what was seen.
    """

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        system = run.setup.system
        if not system.weights[DATUM].is_field:
            raise UnsupportedLaw(
                "The losses of the data contain no field of states.", "data with losses", "run.cavity_fields"
            )
        if system.weights[DATUM].others:
            raise UnsupportedLaw(
                "The losses of the data contain several fields of states.", "losses of one field", "run.cavity_fields"
            )
        (self._field,) = (f for f in system.laws[DATUM].fields if f.states())
        self._cores = {w.mean: w.state for w in system.weights.values() if not w.is_field}

    def _declared(self, f: RandomField) -> Expr:
        return f.as_sum.xreplace(self._cores)

    def _read(self, one: Any, wanted: Expr) -> np.ndarray:
        warm = self._run.sites_at(one.seed)
        site, system, given = warm[DATUM], self._run.setup.system, {}
        marks: dict[Any, Expr] = {}
        for total in sorted(wanted.atoms(Sum), key=str):
            share, rest = self._parts(total)
            mark = Dummy("u", real=True)
            given[mark] = self._given(warm[self._field.sender], one, rest)
            marks[total] = share * site.site.weight.state + mark
        body = system.own(wanted.xreplace(marks))
        own = [q for q in site_quantities(body, Variable) if DATUM in q.site]
        if own or body.has(SiteResponse):
            raise ValuesError(
                f"{own[0] if own else wanted} belongs to the datum that is left out.",
                "sums, and parameters of the datum",
            )
        if stray := [q for q in body.atoms(SiteQuantity) if DATUM not in q.site]:
            raise ValuesError(f"{stray[0]} is not a quantity of the datum.", ", ".join(map(str, self)))
        return site.without_energy(body, one.steps[-1].args[DATUM], given)

    def _parts(self, total: Sum) -> tuple[Expr, Expr]:
        """A sum as a multiple of the field of states, and what else is summed through the same couplings."""
        f, core = self._field, self._cores[self._field.states()[0]]
        declared = self._declared(f)
        sent = cancel(total.args[0] / f.coupling) if kind_of_range(total.limits[0]) == f.sender else None
        if sent is not None and not sent.has(f.coupling):
            own = cancel(declared.args[0] / f.coupling)
            share = cancel(sent.diff(core) / own.diff(core))
            rest = (sent - share * own).expand()
            if not site_quantities(share) and not site_quantities(rest, Variable):
                return share, rest
        raise ValuesError(f"The data do not hear {total}.", ", ".join(map(str, self)))

    def _given(self, sender: WarmSites, one: Any, rest: Expr) -> np.ndarray:
        if rest == 0:
            return np.zeros(one.counts[DATUM])
        sent = sender.w.call(self._run.setup.system.own(rest), [])()
        numbers = np.broadcast_to(sent, (one.counts[self._field.sender],))
        return np.asarray(sender.w.instance.matrix(self._field) @ numbers)

    def __iter__(self) -> Iterator[Expr]:
        f = self._field
        fixed, moving = f.emission.as_independent(*f.states(), as_Add=True)
        yield self._declared(f)
        if fixed != 0:
            yield self._declared(replace(f, emission=moving))
