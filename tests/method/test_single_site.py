"""The law of a single site against the one-site problem that it must solve, minimised numerically.

With the field ``eta + F*message`` a datum minimises ``loss(u) + (u - eta)**2/(2 F)``, F > 0; a feature
minimises ``penalty(w) - eta*w - F*w**2/2``, F < 0.  The losses are written here once more, by hand.
"""

from functools import cache, partial

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm
from sympy import (
    Abs,
    Dummy,
    Eq,
    Max,
    Min,
    Piecewise,
    Rational,
    S,
    Sum,
    Symbol,
    cosh,
    exp,
    lambdify,
    log,
    sign,
    sqrt,
    sympify,
)

from symcavity import (
    BipartiteSystem,
    ConvexProblem,
    Coupling,
    Datum,
    Feature,
    N,
    P,
    Quenched,
    UnsupportedLaw,
    alpha,
    average,
    i,
    mu,
)
from symcavity.method.derive import derive
from symcavity.model.averages import SiteResponse
from symcavity.model.kinds import DATUM, FEATURE
from symcavity.model.quantities import SiteQuantity
from symcavity.record.symbols import CavitySymbol
from symcavity.sites.branching.branches import SitePuzzle
from symcavity.sites.branching.layout import solve_site

x, w, v, xi = Coupling("x"), Feature("w"), Feature("v"), Datum("xi")
y, l, c = Quenched("y", mu), Quenched("l", i), Quenched("c", i)
C, kappa = Symbol("C", positive=True), Symbol("kappa", positive=True)
theta = Symbol("theta", real=True)
h = Sum(x[mu, i] * w[i], (i, 1, N))
q = Sum(w[i] ** 2, (i, 1, N)) / 2
WALL = 1e9


def wall(ok, value=0.0):
    return value if ok else WALL


def data(body):
    return Sum(body, (mu, 1, P))


def on_w(penalty, *constraints):
    """A feature penalty with an innocent loss."""
    return ConvexProblem(Sum(penalty, (i, 1, N)) + data(h**2), list(constraints))


LOSSES = {
    "margin": (ConvexProblem(q, [h >= kappa]), lambda u, p: wall(u >= p["kappa"] - 1e-12)),
    "soft margin": (
        ConvexProblem(q + C * data(xi[mu]), [h >= 1 - xi[mu], xi[mu] >= 0]),
        lambda u, p: p["C"] * max(0, 1 - u),
    ),
    "hinge": (ConvexProblem(q + C * data(Max(0, 1 - h))), lambda u, p: p["C"] * max(0, 1 - u)),
    "label of unknown sign": (
        ConvexProblem(q + C * data(Max(0, 1 - y[mu] * h))),
        lambda u, p: p["C"] * max(0, 1 - p["y"] * u),
    ),
    "hard label": (ConvexProblem(q, [y[mu] * h >= 1]), lambda u, p: wall(p["y"] * u >= 1 - 1e-12)),
    "squared hinge": (
        ConvexProblem(q + C * data(Max(0, 1 - h) ** 2)),
        lambda u, p: p["C"] * max(0, 1 - u) ** 2,
    ),
    "logistic": (ConvexProblem(q + C * data(log(1 + exp(-h)))), lambda u, p: p["C"] * np.logaddexp(0, -u)),
    "labelled logistic": (
        ConvexProblem(q + C * data(log(1 + exp(-y[mu] * h)))),
        lambda u, p: p["C"] * np.logaddexp(0, -p["y"] * u),
    ),
    "modulus": (ConvexProblem(q + C * data(Abs(h - y[mu]))), lambda u, p: p["C"] * abs(u - p["y"])),
    "quantile": (
        ConvexProblem(q + C * data(Max((h - y[mu]) / 4, 3 * (y[mu] - h) / 4))),
        lambda u, p: p["C"] * max((u - p["y"]) / 4, 3 * (p["y"] - u) / 4),
    ),
    "insensitive": (
        ConvexProblem(q + C * data(Max(0, Abs(h - y[mu]) - kappa))),
        lambda u, p: p["C"] * max(0, abs(u - p["y"]) - p["kappa"]),
    ),
    "three pieces": (
        ConvexProblem(q + C * data(Max(0, 1 - h, 3 - 4 * h))),
        lambda u, p: p["C"] * max(0, 1 - u, 3 - 4 * u),
    ),
    "four pieces": (
        ConvexProblem(q + C * data(Max(-h, 1 - 2 * h, h - 3, 2 * h - 8))),
        lambda u, p: p["C"] * max(-u, 1 - 2 * u, u - 3, 2 * u - 8),
    ),
    "a piece that is never reached": (
        ConvexProblem(q + C * data(Max(0, 1 - h, -5 - h / 2))),
        lambda u, p: p["C"] * max(0, 1 - u, -5 - u / 2),
    ),
    "minus Min": (
        ConvexProblem(q - C * data(Min(0, h - 1, 2 * h))),
        lambda u, p: -p["C"] * min(0, u - 1, 2 * u),
    ),
    "Huber by cases": (
        ConvexProblem(q + C * data(Piecewise((h**2 / 2, Abs(h) <= 1), (Abs(h) - Rational(1, 2), True)))),
        lambda u, p: p["C"] * (u**2 / 2 if abs(u) <= 1 else abs(u) - 0.5),
    ),
    "one-sided square by cases": (
        ConvexProblem(q + C * data(Piecewise((h**2, h > 0), (0, True)))),
        lambda u, p: p["C"] * (u**2 if u > 0 else 0),
    ),
    "square and kink": (
        ConvexProblem(q + data(h**2 + C * Abs(h - theta))),
        lambda u, p: u**2 + p["C"] * abs(u - p["theta"]),
    ),
    "slack with both penalties": (
        ConvexProblem(q + data(C * xi[mu] + xi[mu] ** 2), [h >= 1 - xi[mu], xi[mu] >= 0]),
        lambda u, p: p["C"] * max(0, 1 - u) + max(0, 1 - u) ** 2,
    ),
    "free slack": (
        ConvexProblem(q + C * data(xi[mu] ** 2), [h >= 1 - xi[mu]]),
        lambda u, p: p["C"] * max(0, 1 - u) ** 2,
    ),
    "tube": (
        ConvexProblem(q, [Abs(h - y[mu]) <= kappa]),
        lambda u, p: wall(abs(u - p["y"]) <= p["kappa"] + 1e-12),
    ),
    "tube by two bounds": (
        ConvexProblem(q, [h - y[mu] <= 1, h - y[mu] >= -1]),
        lambda u, p: wall(abs(u - p["y"]) <= 1 + 1e-12),
    ),
    "equality": (ConvexProblem(q, [Eq(h, y[mu])]), lambda u, p: 1e7 * (u - p["y"]) ** 2),
    "pseudo-modulus": (ConvexProblem(q + C * data(sqrt(1 + h**2))), lambda u, p: p["C"] * np.sqrt(1 + u**2)),
    "exponential": (ConvexProblem(q + C * data(exp(-h))), lambda u, p: p["C"] * np.exp(-u)),
    "log cosh": (ConvexProblem(q + C * data(log(cosh(h)))), lambda u, p: p["C"] * np.log(np.cosh(u))),
    "quartic": (ConvexProblem(q + C * data(h**4)), lambda u, p: p["C"] * u**4),
    "logistic with a bound": (
        ConvexProblem(q + C * data(log(1 + exp(-h))), [h >= -1]),
        lambda u, p: wall(u >= -1 - 1e-12, p["C"] * np.logaddexp(0, -u)),
    ),
}

PENALTIES = {
    "ridge": (on_w(C * w[i] ** 2 / 2), lambda z, p: p["C"] * z**2 / 2),
    "lasso": (on_w(C * Abs(w[i])), lambda z, p: p["C"] * abs(z)),
    "elastic net": (on_w(C * Abs(w[i]) + w[i] ** 2 / 2), lambda z, p: p["C"] * abs(z) + z**2 / 2),
    "non-negative": (on_w(w[i] ** 2 / 2, w[i] >= 0), lambda z, _: wall(z >= -1e-12, z**2 / 2)),
    "non-negative lasso": (on_w(C * Abs(w[i]), w[i] >= 0), lambda z, p: wall(z >= -1e-12, p["C"] * z)),
    "box": (
        on_w(w[i] ** 2 / 2, Abs(w[i]) <= kappa),
        lambda z, p: wall(abs(z) <= p["kappa"] + 1e-12, z**2 / 2),
    ),
    "bounded below": (
        on_w(w[i] ** 2 / 2, w[i] >= -kappa),
        lambda z, p: wall(z >= -p["kappa"] - 1e-12, z**2 / 2),
    ),
    "bounded above": (
        on_w(w[i] ** 2 / 2, w[i] <= theta),
        lambda z, p: wall(z <= p["theta"] + 1e-12, z**2 / 2),
    ),
    "lasso in a box": (
        on_w(C * Abs(w[i]), Abs(w[i]) <= 1),
        lambda z, p: wall(abs(z) <= 1 + 1e-12, p["C"] * abs(z)),
    ),
    "asymmetric": (on_w(Max(2 * w[i], -C * w[i])), lambda z, p: max(2 * z, -p["C"] * z)),
    "towards a target": (on_w(C * Abs(w[i] - c[i])), lambda z, p: p["C"] * abs(z - p["c"])),
    "quartic": (on_w(w[i] ** 4), lambda z, _: z**4),
    "smooth": (on_w(C * sqrt(1 + w[i] ** 2)), lambda z, p: p["C"] * np.sqrt(1 + z**2)),
    "fused pair": (
        on_w(w[i] ** 2 / 2 + v[i] ** 2 / 2 + C * Abs(w[i] - v[i])),
        lambda z, p: z**2 / 2 + _over(lambda t: t**2 / 2 + p["C"] * abs(z - t)),
    ),
    "pair with a square of the sum": (
        on_w(w[i] ** 2 / 2 + v[i] ** 2 + (w[i] + v[i]) ** 2),
        lambda z, _: z**2 / 2 + _over(lambda t: t**2 + (z + t) ** 2),
    ),
    "hidden non-negative state": (
        on_w(v[i] ** 2 + (w[i] - v[i]) ** 2, v[i] >= 0),
        lambda z, _: _over(lambda t: wall(t >= 0, t**2 + (z - t) ** 2)),
    ),
}


def _over(function):
    return min(minimum(function), function(0.0))


def argmin(function, low=-60.0, high=60.0):
    grid = np.linspace(low, high, 481)
    values = [function(g) for g in grid]
    best = int(np.argmin(values))
    a, b = grid[max(best - 1, 0)], grid[min(best + 1, 480)]
    return minimize_scalar(function, bounds=(a, b), method="bounded", options={"xatol": 1e-11}).x


def minimum(function):
    return function(argmin(function))


def on_the_field(loss, named, strength, eta, u):
    return loss(u, named) + (u - eta) ** 2 / (2 * strength)


def against_the_field(penalty, named, strength, eta, z):
    return penalty(z, named) - eta * z - strength * z**2 / 2


@cache
def solved(problem, side):
    return derive(problem.kkt()).sites[side]


def message_factor(problem, other):
    """The factor of the message in the other side's field, which the self-coupling contains."""
    law = problem.kkt().laws[other]
    (heard,) = law.fields
    return S.One if law.coefficient(heard).has(SiteQuantity) else law.coefficient(heard)


def numbers(theory_side, rng):
    """Random values of everything but the field, by symbol and by name."""
    solution = theory_side.generic
    exprs = [
        e for b in solution.branches for e in (*b.values.values(), *b.conditions, *(b.implicit or ())[1:])
    ]
    found = (
        set().union(*(e.atoms(Symbol, SiteQuantity) for e in exprs))
        - {mu, i, solution.inner}
        - set(solution.sources)
    )
    found -= {b.implicit[0] for b in solution.branches if b.implicit}
    rule, named = {}, {}
    for s in sorted(found, key=str):
        size = float(rng.uniform(0.3, 2.0))
        positive = isinstance(s, Symbol) and s.is_positive
        value = (
            size
            if positive
            else -size
            if isinstance(s, Symbol) and s.is_negative
            else float(rng.choice([-1, 1])) * size
        )
        rule[s] = sympify(value)
        named[s.family.name if isinstance(s, SiteQuantity) else s.name] = value
    rule |= dict.fromkeys(solution.sources, S.Zero)
    return rule, named


class Evaluated:
    """A site's solution at numbers: states and their derivatives as functions of the field."""

    def __init__(self, theory_side, rule):
        self.solution, self.rule = theory_side.generic, rule
        self.s = float(self.solution.reflection.xreplace(rule))
        self.ensemble = None

    def piece(self, eta):
        solution = self.solution
        if not solution.regions:
            for branch in solution.branches:
                at = {**self.rule, solution.inner: sympify(eta)}
                if all(float(k.xreplace(at)) >= -1e-12 for k in branch.conditions):
                    return branch
            raise AssertionError("no branch")
        t = self.s * eta
        ends = [float(r.high.xreplace(self.rule)) for r in solution.regions[:-1]]
        assert ends == sorted(ends)
        return solution.regions[int(np.searchsorted(ends, t))]

    def states(self, eta):
        piece = self.piece(eta)
        at = {**self.rule, self.solution.inner: sympify(eta)}
        if piece.implicit:
            unknown, psi = piece.implicit
            call = lambdify(unknown, psi.xreplace(self.rule) - eta, "numpy")
            with np.errstate(all="ignore"):
                at[unknown] = sympify(brentq(call, -200, 200, xtol=1e-13))
        return {state: float(value.xreplace(at)) for state, value in piece.values.items()}, piece, at


@pytest.mark.parametrize("name", LOSSES)
def test_a_datum_minimises_its_loss(name):
    problem, loss = LOSSES[name]
    side = solved(problem, DATUM)
    rng = np.random.default_rng(2)
    for _ in range(3):
        rule, named = numbers(side, rng)
        (heard,) = side.heard
        assert named["F^00"] > 0
        strength = named["F^00"] / float(message_factor(problem, FEATURE).xreplace(rule))
        evaluated = Evaluated(side, rule)
        for eta in np.linspace(-6.3, 6.1, 14):
            states = evaluated.states(eta)[0]
            at = rule | {k: sympify(value) for k, value in states.items()}
            message = sum(float((k.symbol * k.emission).xreplace(at)) for k in heard.feedback)
            best = argmin(partial(on_the_field, loss, named, strength, eta))
            assert eta + message == pytest.approx(best, abs=2e-4 if name == "equality" else 3e-6)


@pytest.mark.parametrize("name", PENALTIES)
def test_a_feature_minimises_its_penalty(name):
    problem, penalty = PENALTIES[name]
    side = solved(problem, FEATURE)
    rng = np.random.default_rng(3)
    for _ in range(3 if "pair" not in name and "hidden" not in name else 1):
        rule, named = numbers(side, rng)
        strength = named["F_00"] / float(message_factor(problem, DATUM).xreplace(rule))
        assert strength < 0
        evaluated = Evaluated(side, rule)
        for eta in np.linspace(-5.3, 5.1, 12 if "pair" not in name and "hidden" not in name else 4):
            best = argmin(partial(against_the_field, penalty, named, strength, eta), -40, 40)
            assert evaluated.states(eta)[0][w[i]] == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("name", [*LOSSES, *PENALTIES])
def test_the_response_is_the_derivative_with_respect_to_the_source(name):
    problem, which = (LOSSES[name][0], DATUM) if name in LOSSES else (PENALTIES[name][0], FEATURE)
    side = solved(problem, which)
    rule, _ = numbers(side, np.random.default_rng(4))
    evaluated, ensemble = Evaluated(side, rule), side.ensemble
    checked = 0
    for eta in np.linspace(-4.1, 4.3, 9):
        step = 1e-5
        (low, left, _), (high, right, _), (_, piece, at) = (
            evaluated.states(eta + d) for d in (-step, step, 0.0)
        )
        if left is not right:
            continue
        for state in side.law.unknowns:
            derivative = ensemble.response(piece.values, piece.implicit, SiteResponse(state)).xreplace(at)
            derivative *= side.heard[0].factor.xreplace(
                rule
            )  # the source stands beside the field's whole term
            assert float(derivative) == pytest.approx(
                (high[state] - low[state]) / (2 * step), abs=1e-5, rel=1e-5
            )
            checked += 1
    assert checked


@pytest.mark.parametrize("name", ["soft margin", "hinge", "insensitive", "quantile", "three pieces", "tube"])
def test_the_states_are_continuous_across_the_boundaries(name):
    side = solved(LOSSES[name][0], DATUM)
    rule, _ = numbers(side, np.random.default_rng(5))
    evaluated = Evaluated(side, rule)
    for region in side.generic.regions[:-1]:
        edge = float(region.high.xreplace(rule)) / evaluated.s
        below, above = evaluated.states(edge - 1e-9)[0], evaluated.states(edge + 1e-9)[0]
        assert below == pytest.approx(above, abs=1e-7)


def test_a_piece_that_is_never_reached_makes_no_region():
    side = solved(LOSSES["a piece that is never reached"][0], DATUM)
    assert len(side.generic.regions) == 3


def puzzle(equations, pairs, unknowns, eta):
    return solve_site(equations, pairs, unknowns, eta, [], "The law of a test")


eta = CavitySymbol("eta", DATUM)
F = CavitySymbol("F", DATUM, positive=True)
lam, g = Datum("lam")[mu], Datum("g")[mu]


@pytest.mark.parametrize(
    ("equations", "pairs", "unknowns"),
    [
        (
            [g - (eta - F * lam) + 1],
            [(lam, g)],
            [lam, g],
        ),  # the wrong sign of the self-coupling: overlap and gap
        ([g - eta], [(lam, g)], [lam, g]),  # the state that relaxes is missing
        ([lam - 1], [(lam, eta - F * lam)], [lam, g]),  # one unknown too many
        ([lam * 0 + eta], [], [lam]),  # the field alone
        ([lam**2 - eta], [], [lam]),  # two roots or none
        ([lam**3 - 3 * lam - eta], [], [lam]),  # three roots
        ([exp(lam) - 1 / eta], [], [lam]),  # not linear in the field
    ],
)
def test_laws_that_do_not_fix_the_states_are_refused(equations, pairs, unknowns):
    with pytest.raises(UnsupportedLaw):
        puzzle(equations, pairs, unknowns, eta)


def test_a_plain_pair_needs_no_assumption():
    plain = puzzle([g - (eta + F * lam) + 1], [(lam, g)], [lam, g], eta)
    assert len(plain.regions) == 2
    assert plain.assumed == ()


def test_the_order_of_thresholds_that_parameters_decide_is_an_assumption_or_left_open():
    low, high = Symbol("low", real=True), Symbol("high", real=True)
    found = puzzle([lam - (eta - F * (lam - Max(low, Min(high, lam))))], [], [lam], eta)
    assert not found.regions or found.assumed


def test_a_solution_prints_as_a_positive_part():
    side = solved(LOSSES["margin"][0], DATUM)
    text = str(side.generic.without_sources().expression(Datum("lam")[mu]))
    assert "Max(0" in text


def test_too_many_branches_are_refused_before_any_work():
    unknowns = [Dummy(f"x{k}") for k in range(12)]
    law = SitePuzzle([], [(u, u - eta) for u in unknowns], unknowns, eta, "A law")
    with pytest.raises(UnsupportedLaw, match="branches"):
        law.branches()


def test_a_declared_law_with_a_clip():
    eps, Delta = Datum("eps"), Feature("Delta")
    system = BipartiteSystem(
        [
            Eq(eps[mu], Max(-1, Min(1, Sum(x[mu, i] * Delta[i], (i, 1, N)) + y[mu]))),
            Eq(Delta[i], c[i] - Sum(x[mu, i] * eps[mu], (mu, 1, P))),
        ]
    )
    side = derive(system).sites[DATUM]
    assert len(side.generic.regions) == 3


def test_the_signs_of_the_self_couplings_are_found():
    for name, (problem, _) in LOSSES.items():
        side = solved(problem, DATUM)
        assert list(side.signs.values()) == [1], name


def test_jumps_are_refused():
    eps, Delta = Datum("eps"), Feature("Delta")
    with pytest.raises(UnsupportedLaw):
        BipartiteSystem(
            [
                Eq(eps[mu], -sign(Sum(x[mu, i] * Delta[i], (i, 1, N)))),
                Eq(Delta[i], c[i] + Sum(x[mu, i] * eps[mu], (mu, 1, P))),
            ]
        ).cavity()


def test_fields_that_are_heard_as_one_are_averaged_as_one():
    """A tube around a teacher: the fraction above it is the tail of one Gaussian, of the variance <(w - t)^2>."""
    x, w, t, y = Coupling("x"), Feature("w"), Quenched("t", i), Quenched("y", mu)
    heard = Sum(x[mu, i] * w[i], (i, 1, N))
    taught = Sum(x[mu, i] * t[i], (i, 1, N))
    loss = Max(0, Abs(taught + y[mu] - heard) - Rational(1, 2))
    theory = ConvexProblem(Sum(loss, (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 4).cavity()
    solution = theory.solve({alpha: 2, t: {1: 1}, y: {1: Rational(1, 2), -1: Rational(1, 2)}})
    lam = next(q for q in theory.datum.solution if str(q) == "lambda[mu]")
    width = float(solution[average((w[i] - t[i]) ** 2)]) ** 0.5
    tail = (norm.cdf(0.5 / width) + norm.cdf(-1.5 / width)) / 2
    assert float(solution[average(lam > 0)]) == pytest.approx(tail, rel=1e-9)


def test_a_message_below_zero_is_shown_with_its_sign():
    """The loss Max(0, u)^2 pulls its field down: the message is -2 [eta]_+/(1 + 2 S), and never positive."""
    heard = Sum(Coupling("x")[mu, i] * Feature("w")[i], (i, 1, N))
    theory = ConvexProblem(Sum(Max(0, heard) ** 2, (mu, 1, P))).cavity()
    (step,) = (s for s in theory.derivation if s.key == "datum.solution")
    assert all(v.ok for v in step.verdicts())
    (message,) = (c.rhs for c in step.claims if "lambda" in str(c.lhs))
    assert message.could_extract_minus_sign()
