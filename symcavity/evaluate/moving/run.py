"""The result of a run: observables over its times, in the words of the declaration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sympy import Add, Dummy, Expr, Mul, Pow

from symcavity.algebra.door import as_sympy
from symcavity.errors import DeclarationError, NoClosedForm, NotConverged, UnsupportedLaw, ValuesError
from symcavity.evaluate.moving.exact import ExactRun
from symcavity.evaluate.moving.plan import MovingPlan
from symcavity.evaluate.moving.shares import NotLinearLaw, NotRational
from symcavity.evaluate.moving.values import read_run_values, read_steps
from symcavity.method.close import kind_of_body
from symcavity.method.observed_sums import without_fields
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.motion import is_shared
from symcavity.model.quantities import Field, Global, SharedState, Variable, site_quantities
from symcavity.model.times import Time, lag_of, step_of
from symcavity.model.typed import read_observable

MOST_EXACT = 30  # steps in fractions, by default


class Observables:
    """Observables of states that move, read into averages over one kind of site each.

    Parameters
    ----------
    system : System
    last : int
        The last step.
    """

    def __init__(self, system: Any, last: int) -> None:
        self.system, self.time, self.last = system, system.time, last

    def read(self, key: Any) -> tuple[Expr, list[Average], tuple[Time, ...]]:
        """An observable, the averages in it, and its open times: the first is that of the declaration, if open.

        Raises
        ------
        DeclarationError
            If it is not made of averages and responses.
        """
        expr = read_observable(key, self.system) if isinstance(key, str) else as_sympy(key, "An observable")
        expr = expr.at_site() if isinstance(expr, SharedState) else expr
        if not isinstance(expr, Expr):
            raise DeclarationError(f"{key!r} is not an observable.", "average(...), response(x[i, t], s)")
        inside = set().union(*(a.atoms(SiteResponse) for a in expr.atoms(Average)))
        expr = expr.xreplace({r: Average(r) for r in expr.atoms(SiteResponse) - inside})
        expr = self._in_motion(expr)
        expr = without_fields(self.system, self.system.own(self.system.rewritten.observable(expr)))
        averages = sorted(expr.atoms(Average), key=str)
        outside = site_quantities(expr.xreplace({a: Dummy() for a in averages}))
        bare = [q for q in outside if not is_shared(q)]
        if bare:
            raise DeclarationError(
                f"{bare[0]} in {key} stands outside of an average.",
                "average(...), response(x[i, t], s)",
                f"average({key})",
            )
        averages += [q for q in outside if is_shared(q)]  # a number as it is
        for node in averages:
            self._check(node)
        times = {t for a in averages for t in a.free_symbols if isinstance(t, Time)}
        if len(times) > 2:
            raise DeclarationError(f"{key} holds {len(times)} times.", "one time or two")
        return expr, averages, self._ordered(times)

    def _in_motion(self, expr: Expr) -> Expr:
        """The observable with states at the time of the system that are named without one."""
        over = {(q.family.name, q.family.slots): q.family for q in self.system.motion.updates if q.time is not None}
        still = [q for q in site_quantities(expr, Variable, Field) if q.time is None]
        expr = expr.xreplace({g: over[g.name, ()].at_site() for g in expr.atoms(Global) if (g.name, ()) in over})
        found = {q: over.get((q.family.name, q.family.slots)) for q in still}
        return expr.xreplace({q: f[(*q.indices, self.time)] for q, f in found.items() if f is not None})

    def _check(self, node: Average) -> None:
        """Refuse what is not a state of the system, and times outside of the run."""
        motion = self.system.motion
        for q in site_quantities(node, Variable, Field, SharedState):
            if q.now not in motion.updates:
                raise DeclarationError(f"{q} is not a state of this system.", ", ".join(map(str, motion.updates)))
        every = [(q, q.time) for q in site_quantities(node) if q.time is not None]
        every += [(r, r.time) for r in node.atoms(SiteResponse) if r.time is not None]
        for q, when in every:
            first = min([0, *motion.initial.get(getattr(q, "now", q), ())])
            if not isinstance(when, Time) and not (when.is_Integer and first <= when <= self.last):
                raise DeclarationError(
                    f"{q} is taken at {when}, which is not a time of this run.",
                    f"open times, and steps from {first} to {self.last}",
                )

    def _ordered(self, times: set[Time]) -> tuple[Time, ...]:
        return tuple(sorted(times, key=lambda t: (t != self.time, t.name)))


class Pictured:
    """A run beside instances: compared with them, and drawn."""

    def compare(self, sim: Any, observables: Any = None) -> Any:
        """Compare this run with instances of the same declaration, run over the same steps.

        Parameters
        ----------
        sim : MovingSimulation or FlowSimulation
            What ``system.simulate(..., until=)`` returned; in continuous time, of the same step.
        observables : Expr or sequence of Expr, optional
            By default the second moments of the states.
        """
        return sim.compare(self, observables)

    def plot(self, *observables: Any, ax: Any = None, sim: Any = None) -> Any:
        """Draw observables of one time over the run, with instances beside them."""
        from symcavity.evaluate.moving.picture import plot

        return plot(self, observables, ax, sim)


class MovingRun(Pictured):
    """A theory in time at values: arrays over the steps of a run.

    Attributes
    ----------
    times : ndarray
        The steps, from 0 on.
    method : str
        ``'exact'``, ``'gaussian'`` or ``'paths'``.
    errors : mapping
        By observable: standard errors, of paths that were sampled; zero where nothing is.
    """

    def __init__(self, theory: Any, plan: MovingPlan, runner: Any, steps: int, method: str) -> None:
        self.theory, self.plan, self.runner, self.method = theory, plan, runner, method
        self.times = np.arange(steps + 1)
        self._words = Observables(theory.system, steps)
        self._known: dict[Any, tuple[Any, Any]] = {}

    def __getitem__(self, key: Any) -> Any:
        """An observable over the times of the run: one axis for each of its times, the declaration's first."""
        return self._both(key)[0]

    @property
    def errors(self) -> Errors:
        """Standard errors by observable."""
        return Errors(self)

    def _both(self, key: Any) -> tuple[Any, Any]:
        if key not in self._known:
            self._known[key] = self.measured(key)
        return self._known[key]

    def measured(self, key: Any) -> tuple[Any, Any]:
        """An observable, and its standard error."""
        expr, averages, times = self._words.read(key)
        values = {a: self.runner_values(a, times) for a in averages}
        if self.method == "paths":
            every = [{a: v[k] for a, v in values.items()} for k in range(self.runner.batches)]
            found = np.array([combined(expr, batch, self._number) for batch in every])
            return found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(len(found))
        found = combined(expr, values, self._number)
        return found, np.zeros(np.shape(found))

    def _number(self, e: Expr) -> Any:
        value = self.plan.values.put_into(e)
        return float(value) if self.method == "paths" else self.runner.number(value)

    def runner_values(self, node: Average, times: tuple[Time, ...]) -> Any:
        """The values of one average at all times, on as many axes as there are open times."""
        if not isinstance(node, Average):
            return self._shared(node, times)
        body = self.plan.values.put_into(node.body)
        kind = kind_of_body(body)
        own = [t for t in times if t in node.free_symbols]
        if self.method == "paths":
            found = self.runner.over_times(kind, body, own, self.times)
            shape = [len(self.times) if t in own else 1 for t in times]
            return found.reshape((len(found), *shape))
        shape = [len(self.times) if t in own else 1 for t in times]
        if not body.has(SiteResponse):
            found = self.runner.average(kind, body, own, self.times).reshape(shape)
            return found if times else found[()]
        if not isinstance(body, SiteResponse):
            raise UnsupportedLaw(f"A response stands in the average of {body}.", "averages of responses alone")
        field = self.plan.field_named(kind, body.field)

        first, second = ((lag_of(when), next(iter(when.free_symbols), None)) for when in body.times)

        def at(env: Mapping[Any, int]) -> Any:
            steps = (lag + (env[clock] if clock is not None else 0) for lag, clock in (first, second))
            return self.runner.response(kind, body.state, field, *steps)

        out = np.empty(shape, dtype=self.runner.dtype)
        for where in np.ndindex(*out.shape):
            env = {t: int(self.times[k]) for t, k in zip(times, where, strict=True) if t in own}
            out[where] = at(env)
        return out if times else out[()]

    def _shared(self, q: Any, times: tuple[Time, ...]) -> Any:
        """What all sites share, by batch, on as many axes as there are open times."""
        own = [t for t in times if t in q.free_symbols]
        steps = self.times if own else [0]
        found = np.stack([self.runner.states[q.now][step_of(q.time, int(k))][:, 0] for k in steps], axis=1)
        return found.reshape((len(found), *(len(self.times) if t in own else 1 for t in times)))

    def __repr__(self) -> str:
        return f"<run of {self.theory.system.name or 'a system'} over the steps 0 to {self.times[-1]}, {self.method}>"


class Errors(Mapping[Any, Any]):
    """Standard errors of a run, by observable."""

    def __init__(self, run: Any) -> None:
        self._run = run

    def __getitem__(self, key: Any) -> Any:
        return self._run._both(key)[1]  # noqa: SLF001 - its own run

    def __iter__(self) -> Any:
        return iter(self._run._known)  # noqa: SLF001 - its own run

    def __len__(self) -> int:
        return len(self._run._known)  # noqa: SLF001 - its own run

    def __repr__(self) -> str:
        return f"<standard errors: {', '.join(map(str, self)) or 'of any observable, as run.errors[observable]'}>"


def combined(expr: Expr, values: Mapping[Any, Any], number: Any) -> Any:
    """An expression in averages with the values of these put in: sums, products and whole powers of them.

    Raises
    ------
    NoClosedForm
        If it holds anything else.
    """
    if expr in values:
        return values[expr]
    if isinstance(expr, Add):
        parts = [combined(a, values, number) for a in expr.args]
        return sum(parts[1:], parts[0])
    if isinstance(expr, Mul):
        parts = [combined(a, values, number) for a in expr.args]
        out = parts[0]
        for part in parts[1:]:
            out = out * part
        return out
    if isinstance(expr, Pow) and expr.has(Average):
        base = combined(expr.base, values, number)
        return base ** (int(expr.exp) if expr.exp.is_Integer else float(expr.exp))
    if expr.has(Average):
        raise NoClosedForm(f"{expr} is a function of averages.", (), "averages, their sums, products and powers")
    return number(expr)


def evolve(
    theory: Any,
    values: Any,
    until: Any,
    paths: int = 20000,
    seed: int = 0,
    method: str | None = None,
    dps: int | None = None,
    *,
    fractions: bool = True,
) -> MovingRun:
    """Run a theory forward in time; :meth:`symcavity.Theory.evolve` says what its parameters are.

    Without ``fractions`` an exact run is in double if no digits are requested.
    """
    from symcavity.evaluate.moving.filling import check_sampling
    from symcavity.evaluate.moving.paths import PathRun

    steps = read_steps(until)
    check_sampling(paths, seed)
    if method not in (None, "exact", "gaussian", "paths"):
        raise ValuesError(f"The method is {method!r}.", "'exact', for linear laws, 'gaussian', or 'paths'")
    read = read_run_values(theory.system, values, dps or 15)
    plan = MovingPlan(theory, read)
    rational = all(_is_rational(v) for v in read.plain.values())
    fractions = fractions and dps is None and steps <= MOST_EXACT and rational
    refused = []
    for name, run in (("exact", _exact), ("gaussian", _gaussian)):
        if method in (None, name):
            try:
                return MovingRun(theory, plan, run(plan, steps, dps, fractions), steps, name)
            except NotLinearLaw as problem:
                refused.append(str(problem))
            except NotConverged:
                if method is not None or dps is not None:
                    raise
    if method not in (None, "paths") or (dps is not None and method is None):
        raise UnsupportedLaw(
            f"The run is not {method or 'exact'}: {refused[-1]}.",
            "laws that are linear in states and fields; messages that are smooth functions of the states, where "
            "there is no feedback",
            'method="paths"',
        )
    return MovingRun(theory, plan, PathRun(plan, steps, paths, seed), steps, "paths")


def _exact(plan: MovingPlan, steps: int, dps: int | None, fractions: bool) -> ExactRun:
    try:
        return ExactRun(plan, steps, None if fractions else dps or 15)
    except NotRational:  # a moment, or what a parameter is raised to
        return ExactRun(plan, steps, 15)


def _gaussian(plan: MovingPlan, steps: int, dps: int | None, _fractions: bool) -> ExactRun:
    from symcavity.evaluate.moving.gaussian import GaussianRun

    return GaussianRun(plan, steps, dps or 15)


def _is_rational(value: Any) -> bool:
    return bool(getattr(value, "is_Rational", False))
