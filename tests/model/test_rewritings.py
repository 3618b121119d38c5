"""Each rewriting keeps what a declaration says: small ones are written out at random numbers, before and after it."""

from collections import defaultdict
from functools import cache
from itertools import product
from random import Random

import pytest
from mpmath import mp
from sympy import (
    Abs,
    Eq,
    Expr,
    Heaviside,
    Max,
    Piecewise,
    S,
    Sum,
    Symbol,
    atanh,
    cos,
    cosh,
    log,
    sign,
    sin,
    sinh,
    sqrt,
    symbols,
    tanh,
)

from symcavity import (
    Coupling,
    Datum,
    Feature,
    Field,
    Global,
    Kernel,
    N,
    P,
    Quenched,
    Time,
    Variable,
    average,
    i,
    mu,
)
from symcavity.model.averages import Average
from symcavity.model.complementary import Complementary
from symcavity.model.equations import Equation
from symcavity.model.kinds import DATUM, FEATURE, alpha
from symcavity.model.quantities import SiteQuantity
from symcavity.model.rewriting import Declaration, Rewritten, sides
from symcavity.model.rewritings import REWRITINGS
from symcavity.model.site_sums import free_kind, kind_of_sum

SIZES = {FEATURE: 4, DATUM: 3}
x, z, w, lam = Coupling("x"), Coupling("z", variance=1), Feature("w"), Datum("lambda")
beside = Coupling("v", variance=4 / N, correlation={x: 1})
y, t = Quenched("y", mu, law={1: "1/2", -1: "1/2"}), Quenched("t", i)
J = Coupling("J", between=(i, i))
j, nu = symbols("j nu", integer=True)
h, R = Sum(x[mu, i] * w[i], (i, 1, N)), Global("R", positive=True)
v, f = Feature("v"), Field("f", i)
tau = Symbol("tau", positive=True)
heard = Sum(x[mu, i] * t[i], (i, 1, N))
norm = sqrt(Sum(w[i] ** 2, (i, 1, N)) / N)
phi, rho = Coupling("phi", variance=1), Quenched("rho", i, positive=True)
kernel = Kernel("K", phi, rho)


def over_data(body):
    return Sum(body, (mu, 1, P))


def biased(mean, **options):
    return Sum(Coupling("x", mean=mean, **options)[mu, i] * w[i], (i, 1, N))


size = Sum(w[i] ** 2, (i, 1, N)) / 2
clock = Time("clock")
moving, answer = Variable("moving", i, over=clock), Variable("answer", mu, over=clock)
now = Equation(answer[mu, clock], Sum(x[mu, i] * moving[i, clock], (i, 1, N)))
apart = Equation(moving[i, clock + 1], Sum(J[i, j] * sin(moving[j, clock]), (j, 1, N)) + (
    Sum((moving[j, clock] - moving[i, clock]) ** 2 + cos(moving[i, clock] - t[j]), (j, 1, N)) / N
))
late = Equation(moving[i, clock + 1], Sum(x[mu, i] * answer[mu, clock - 1], (mu, 1, P)))
DECLARATIONS = {
    "functions of two sites": Declaration(None, (apart,)),
    "a sum at an earlier time": Declaration(None, (late, now)),
    "means of losses": Declaration(over_data((h - 1) ** 2) / P + average(w[i] ** 2) / 2, (w[i] >= -3,)),
    "a common factor": Declaration((over_data((h - 1) ** 2) + size) / 3, ()),
    "a difference of couplings": Declaration(
        over_data((h - 2 * Sum(Coupling("v")[mu, i] * w[i], (i, 1, N)) - 1) ** 2) + size, ()
    ),
    "a coupling of correlation one": Declaration(
        over_data((h - Sum(beside[mu, i] * w[i] ** 3, (i, 1, N)) - 1) ** 2) + size, ()
    ),
    "a norm": Declaration(over_data((h - 1) ** 2) / P + norm, (norm <= 2,)),
    "norms alone": Declaration(sqrt(over_data((h - 1) ** 2)) + sqrt(N) * norm, ()),
    "a cone": Declaration(over_data((h - 1) ** 2) + N * R, (norm <= R,)),
    "cases": Declaration(over_data(Piecewise((tau * h, h >= 0), ((tau - 1) * h, True))) + size, ()),
    "steps": Declaration(over_data((1 - y[mu] * h) ** 2 * Heaviside(1 - y[mu] * h)) + size, ()),
    "cases by a square": Declaration(
        over_data(Piecewise((h**2 / 2, h**2 <= tau**2), (tau * Max(h, -h) - tau**2 / 2, True))) + size, ()
    ),
    "steps beside a norm": Declaration(over_data((1 - h + norm / 2) ** 2 * Heaviside(1 - h + norm / 2)) + size, ()),
    "the sign of a field": Declaration(size, (heard * h / Abs(heard) >= 1,)),
    "sizes by cases": Declaration(
        over_data(Max(h, -h)) + Sum(sqrt(w[i] ** 2), (i, 1, N)),
        (h <= Piecewise((heard, heard > 0), (-heard, True)), h >= -heard * sign(heard)),
    ),
    "hyperbolic functions": Declaration(over_data(log(1 + cosh(h) + sinh(h))) + size, ()),
    "constraints stated twice": Declaration(
        over_data((h - 1) ** 2),
        (w[i] >= 0, 2 * w[i] >= 0, h <= 3, h <= 4, Eq(Sum(w[i], (i, 1, N)), N), Sum(w[i], (i, 1, N)) <= N),
    ),
    "logarithms in bounds": Declaration(
        over_data((h - 1) ** 2) + Sum(t[i] * w[i], (i, 1, N)),
        (log(3 + w[i]) >= t[i], Sum(log(5 + w[i]), (i, 1, N)) >= N),
    ),
    "logarithms": Declaration(over_data((h - 1) ** 2) - Sum(log(3 + w[i]), (i, 1, N)), ()),
    "variance one": Declaration(size, (Sum(z[mu, i] * w[i], (i, 1, N)) >= tau * sqrt(N),)),
    "variance one, divided": Declaration(over_data((Sum(z[mu, i] * w[i], (i, 1, N)) / sqrt(N) - 1) ** 2) + size, ()),
    "a kernel": Declaration(
        over_data((Sum(kernel[mu, nu] * lam[nu], (nu, 1, P)) - y[mu]) ** 2)
        + tau * Sum(kernel[mu, nu] * lam[mu] * lam[nu], (mu, 1, P), (nu, 1, P)),
        (),
    ),
    "what a global variable adds": Declaration(
        over_data((h - R * heard - Sum(x[mu, i] * (3 * w[i] + R), (i, 1, N)) - 1) ** 2) + size, ()
    ),
    "cases of a given field": Declaration(
        over_data((Piecewise((-1, heard < -1), (1, heard > 1), (heard, True)) - h) ** 2)
        + over_data(Abs(Piecewise((0, heard < 0), (2 * heard, True)) - h)),
        (),
    ),
    "the largest of lines": Declaration(over_data(Max(0, h - 1, 2 * h - 2, h / 2 - 1)) + size, ()),
    "sums in sums": Declaration(
        over_data((Sum(x[mu, i] * Sum(J[i, j] * w[j], (j, 1, N)), (i, 1, N)) - 1) ** 2) + size, ()
    ),
    "a network": Declaration(
        None,
        (
            Equation(f[i], Sum(J[i, j] * tanh(f[j]), (j, 1, N)) + v[i]),
            Equation(v[i], average(f[i]) / 2 + 1),
            Complementary(w[i], w[i] - f[i]),
        ),
    ),
    "an inverse function": Declaration(
        None, (Equation(2 * atanh(v[i] / 3), Sum(J[i, j] * v[j], (j, 1, N)) + 1),
               Equation(log(7 + w[i]) - log(5 - w[i]), t[i] / 2)),
    ),
    "a root": Declaration(
        None,
        (
            Equation(v[i] * (3 - v[i] - Sum(J[i, j] * v[j], (j, 1, N))) + tau, 0),
            Complementary(w[i], w[i] - v[i]),
            v[i] >= 0,
        ),
    ),
    "a mean": Declaration(over_data((biased(t[i] * y[mu] / N) - y[mu]) ** 2) + size, (biased(1 / N) >= -5,)),
    "a balance": Declaration(
        size, (biased(tau / sqrt(N)) >= 1 + 2 * sqrt(N), biased(tau / sqrt(N)) <= 7 + 2 * sqrt(N))
    ),
    "a mean of variance one": Declaration(
        over_data((biased(y[mu] * t[i] / sqrt(N), variance=1) / sqrt(N) - 1) ** 2) + size, ()
    ),
    "a mean and a norm": Declaration(over_data(Max(0, 1 - biased(t[i] / N) + norm)) + size, ()),
}


class World:
    """Numbers for everything that may stand in a declaration, drawn when they are asked for."""

    def __init__(self, seed):
        self.seed, self.given, self.meanings = seed, {}, {}

    def number(self, key, *, positive=False):
        if key not in self.given:
            value = mp.mpf(Random(f"{self.seed} {key}").randint(-2000, 2000)) / 1000  # noqa: S311
            self.given[key] = abs(value) + mp.mpf(1) / 9 if positive else value
        return self.given[key]

    def of_site(self, q, env):
        at = tuple(int(index.xreplace(env)) for index in q.args[1:])
        if q.family in self.meanings:
            indices, meaning = self.meanings[q.family]
            return self(meaning, dict(zip(indices, map(S, at), strict=True)))
        if isinstance(q.family, Quenched) and q.family.values:
            return mp.mpf(int(Random(f"{self.seed} {q} {at}").choice(q.family.values)))  # noqa: S311
        key = q.family.name, at
        return self.number(key, positive=isinstance(q.family, Quenched) and q.family.positive)

    def __call__(self, expr, env):
        if isinstance(expr, SiteQuantity):
            return self.of_site(expr, env)
        if isinstance(expr, Average):
            kind = free_kind(expr.body, "an average")
            every = range(1, SIZES[kind] + 1)
            return mp.fsum(self(expr.body, {**env, kind.index: S(k)}) for k in every) / SIZES[kind]
        if isinstance(expr, Sum):
            ranges = [range(1, SIZES[kind_of_sum(lim)] + 1) for lim in expr.limits]
            indices = [lim[0] for lim in expr.limits]
            points = (dict(zip(indices, map(S, at), strict=True)) for at in product(*ranges))
            return mp.fsum(self(expr.function, {**env, **at}) for at in points)
        if hasattr(expr, "expanded"):
            return self(expr.expanded, env)
        if expr in self.meanings:
            return self(self.meanings[expr], env)
        if expr.is_Symbol:
            sizes = {kind.size: count for kind, count in SIZES.items()}
            known = {**sizes, alpha: mp.mpf(SIZES[DATUM]) / SIZES[FEATURE], **env}
            return mp.mpf(known[expr]) if expr in known else self.number(expr.name, positive=bool(expr.is_nonnegative))
        if isinstance(expr, Piecewise):
            return next(self(e, env) for e, test in expr.args if test == S.true or self.holds(test, env))
        if not expr.args or expr.is_number:
            return mp.mpmathify(expr.evalf(30))
        return mp.mpmathify(expr.func(*(self(arg, env) for arg in expr.args)).evalf(30))

    def holds(self, test, env):
        return bool(test.func(*(self(side, env) for side in test.args)))


def points(expr):
    """The sites that an expression of one site may belong to; of what belongs to none, one point."""
    kind, when = free_kind(expr, "an entry"), dict.fromkeys(expr.atoms(Time), S(2))
    return [when] if kind is None else [{kind.index: S(k), **when} for k in range(1, SIZES[kind] + 1)]


def differences(entry):
    """What an entry says to be zero, or not negative: of a pair, both."""
    if isinstance(entry, Complementary | Expr):
        return sides(entry)
    lhs, rhs = (entry.gts, entry.lts) if hasattr(entry, "gts") else (entry.lhs, entry.rhs)
    return [lhs - rhs]


def near(one, other):
    return abs(one - other) <= mp.mpf(10) ** -12 * (1 + abs(one) + abs(other))


def check_rewriting(rewriting, before, after):
    """Hold a declaration against what a rewriting has made of it; return whether it has changed it.

    The objective stays, up to a factor that depends on the sizes alone; so does what each relation compares, up to a
    positive factor, or it keeps its sign; observables keep their values.
    """
    if before == after:
        return False
    kept = [e for _, e in after.brought if e not in [said for _, said in before.brought]]
    rest = [e for e in after.parts if e not in kept]
    factors = [set() for _ in before.parts]
    if len(rest) < len(before.parts):
        (check_constraints if before.objective is not None else check_roots)(before, after)
        return True
    for seed in range(3):
        world = World(seed)
        for symbol, meaning in (rewriting.symbols or getattr(rewriting, "meanings", {})).items():
            of_site = isinstance(symbol, SiteQuantity)
            world.meanings[symbol.family if of_site else symbol] = (symbol.args[1:], meaning) if of_site else meaning
        for one, other in zip(before.parts, rest, strict=False):
            for a, b in zip(differences(one), differences(other), strict=True):
                for at in points(a):
                    first, second = world(a, at), world(b, at)
                    assert (first > 0) == (second > 0) or near(first, second), (one, other)
                    if a != b and first:
                        factors[before.parts.index(one)].add(mp.nstr(second / first, 12))
                    if a == before.objective:
                        continue
                    seen = world(rewriting.observable(a, free_kind(a, "an entry")), at)
                    assert near(first, seen), (a, rewriting.observable(a, free_kind(a, "an entry")))
        for entry in (*kept, *rest[len(before.parts) :]):  # what is said of new names is so
            if isinstance(entry, Equation | Eq) or entry in kept:
                for at in points(entry.lhs - entry.rhs):
                    assert near(world(entry.lhs, at), world(entry.rhs, at)), entry
    if before.objective is not None:
        assert len(factors[0]) <= 1, factors[0]
    return True


def check_constraints(before, after):
    """Hold all constraints of each site against all of those that are left."""
    assert before.objective == after.objective
    truths = set()
    for seed, kind in product(range(4), (FEATURE, DATUM, None)):
        world = World(seed)
        lists = [[c for c in side.entries if free_kind(c.lhs - c.rhs, "") == kind] for side in (before, after)]
        for at in [{kind.index: S(k)} for k in range(1, SIZES[kind] + 1)] if kind else [{}]:
            one, other = (all(world.holds(c, at) for c in constraints) for constraints in lists)
            assert one == other
            truths.add((kind, one))
    assert {(FEATURE, True), (FEATURE, False), (DATUM, True), (DATUM, False)} <= truths


def check_roots(before, after):
    """Where the first member of a new pair is positive, its second is the equation, up to a sign that stays."""
    signs = defaultdict(set)
    for seed in range(20):
        world = World(seed)
        for one, other in zip(before.entries, after.entries, strict=False):
            if one == other:
                continue
            gap, value = other.pair
            for at in points(gap):
                if world(gap, at) > 0:
                    signs[one].add(mp.sign(world(one.difference, at)) * mp.sign(world(value, at)))
                    assert near(abs(world(one.difference, at)), abs(world(value, at) * world(gap, at)))
    assert [len(found) for found in signs.values()] == [1]


@cache
def rewritten(name):
    return Rewritten(DECLARATIONS[name], REWRITINGS)


@pytest.mark.parametrize("kind", REWRITINGS, ids=lambda kind: kind.key)
def test_what_is_said_stays(kind):
    found = []
    with mp.workdps(30):
        for name in DECLARATIONS:
            stage = rewritten(name).stages[kind.key]
            found.append(check_rewriting(stage.rewriting, stage.before, stage.after))
    assert any(found)  # a rewriting that is new needs a declaration that it changes
