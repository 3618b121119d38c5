"""Witnesses of what is claimed of states that move: paths of a few steps, filled by the claimed law itself."""

from __future__ import annotations

from itertools import product
from typing import Any

from sympy import Add, Mul, S, Sum

from symcavity.algebra.flow import Rate
from symcavity.algebra.precision import mp
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.equations import Equation
from symcavity.model.kinds import Kind
from symcavity.model.noise import Noise
from symcavity.model.quantities import SiteQuantity, site_quantities
from symcavity.model.times import lag_of, times_in
from symcavity.record.derivation import BRUTE_FORCE, SYMBOLIC, Step, Verdict
from symcavity.record.symbols import DisorderAverage, Source
from symcavity.witness.declared import declared_of, kind_of
from symcavity.witness.moments import free_points
from symcavity.witness.registry import result, witness
from symcavity.witness.verbs import claimed
from symcavity.witness.world import STEPS, World

NUDGE = mp.mpf(10) ** -14


def given_by(row: Equation) -> tuple[Any, int]:
    """The state that an equation gives, at the time of the equation, and by how many steps later it gives it."""
    if isinstance(row.lhs, Rate):
        return row.lhs.body, 1
    return row.lhs.now, 0 if row.lhs.time is None else lag_of(row.lhs.time)


class SitePath:
    """The path of the new site of a kind for given fields, filled from the claims of its effective law.

    Parameters
    ----------
    theory : Theory
    kind : Kind
    seed : int
    """

    def __init__(self, theory: Any, kind: Kind, seed: int = 5) -> None:
        self.world: World = declared_of(theory).world(seed, digits=60)
        self.world.meanings |= theory.order_parameters
        self.world.defined.clear()  # here the law says what fields are that have names
        self.kind, self.theory = kind, theory
        self.law = claimed(theory, "effective_law", kind)
        sources = {q for e in self.law for q in site_quantities(e.rhs, Source)}
        self.sources = sorted(sources, key=str)
        for q in self.sources:
            for k in range(STEPS + 1) if q.time is not None else [0]:
                self.world.given[self.world.key(q, self._env(q, k))] = mp.mpf(0)
        self.begin()

    def _env(self, q: Any, step: int) -> dict[Any, int]:
        return {} if q.time is None else {q.family.over: step}

    def begin(self) -> None:
        """Fill the path, step by step; what no equation has given yet keeps its seeded value."""
        t = self.theory.system.time
        order = [node for node in self.theory.system.motion.order if isinstance(node, SiteQuantity)]
        place = {q.family.name: k for k, q in enumerate(order)}
        rows = sorted(self.law, key=lambda e: place[given_by(e)[0].family.name])
        with mp.workdps(self.world.digits):
            for step in range(STEPS + 1):
                for row in rows:
                    state, lead = given_by(row)
                    at = step - lead
                    if at >= 0:
                        value = self.world.evaluate(row.rhs, {t: at})
                        if isinstance(row.lhs, Rate):
                            value = self.world.evaluate(state, {t: at}) + self.world.element() * value
                        self.world.given[self.world.key(state, {t: at + lead})] = value

    def response(self, q: Any, step: int, source: Any, at: int) -> Any:
        """The response of a state at a step to a source at another one, by moving the source."""
        key, found = self.world.key(source, self._env(source, at)), []
        for nudge in (NUDGE, -NUDGE):
            self.world.given[key] = nudge
            self.begin()
            found.append(self.world.number(self.world.key(q, {self.theory.system.time: step}), state=True))
        self.world.given[key] = mp.mpf(0)
        self.begin()
        with mp.workdps(self.world.digits):
            flowing = self.theory.system.flowing and source.time is not None
            return (found[0] - found[1]) / (2 * NUDGE) / (self.world.element() if flowing else 1)


@witness("tangent")
def tangent(step: Step, _dps: int) -> list[Verdict]:
    """Responses along a path that the claimed law fills, by moving each source: they obey the claimed equations."""
    theory, kind = step.evidence["theory"], step.data["kind"]
    path, ok = SitePath(theory, kind), bool(step.claims)
    t = theory.system.time
    for claim in step.claims:
        responses = sorted(claim.difference.atoms(SiteResponse), key=str)
        for at in range(STEPS):
            for source_at in range(at + 1):
                ok = ok and _holds(path, claim, responses, {t: at}, source_at)
    names = {given_by(e)[0] for e in path.law if given_by(e)[0].time is not None}
    answers = [c.lhs.body if isinstance(c.lhs, Rate) else c.lhs for c in step.claims]
    complete = {answer.state.now for answer in answers if isinstance(answer, SiteResponse)} >= names
    return result(BRUTE_FORCE, ok and complete, f"responses of paths of {STEPS} steps, by moving the sources")


def _holds(path: SitePath, claim: Equation, responses: list[Any], env: dict[Any, int], at: int) -> bool:
    when = next((r.time for r in responses if r.time is not None and r.time.is_Symbol), None)
    known: dict[Any, Any] = {}
    world = path.world

    def measured(node: SiteResponse, here: Any) -> Any:
        source = _source(path, node)
        step = 0 if node.state.time is None else world.index(node.state.time, here)
        key = (node.state.family.name, step, str(source), at)
        if key not in known:
            known[key] = path.response(node.state.now, step, source, at) if step <= STEPS else mp.mpf(0)
        return known[key]

    here = {**env, **({} if when is None else {when: at})}
    moved = _Measured(world, measured)
    return _close(moved.value(claim.lhs, here), moved.value(claim.rhs, here))


def _close(a: Any, b: Any) -> bool:
    return bool(abs(a - b) <= mp.mpf(10) ** -18 * max(1, abs(a), abs(b)))


class _Measured:
    """A world in which responses of the new site are those that were measured."""

    def __init__(self, world: World, measured: Any) -> None:
        self.world, self.measured = world, measured

    def value(self, expr: Any, env: Any) -> Any:
        before = self.world.site_response
        self.world.site_response = self.measured  # type: ignore[method-assign]
        try:
            with mp.workdps(self.world.digits):
                return _evaluate(self.world, expr, env)
        finally:
            self.world.site_response = before  # type: ignore[method-assign]


def _evaluate(world: World, expr: Any, env: Any) -> Any:
    """As the world does, with its responses asked of what stands in their place."""
    if isinstance(expr, SiteResponse):
        return world.site_response(expr, env)
    if isinstance(expr, Add):
        return mp.fsum(_evaluate(world, a, env) for a in expr.args)
    if isinstance(expr, Mul):
        return mp.fprod(_evaluate(world, a, env) for a in expr.args)
    if isinstance(expr, Rate):
        time = expr.time
        late, early = (_evaluate(world, expr.body, {**env, time: env[time] + k}) for k in (1, 0))
        return (late - early) / world.element()
    if isinstance(expr, Sum):
        return mp.fsum(_evaluate(world, expr.function, {**env, **point}) for point in world.points(expr.limits, env))
    return world.evaluate(expr, env)


def _source(path: SitePath, node: SiteResponse) -> Any:
    """The source that a response is to: that of the equation which its name gives, or the only one."""
    label = "" if node.field is None else path.world.labels.get((node.field.now.family, ()), "")
    name = f"I_{label}" if label else "I"
    return next(q for q in path.sources if q.family.name == name)


@witness("noise")
def noise(step: Step, _dps: int) -> list[Verdict]:
    """Draws of two signs, with the declared variance, enumerated over all histories of a few steps."""
    theory, kind = step.evidence["theory"], step.data["kind"]
    equations, _ = theory.system.typed
    declared = {q.family for e in equations for q in site_quantities(e.difference, Noise) if kind in q.site}
    names: set[str] = set()
    world, ok = declared_of(theory).world(7), bool(step.claims)
    for claim in step.claims:
        (body,), times = claim.lhs.args, times_in(claim.difference)
        for at in product(range(STEPS), repeat=len(times)):
            env = dict(zip(times, at, strict=True))
            ok = ok and _close(_over_histories(world, body, env, names), world.value(claim.rhs, env))
    return result(BRUTE_FORCE, ok and names == {q.name for q in declared}, f"all histories of {STEPS} draws")


def _over_histories(world: World, body: Any, env: Any, names: set[str]) -> Any:
    """The average of a product of draws, each of which is plus or minus its standard deviation."""
    drawn = [(q, int(world.index(q.time, env))) for q in site_quantities(body, Noise)]
    names |= {q.family.name for q, _ in drawn}
    each = world.element() if world.system.flowing else 1
    sizes = {q: mp.sqrt(world.value(q.family.variance) / each) for q, _ in drawn}
    total, histories = mp.mpf(0), list(product((1, -1), repeat=STEPS))
    for signs in histories:
        for q, when in drawn:
            world.given[world.key(q, env)] = sizes[q] * signs[when]
        total += world.value(body, env)
    return total / len(histories)


@witness("path_average")
def path_average(step: Step, _dps: int) -> list[Verdict]:
    """Each order parameter is the average over the new site of what it is the average of over all sites."""
    theory, kind = step.evidence["theory"], step.data["kind"]
    ok = bool(step.claims)
    for claim in step.claims:
        meaning = theory.order_parameters.get(claim.lhs)
        body = claim.rhs.args[0] if isinstance(claim.rhs, DisorderAverage) else None
        ok = ok and meaning is not None and body == meaning.args[0].xreplace({kind.index: S.Zero})
    good = "the average over one site of what is averaged over all"
    return result(SYMBOLIC, ok, good, "the average of something else")


@witness("shared_motion")
def shared_motion(step: Step, _dps: int) -> list[Verdict]:
    """What the claims give, averages over the new site as averages over all, solves the declared equations."""
    theory = step.evidence["theory"]
    declared = [e for e in theory.system.declared if kind_of(e) is None]
    ok = len(step.claims) == len(declared)
    for seed in (3, 4):
        world = declared_of(theory).world(seed)
        for claim, equation in zip(step.claims, declared, strict=False):
            for env in free_points(world, [claim.lhs]):
                value = world.value(claim.rhs.replace(DisorderAverage, _over_all), env)
                if claim.lhs == equation.lhs:
                    ok = ok and _close(value, world.value(equation.rhs, env))
                    continue
                world.given[world.key(claim.lhs, env)] = value
                ok = ok and _close(world.value(equation.lhs, env), world.value(equation.rhs, env))
    return result(BRUTE_FORCE, ok, "the declared equations, with sums written out", "not what was declared")


def _over_all(body: Any) -> Any:
    """The average over all sites of what stands at the new one."""
    (kind,) = {kind for q in site_quantities(body) for kind in q.site}
    return Average(body.xreplace({q: q.xreplace({S.Zero: kind.index}) for q in site_quantities(body)}))


@witness("moving_system")
def moving_system(step: Step, _dps: int) -> list[Verdict]:
    """The laws, the covariances, the averages and the initial values: all that was claimed before, and no source."""
    theory, steps = step.evidence["theory"], step.evidence["record"]
    before = [c for s in steps if s.rule == "path_average" for c in s.claims]
    for kind in theory.inserted:
        sources = {q for c in claimed(theory, "effective_law", kind) for q in site_quantities(c.rhs, Source)}
        before += [c.xreplace(dict.fromkeys(sources, S.Zero)) for c in claimed(theory, "effective_law", kind)]
        second = [c for c in claimed(theory, "field_statistics", kind) if not c.lhs.args[0].is_Symbol]
        before += second
    before += [c for s in steps if s.rule in ("noise", "shared_motion") for c in s.claims]
    before += [Equation(e.lhs.xreplace({k.index: S.Zero for k in e.lhs.site}), _zero(e)) for e in theory.system.initial]
    ok = _sorted(before) == _sorted(step.claims)
    return result(SYMBOLIC, ok, "what was claimed before, all of it, without sources", "not what was claimed before")


def _zero(entry: Any) -> Any:
    return entry.rhs.xreplace({k.index: S.Zero for k in entry.lhs.site})


def _sorted(claims: Any) -> list[str]:
    return sorted(str(c) for c in claims)

