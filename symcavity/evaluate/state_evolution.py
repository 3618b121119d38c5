"""State evolution: the closed equations read as a map, one kind of site after the other, as messages are passed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from sympy import Expr, S, Symbol

from symcavity.algebra.precision import alone
from symcavity.errors import DeclarationError, NotConverged, UnsupportedLaw, ValuesError
from symcavity.evaluate.averages.cancelling import NOTHING as FADED
from symcavity.evaluate.averages.gaussian_laws import absorb, gaussian_laws
from symcavity.evaluate.averages.integrals import Grids, Pass
from symcavity.evaluate.binding import bind
from symcavity.evaluate.given.checked_values import read_values
from symcavity.evaluate.given.sizes import completed
from symcavity.evaluate.given.values import Given, Task
from symcavity.evaluate.solve import solve_bound
from symcavity.evaluate.solving.guesses import read_guess
from symcavity.evaluate.solving.meeting import meet
from symcavity.evaluate.tasks import task_of
from symcavity.method.close import averaged_over, conditions, kind_of_body, over_sites, positive_parts
from symcavity.method.first_step import StillSite, is_summed
from symcavity.method.messages import conditions_met, first_responses
from symcavity.method.mirrors import first_globals, first_squares
from symcavity.method.observed_sums import without_fields
from symcavity.method.theory import Theory
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.kinds import Kind
from symcavity.model.quantities import SiteQuantity
from symcavity.sites.thermal.ensemble import ThermalSolution
from symcavity.sites.thermal.strategy import before_others
from symcavity.writing.displays import Formula, html

#: For a variance and a response of zero at zero temperature, by which closed forms divide: smooth laws need the larger
#: variance, and those that only bounds hold at zero the larger response, or large terms that cancel leave nothing but
#: rounding.
NOTHING = ((1e-12, 1e-12), (1e-8, 1e-12), (1e-12, 1e-5))
_AWAY, _SAME, _MORE = 1e9, 1e-2, 100.0  # where steps lead away; what has a limit, with more for nothing
_DIFFERENCE = 1e-7

Env = dict[Any, Any]


class StateEvolution:
    """The order parameters of a theory after each step of message passing.

    ``evolution[average(w[i]**2)]`` is an array: entry k is the value after k steps, entry 0 that of sites which
    have solved their laws once, in turn, with nothing heard before.

    Attributes
    ----------
    theory : Theory
    steps : int
    values : dict
        Every order parameter and global variable, as an array over the steps.
    """

    def __init__(
        self, theory: Theory, task: Task, given: Given, trail: list[dict[Kind | None, Env]], first: Theory
    ) -> None:
        self.theory, self.steps, self._first = theory, len(trail) - 1, first
        self._task, self._given, self._trail = task, given, trail
        unknowns = [*theory.order_parameters, *theory.system.globals]
        self.values = {s: np.array([float(at[None][s]) for at in trail]) for s in unknowns}

    def __getitem__(self, observable: Any) -> np.ndarray:
        expr = self.theory.named_by(observable)
        if expr in self.values:
            return self.values[expr]
        system = self.theory.system
        expr = system.own(system.rewritten.observable(expr))
        if without_fields(system, expr) != expr:
            raise DeclarationError(
                f"{observable} contains sums over couplings, which are not the fields of the sites while messages "
                "still change.",
                "observables in the variables of the sites, after each step",
                "at rest: run.simulation[...], and theory.solve(...)[...]",
            )
        nodes = sorted(over_sites(expr), key=str)
        marks = {node: Symbol(f"a{k}", real=True) for k, node in enumerate(nodes)}
        told = [{node: (_kind_of(node), t.observable(node)) for node in nodes} for t in (self._first, self.theory)]
        rest = self.theory.observable(expr.xreplace(marks))
        out = []
        for k, at in enumerate(self._trail):
            parts = told[min(k, 1)]
            envs = {node: at[None if e.is_Symbol else kind] for node, (kind, e) in parts.items()}
            numbers = {marks[node]: self._number(e, envs[node]) for node, (_, e) in parts.items()}
            out.append(self._number(rest, {**at[None], **numbers}))
        return np.array(out)

    def _number(self, expr: Expr, env: Env) -> float:
        missing = sorted({s for s in _free(expr) if s not in env}, key=str)
        if missing:
            raise ValuesError(f"{missing[0]} has no value in this evolution.", ", ".join(map(str, self.values)))
        with np.errstate(all="ignore"):
            return float(self._task.compiled(expr, "numpy")(env))

    @property
    def _head(self) -> str:
        return "State evolution at " + ", ".join(f"{k} = {v}" for k, v in self._given.told.items())

    @property
    def _shown(self) -> list[int]:
        return [k for k in (0, 1, 2, 3, 5, 10, 20, 40, 80, 160) if k < self.steps] + [self.steps]

    def __str__(self) -> str:
        wide = {s: max(14, len(str(s)) + 2) for s in self.values}
        lines = [self._head, "  step " + "".join(f"{s!s:>{wide[s]}}" for s in self.values)]
        lines += [f"  {k:4d} " + "".join(f"{v[k]:{wide[s]}.6g}" for s, v in self.values.items()) for k in self._shown]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = ([str(k), *(f"{v[k]:.6g}" for v in self.values.values())] for k in self._shown)
        return html(["step", *map(Formula.of, self.values)], rows, self._head)


@alone
def state_evolution(theory: Theory, values: Mapping[Any, Any] | None = None, steps: int = 40) -> StateEvolution:
    """Read the closed equations of a theory as a map.

    Parameters
    ----------
    theory : Theory
        A cavity theory.
    values : mapping
        As for solving it.
    steps : int
        How many steps.

    Raises
    ------
    UnsupportedLaw
        For the naive analysis, and for conditions that no step meets.
    ValuesError
        For missing, superfluous or contradictory values, before any work.
    NotConverged
        If a step has no image of the right signs; the evolution up to there is in ``.best``.
    """
    check_steps(steps)
    theory, rest, task, given, met = _read(theory, values)
    env = given.environment("numpy")
    used = {s for e in (*theory.closures.values(), *(g.lhs for g in theory.global_equations)) for s in e.free_symbols}
    if used & set(given.solve_for):  # what a condition on an average fixes is the same at every step
        solution = solve_bound(theory, rest, 15)
        env |= {s: float(solution[s]) for s in given.solve_for}
    env = completed(task.kinds, env)
    make = partial(_Steps, theory, task, given, met, env=env)
    failure: NotConverged | None = None
    zeros = ((0.0, 0.0),) if is_summed(theory.system) else NOTHING
    for first, zero in product(first_responses(list(theory.system.laws)), zeros):
        try:
            one = _begun(make, first, zero)
        except NotConverged as error:
            failure = failure or error
            continue
        trail = [one.seen]
        for _ in range(steps):
            one.grids.clear()  # where next to nothing is heard they are finer than later steps need
            try:
                one.step({})
            except NotConverged as error:
                error.best = StateEvolution(theory, task, given, trail, one.first)
                raise
            trail.append(one.seen)
        return StateEvolution(theory, task, given, trail, one.first)
    assert failure is not None  # noqa: S101 - something has been tried
    raise failure


def _begun(make: Callable[..., _Steps], first: dict[Kind, float], zero: tuple[float, float]) -> _Steps:
    """The map after its first step; where zeros are small numbers, these must not matter."""
    nothing, almost = zero
    factors = (1.0, _MORE) if nothing else (1.0,)
    one, *others = (make(first, (nothing * k, almost * k)) for k in factors)
    one.step(first)
    for other in others:
        other.step(first)
        one.agrees(other)
    return one


def _read(theory: Theory, values: Mapping[Any, Any] | None) -> tuple[Any, ...]:
    """The theory at its values, what is left to solve, and at which step each condition on all sites is met."""
    if theory.is_naive:
        raise UnsupportedLaw("The naive analysis has no state evolution.", "the cavity theory: problem.cavity()")
    met = conditions_met(theory.system)
    theory, rest = bind(theory, values or {})
    task = task_of(theory)
    return theory, rest, task, read_values(task, rest, 15), met


@alone
def settling(
    theory: Theory, values: Mapping[Any, Any] | None = None, guess: Mapping[Any, Any] | None = None
) -> float:
    """Return by which factor a step of the state evolution changes small deviations from the solution.

    The largest modulus of the eigenvalues of the Jacobian of the map, by central differences, in double. Order
    parameters and global variables settle where it is below one; message passing needs this and a stability below one.

    Raises
    ------
    UnsupportedLaw
        For the naive analysis, and for conditions that no step meets.
    Infeasible, NotConverged
        If the closed equations have no solution at the values, or none was found.
    """
    near = read_guess(theory, guess)
    theory, rest, task, given, met = _read(theory, values)
    solution = solve_bound(theory, rest, 15, near)
    env = completed(task.kinds, given.environment("numpy") | {s: float(solution[s]) for s in given.solve_for})
    steps = _Steps(theory, task, given, met, {}, NOTHING[0], env)
    order = [*(s for symbols in steps.places.values() for s in symbols), *theory.system.globals]
    start = {**steps.env, **{s: float(solution[s]) for s in order}}
    here = np.array([start[s] for s in order])

    def moved(x: np.ndarray) -> np.ndarray:
        steps.env = {**start, **dict(zip(order, x.tolist(), strict=True))}
        steps.step({})
        return np.array([steps.env[s] for s in order])

    h = np.cbrt(np.finfo(float).eps) * np.maximum(np.abs(here), np.finfo(float).tiny)
    rows = [(moved(here + row) - moved(here - row)) / (2 * d) for row, d in zip(np.diag(h), h, strict=True)]
    return float(max(np.abs(np.linalg.eigvals(np.array(rows).T)), default=0.0))


def check_steps(steps: Any) -> None:
    """Refuse what is not a number of steps."""
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise ValuesError(f"steps = {steps!r}.", "a positive whole number")


class _Steps:
    """The map, and where it is."""

    def __init__(
        self,
        theory: Theory,
        task: Task,
        given: Given,
        met: dict[Kind, list[tuple[int, Symbol]]],
        first: dict[Kind, float],
        zero: tuple[float, float],
        env: Env,
    ) -> None:
        self.theory, self.env, self.met, (self.nothing, almost) = theory, dict(env), met, zero
        self.seen: dict[Kind | None, Env] = {}
        self.gaussian = {q: v for law in given.laws.values() for q, v in gaussian_laws(law.continuous).items()}
        self.places: dict[Kind, list[Symbol]] = {kind: [] for kind in theory.system.laws}
        still = {kind: StillSite.of(site, first.get(kind, 0.0)) for kind, site in theory.inserted.items()}
        for s, meaning in theory.order_parameters.items():
            kind = _kind_of(next(iter(over_sites(meaning))))
            self.places[kind].append(s)
            (value,) = Pass([absorb(self._averaged(still, meaning), self.gaussian)])(self.env)
            small = (-almost if s.is_nonpositive else almost) if meaning.has(SiteResponse) else self.nothing
            self.env[s] = float(value) or (small if s.is_nonnegative or meaning.has(SiteResponse) else 0.0)
        solved = [site.solution for site in theory.inserted.values()]
        implicit = any(s.minimum.is_implicit for s in solved if isinstance(s, ThermalSolution))
        self.faded = self.nothing or (NOTHING[0][0] if implicit else FADED)  # implicit laws need fields of some width
        self.first = theory.replace(inserted=theory.inserted | {kind: still[kind] for kind in first})
        self.env |= first_globals(theory.system)
        for g, (kind, square) in first_squares(theory.system, met).items():
            self.env[g] = self._size(kind, square, g)
        self.positive = {
            kind: [task.compiled(e, "numpy") for e in positive_parts({kind: site}) if e.has(*(g for _, g in met[kind]))]
            for kind, site in theory.inserted.items()
        }
        cached = theory.memory.setdefault("steps", {})
        mark = tuple(sorted(self.gaussian.items(), key=str))
        if mark not in cached:
            cached[mark] = {
                kind: self._passes(kind, theory.closures, theory.global_equations) for kind in self.places
            }
        self.passes = cached[mark]
        self.grids: dict[Pass, Grids] = {}  # of the step before, to be refined

    def _size(self, kind: Kind, square: Expr, g: Symbol) -> float:
        """The root of an average over sites that hear nothing; one of sites that have no law then."""
        try:
            site = before_others(self.theory.inserted[kind], dict.fromkeys(self.theory.order_parameters, S.Zero))
            (found,) = Pass([absorb(self._averaged({kind: site}, Average(square)), self.gaussian)])(self.env | {g: 0.0})
        except UnsupportedLaw:
            return 1.0
        return float(np.sqrt(found)) if found > 0 and np.isfinite(found) else 1.0

    def _averaged(self, sites: Mapping[Kind, Any], meaning: Expr) -> Expr:
        return averaged_over(sites, meaning).xreplace(self.theory.binding)

    def _passes(self, kind: Kind, closures: Mapping[Any, Expr], equations: Sequence[Any]) -> tuple[Pass, Pass]:
        """What a kind answers, and its conditions."""
        own = [closures[s] for s in self.places[kind]], [equations[row].lhs for row, _ in self.met[kind]]
        answers, told = (Pass([absorb(e, self.gaussian) for e in rows]) for rows in own)
        return answers, told

    def _unheard(self, kind: Kind, spoken: Sequence[Kind]) -> tuple[Pass, Pass] | None:
        """The same where others are silent, whose order parameters are zero; None where there is no such thing."""
        silent = {s: S.Zero for k, own in self.places.items() if k not in spoken for s in own if self.env[s] == 0}
        site = self.first.inserted[kind]
        if not silent or not any(e.has(*silent) for e in (*site.means.values(), *site.covariance.values())):
            return None
        try:
            site = before_others(site, silent)
            inserted = self.first.inserted | {kind: site}
            closures = {s: self._averaged(inserted, self.theory.order_parameters[s]) for s in self.places[kind]}
        except UnsupportedLaw as error:  # nothing holds it
            raise NotConverged(str(error)) from error
        self.first = self.first.replace(inserted=inserted)
        equations = conditions(self.theory.system, inserted) if self.met[kind] else []
        return self._passes(kind, closures, [e.xreplace(self.theory.binding) for e in equations])

    def _of(self, averages: Pass, env: Env, *, moved: bool = True) -> Sequence[Any]:
        """Averages at values, on grids that are refined where these have moved."""
        grids = self.grids.setdefault(averages, averages.grids())
        if moved:
            averages.refine(env, grids)
        return averages.at(env, grids)[0]

    def step(self, still: Mapping[Kind, float]) -> None:
        """Let each kind take its step."""
        self.seen, begins = {}, not self.seen and not self.nothing
        spoken: list[Kind] = []
        zero: Env = {}
        for kind, symbols in self.places.items():
            if kind in still:
                self.seen[kind] = dict(self.env)
                continue
            averages, conditions = (self._unheard(kind, spoken) if begins else None) or self.passes[kind]
            spoken.append(kind)
            places = [g for _, g in self.met[kind]]
            if places:
                self.env |= zip(places, self._met(kind, conditions, places), strict=True)
            self.seen[kind] = dict(self.env)
            for s, value in zip(symbols, self._of(averages, self.env), strict=True):
                self._check(s, float(value))
                faded = not value and s.is_nonnegative
                self.env[s] = self.faded if faded else float(value)
                zero |= {s: 0.0} if faded else {}
        self.seen[None] = self.env | zero

    def agrees(self, other: _Steps) -> None:
        """Refuse a step that has no limit where what was heard vanishes: a law without curvature of its own."""
        for symbols in self.places.values():
            for s in symbols:
                if abs(self.env[s] - other.env[s]) > _SAME * (1 + abs(self.env[s])):
                    raise NotConverged(f"{s} has no value before the first message.", best=dict(self.env))

    def _check(self, s: Symbol, value: float) -> None:
        right = abs(value) < _AWAY and not (value < 0 and s.is_nonnegative) and not (value > 0 and s.is_nonpositive)
        if not right:
            raise NotConverged(
                f"A step of the state evolution gives {s} the value {value:.3g}: it leads away from all solutions.",
                best=dict(self.env),
                hint="values at which theory.solve(...) finds a stable solution",
            )

    def _met(self, kind: Kind, conditions: Pass, places: list[Symbol]) -> np.ndarray:
        def value(x: np.ndarray, *, moved: bool = True) -> np.ndarray:
            env = {**self.env, **dict(zip(places, x.tolist(), strict=True))}
            if not all(part(env) > 0 for part in self.positive[kind]):  # no site is there
                return np.full(len(places), np.nan)
            return np.array(self._of(conditions, env, moved=moved), dtype=float)

        def slopes(x: np.ndarray) -> np.ndarray:
            h = _DIFFERENCE * (1 + np.abs(x))
            ends = ((value(x + row, moved=False), value(x - row, moved=False)) for row in np.diag(h))
            with np.errstate(invalid="ignore"):  # both ends may be infinite: no slope there, which the search sees
                rows = [(up - down) / (2 * d) for (up, down), d in zip(ends, h, strict=True)]
            return np.array(rows).T

        return meet(lambda x: (value(x), lambda: slopes(x)), np.array([self.env[g] for g in places]))


def _kind_of(node: Expr) -> Kind:
    return kind_of_body(node.args[0])


def _free(expr: Expr) -> Iterator[Symbol]:
    masked = expr.xreplace(dict.fromkeys(expr.atoms(SiteQuantity), S.One))
    yield from masked.free_symbols
