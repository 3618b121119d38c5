"""Simulating a Gibbs measure: instances whose states fluctuate, and observables of them in the words of the theory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sympy import DiracDelta, Dummy, Expr, Float, S, Sum

from symcavity.errors import UnsupportedLaw, ValuesError
from symcavity.evaluate.progress import Report
from symcavity.finite.batch import AtSizes, Batch, Instances
from symcavity.finite.chains import SWEEPS
from symcavity.finite.configurations import Configurations
from symcavity.finite.ensembles import ensemble
from symcavity.finite.estimates import Estimate, Extrapolation
from symcavity.finite.labels import label
from symcavity.finite.setup import Setup, prepare
from symcavity.finite.tables import counted
from symcavity.finite.warm import WarmInstance
from symcavity.method.observed_sums import without_fields
from symcavity.model.averages import Average, Expect, Fluctuating, Fresh, SiteResponse
from symcavity.model.keywords import known_options
from symcavity.model.kinds import Kind, SiteCount, kind_of_range
from symcavity.model.quantities import SiteQuantity, site_quantities
from symcavity.model.system import System
from symcavity.model.typed import observable_of


@dataclass
class Warm:
    """One instance, and its measure.

    Attributes
    ----------
    seed : int
    w : WarmInstance
    measure : Ensemble
    """

    seed: int
    w: WarmInstance
    measure: Configurations

    def value(self, expr: Expr) -> float:
        """An observable of the instance: of samples without the bias that their finite number leaves to first order."""
        if self.measure.chain is None:
            return self._of(expr, self.measure)
        one, other = (self._of(expr, half) for half in self.measure.halves())
        return 2 * self._of(expr, self.measure) - (one + other) / 2

    @property
    def numbers(self) -> dict[Any, Any]:
        """What stands outside of averages and sums."""
        return self.w.numbers

    def _of(self, expr: Expr, measure: Any) -> float:
        totals = sorted((t for t in expr.atoms(Average, Sum) if _outermost(t, expr)), key=str)
        values = {t: self._total(t, measure) for t in totals}
        found = expr.xreplace(values).xreplace(self.numbers)
        sizes = {s: self.w.size(s.kind) for s in found.atoms(SiteCount)}
        found = found.xreplace(sizes)
        if not found.is_number:
            what = next(iter(sorted(found.atoms(SiteQuantity, SiteResponse) or found.free_symbols, key=str)), found)
            raise ValuesError(
                f"The observable {expr} is not a number: it depends on {what}.",
                "averages, sums over sites, responses, and their combinations",
                f"average({expr})",
            )
        return float(found)

    def _total(self, total: Any, measure: Any) -> Any:
        body = total.args[0]
        inner = {a: self._total(a, measure) for a in body.atoms(Average) if _outermost(a, body)}
        body = body.xreplace(inner)
        if body.has(Fresh):
            raise UnsupportedLaw(f"Instances at a temperature have no {total}.", "averages over sites that took part")
        found = {k for q in site_quantities(body) for k in q.site}
        found |= {k for r in body.atoms(SiteResponse) for k in r.state.site}
        (kind,) = found
        values = self._at_sites(body, kind, measure)
        sums = isinstance(total, Sum) and kind_of_range(total.limits[0]) is not None
        return Float(float(np.sum(values) if sums else np.mean(values)))

    def _at_sites(self, body: Expr, kind: Kind, measure: Any) -> np.ndarray:
        """An expression of one site at all sites of its kind, thermally averaged."""
        weight, asked = self.w.system.weights[kind], body
        unmeasured = UnsupportedLaw(
            f"Instances {'of a lowest minimum' if weight.is_cold else 'at a temperature'} do not measure {asked}.",
            "averages of states and of fields, expect(...), and responses of states",
        )
        if weight.is_field and body.has(SiteResponse):
            raise unmeasured
        if weight.is_field and weight.is_cold:  # what it sends is the force on its field
            body = body.xreplace({force: -weight.energy.diff(field) for field, force in weight.forces})
            if body.has(DiracDelta):  # a jump pushes nowhere but where it is
                raise unmeasured
        if not weight.is_field:
            core = weight.state
            if weight.is_cold:  # nothing fluctuates: what names the mean of a field names the field
                law = self.w.system.laws[kind]
                names = [law.carrier(f).lhs for f in law.fields if f.sender in self.w.sent and f.states()]
                body = body.xreplace({q: Fluctuating(q) for q in names})
            spread = S.NaN if weight.is_cold else weight.beta * (Expect(core**2) - Expect(core) ** 2)
            own = {r for r in body.atoms(SiteResponse) if r.state in (weight.mean, core) and r.field is None}
            body = body.xreplace(dict.fromkeys(own, spread))
            body = body if weight.is_cold else body.xreplace({weight.mean: Expect(core)})
        if body.has(SiteResponse, S.NaN) or (body.has(weight.mean) and not weight.is_cold):
            raise unmeasured
        marks: dict[Any, np.ndarray] = {}
        rule: dict[Any, Dummy] = {}
        for node in sorted(body.atoms(Expect), key=str):
            rule[node] = Dummy("e", real=True)
            marks[rule[node]] = self._thermal(node.body, kind, measure, {})
        return self._thermal(body.xreplace(rule), kind, measure, marks)

    def _thermal(self, body: Expr, kind: Kind, measure: Configurations, known: Mapping[Any, np.ndarray]) -> np.ndarray:
        weight, size = self.w.system.weights[kind], self.w.size(kind)
        states = self.w.own(weight) if not weight.is_field else weight.states
        used = [q for q in states if body.has(q)]
        if pulled := sorted(body.atoms(Fluctuating), key=str):
            return self._with_fields(body, pulled, used, kind, measure, known)
        tied = self.w.sums.values(measure.x) if weight.is_field and body.has(*self.w.sums.tied) else {}
        arguments = [*used, *tied, *known]
        function = self.w.call(body, arguments)

        def of(*values: Any) -> np.ndarray:
            return np.asarray(function(*values, *known.values()))

        if not used and not tied:
            return np.broadcast_to(of(), (size,))
        if not weight.is_field:
            return measure.mean(of, used, size)
        heard = self.w.weighed(kind)
        sent = [q for name in used for q in self.w.own(self.w.sent[heard[name].sender])]
        if any(q in measure.width for q in sent):
            raise UnsupportedLaw(f"{body} is not measured where states are integrated over.", "method='sampling'")
        fields = [self.w.fields(heard[name], measure.x) for name in used]
        shape = (len(measure.share), size)
        return np.asarray(measure.share @ np.broadcast_to(of(*fields, *tied.values()), shape))

    def _with_fields(
        self, body: Expr, pulled: Sequence[Any], used: Sequence[Any], kind: Kind, measure: Configurations,
        known: Mapping[Any, np.ndarray],
    ) -> np.ndarray:  # fmt: skip
        """An average of states and of what others make of the fields that pull them, configuration by configuration."""
        law, rule, heard = self.w.system.laws[kind], {}, {}
        for node in pulled:
            carrier = next(e for e in law.equations if e.lhs == node.mean)
            (f,) = (f for f in law.fields if carrier.rhs.has(f.symbol))
            heard[mark := Dummy("u", real=True)] = self.w.fields(f, measure.x)
            rule[node] = carrier.rhs.xreplace({f.symbol: mark})
        function = self.w.call(body.xreplace(rule), [*used, *heard, *known])
        values = function(*(measure.x[q] for q in used), *heard.values(), *known.values())
        return np.asarray(measure.share @ np.broadcast_to(values, next(iter(heard.values())).shape))


def _outermost(node: Any, expr: Any) -> bool:
    """Whether a node stands in no other average or sum of an expression."""
    return not any(node != other and other.has(node) for other in expr.atoms(Average, Sum))


class ThermalSimulation(Instances):
    """Instances of a Gibbs measure at one size: ``sim[average(expect(s[i])**2)]``.

    Attributes
    ----------
    setup : Setup
    instances : tuple of Warm
        One for each seed.
    """

    infeasible = 0  # each has a measure
    failed: Mapping[int, str] = {}
    unstable: Mapping[int, float] = {}

    def __init__(self, setup: Setup, instances: Sequence[Warm]) -> None:
        super().__init__(setup, dict(instances[0].w.instance.size))
        self.instances = tuple(instances)

    @property
    def seeds(self) -> tuple[int, ...]:
        """All seeds."""
        return tuple(one.seed for one in self.instances)

    @property
    def feasible(self) -> tuple[Warm, ...]:
        """All instances: each has a measure."""
        return self.instances

    @property
    def method(self) -> str:
        """How the measures were summed."""
        return ", ".join(sorted({one.measure.method for one in self.instances}))

    @property
    def free_energy(self) -> Estimate:
        """Minus the logarithm of the sum of all weights, over beta and N.

        Raises
        ------
        UnsupportedLaw
            For samples.
        """
        if "sampling" in self.method:
            raise UnsupportedLaw(
                "Sampling does not give the sum of all weights.", "smaller sizes, method='enumeration'"
            )
        rows = [-one.measure.logarithm / (one.w.beta * self.N) for one in self.instances]
        return Estimate(np.array(rows), self.seeds, "free energy", sites=self._fewest)

    def __getitem__(self, observable: Any) -> Estimate:
        key = self.system.own(observable_of(observable, self.system))
        inside = without_fields(self.system, key) if self.system.weights else key
        rows = np.array([one.value(inside) for one in self.instances])
        return Estimate(rows, self.seeds, label(key), sites=self._fewest)

    def __iter__(self) -> Iterator[Warm]:
        return iter(self.instances)

    def __len__(self) -> int:
        return len(self.instances)

    def __str__(self) -> str:
        bound = ": energies are upper bounds of the minimum" if self.method in ("annealing", "descent") else ""
        return f"{counted(len(self))} with {self._sizes_in_words}, by {self.method}{bound}"

    __repr__ = __str__


class ThermalSimulations(AtSizes[ThermalSimulation]):
    """Instances of a Gibbs measure at several sizes; an observable is extrapolated in 1/N.

    Attributes
    ----------
    by_size : dict
        The simulation at each number of features.
    """

    infeasible = 0
    failed: Mapping[int, str] = {}
    unstable: Mapping[int, float] = {}

    @property
    def free_energy(self) -> Extrapolation:
        """Minus the logarithm of the sum of all weights, over beta and N, extrapolated."""
        return self._extrapolated(lambda sim: sim.free_energy)


@dataclass(frozen=True)
class _SharedSampling:
    """What all instances share on their way to a worker."""

    setup: Setup
    method: str
    sweeps: int


def _one(work: _SharedSampling, task: tuple[int, int]) -> Warm:
    features, seed = task
    w = WarmInstance(work.setup.system, work.setup.instance(features, seed))
    return Warm(seed, w, ensemble(w, work.method, work.sweeps))


@known_options
def simulate_thermal(
    system: System,
    values: Mapping[Any, Any],
    N: int | Iterable[int] | None = None,
    seeds: int | Iterable[int] = 10,
    couplings: str | Callable[..., Any] = "gaussian",
    executor: Any = None,
    method: str = "",
    sweeps: int = SWEEPS,
    progress: bool | Report | None = None,
) -> ThermalSimulation | ThermalSimulations:
    """Draw instances of a Gibbs measure: exact where all configurations can be summed, else by samples.

    Parameters
    ----------
    system : System
    values, N, seeds, couplings, executor, progress
        As in :func:`symcavity.finite.run.simulate`.
    method : str
        ``'enumeration'``, ``'integration'`` or ``'sampling'``; the first that serves by default.
    sweeps : int
        Of samples: how many sweeps each of eight chains makes after it has settled.

    Raises
    ------
    ValuesError
        For wrong values, and a method that does not serve.
    UnsupportedLaw
        For couplings that samples cannot be drawn of.
    """
    batch = Batch.of(prepare(system, values, couplings), N, seeds)
    if isinstance(sweeps, bool) or not isinstance(sweeps, int) or sweeps < 2:
        raise ValuesError(f"The number of sweeps is {sweeps!r:.60}.", "a whole number of two or more")
    found = batch.run(_one, _SharedSampling(batch.setup, method, sweeps), executor, progress)
    by_size = {n: ThermalSimulation(batch.setup, instances) for n, instances in found.items()}
    return next(iter(by_size.values())) if len(by_size) == 1 else ThermalSimulations(by_size)
