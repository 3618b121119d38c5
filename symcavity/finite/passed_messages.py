"""What instances say that pass messages: every observable after every step, cavity fields, debiased estimates."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from sympy import Expr

from symcavity.errors import NotConverged, UnsupportedLaw
from symcavity.finite.batch import Instances, listed
from symcavity.finite.estimates import Estimate
from symcavity.finite.instance import Instance, Residuals
from symcavity.finite.labels import label
from symcavity.finite.left_out import LeftOut, debiased
from symcavity.finite.minimum import ACCEPTED, SolvedInstance
from symcavity.finite.observables import Reader
from symcavity.finite.passed import Passed, SiteResponses, Work
from symcavity.finite.sample import Sample, arrays_of
from symcavity.finite.simulation import Simulation
from symcavity.finite.warm_left_out import WarmLeftOut
from symcavity.finite.warm_passed import WarmMessages
from symcavity.finite.warm_sites import WarmSites
from symcavity.finite.warm_squares import warm_sites
from symcavity.method.observed_sums import without_fields
from symcavity.model.kinds import Kind
from symcavity.model.typed import observable_of


class PassedMessages(Instances):
    """The messages of instances of one declaration, and what is read of them."""

    def __init__(self, work: Work, runs: list[Passed]) -> None:
        super().__init__(work.setup, runs[0].counts)
        self.steps, self.damping, self.runs = work.steps, work.damping, tuple(runs)
        self._known: dict[tuple[int, int, Expr], float] = {}

    @property
    def changes(self) -> list[list[float]]:
        """For each instance, the relative change of the messages in every step."""
        return [run.changes for run in self.runs]

    @property
    def rate(self) -> Estimate:
        """By how much a step shrinks the moves in the end.

        As N grows its square is the stability, unless order parameters or global variables settle more slowly.
        """
        found = {run.seed: run.rate for run in self.runs if np.isfinite(run.rate)}
        return Estimate(np.array([*found.values()]), tuple(found), "rate")

    @property
    def residuals(self) -> Residuals:
        """How well the last states solve the declared equations of their instances: the worst of all.

        At a temperature, how well the means solve the equations of Thouless, Anderson and Palmer.
        """
        return Residuals.largest(run.residuals for run in self.runs if run.residuals is not None)

    @property
    def converged(self) -> bool:
        """Whether every instance is solved, as well as exact methods would."""
        return all(run.residuals is not None and run.residuals.worst < ACCEPTED for run in self.runs)

    @property
    def diverged(self) -> dict[int, str]:
        """By seed, why messages have not settled: at finite sizes some may not, although the theory is stable."""
        return {run.seed: run.failure or "the last step moves no less" for run in self.runs if run.diverged}

    # -- reading ---------------------------------------------------------------------------------------

    def __getitem__(self, observable: Any) -> list[Estimate]:
        return self._after(range(self.steps + 1), observable_of(observable, self.setup.declared))

    def _after(self, steps: Iterable[int], key: Expr) -> list[Estimate]:
        """An observable after some of the steps; what has settled stays."""
        whole = [run for run in self.runs if not run.failure]
        if not whole:
            raise self._unsettled()
        rows, seeds = [], tuple(run.seed for run in whole)
        for run in whole:
            rows.append([self._read(run, min(k, len(run.steps) - 1), key) for k in steps])
            self.instance(run.seed).__dict__.pop("couplings", None)  # drawn again where a field is asked for
        return [Estimate(column, seeds, label(key), sites=self._fewest) for column in np.array(rows).T]

    def _read(self, run: Passed, step: int, key: Expr) -> float:
        """An observable of one instance after one step."""
        if (place := (run.seed, step, key)) not in self._known:
            at = run.steps[step]
            if self.system.weights:
                inside = without_fields(self.system, key)
                self._known[place] = WarmMessages(self.sites_at(run.seed), at).value(inside)
                return self._known[place]
            solved = SolvedInstance(at.state, None, "message passing")
            reader = Reader(self.setup.written, self.instance(run.seed), solved)
            reader.responses = SiteResponses(at.responses)
            self._known[place] = reader(key)
        return self._known[place]

    def sites_at(self, seed: int) -> dict[Kind, WarmSites]:
        """The sites of an instance at a temperature."""
        if seed not in self._warm_sites:
            self._warm_sites[seed] = warm_sites(self.setup.system, self.instance(seed))
        return self._warm_sites[seed]

    @cached_property
    def _warm_sites(self) -> dict[int, dict[Kind, WarmSites]]:
        return {}

    def instance(self, seed: int) -> Instance:
        """The instance of a seed."""
        if seed not in self._instances:
            self._instances[seed] = self.setup.instance(self.N, seed)
        return self._instances[seed]

    @cached_property
    def _instances(self) -> dict[int, Instance]:
        return {}

    @cached_property
    def simulation(self) -> Simulation:
        """The last states as a simulation, with its observables; instances that are not solved count as failed.

        Raises
        ------
        UnsupportedLaw
            At a temperature: sites have means there, and no states.
        """
        self._cold("no states of instances")
        samples = []
        for run in self.runs:
            good = run.residuals is not None and run.residuals.worst < ACCEPTED
            why = self.diverged.get(run.seed) or f"The equations are not met after {len(run.steps) - 1} steps."
            state = run.steps[-1].state if good else None
            residuals = run.residuals if good else None
            solved = SolvedInstance(state, residuals, "message passing", failure="" if good else why)
            solved.idle = run.idle
            samples.append(Sample(run.seed, run.counts, solved, arrays_of(self.setup.system, state)))
        return Simulation(self.setup, samples)

    @cached_property
    def cavity_fields(self) -> dict[Expr, np.ndarray]:
        """By the field as it was declared, what every site would hear if it did not act on the others.

        Arrays of shape (instances, sites); right up to terms of order 1/sqrt(N), where messages have settled.
        """
        out = {}
        for kind, law in self.setup.system.laws.items():
            for m, f in enumerate(law.fields):
                if f.states():
                    out[f.as_sum] = np.stack([run.cavity[kind][:, m] for run in self.settled])
        return out

    @cached_property
    def leave_one_out(self) -> LeftOut:
        """By the sum that a datum hears, its value at every datum for the states fitted without that datum.

        ``y - run.leave_one_out[Sum(x[mu, i]*w[i], (i, 1, N))]`` are the errors of prediction that leaving out one
        datum at a time measures, from one fit; so is ``run.leave_one_out[y[mu] - Sum(...)]``.
        Arrays of shape (instances, P), right up to order 1/sqrt(N).  At a temperature these are thermal averages over
        the measure of all other data: ``log(expect(exp(-loss)))`` is the logarithm of a predictive probability.

        Raises
        ------
        UnsupportedLaw
            For systems without data.
        """
        return WarmLeftOut(self) if self.system.weights else LeftOut(self)

    @cached_property
    def debiased(self) -> dict[Any, tuple[np.ndarray, np.ndarray]]:
        """By variable of the features, estimates freed of the penalty, and their variances, at every feature.

        The estimate is what solves the effective one-site problem without the feature's own penalty, ``-eta/F``, where
        conditions on all sites and means of couplings add their push to ``eta``; its variance is that of the cavity
        field over ``F**2``.  Where the losses depend on the difference of a field from that of a teacher, it is the
        teacher's weight plus Gaussian noise of this variance (Javanmard and Montanari, IEEE Trans. Inf. Theory 60,
        6522, 2014); elsewhere a multiple of it plus noise.
        Arrays of shape (instances, N), right up to order 1/sqrt(N).

        Raises
        ------
        UnsupportedLaw
            If a feature hears several fields of states, or does not come back in what it hears; at a temperature.
        """
        self._cold("no estimates freed of a penalty")
        return debiased(self)

    def _cold(self, missing: str) -> None:
        """Refuse what is about states that do not fluctuate."""
        if self.system.weights:
            raise UnsupportedLaw(
                f"Messages at a temperature have {missing}.",
                "run[observable], run.cavity_fields",
                "problem.simulate(...)",
            )

    def _unsettled(self) -> NotConverged:
        bad = [run for run in self.runs if run.diverged]
        last = [run.changes[-1] for run in bad if run.changes]
        why = bad[0].failure or f"The last step still moves them by {max(last):.1e}."
        return NotConverged(
            f"Message passing does not converge for {listed(run.seed for run in bad)} of {len(self.runs)}. {why}",
            best=self,
            residual=max(last, default=float("nan")),
            hint="values at which the theory is stable, more steps than these, damping=0.5, or simulate(...)",
        )

    @property
    def settled(self) -> list[Passed]:
        """The instances whose messages have settled.

        Raises
        ------
        NotConverged
            If there are none.
        """
        found = [run for run in self.runs if not run.diverged]
        if not found:
            raise self._unsettled()
        return found
