"""Theory against simulation: one row for each observable, with its distance in standard errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from sympy import Eq, Expr, Sum, Symbol

from symcavity.errors import SymcavityError, ValuesError
from symcavity.finite.compared_theory import point_of, solutions_at
from symcavity.finite.estimates import Estimate, Extrapolation, small_term
from symcavity.finite.labels import label, label_tex, labelled
from symcavity.finite.scatter import Scatter
from symcavity.finite.scatter import scatter as scattered
from symcavity.finite.tables import aligned, counted, to_pandas, with_error
from symcavity.method.theory import Theory
from symcavity.model.averages import average, response
from symcavity.model.convex_law import holds_set, regime_of
from symcavity.model.quantities import Family, SiteQuantity, Variable
from symcavity.model.support import stays_whole
from symcavity.model.system import System
from symcavity.model.typed import in_list, observable_of
from symcavity.shapes.base import WHOLE
from symcavity.writing.displays import Formula, html

LIMIT, _MANY, FEWEST = 3.0, 10, 10


@dataclass(frozen=True)
class ComparisonRow:
    """One observable of a comparison.

    Attributes
    ----------
    observable : Expr
        What is compared.
    theory : float
        What the theory says; nan if it cannot.
    simulation : Estimate or Extrapolation
        What the instances say.
    note : str
        Why there is no theoretical value, if there is none.
    scatter : Scatter or None
        N times the variance between instances, in theory and simulation, where it was asked for.
    typed : str
        The text by which the observable was named, if it was: ``objective``, or a name that the declaration gives.
    """

    observable: Expr
    theory: float
    simulation: Estimate | Extrapolation
    note: str = ""
    scatter: Scatter | None = None
    typed: str = ""

    @property
    def shown(self) -> Expr:
        """By what a table names it: its name, where it was asked for by that."""
        return Symbol(self.typed) if self.typed.isidentifier() else self.observable

    @property
    def z(self) -> float:
        """The distance of the simulation from the theory, in standard errors."""
        return self.simulation.z(self.theory)

    @property
    def raw(self) -> dict[int, float]:
        """The distance at each size that was simulated, where there are several."""
        if isinstance(self.simulation, Extrapolation):
            return {n: e.z(self.theory) for n, e in self.simulation.raw.items()}
        return {}

    @property
    def cells(self) -> tuple[str, ...]:
        """Theory, simulation with its standard error in the last digits, z; and the same of the scatter."""
        simulated = with_error(self.simulation.mean, self.simulation.stderr)
        spread = self.scatter.cells if self.scatter else ()
        return _told(self.theory, ".6g"), simulated, _told(self.z, "+.2f"), *spread


def _told(value: float, form: str) -> str:
    """A number of a table; a dash where there is none."""
    return "-" if np.isnan(value) else format(value, form)


_HEAD, _SCATTER = ("theory", "simulation", "z"), ("N var, theory", "instances", "z")


@dataclass(frozen=True)
class Comparison:
    """A table of theory against simulation.

    Attributes
    ----------
    rows : tuple of Row
        One for each observable.
    sizes : tuple of int
        The numbers of features that were simulated.
    infeasible : int
        The number of instances that have no solution, and so no observables.
    failed : int
        The number of instances for which none was found.
    remark : str
        What else a reader of the table must know.
    root : bool
        Whether corrections at finite N are of order ``1/sqrt(N)``.
    unstable : int
        The number of instances of a system that were found at a fixed point that repels.
    """

    rows: tuple[ComparisonRow, ...]
    sizes: tuple[int, ...]
    infeasible: int = 0
    remark: str = ""
    failed: int = 0
    root: bool = False
    unstable: int = 0

    def __iter__(self) -> Iterator[ComparisonRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, observable: Any) -> ComparisonRow:
        key = label(observable) if not isinstance(observable, str) else observable
        for row in self.rows:
            names = [text.replace(" ", "") for text in (row.typed, label(row.observable))]
            if observable == row.observable or key.replace(" ", "") in names:
                return row
        raise KeyError(
            f"No row {key}; the rows are {', '.join(label(r.shown) for r in self.rows)}."
        )

    @property
    def worst(self) -> float:
        """The largest absolute z-score; nan if one cannot be computed, and infinite if the theory has no number.

        Rows with a note in place of a value of the theory do not count.
        """
        found = [abs(row.z) if np.isfinite(row.theory) else np.inf for row in self.rows if not row.note]
        return float(np.max(found)) if found else float("nan")

    def agrees(self, limit: float = LIMIT) -> bool:
        """Whether every observable with a theoretical value is within ``limit`` standard errors; so is its scatter."""
        scatters = [row.scatter for row in self.rows if row.scatter is not None and not row.scatter.note]
        return self.worst <= limit and all(abs(s.z) <= limit for s in scatters)

    @property
    def _head(self) -> tuple[str, ...]:
        return _HEAD + (_SCATTER if any(row.scatter for row in self.rows) else ())

    @property
    def notes(self) -> list[str]:
        """What a reader of the table must know: corrections at finite N, infeasible instances, gaps."""
        out, small = [], small_term(root=self.root)
        if len(self.sizes) > 1:
            out.append(f"Limits {small} -> 0 of straight lines through N = {', '.join(map(str, self.sizes))}.")
        else:
            out.append(f"N = {self.sizes[0]}; the theory is the limit of large N.")
        few = min((len(row.simulation.samples) for row in self.rows), default=_MANY)
        if few > 1 and not self.agrees() and len(self.sizes) == 1:
            out.append(
                f"A deviation that shrinks like {small} is a finite-size effect, one that stays a wrong theory: "
                "simulate at several sizes, N=[100, 200, 400]."
            )
        if few == 1:
            out.append("One instance has no standard error, and so no z: simulate several seeds.")
        elif few < _MANY:
            out.append(f"With {few} instances, z is the normal quantile of Student's t.")
        if self.infeasible:
            out.append(f"{self.infeasible} instances have no solution; the averages are over the others.")
        if self.failed:
            out.append(f"For {self.failed} instances no solution was found; the averages are over the others.")
        if self.unstable:
            out.append(
                f"{counted(self.unstable)} {'was' if self.unstable == 1 else 'were'} found, from all variables at "
                "zero, at a fixed point that repels; the theory may describe another one."
            )
        flat = max((row.simulation.flat for row in self.rows), default=0)
        if flat:
            out.append(
                f"In {flat} instance{'s' if flat > 1 else ''} something is not unique (a flat minimum, a degenerate "
                "solution); it is averaged over the others."
            )
        out += [self.remark] if self.remark else []
        notes = [(label(row.shown), row.note) for row in self.rows if row.note]
        notes += [(label(row.shown), row.scatter.note) for row in self.rows if row.scatter and row.scatter.note]
        return out + [f"{', '.join(labels)}: {note}" for note, labels in _together(notes).items()]

    def __str__(self) -> str:
        lines = aligned([("observable", *self._head), *((label(r.shown), *r.cells) for r in self.rows)])
        if len(self.sizes) > 1:
            lines += ["z at each size:"]
            lines += [
                f"  {label(r.shown)}: " + ", ".join(f"N = {n}: {_told(z, '+.2f')}" for n, z in r.raw.items())
                for r in self.rows
            ]
        return "\n".join([*lines, *self.notes])

    __repr__ = __str__

    def to_latex(self) -> str:
        """Return the table as a LaTeX tabular."""
        head = " & ".join(("observable", *("$z$" if word == "z" else word for word in self._head)))
        body = [
            f"${label_tex(r.shown)}$ & " + " & ".join(f"${_tex_number(c)}$" for c in r.cells) + r" \\"
            for r in self.rows
        ]
        rule, columns = r"\hline", "l" + "r" * len(self._head)
        return "\n".join([rf"\begin{{tabular}}{{{columns}}}", rule, head + r" \\", rule, *body, rule, r"\end{tabular}"])

    def _repr_html_(self) -> str:
        rows = ((Formula.of(labelled(r.shown)), *r.cells) for r in self.rows)
        return html(("observable", *self._head), rows) + "".join(f"<p>{escape(n)}</p>" for n in self.notes)

    def to_pandas(self) -> Any:
        """Return the table as a pandas DataFrame: observable, theory, simulation, stderr, z, note."""
        return to_pandas(
            {
                "observable": label(r.shown),
                "theory": r.theory,
                "simulation": r.simulation.mean,
                "stderr": r.simulation.stderr,
                "z": r.z,
                "note": r.note,
            }
            for r in self.rows
        )

    def plot(self, ax: Any = None) -> Any:
        """Plot the z-score of every observable; see :func:`symcavity.finite.plots.plot_comparison`."""
        from symcavity.finite.plots import plot_comparison

        return plot_comparison(self, ax=ax)


def _tex_number(text: str) -> str:
    mantissa, mark, power = text.partition("e")
    if text in {"inf", "-inf"}:
        return text.replace("inf", r"\infty")
    return f"{mantissa} \\times 10^{{{int(power)}}}" if mark else text


def default_observables(system: System) -> list[Expr]:
    """Return what is worth comparing in any system: second moments, signs, responses.

    Parameters
    ----------
    system : System
        The system.
    """
    out: list[Expr] = []
    auxiliary = set() if system.record is None else system.record.auxiliary_states
    for law in system.laws.values():
        signed = {q for p in law.pairs for q in p.pair if isinstance(q, SiteQuantity)}
        moving = [f for f in law.fields if f.states()]
        heard = {s for f in system.sent_by(law.kind) for s in f.states()}
        for q in sorted(law.unknowns, key=lambda q: q not in heard):  # what others hear comes first
            if not isinstance(q.family, Variable) or q in auxiliary:
                continue
            over = [(q.indices[-1], *q.family.components[1:])] if stays_whole(q) else []
            out += [average(q), average(q > 0)] if q in signed else []
            out.append(average(Sum(q**2, *over) if over else q**2))
            if len(moving) == 1 and q in heard:
                out.append(average(Sum(response(q), *over) if over else response(q)))
        if holds_set(law):
            out.append(average(Eq(regime_of(law.kind), WHOLE)))
    return out


def compare(
    theory: Any, sim: Any, observables: Iterable[Any] | None = None, *, scatter: bool = False
) -> Comparison:
    """Compare a theory with a simulation of the same declaration.

    Parameters
    ----------
    theory : Theory or Solution
        A theory is solved at the values of the simulation, with the load that was really simulated; a
        solution is taken as it is.
    sim : Simulation or Simulations
        The simulation; several sizes are extrapolated in 1/N.
    observables : Expr or iterable of Expr, optional
        Averages, sums, responses and their combinations; by default second moments, means and signs of
        the variables, responses, and what the declaration has names for.
    scatter : bool
        Whether the variance between instances is compared, too: of one size.

    Returns
    -------
    Comparison
        The table.

    Raises
    ------
    ValuesError
        For what is no simulation, and for the scatter of several sizes or of one instance.
    """
    remark = ""
    if not hasattr(sim, "sizes"):
        raise ValuesError(
            f"A theory is compared with a simulation, not with {sim!r}.",
            "what simulate returns",
            "compare(problem.simulate(values, N=200))",
        )
    if scatter and (len(sim.sizes) > 1 or len(sim) < FEWEST):
        raise ValuesError(
            f"scatter=True was given for {len(sim)} instances with N = {', '.join(map(str, sim.sizes))}.",
            f"one size, and {FEWEST} instances or more",
        )
    solutions = [theory]
    if isinstance(theory, Theory):
        solutions, remark, sim = _solved(theory, sim)
    solution = solutions[0]
    if not hasattr(solution, "__getitem__"):
        raise ValuesError(f"{theory!r} has no values to compare.", "a theory, or a solution of one")
    estimates, unmeasured = [], []
    for observable, typed in _chosen(observables, sim.system, theory):
        try:
            estimates.append((observable, typed, sim[observable]))
        except SymcavityError as error:
            if observables is not None:
                raise
            unmeasured.append((label(observable), error.found.replace(str(observable), "{}")))
    tables = [[_row(solution, sim, *estimate, scatter=scatter) for estimate in estimates] for solution in solutions]
    rows = min(tables, key=_distance)
    for why, labels in _together(unmeasured).items():
        verb, pronoun = ("was", "it") if len(labels) == 1 else ("were", "them")
        remark += f" {', '.join(labels)} {verb} not measured. {why.replace('{}', pronoun)}"
    remark = remark.strip()
    root = bool(sim.system.rewritten["centre"].balances)
    return Comparison(tuple(rows), sim.sizes, sim.infeasible, remark, len(sim.failed), root, len(sim.unstable))


def _chosen(observables: Iterable[Any] | None, system: System, theory: Any) -> list[tuple[Expr, str]]:
    """What is compared, each with the name that was typed for it."""
    if observables is None:
        named = [(observable_of(name, system), str(name)) for name in system.named]
        return [*((observable, "") for observable in default_observables(system)), *named]
    given = in_list(observables)
    return [(_observable(o, system, theory), str(o) if isinstance(o, str | Symbol) else "") for o in given]


def _together(notes: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The observables that have the same note."""
    found: dict[str, list[str]] = {}
    for name, note in notes:
        found.setdefault(note, []).append(name)
    return found


def _row(
    solution: Any, sim: Any, observable: Expr, typed: str, measured: Any, *, scatter: bool
) -> ComparisonRow:
    try:
        value, note = float(solution[observable]), ""
    except SymcavityError as error:
        value, note = float("nan"), error.found
    found = scattered(solution, observable, measured, sim.sizes[0]) if scatter else None
    return ComparisonRow(observable, value, measured, note, found, typed)


def _distance(rows: list[ComparisonRow]) -> float:
    """The sum of the relative differences of a table, each between zero and two; two where there is no number."""
    pairs = ((row.theory, row.simulation.mean) for row in rows if row.theory != row.simulation.mean)
    gaps = (abs(a - b) / max(abs(a), abs(b)) for a, b in pairs)
    return sum(gap if np.isfinite(gap) else 2.0 for gap in gaps)


def _solved(theory: Theory, sim: Any) -> tuple[list[Any], str, Any]:
    """The solutions of a theory at the values of a simulation, a remark, and the instances they are compared with."""
    try:
        return *solutions_at(theory, point_of(sim)), sim
    except ValuesError:
        if len(sim.sizes) == 1:
            raise
    found, remark = solutions_at(theory, point_of(sim.largest))
    return found, f"{remark} The theory itself depends on N: only the largest size is compared.".strip(), sim.largest


def _observable(value: Any, system: System, theory: Any) -> Expr:
    """An observable in the words of a declaration, and in the order parameters of a theory of it."""
    known = theory.order_parameters if isinstance(theory, Theory) else {}
    if isinstance(value, Family):
        return average(value)
    return observable_of(value, system, known).xreplace(known)
