"""Measured effects of an inserted site, over many instances, beside the predictions of the theory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sympy import Expr, sympify

from symcavity.errors import Infeasible, NotConverged, SymcavityError
from symcavity.finite.compiled import compile_system
from symcavity.finite.coupled import FieldComponents, block, self_coupling_observables
from symcavity.finite.estimates import normal_quantile
from symcavity.finite.insertion import INFEASIBLE, Insertion, obstacle
from symcavity.finite.labels import label_tex
from symcavity.finite.setup import Setup
from symcavity.finite.single_site import SingleSites
from symcavity.model.kinds import Kind


@dataclass(frozen=True)
class Finding:
    """One line of the experiment: a measured number, what it should be, and the distance.

    Attributes
    ----------
    name : str
        What was measured.
    measured, stderr : float
        Its mean over the insertions, and the standard error.
    expected : float
        What the cavity method says; nan where it makes no statement.
    note : str
        What the number means.
    freedom : float
        The degrees of freedom of the standard error.
    """

    name: str
    measured: float
    stderr: float
    expected: float = float("nan")
    note: str = ""
    freedom: float = np.inf

    @property
    def z(self) -> float:
        """The distance in standard errors; for few insertions the normal quantile of Student's t."""
        distance = (self.measured - self.expected) / self.stderr if self.stderr > 0 else float("nan")
        return normal_quantile(distance, self.freedom)

    @property
    def cells(self) -> tuple[str, ...]:
        """The line of a table; what there is no number for stays empty."""
        numbers = f"{self.stderr:.2g}", f"{self.expected:.4g}", f"{self.z:+.2f}"
        return self.name, f"{self.measured:.4g}", *("" if "nan" in n else n for n in numbers), self.note


class Insertions:
    """The insertions of a site of one kind, over many instances.

    Attributes
    ----------
    kind : Kind
        The kind of the new site.
    insertions : list of Insertion
        One for each instance where both solutions exist.
    missing : dict
        By seed, why there is none.
    predicted, predicted_by_mean : ndarray
        The variables of the site (insertions, variables) by its own law, at the measured cavity field,
        with the self-coupling of each instance and with the mean self-coupling.
    theory_self_coupling, theory_variance : ndarray or None
        Mean self-coupling (insertions, m, k) and field variance (insertions, m) of a solution.
    theory_note : str
        Why a solution that was given has no such values.
    """

    def __init__(self, setup: Setup, kind: Kind, n: int, found: dict[int, Any], solution: Any) -> None:
        self.kind, self.N, self.setup = kind, n, setup
        self.insertions: list[Insertion] = [f for f, _ in found.values() if f is not None]
        self.missing: dict[int, str] = {seed: why for seed, (_, why) in found.items() if why}
        if not self.insertions:
            message = f"No instance with N = {n} has a single solution both without and with one more {kind}"
            others = {seed: why for seed, why in self.missing.items() if why != INFEASIBLE}
            if not others:
                proof = obstacle(setup, (kind, n, next(iter(found))))
                raise Infeasible(f"{message}: all are infeasible.", hint="a smaller load", evidence=proof)
            seed, why = next(iter(others.items()))
            raise NotConverged(f"{message}. Seed {seed}: {why}", hint="another load, a penalty")
        compiled = compile_system(setup.system)
        law = compiled.laws[kind]
        self.law, self.names = law, law.names
        # a vector is heard as one sum where its senders send its components, and is sent as one where it is
        # heard component by component
        self.heard = [FieldComponents(f, law.fields, summed=bool(f.inner)) for f in setup.declared.laws[kind].fields]
        self.sent = [
            FieldComponents(f, law.heard_in, summed=bool(f.components)) for f in setup.declared.sent_by(kind)
        ]
        self.constants = compiled.numbers(setup.values, setup.values.sizes(n))
        self.predicted = self._site(self.stack("self_coupling"))
        self.theory_note = ""
        self.theory_self_coupling, self.theory_variance = self._theory(solution)
        known = self.theory_self_coupling
        self.predicted_by_mean = self._site(
            self.stack("mean_self_coupling") if known is None else self._by_components(known)
        )

    def _by_components(self, mean: np.ndarray) -> np.ndarray:
        """Write a self-coupling between declared fields for the components of vectors: a multiple of the identity."""
        out = np.zeros((len(mean), self.law.m, self.law.out))
        for m, f in enumerate(self.heard):
            for k, g in enumerate(self.sent):
                if f.parts == g.parts:
                    for row, column in zip(f.groups, g.groups, strict=True):
                        out[:, row[0], column[0]] = mean[:, m, k]
        return out

    def stack(self, name: str) -> np.ndarray:
        """Return one attribute of all insertions as an array."""
        return np.stack([getattr(k, name) for k in self.insertions])

    def _site(self, self_coupling: np.ndarray) -> np.ndarray:
        quenched = {q: np.array([k.quenched[q] for k in self.insertions]) for q in self.law.quenched}
        start = None if self.law.sets is None else self.actual
        alone = SingleSites(self.law, quenched, self.constants)
        answer = alone.solve(self.stack("cavity_field"), self_coupling, self.stack("shared"), start)
        return np.where(answer.found[:, None], answer.z, np.nan)

    def _theory(self, solution: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return (mean self-coupling, field variance) of a solution, insertion by insertion."""
        if solution is None:
            return None, None
        coupling, variance = self_coupling_observables(self.setup.declared, self.kind)
        cache: dict[Expr, float] = {}

        def value(expr: Expr, insertion: Insertion) -> float:
            expr = expr.xreplace({q.at_site(): sympify(v) for q, v in insertion.quenched.items()})
            if expr not in cache:
                cache[expr] = float(solution[expr])
            return cache[expr]

        try:
            f = np.array([[[value(e, k) for e in row] for row in coupling] for k in self.insertions])
            v = np.array([[value(e, k) for e in variance] for k in self.insertions])
        except SymcavityError as error:
            self.theory_note = error.found
            return None, None
        return f, v

    @property
    def actual(self) -> np.ndarray:
        """The variables of the new site in the instances that were solved with it."""
        return self.stack("state")

    def linear_error(self) -> np.ndarray:
        """Return, for each insertion, the relative error of the linear response of all other sites."""
        shift, linear = self.stack("shift"), self.stack("linear_shift")
        size = np.linalg.norm(shift, axis=1)
        kept = size > 1e-12
        return np.linalg.norm(shift - linear, axis=1)[kept] / size[kept]

    def findings(self) -> list[Finding]:
        """Return what was measured, line by line."""
        out = []
        for m, f in enumerate(self.heard):
            out += self._field_findings(m, f, "" if len(self.heard) == 1 else f" {m + 1}")
            for k, g in enumerate(self.sent):
                label = "" if len(self.heard) == len(self.sent) == 1 else f" {m + 1}{k + 1}"
                out += self._self_coupling_findings(m, k, f, g, label)
        for j, name in enumerate(self.names):
            actual = self.actual[:, j]
            for what, predicted in (("own F", self.predicted), ("mean F", self.predicted_by_mean)):
                good = np.isfinite(predicted[:, j])
                gap = actual[good] - predicted[good, j]
                scale = float(np.sqrt(np.mean(actual**2))) or 1.0
                rms = float(np.sqrt(np.mean(gap**2))) / scale if len(gap) else float("nan")
                out.append(Finding(f"{name}: single-site law, {what}, relative error", rms, float("nan")))
        error = self.linear_error()
        if len(error):
            median = float(np.median(error))
            out.append(Finding("others: linear response, median relative error", median, float("nan")))
        return [replace(finding, freedom=len(self.insertions) - 1) for finding in out]

    def _field_findings(self, m: int, f: FieldComponents, tag: str) -> list[Finding]:
        """The cavity field: Gaussian of the variance that independence gives; of a vector, per component."""
        eta, spread = f.total(self.stack("cavity_field")), f.total(self.stack("variance"))
        if not np.any(spread):
            return []
        out = [
            Finding(f"cavity field{tag}, mean", eta.mean(), _stderr(eta.mean(axis=1)), 0.0),
            Finding(f"cavity field{tag}, variance", *_mean((eta**2).mean(axis=1)), float(spread.mean())),
        ]
        if self.theory_variance is not None:
            expected = float(self.theory_variance[:, m].mean())
            out.append(Finding(f"cavity field{tag}, variance (theory)", *_mean(spread.mean(axis=1)), expected))
        for within, what, note in (
            (False, "without the site", "independent: 1"),
            (True, "with the site", "what the naive analysis takes for 1"),
        ):
            ratio = (self.ratio(m, within=within) ** 2).mean(axis=1)
            out.append(Finding(f"field{tag} squared over its variance, {what}", *_mean(ratio), 1.0, note))
        return out

    def _self_coupling_findings(
        self, m: int, k: int, f: FieldComponents, g: FieldComponents, tag: str
    ) -> list[Finding]:
        """The self-coupling: the trace of the response; between components of a vector, a multiple of one."""
        own, mean = (block(self.stack(s), f, g) for s in ("self_coupling", "mean_self_coupling"))
        if not np.any(own):
            return []
        n, size = len(own), own.shape[1]
        diagonal = np.arange(size)
        square = size > 1 and own.shape[2] == size
        one = own[:, diagonal, diagonal].mean(axis=1) if square else own.mean(axis=(1, 2))
        trace = mean[:, diagonal, diagonal].mean(axis=1) if square else mean.mean(axis=(1, 2))
        out = [Finding(f"self-coupling{tag}", *_mean(one), float(trace.mean()), "trace of the response")]
        if self.theory_self_coupling is not None:
            expected = float(self.theory_self_coupling[:, m, k].mean())
            out.append(Finding(f"self-coupling{tag} (theory)", *_mean(one), expected))
        if square:
            others = own.sum(axis=(1, 2)) - own[:, diagonal, diagonal].sum(axis=1)
            between = _mean(others / (size * (size - 1)))
            out.append(Finding(f"self-coupling{tag}, between different components", *between, 0.0))
        scaled = np.std(one - trace, ddof=1) * np.sqrt(self.N) if n > 1 else float("nan")
        error = scaled / np.sqrt(2 * max(n - 1, 1))
        out.append(Finding(f"self-coupling{tag}, fluctuation * sqrt(N)", scaled, error, note="of order one"))
        return out

    def ratio(self, m: int = 0, *, within: bool) -> np.ndarray:
        """Return a field over the standard deviation that it has if couplings and states are independent.

        Parameters
        ----------
        m : int
            Which declared field.
        within : bool
            In the system with the site, where they are not independent; or without it, where they are.

        Returns
        -------
        ndarray
            Of shape (insertions, components).
        """
        f = self.heard[m]
        names = ("field", "variance_within") if within else ("cavity_field", "variance")
        value, spread = (f.total(self.stack(s)) for s in names)
        with np.errstate(invalid="ignore", divide="ignore"):
            return value / np.sqrt(spread)

    def plot(self, variable: str = "", ax: Any = None) -> Any:
        """Plot a variable of the new site against the prediction at its measured cavity field."""
        from symcavity.finite.plots import plot_scatter

        j = self.names.index(variable) if variable else self._shown()
        tex = label_tex(self.law.unknowns[j])
        return plot_scatter(
            self.predicted[:, j],
            self.actual[:, j],
            xlabel=f"${tex}$ by its own law at the cavity field",
            ylabel=f"${tex}$ in the instance",
            ax=ax,
        )

    def _shown(self) -> int:
        """Return the first variable that others hear."""
        for f in self.law.heard_in:
            for q in f.states():
                return self.law.unknowns.index(q)
        return 0


def _stderr(values: np.ndarray) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def _mean(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), _stderr(values)
