"""The cavity method as an experiment: insertions of a site over many instances, compared with the theory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from symcavity.errors import UnsupportedLaw
from symcavity.evaluate.progress import Report
from symcavity.finite.batch import Batch, listed
from symcavity.finite.compared_theory import point_at, solved_at
from symcavity.finite.executors import run_all
from symcavity.finite.inserted import Finding, Insertions
from symcavity.finite.insertion import insert
from symcavity.finite.setup import as_system, prepare
from symcavity.finite.tables import aligned
from symcavity.method.theory import Theory
from symcavity.model.kinds import DATUM, FEATURE, SiteIndex
from symcavity.writing.displays import html

_HEAD = ("", "measured", "std. error", "expected", "z", "")


@dataclass(frozen=True)
class CavityExperiment:
    """The outcome of a cavity experiment.

    Attributes
    ----------
    inserted : dict
        The insertions of a site of each kind, by its index: ``experiment[mu]`` is that of a datum.
    """

    inserted: dict[SiteIndex, Insertions]

    def __getitem__(self, index: SiteIndex) -> Insertions:
        return self.inserted[index]

    def __iter__(self) -> Iterator[Insertions]:
        return iter(self.inserted.values())

    @property
    def feature(self) -> Insertions:
        """The insertions of a feature."""
        return self[FEATURE.index]

    @property
    def datum(self) -> Insertions:
        """The insertions of a datum."""
        return self[DATUM.index]

    def findings(self) -> dict[str, list[Finding]]:
        """Return the findings by the name of the kind."""
        return {inserted.kind.name: inserted.findings() for inserted in self}

    def __str__(self) -> str:
        lines = []
        for inserted in self:
            count = len(inserted.insertions)
            lines.append(f"one {inserted.kind} added to {count} instances with N = {inserted.N}")
            for why in sorted(set(inserted.missing.values())):
                seeds = [seed for seed, reason in inserted.missing.items() if reason == why]
                lines.append(f"  left out, before or after: {listed(seeds)}, {why}")
            if inserted.theory_note:
                lines.append(f"  the theory has no value here: {inserted.theory_note}")
            lines += [f"  {line}" for line in aligned([_HEAD, *(f.cells for f in inserted.findings())])]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        tables = {f"One {each.kind} added, N = {each.N}": (f.cells for f in each.findings()) for each in self}
        return "".join(f"<h4>{title}</h4>{html(_HEAD, cells)}" for title, cells in tables.items())

    def plot(self) -> Any:
        """Plot, for each kind, the new variable against its prediction, and the fields with and without it.

        Returns
        -------
        Figure
            A matplotlib figure with a row for each kind of site.
        """
        from symcavity.finite.plots import plot_fields, rows_of_two

        figure, axes = rows_of_two(len(self.inserted))
        for row, inserted in zip(axes, self, strict=True):
            inserted.plot(ax=row[0])
            without, within = (inserted.ratio(within=w).ravel() for w in (False, True))
            plot_fields(without, within, inserted.kind, ax=row[1])
        return figure


def cavity_experiment(
    declared: Any,
    theory: Any,
    values: Mapping[Any, Any],
    *,
    N: int | None = None,
    seeds: int | Iterable[int] = 20,
    couplings: Any = "gaussian",
    executor: Any = None,
    method: str = "",
    progress: bool | Report | None = None,
) -> CavityExperiment:
    """Add one site, of each kind separately, to many instances, and compare sample by sample.

    Parameters
    ----------
    declared : Problem or System
        The declaration.
    theory : Theory, Solution or None
        What the measured self-coupling and field variance are compared with; without it, the exact
        responses of each instance are.
    values : mapping
        As in :func:`symcavity.finite.simulate`.
    N : int
        The number of features before the insertion.
    seeds : int or iterable of int
        How many instances, or their seeds.
    couplings, executor, method, progress
        As in :func:`symcavity.finite.simulate`.

    Returns
    -------
    CavityExperiment
        Tables and plots for every kind of site.
    """
    system = as_system(declared)
    if label := next((q for q in system.quenched if q.given is not None), None):
        raise UnsupportedLaw(
            f"{label} is drawn on {label.given}: a new site changes the labels of others.",
            "insertion experiments with labels that are fixed before all else",
            "simulate(...), which draws whole instances",
        )
    setup = prepare(system, values, couplings, method)
    batch = Batch.of(setup, N, seeds)
    n, wanted = batch.size, batch.seeds
    solution = theory
    if isinstance(theory, Theory):
        solution, _ = solved_at(theory, point_at(setup, setup.values.sizes(n)))
    tasks = [(kind, n, seed) for kind in system.kinds for seed in wanted]
    found: dict[Any, Any] = {}
    run_all(executor, insert, setup, tasks, found.__setitem__, name="insertions", progress=progress)
    return CavityExperiment(
        {
            kind.index: Insertions(setup, kind, n, {seed: found[kind, n, seed] for seed in wanted}, solution)
            for kind in system.kinds
        }
    )
