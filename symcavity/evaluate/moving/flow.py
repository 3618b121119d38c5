"""Continuous time: runs of Euler's scheme at a step and at half of it, and what they say of the limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from sympy import Expr, Rational, S

from symcavity.algebra.door import as_sympy
from symcavity.algebra.flow import Rate
from symcavity.errors import DeclarationError, NotConverged, UnsupportedLaw, ValuesError
from symcavity.evaluate.moving.run import MOST_EXACT, Errors, MovingRun, Pictured, evolve
from symcavity.evaluate.moving.values import MOST_STEPS, read_run_values
from symcavity.evaluate.numbers import exact_value
from symcavity.evaluate.tolerances import tolerances
from symcavity.method.theory import Theory
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.noise import Noise
from symcavity.model.quantities import site_quantities
from symcavity.model.rates import in_steps
from symcavity.model.system import System
from symcavity.model.times import lag_of
from symcavity.model.typed import read_observable


def scheme(system: System, step: Expr) -> System:
    """A system in continuous time by Euler's rule, as a system in steps."""
    equations, _ = system.typed
    return System(in_steps(equations, step), system.stated, initial=system.initial, name=system.name)


def read_span(until: Any, step: Any) -> tuple[Expr, int]:
    """The step of a scheme, exactly, and the number of steps.

    Raises
    ------
    ValuesError
        If one is missing, not positive, or the end is not a whole number of steps, or too many.
    """
    if until is None or step is None:
        raise ValuesError(
            f"{'The end' if until is None else 'The step'} is not given.",
            "the time up to which the states move, and the step of the scheme",
            'until=10, step="1/20"',
        )
    end, size = (_exactly(exact_value(v, name, 15)) for v, name in ((until, "until"), (step, "step")))
    if size <= 0 or end <= 0 or not (end / size).is_Integer:
        raise ValuesError(
            f"until = {until}, with steps of {step}.", "positive numbers, and a whole number of steps", 'step="1/20"'
        )
    if 2 * end / size > MOST_STEPS:
        raise ValuesError(
            f"Up to {until} there are {end / size} steps of {step}.",
            f"at most {MOST_STEPS // 2} steps, since the scheme is run with half of the step too",
        )
    return size, int(end / size)


def whole_steps(time: Any, name: str, step: Expr) -> int:
    """How many steps of a scheme a time is.

    Raises
    ------
    ValuesError
        If it is not a whole number of them.
    """
    count = _exactly(exact_value(time, name, 15)) / step
    if not count.is_Integer:
        raise ValuesError(f"{name} = {time} is not a whole number of steps.", f"multiples of the step, {step}")
    return int(count)


def _exactly(value: Any) -> Expr:
    """A number as a fraction; a float as the decimal that it is written as."""
    return Rational(str(value)) if isinstance(value, float) else value


def check_stable(system: System, values: Any, step: Expr) -> None:
    """Refuse a step at which a site by itself, that comes to rest in continuous time, would swing up.

    Raises
    ------
    ValuesError
        If there is such a site; where slopes are numbers only.
    """
    for law in system.laws.values():
        rows = [(e.lhs.body, values.put_into(e.rhs)) for e in law.equations if isinstance(e.lhs, Rate)]
        slopes = [[rhs.diff(q) for q, _ in rows] for _, rhs in rows]
        if not rows or not all(e.is_number for row in slopes for e in row):
            continue
        found = np.linalg.eigvals(np.array(slopes, dtype=float))
        unstable = [v for v in found if v.real < 0 and abs(1 + float(step) * v) > 1]
        if unstable:
            most = min(-2 * v.real / abs(v) ** 2 for v in unstable)
            raise ValuesError(
                f"With steps of {step} the scheme is unstable: {rows[0][0]} would oscillate and grow, whatever "
                "its input.",
                f"steps of at most {most:.3g}",
                f'step="1/{int(np.ceil(4 / most))}"',
            )


class Words:
    """What observables in continuous time mean in a scheme: times count steps, sources are densities.

    Parameters
    ----------
    system : System
        In continuous time.
    step : Expr
        That of the scheme.
    """

    def __init__(self, system: System, step: Expr) -> None:
        self.system, self.step = system, step

    def __call__(self, key: Any) -> Expr:
        """An observable in the words of the scheme.

        Raises
        ------
        DeclarationError
            If it is taken at a time between the steps.
        UnsupportedLaw
            If it holds white noise, which has no values.
        """
        expr = read_observable(key, self.system) if isinstance(key, str) else as_sympy(key, "An observable")
        if not isinstance(expr, Expr):
            raise DeclarationError(f"{key!r} is not an observable.", "average(...), response(x[i, t], s)")
        if noises := site_quantities(expr, Noise):
            raise UnsupportedLaw(f"{noises[0]} is white noise: it has no values.", "averages of states")
        rule: dict[Expr, Expr] = {}
        for node in expr.atoms(SiteResponse):
            states = {q: self._moved(q) for q in site_quantities(node)}
            time = [] if node.time is None else [self._in_steps(node.time, node)]
            named = [] if node.field is None else [states[node.field]]
            rule[node] = SiteResponse(states[node.state], *(named or [None]), *time) / self._density(node)
        responses = {a: rule[a.body] for a in expr.atoms(Average) if isinstance(a.body, SiteResponse)}
        for a, found in responses.items():
            rest, node = found.as_independent(SiteResponse, as_Add=False)
            rule[a] = rest * Average(node)
        rule |= {q: self._moved(q) for q in site_quantities(expr) if q.time is not None}
        return expr.xreplace(rule)

    def _moved(self, q: Any) -> Any:
        return q if q.time is None else q.func(*q.args[:-1], self._in_steps(q.time, q))

    def _in_steps(self, when: Expr, where: Any) -> Expr:
        lag = lag_of(when)
        steps = lag / self.step
        if not steps.is_Integer:
            raise DeclarationError(f"{where} stands between the steps of {self.step}.", "times that are whole steps")
        return when - lag + steps

    def _density(self, node: SiteResponse) -> Expr:
        """What a source in the scheme is divided by to be one in continuous time: a step, unless it adds to a rate."""
        (kind,) = node.state.site
        law = self.system.laws[kind]
        carriers = [law.carrier(f).lhs for f in law.fields]
        if node.field is not None:
            carriers = [c for c in carriers if (c.body if isinstance(c, Rate) else c).now == node.field.now]
        adds_to_a_rate = bool(carriers) and isinstance(carriers[0], Rate)
        return S.One if adds_to_a_rate or node.time is None else self.step


class FlowRun(Pictured):
    """A theory in continuous time at values: arrays over the times of a run.

    Attributes
    ----------
    times : ndarray
        From 0 on, at distances of the step.
    method : str
        ``'exact'`` (each scheme is; the limit is extrapolated) or ``'paths'``.
    errors : mapping
        By observable: how far the two schemes differ; of paths, with their standard errors.
    """

    def __init__(self, theory: Any, coarse: MovingRun, fine: MovingRun, step: Expr) -> None:
        self.theory, self.step, self.plan = theory, step, coarse.plan
        self.method = coarse.method
        self.schemes = {step: coarse, step / 2: fine}
        self.words = {d: Words(theory.system, d) for d in self.schemes}
        self.times = float(step) * coarse.times
        self._known: dict[Any, tuple[Any, Any]] = {}

    def __getitem__(self, key: Any) -> Any:
        """An observable over the times of the run: one axis for each of its times, the declaration's first.

        Where nothing is sampled it is extrapolated from both schemes to steps of length zero.
        """
        return self._both(key)[0]

    @property
    def errors(self) -> Mapping[Any, Any]:
        """By observable: how far the schemes at both steps differ, and standard errors."""
        return Errors(self)

    def _both(self, key: Any) -> tuple[Any, Any]:
        if key not in self._known:
            (coarse, _), (fine, spread) = (
                (run[self.words[d](key)], run.errors[self.words[d](key)]) for d, run in self.schemes.items()
            )
            every = (slice(None, None, 2),) * np.ndim(fine)
            fine, spread = (np.asarray(v)[every] if np.ndim(fine) else v for v in (fine, spread))
            gap = abs(fine - coarse)
            if self.method == "paths":
                self._known[key] = fine, np.hypot(np.asarray(spread, dtype=float), gap)
            else:
                self._known[key] = 2 * fine - coarse, gap
        return self._known[key]

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("A run is not a sequence: run[average(x[i, t]**2)], run.times.")

    def __repr__(self) -> str:
        name = self.theory.system.name or "a system"
        return f"<run of {name} up to {self.times[-1]:g}, in steps of {self.step} and {self.step / 2}, {self.method}>"


def evolve_flow(
    theory: Any, values: Any, until: Any, step: Any, paths: int, seed: int, method: str | None, dps: int | None
) -> FlowRun:
    """Run a theory in continuous time; :meth:`symcavity.Theory.evolve` says what its parameters are."""
    size, count = read_span(until, step)
    read = read_run_values(theory.system, values, dps or 15)
    check_stable(theory.system, read, size)

    def one(d: Expr, steps: int) -> MovingRun:
        inner = Theory(scheme(theory.system, d))
        return evolve(inner, values, steps, paths, seed, method, dps, fractions=2 * count <= MOST_EXACT)

    coarse, fine = one(size, count), one(size / 2, 2 * count)
    _check_alike(coarse, fine, size)
    return FlowRun(theory, coarse, fine, size)


def _check_alike(coarse: MovingRun, fine: MovingRun, step: Expr) -> None:
    """Refuse sampled states that swing up at one of the steps only, on whichever paths they do."""
    if coarse.method != "paths":
        return
    for q in (q for q in coarse.plan.rows if q.time is not None):
        squares = [max(float((x**2).mean()) for x in run.runner.states[q].values()) for run in (coarse, fine)]
        if max(squares) > tolerances().swung * min(squares):
            raise NotConverged(
                f"With steps of {step} the scheme is unstable: some paths of {q} grow that stay bounded with half "
                "of the step.",
                hint=f'a shorter step, step="{step / 4}"',
            )
