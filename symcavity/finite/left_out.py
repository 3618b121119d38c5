"""Predictions of one fit for other fits: the fields of data that are left out, and weights without their penalty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sympy import Add, Expr, cancel, expand_mul

from symcavity.errors import UnsupportedLaw, ValuesError
from symcavity.finite.fresh import FreshSites
from symcavity.finite.instance import Instance
from symcavity.finite.minimum import SolvedInstance
from symcavity.finite.observables import Reader
from symcavity.model.fields import RandomField
from symcavity.model.kinds import DATUM, FEATURE, Kind
from symcavity.model.quantities import Field, Global, Variable, site_quantities
from symcavity.model.typed import observable_of


def _reader(run: Any, one: Any, kind: type[Reader] = Reader) -> Any:
    """The last state of one instance, with its words."""
    solved = SolvedInstance(one.steps[-1].state, None, "message passing")
    solved.idle = one.idle
    return kind(run.setup.written, run.instance(one.seed), solved)


class _Without(Reader):
    """Reads expressions of a datum for the states fitted without it."""

    cavity: np.ndarray

    def _values(self, body: Expr, kind: Kind, numbers: Any, *, mean: bool = False) -> np.ndarray:
        own = site_quantities(body, Variable, Field)
        if kind == DATUM and (own := [q for q in own if DATUM in q.site]):
            raise ValuesError(f"{own[0]} belongs to the datum that is left out.", "sums, and parameters of the datum")
        return super()._values(body, kind, numbers, mean=mean)

    def _field(self, f: RandomField, numbers: Any, sites: Instance | FreshSites) -> np.ndarray:
        heard = self.system.laws[DATUM].fields
        for m, own in enumerate(heard if f.hearer == DATUM else ()):
            if f.coupling == own.coupling and f.states() and set(f.states()) == set(own.states()):
                share = cancel(f.emission.diff(own.states()[0]) / own.emission.diff(own.states()[0]))
                rest = expand_mul(f.emission - share * own.emission)
                if not (site_quantities(share) or site_quantities(rest, Variable, Field)):
                    told = super()._field(replace(f, emission=rest), numbers, sites) if rest != 0 else 0
                    return float(share.xreplace(numbers)) * self.cavity[:, m] + told
        if f.states():
            raise ValuesError(f"The data do not hear {f.as_sum}.", ", ".join(str(g.as_sum) for g in heard))
        return super()._field(f, numbers, sites)


class LeftOut(Mapping[Any, np.ndarray]):
    """Expressions of a datum at every datum, for the states fitted without it.

    ``out[Sum(x[mu, i]*w[i], (i, 1, N))]`` has shape (instances, P).  What is asked for may be any expression in the
    sums that data hear, as they were declared, their multiples, and parameters; listed are the sums themselves, and
    what they hold of the states alone, without a teacher's part.

    Raises
    ------
    UnsupportedLaw
        For systems without data.
    ValuesError
        For what is no expression of a datum, or holds variables of the datum itself.
    """

    def __init__(self, run: Any) -> None:
        if DATUM not in run.setup.system.laws:
            raise UnsupportedLaw("There are no data to leave out.", "systems with data", "run.cavity_fields")
        self._run, self._known = run, {}  # type: Any, dict[Expr, np.ndarray]

    def __getitem__(self, wanted: Any) -> np.ndarray:
        wanted = observable_of(wanted, self._run.setup.declared)
        if wanted not in self._known:
            self._known[wanted] = np.stack([self._read(one, wanted) for one in self._run.settled])
        return self._known[wanted]

    def _read(self, one: Any, wanted: Expr) -> np.ndarray:
        reader = _reader(self._run, one, _Without)
        reader.cavity = one.cavity[DATUM]
        return reader.site_values(wanted, DATUM)

    def __iter__(self) -> Iterator[Expr]:
        means = self._run.setup.declared.rewritten["centre"]
        declared = {z: x for x, z in means.families.items()}
        out = {}
        for f in (f for f in self._run.setup.system.laws[DATUM].fields if f.states()):
            fixed, moving = f.emission.as_independent(*f.states(), as_Add=True)
            x = declared.get(f.coupling.family)
            rule = {} if x is None else {f.coupling: x[f.coupling.indices] / means.units.get(x, 1)}
            out[f.as_sum.xreplace(rule)] = f
            if fixed != 0 and not rule:
                out[replace(f, emission=moving).as_sum] = f
        return iter(out)

    def __len__(self) -> int:
        return len([*iter(self)])

    def __contains__(self, wanted: Any) -> bool:
        return wanted in [*iter(self)]


def debiased(run: Any) -> dict[Any, tuple[np.ndarray, np.ndarray]]:
    """The estimates of :attr:`MessagePassing.debiased`."""
    law = run.setup.system.laws[FEATURE]
    heard = [(m, f) for m, f in enumerate(law.fields) if f.states()]
    back = [(k, g) for k, g in enumerate(run.instance(run.runs[0].seed).system.laws[FEATURE].heard_in) if g.states()]
    if len(heard) != 1 or len(back) != 1 or len(back[0][1].states()) != 1:
        raise UnsupportedLaw(
            f"A feature hears {len(heard)} fields of states, and is heard in {len(back)}.",
            "features that hear one field, and are heard in one",
            "run.cavity_fields",
        )
    ((m, f),), ((k, g),) = heard, back
    (state,) = g.states()
    carrier = next(e.difference for e in law.equations if e.difference.has(f.symbol))
    terms = [t for t in Add.make_args(expand_mul(carrier)) if t.atoms(Global) and not site_quantities(t, Variable)]
    push = Add(*terms) / carrier.diff(f.symbol)  # of conditions on all sites: they are no penalty of the feature's own
    factor = g.emission.coeff(state)
    eta = np.stack([one.cavity[FEATURE][:, m] + _reader(run, one).site_values(push, FEATURE) for one in run.settled])
    coupling = np.stack([one.self_coupling[FEATURE][:, m, k] for one in run.settled])
    if np.any(coupling == 0) or not factor.is_number:
        raise UnsupportedLaw(f"The {FEATURE} sites do not hear themselves.", "features whose data respond")
    noise = np.stack([_noise(run.instance(one.seed), one, f) for one in run.settled])
    given = np.stack([_given(run.instance(one.seed), g) for one in run.settled])
    number = float(factor)
    return {state: ((-eta / coupling - given) / number, noise / (number * coupling) ** 2)}


def _given(instance: Instance, f: RandomField) -> np.ndarray:
    """What sites send where their states are zero: a teacher's weights, with their sign."""
    return instance.emissions(f.sender, instance.start())[:, instance.system.column(f)]


def _noise(instance: Instance, one: Any, f: RandomField) -> np.ndarray:
    """The variance of a cavity field over fresh couplings."""
    sent = instance.emissions(f.sender, one.steps[-1].state)[:, instance.system.column(f)]
    weights = np.broadcast_to(instance.variances(f), (instance.size[f.hearer], instance.size[f.sender]))
    return np.asarray(weights @ sent**2)
