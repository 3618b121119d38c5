"""The optimality conditions against the explicit problem at N = 3, P = 2.

The derived system is written out with random couplings and solved with nothing but least squares; what it
gives must be a minimum of the declared problem, which is evaluated straight from the declaration.
"""

import numpy as np
import pytest
from scipy.optimize import least_squares
from sympy import Abs, Eq, Integer, Max, Min, Rational, S, Sum, Symbol, cancel, exp, lambdify, log, sign, sqrt

from symcavity import ConvexProblem, Coupling, Datum, Feature, Global, N, P, Quenched, average, i, mu
from symcavity.algebra.indexed import explicit, substituted
from symcavity.method import epigraph
from symcavity.model.couplings import Coupling as CouplingFamily
from symcavity.model.kinds import DATUM, FEATURE
from symcavity.model.quantities import Quenched as QuenchedFamily
from symcavity.model.quantities import SiteQuantity

SIZES = {N: 3, P: 2}
COUNT = {FEATURE: 3, DATUM: 2}
x, u, w, v = Coupling("x"), Coupling("u"), Feature("w"), Feature("v")
xi, y, l, t, b = Datum("xi"), Quenched("y", mu), Quenched("l", i), Quenched("t", i), Global("b")
C, kappa, gamma = (Symbol(name, positive=True) for name in ("C", "kappa", "gamma"))
VALUES = {C: 0.7, kappa: 0.9, gamma: 0.4}
h = Sum(x[mu, i] * w[i], (i, 1, N))
h2 = Sum(u[mu, i] * w[i], (i, 1, N))
teacher = Sum(x[mu, i] * t[i], (i, 1, N))
q = Sum(w[i] ** 2, (i, 1, N)) / 2
fit = Sum((h - y[mu]) ** 2, (mu, 1, P)) / 2


def over_data(body):
    return Sum(body, (mu, 1, P))


def over_features(body):
    return Sum(body, (i, 1, N))


huber = Max(0, Abs(h - y[mu]) - 1) ** 2
PROBLEMS = {
    "margin": lambda: (q, [h >= 1]),
    "margin with a norm": lambda: (q, [h >= kappa]),
    "soft margin": lambda: (q + C * over_data(xi[mu]), [h >= 1 - xi[mu], xi[mu] >= 0]),
    "squared slack": lambda: (q + C * over_data(xi[mu] ** 2), [h >= 1 - xi[mu]]),
    "hinge": lambda: (q + C * over_data(Max(0, 1 - h)), []),
    "squared hinge": lambda: (q + C * over_data(Max(0, 1 - h) ** 2), []),
    "bias": lambda: (q, [y[mu] * (h + b) >= 1]),
    "penalised bias": lambda: (q + N * b**2 / 2 + C * over_data(Max(0, 1 - y[mu] * (h + b))), []),
    "bias with a penalty in P": lambda: (q + gamma * P * b**2, [h + b >= 1]),
    "logistic": lambda: (q + C * over_data(log(1 + exp(-y[mu] * h))), []),
    "logistic with bias": lambda: (q + N * b**2 + C * over_data(log(1 + exp(-y[mu] * (h + b)))), []),
    "teacher": lambda: (q + C * over_data(Max(0, 1 - sign(teacher) * h)), []),
    "regression on a teacher": lambda: (over_data((h - teacher) ** 2) / 2 + gamma * q, []),
    "ridge by errors": lambda: (
        over_data(Sum(x[mu, i] * (t[i] - w[i]), (i, 1, N)) ** 2) / 2 + gamma * over_features(w[i] ** 2),
        [],
    ),
    "lasso": lambda: (fit + C * over_features(Abs(w[i])), []),
    "elastic net": lambda: (fit + C * over_features(Abs(w[i])) / 4 + gamma * q, []),
    "support vector regression": lambda: (q + C * over_data(Max(0, Abs(h - y[mu]) - Rational(1, 2))), []),
    "quantile regression": lambda: (q + C * over_data(Max((h - y[mu]) / 4, -(h - y[mu]) * 3 / 4)), []),
    "three pieces": lambda: (q + C * over_data(Max(0, 1 - h, 3 - 4 * h)), []),
    "negative Min": lambda: (q - C * over_data(Min(0, h - 1)), []),
    "smooth band": lambda: (q + C * over_data(huber), []),
    "least modulus": lambda: (q + C * over_data(Abs(h - y[mu])), []),
    "pseudo-modulus": lambda: (q + C * over_data(sqrt(1 + (h - y[mu]) ** 2)), []),
    "non-negative": lambda: (q + C * over_data(Max(0, 1 - h)), [w[i] >= 0]),
    "box": lambda: (q + 3 * over_data(Max(0, 1 - h)), [Abs(w[i]) <= Rational(1, 3)]),
    "bounded above": lambda: (q + 3 * over_data(Max(0, 1 - h)), [w[i] <= Rational(1, 4)]),
    "interpolation": lambda: (q, [Eq(h, y[mu])]),
    "interpolation by least modulus": lambda: (over_features(Abs(w[i]) + w[i] ** 2 / 10), [Eq(h, y[mu])]),
    "band": lambda: (q, [h >= 1, h <= 3, Abs(w[i]) <= 5]),
    "band in one": lambda: (q + C * over_features(Abs(w[i])), [Abs(h - y[mu]) <= 1]),
    "two couplings": lambda: (q, [h + 2 * y[mu] * h2 >= 1]),
    "two couplings, two bounds": lambda: (q, [h >= 1, h2 >= Rational(1, 2)]),
    "two groups": lambda: (
        q + over_features(v[i] ** 2 + (w[i] + v[i]) ** 2),
        [h + Sum(u[mu, i] * v[i], (i, 1, N)) >= 1],
    ),
    "group of two in one coupling": lambda: (
        q + over_features(v[i] ** 2),
        [Sum(x[mu, i] * (w[i] - 2 * v[i]), (i, 1, N)) >= 1],
    ),
    "states on the data": lambda: (
        over_data(xi[mu] ** 2) / 2,
        [Sum(x[mu, i] * xi[mu], (mu, 1, P)) >= -1, xi[mu] >= Rational(1, 5)],
    ),
    "weights on the features": lambda: (over_features(l[i] ** 2 * w[i] ** 2), [h >= 1]),
    "noisy threshold": lambda: (q + C * over_data(xi[mu] ** 2), [h >= y[mu] - xi[mu], xi[mu] >= 0]),
    "slack on both sides": lambda: (
        q + C * over_data(xi[mu] ** 2 + xi[mu]),
        [h >= 1 - xi[mu], h <= 2 + xi[mu], xi[mu] >= 0],
    ),
}


class Instance:
    """A declared problem, and the system derived from it, written out with random numbers."""

    def __init__(self, minimize, subject_to, seed):
        self.problem = ConvexProblem(minimize, subject_to)
        self.system = self.problem.kkt()
        self.rng = np.random.default_rng(seed)
        self.known, self.names = {}, {}
        self.minimize, self.subject_to = minimize, subject_to

    def leaf(self, quantity):
        if isinstance(quantity.family, CouplingFamily | QuenchedFamily):
            number = self.rng.choice([-1, 1]) if quantity.family.name == "y" else self.rng.normal()
            return self.known.setdefault(quantity, S(float(number)))
        return self.names.setdefault(quantity, Symbol(str(quantity).replace("[", "_").rstrip("]"), real=True))

    def write(self, expr, site=None, at=0):
        if site is not None:
            expr = substituted(expr, {site.index: Integer(at + 1)})
        return explicit(S(expr), SIZES, self.leaf, SiteQuantity).xreplace(
            {k: S(n) for k, n in VALUES.items()}
        )

    def derived(self):
        """(equations, pairs) of the derived system, as expressions in plain symbols."""
        equations, pairs = [], []
        fields = {f.symbol: f.as_sum for law in self.system.laws.values() for f in law.fields}
        for side, law in self.system.laws.items():
            for at in range(COUNT[side]):
                equations += [self.write(e.difference.xreplace(fields), side, at) for e in law.equations]
                pairs += [
                    tuple(self.write(p.xreplace(fields), side, at) for p in pair.pair) for pair in law.pairs
                ]
        for parts in self.system.global_conditions:
            summed = [
                self.write(body.xreplace({Symbol("alpha", positive=True): Rational(2, 3)}), side, at)
                for side, body in parts.items()
                for at in range(COUNT[side])
            ]
            equations.append(sum(summed))
        return equations, pairs

    def solve(self, equations, pairs):
        """A root of the system, by least squares on Fischer and Burmeister's function."""
        symbols = sorted(
            set().union(*(e.free_symbols for e in [*equations, *(m for p in pairs for m in p)])), key=str
        )
        smooth = [p + m - sqrt(p**2 + m**2 + S("1e-26")) for p, m in pairs]
        call = lambdify(symbols, [*equations, *smooth], "numpy")
        for _ in range(12):
            found = least_squares(
                lambda z: np.array(call(*z), dtype=float),
                self.rng.normal(size=len(symbols)),
                xtol=1e-15,
                ftol=1e-15,
                gtol=1e-15,
                max_nfev=400,
            )
            if np.abs(found.fun).max() < 1e-8:
                return dict(zip(symbols, found.x, strict=True))
        return None

    def declared(self, symbols):
        """Callables of the declared objective, equalities and inequalities, of the primal variables."""
        objective = self.write(self.minimize)
        same, least = [], []
        for relation in self.subject_to:
            (side,) = {c.kind for c in self.problem.constraints if c.declared == relation}
            for at in range(COUNT[side]):
                low, high = (
                    (relation.lhs, relation.rhs) if relation.rel_op == "<=" else (relation.rhs, relation.lhs)
                )
                (same if isinstance(relation, Eq) else least).append(self.write(high - low, side, at))
        return (lambdify([symbols], e, "numpy") for e in (objective, same, least))


def is_minimum(instance, solution, rng):
    """Whether no feasible point nearby is better (for a convex problem: no feasible point at all)."""
    primal = instance.write(instance.minimize).free_symbols
    for c in instance.subject_to:
        (side,) = {k.kind for k in instance.problem.constraints if k.declared == c}
        primal |= set().union(
            *(instance.write(c.lhs - c.rhs, side, at).free_symbols for at in range(COUNT[side]))
        )
    symbols = sorted(primal, key=str)
    point = np.array([solution[s] for s in symbols])
    objective, same, least = instance.declared(symbols)
    best = objective(point)
    if np.any(np.abs(same(point)) > 1e-6) or np.any(np.array(least(point)) < -1e-6):
        return False
    jacobian = np.array(
        [[(np.array(same(point + 1e-6 * e)) - np.array(same(point))) / 1e-6] for e in np.eye(len(symbols))]
    )
    tangent = np.eye(len(symbols))
    if jacobian.size:
        matrix = jacobian.reshape(len(symbols), -1).T
        _, size, rows = np.linalg.svd(matrix)
        tangent = rows[np.sum(size > 1e-9) :]
        if not len(tangent):
            return True
    for scale in (1e-2, 1e-1, 1.0):
        for _ in range(400):
            near = point + scale * rng.normal(size=len(tangent)) @ tangent
            if np.all(np.array(least(near)) >= 0) and objective(near) < best - 1e-7 * (1 + abs(best)):
                return False
    return True


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_derived_system_finds_the_minimum_of_the_declared_problem(name):
    tried = 0
    for seed in range(6):
        instance = Instance(*PROBLEMS[name](), seed)
        solution = instance.solve(*instance.derived())
        if solution is None:  # infeasible for these couplings
            continue
        assert is_minimum(instance, solution, np.random.default_rng(1))
        tried += 1
        if tried == 2:
            return
    assert tried, "no feasible instance was solved"


@pytest.mark.parametrize("name", ["margin", "soft margin", "logistic", "lasso", "two groups"])
def test_a_flipped_sign_is_seen(name):
    instance = Instance(*PROBLEMS[name](), 0)
    equations, pairs = instance.derived()
    message = {
        symbol: -symbol for e in equations for symbol in e.free_symbols if str(symbol).startswith("lambda")
    }
    count = COUNT[FEATURE] * len(instance.system.feature.equations)
    wrong = [e.xreplace(message) if k < count else e for k, e in enumerate(equations)]
    solution = instance.solve(wrong, pairs)
    assert solution is None or not is_minimum(instance, solution, np.random.default_rng(1))


@pytest.mark.parametrize("name", PROBLEMS)
def test_stationarity_is_the_derivative_of_the_explicit_lagrangian(name):
    instance = Instance(*PROBLEMS[name](), 3)
    record = instance.system.record
    fields = {f.symbol: f.as_sum for f in record.fields}
    local = {slack: expr.xreplace(fields) for slack, expr in record.slacks}
    named = {
        e.lhs: e.rhs.xreplace(fields)
        for law in instance.system.laws.values()
        for e in law.equations
        if isinstance(e.lhs, SiteQuantity) and e.lhs.family.name.startswith("h") and e.lhs not in local
    }
    duals = {dual: raw.xreplace(fields) for dual, raw in record.duals}
    total = instance.minimize
    for bound, kink in record.auxiliary:
        total = total.xreplace({kink.xreplace(fields): bound})
    for multiplier, expr, _ in record.multipliers:
        (side,) = multiplier.site
        total -= Sum(multiplier * expr.xreplace(fields), side.range)
    lagrangian = instance.write(total)
    for state, equation in record.stationarity:
        difference = (
            equation.difference.xreplace({**local, **named}).xreplace(duals).xreplace({**local, **named})
        )
        for at in range(1 if isinstance(state, Global) else COUNT[next(iter(state.site))]):
            side = None if isinstance(state, Global) else next(iter(state.site))
            variable = state if side is None else instance.write(state, side, at)
            derived, true = instance.write(difference, side, at), lagrangian.diff(variable)
            symbols = sorted(derived.free_symbols | true.free_symbols, key=str)
            call = lambdify(symbols, [derived, true], "numpy")
            ratios = []
            for _ in range(5):
                one, other = call(*np.random.default_rng(len(ratios)).normal(size=len(symbols)))
                if abs(other) > 1e-9:
                    ratios.append(float(one / other))
                else:
                    assert abs(one) < 1e-8
            assert np.allclose(ratios, ratios[:1] or 0, rtol=1e-8), (state, derived, true)


def test_the_fixed_average_passes_through():
    found = ConvexProblem(q, [h >= 1], [Eq(average(w[i] ** 2), 1 / kappa**2)]).kkt()
    assert str(found.fixed[0]) == "average(w[i]**2) = kappa**(-2)"


def test_the_conditions_of_the_paper():
    system = ConvexProblem(q, [h >= 1]).kkt()
    assert [str(e) for e in system.feature.written()] == ["w[i] = Sum(lambda[mu]*x[mu, i], (mu, 1, P))"]
    assert [str(e) for e in system.datum.written()] == ["h[mu] = Sum(w[i]*x[mu, i], (i, 1, N)) - 1"]
    assert [str(p) for p in system.datum.pairs] == ["0 <= lambda[mu] ⊥ h[mu] >= 0"]


def test_places_of_kinks_are_found_one_by_one(monkeypatch):
    """Each is compared with those at its own place alone: of a loss of a hundred pieces with none."""
    asked = []
    monkeypatch.setattr(epigraph, "cancel", lambda expr: asked.append(expr) or cancel(expr))
    h, counts = Sum(x[mu, i] * w[i], (i, 1, N)), []
    for count in (6, 12):
        asked.clear()
        loss = sum(Max(0, Rational(k, count) - h) for k in range(1, count + 1))
        ConvexProblem(Sum(loss, (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 2).kkt()
        counts.append(len(asked))
    assert counts[1] == 2 * counts[0]
