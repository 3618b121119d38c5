"""The results of many instances: their solutions, and observables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from html import escape
from typing import Any, NoReturn

import numpy as np
from sympy import Expr

from symcavity.errors import FlatMinimum, Infeasible, NotConverged
from symcavity.evaluate.numbers import whole_number
from symcavity.finite.batch import AtSizes, Instances, listed
from symcavity.finite.certificate import evidence
from symcavity.finite.estimates import Estimate, Extrapolation
from symcavity.finite.instance import Residuals
from symcavity.finite.labels import label
from symcavity.finite.minimum import UPDATES, solve_instance
from symcavity.finite.observables import Reader
from symcavity.finite.redrawn import FEWEST, drawn_again, participation, varied
from symcavity.finite.sample import Sample
from symcavity.finite.setup import Setup
from symcavity.finite.tables import counted, to_pandas
from symcavity.model.content import without
from symcavity.model.kinds import FEATURE
from symcavity.model.objective import objective_of
from symcavity.model.quantities import Family
from symcavity.model.typed import observable_of

_HELD = 1e7  # couplings, up to which those of all instances are kept


@without("nothing", "reader")
class Simulation(Instances):
    """The instances of one declaration at one size.

    ``sim[observable]`` reads averages, sums over sites, responses, and their combinations, in the words
    of the declaration.

    Attributes
    ----------
    system : System
        The system, as it was declared.
    samples : tuple of Sample
        One for each seed, infeasible ones included.
    counts : dict
        The number of sites of each kind.
    """

    def __init__(self, setup: Setup, samples: list[Sample]) -> None:
        super().__init__(setup, samples[0].counts)
        self.samples = tuple(samples)
        self._readers: dict[int, Reader] = {}
        self._estimates: dict[Expr, Estimate] = {}

    @property
    def seeds(self) -> tuple[int, ...]:
        """All seeds."""
        return tuple(s.seed for s in self.samples)

    @property
    def feasible(self) -> tuple[Sample, ...]:
        """The instances that have a solution."""
        return tuple(s for s in self.samples if s.feasible)

    @property
    def infeasible(self) -> int:
        """The number of instances that have no solution."""
        return len(self._infeasible)

    @property
    def _infeasible(self) -> list[int]:
        return [s.seed for s in self.samples if not (s.feasible or s.failed)]

    @property
    def failed(self) -> dict[int, str]:
        """By seed, the reason why neither a solution nor a proof of infeasibility was found."""
        return {s.seed: s.solved.failure for s in self.samples if s.failed}

    @property
    def flat(self) -> dict[int, int]:
        """By seed, the dimension of the set of minimizers where the minimum is not unique."""
        return {s.seed: s.flat for s in self.samples if s.flat}

    @property
    def unstable(self) -> dict[int, float]:
        """By seed, the leading eigenvalue of the iteration where it exceeds one: the fixed point that was found repels.

        Only of systems that are not declared convex, which may have other fixed points.
        """
        leading = {s.seed: s.solved.leading for s in self.samples}
        return {seed: value for seed, value in leading.items() if value is not None and value > 1}

    @property
    def feasible_fraction(self) -> Estimate:
        """The fraction of instances with a solution, itself an observable; those that are not known are left out."""
        known = [s for s in self.samples if not s.failed]
        return Estimate(
            np.array([float(s.feasible) for s in known]),
            tuple(s.seed for s in known),
            "feasible",
            failed=len(self.failed),
        )

    @property
    def residuals(self) -> Residuals:
        """The worst residuals of all instances."""
        found = [s.residuals for s in self.samples if s.residuals is not None]
        if not found:
            self.nothing()
        return Residuals.largest(found)

    def arrays(self, variable: Any) -> np.ndarray:
        """Return a variable at all sites of all feasible instances: shape (instances, sites).

        Raises
        ------
        FlatMinimum
            If it differs from one minimizer to another.
        """
        self._some()
        for k, s in enumerate(self.feasible):
            if s.solved.flat is not None and self.reader(k).differs(variable):
                raise FlatMinimum(
                    f"The instance with seed {s.seed} has no unique {variable}: {s.solved.flat.words}.",
                    s.flat,
                    "a penalty; another load; sample.arrays holds one of the minimizers",
                )
        return np.stack([s[variable] for s in self.feasible])

    def reader(self, index: int) -> Reader:
        """Return the reader of the feasible instance with the given index; its couplings are drawn again."""
        sample = self.feasible[index]
        if sample.seed not in self._readers:
            instance = self.setup.instance(self.N, sample.seed)
            self._readers[sample.seed] = Reader(self.setup.written, instance, sample.solved)
        return self._readers[sample.seed]

    def values(self, body: Any) -> np.ndarray:
        """Return an expression of one site at all sites of all feasible instances."""
        self._some()
        body = body.at_site() if isinstance(body, Family) else observable_of(body, self.system)
        return np.stack([self.reader(k).site_values(body) for k in range(len(self.feasible))])

    @property
    def objective(self) -> Estimate:
        """The minimum of a declared convex problem per feature, over N, as ``solution.objective`` has it."""
        return self[objective_of(self.system)]

    def __getitem__(self, observable: Any) -> Estimate:
        self._some()
        key = observable_of(observable, self.system, hint="sim.arrays(...), for the values of a variable at all sites")
        if key not in self._estimates:
            samples: dict[int, float] = {}
            unit = 1.0
            for k, sample in enumerate(self.feasible):
                try:
                    samples[sample.seed] = self.reader(k)(key)
                    unit = self.reader(k).unit(key) if len(samples) == 1 else unit
                except (FlatMinimum, NotConverged) as error:  # one of many minimizers, or a degenerate one
                    flat = error
                if len(self.feasible) * self._couplings > _HELD:  # do not hold those of many large instances
                    self._readers.clear()
            if not samples:
                raise flat
            self._estimates[key] = Estimate(
                np.array(list(samples.values())),
                tuple(samples),
                label(key),
                self.infeasible,
                self._fewest,
                len(self.feasible) - len(samples),
                len(self.failed),
                unit,
            )
        return self._estimates[key]

    def dimension(self, what: Any, *, over: Any, draws: int = 100) -> Estimate:
        """The share of all directions that a quantity of the sites explores, each instance at its couplings.

        Some quenched families are drawn again and again, and the instance is solved each time: an estimate of
        ``(sum C_ii)**2 / (n sum C_ij**2)``, from products of two halves of the draws, as ``solution.dimension`` has it.

        Parameters
        ----------
        what : Variable or Expr
            A quantity of one kind of site, ``w`` or ``w[i] - t[i]``.
        over : sequence of Quenched
            What is drawn again.
        draws : int
            How often, in each instance; the noise of the estimate decays with it.

        Raises
        ------
        ValuesError
            For fewer than four draws, and parameters that cannot be drawn again.
        NotConverged
            If an instance has no solution for one of the draws.
        """
        count = whole_number(draws, "draws", FEWEST, "a number of draws, four or more")
        body = what.at_site() if isinstance(what, Family) else observable_of(what, self.system)
        found = {s.seed: self._dimension(s, body, over, count) for s in self.samples}
        name = f"dimension of {label(body)}"
        return Estimate(np.array(list(found.values())), tuple(found), name, sites=self._fewest)

    def _dimension(self, sample: Sample, body: Any, over: Any, draws: int) -> float:
        first, rows = self.setup.instance(self.N, sample.seed), []
        left = sample.solved.left is not None  # only where one was left there is one to be left
        for instance in drawn_again(first, varied(first, over), draws):
            solved = solve_instance(self.setup.system, instance, self.setup.method, attracts=left)
            if solved.state is None:
                raise NotConverged(
                    f"The instance with seed {sample.seed} has no solution for one of the draws.", hint="another load"
                )
            rows.append(Reader(self.setup.written, instance, solved).site_values(body))
        return participation(np.stack(rows))

    def to_pandas(self, observables: Iterable[Any] = ()) -> Any:
        """Return a pandas DataFrame with a row an instance: seed, sizes, whether it has a solution, and observables.

        Parameters
        ----------
        observables : iterable of Expr or str
            The columns beyond; an instance that has no value for one has none there.
        """
        return to_pandas(rows_of(self, observables))

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.samples)

    def __len__(self) -> int:
        return len(self.samples)

    @property
    def _couplings(self) -> int:
        """How many couplings an instance has."""
        families = {f.coupling.family for f in self.system.fields}
        return sum(self.counts[a] * self.counts[b] for a, b in (family.slots for family in families))

    def _some(self) -> None:
        if not self.feasible:
            self.nothing()

    def nothing(self) -> NoReturn:
        """Raise the error that says why there is nothing to read."""
        count, where = len(self.samples), f"with {self._sizes_in_words}"
        if not self.failed:
            seed = self.samples[0].seed
            proof = evidence(self.setup.system, self.setup.instance(self.N, seed))
            raise Infeasible(
                f"All {count} instances {where} are infeasible. Seed {seed}: {proof}.",
                hint="another load; sim.feasible_fraction says how often it happens",
                evidence=proof,
            )
        raise NotConverged(
            f"None of {count} instances {where} has a solution: {self.infeasible} are infeasible, and none was found "
            f"for {len(self.failed)}. {next(iter(self.failed.values()))}",
            hint="another load, a penalty",
        )

    def __str__(self) -> str:
        how = ", ".join(sorted({s.method for s in self.samples}))
        shares = ", ".join(f"{k.ratio} = {n / self.N:g}" for k, n in self.counts.items() if k != FEATURE)
        lines = [
            f"{counted(len(self.samples))} with {self._sizes_in_words}{f' ({shares})' if shares else ''}, by {how}",
            f"infeasible: {self.infeasible}{f' ({listed(self._infeasible)})' if self.infeasible else ''}",
        ]
        if self.failed:
            first = next(iter(self.failed.values()))
            lines.append(f"no solution found: {len(self.failed)} ({listed(self.failed)}). {first}")
        if self.flat:
            lines.append(
                f"minimum not unique: {len(self.flat)} ({listed(self.flat)}), "
                f"sets of {_span(self.flat.values())} dimensions"
            )
        known = [s for s in self.feasible if s.solved.leading is not None]
        if known:
            said = f"{len(self.unstable)} unstable ({listed(self.unstable)})" if self.unstable else "all stable"
            begun = " or ".join(sorted({_begun(s) for s in known}))
            lines.append(f"fixed points found from {begun}: {said}; there may be others")
        if self.feasible:
            lines.append(f"residuals: {self.residuals}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(f"<p>{escape(line)}</p>" for line in str(self).splitlines())


def _begun(sample: Sample) -> str:
    """Where the variables of an instance began that led to its fixed point."""
    if sample.solved.left is not None:
        return "beside a fixed point that repels"
    return "random states" if sample.solved.method == UPDATES else "all variables at zero"


def rows_of(simulation: Simulation, observables: Iterable[Any] = ()) -> list[dict[str, Any]]:
    """The instances of a simulation, one in a row, with some observables."""
    found = {label(key): simulation[key] for key in (observable_of(o, simulation.system) for o in observables)}
    values = {name: dict(zip(e.seeds, map(float, e.samples), strict=True)) for name, e in found.items()}
    sizes = {str(kind.size): n for kind, n in simulation.counts.items()}
    return [
        {"seed": s.seed, **sizes, "feasible": s.feasible, "method": s.method, "failure": s.solved.failure}
        | {name: by_seed.get(s.seed, np.nan) for name, by_seed in values.items()}
        for s in simulation
    ]


def _span(values: Collection[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


class Simulations(AtSizes[Simulation]):
    """Simulations of one declaration at several sizes; an observable is extrapolated in 1/N.

    Where couplings have a mean of order ``1/sqrt(N)``, it is extrapolated in this.

    Attributes
    ----------
    by_size : dict
        The simulation at each number of features.
    """

    @property
    def infeasible(self) -> int:
        """The number of instances without a solution, over all sizes."""
        return sum(s.infeasible for s in self.by_size.values())

    @property
    def flat(self) -> dict[tuple[int, int], int]:
        """By size and seed, the dimension of the set of minimizers where the minimum is not unique."""
        return {(n, seed): size for n, sim in self.by_size.items() for seed, size in sim.flat.items()}

    @property
    def failed(self) -> dict[tuple[int, int], str]:
        """By size and seed, the reason why an instance is neither solved nor proved to have no solution."""
        return {(n, seed): why for n, sim in self.by_size.items() for seed, why in sim.failed.items()}

    @property
    def unstable(self) -> dict[tuple[int, int], float]:
        """By size and seed, the leading eigenvalue of the iteration where the fixed point that was found repels."""
        return {(n, seed): value for n, sim in self.by_size.items() for seed, value in sim.unstable.items()}

    @property
    def residuals(self) -> Residuals:
        """The worst residuals over all sizes."""
        return Residuals.largest(s.residuals for s in self.by_size.values())

    @property
    def objective(self) -> Extrapolation:
        """The minimum of a declared convex problem per feature, extrapolated."""
        return self[objective_of(self.system)]

    def _repr_html_(self) -> str:
        return "".join(sim._repr_html_() for sim in self)
