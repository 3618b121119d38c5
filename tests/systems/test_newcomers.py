"""Spellings that a newcomer tries first: each says the same as one that is known, and gives its numbers."""

from dataclasses import replace

import numpy as np
import pytest
from mpmath import mp
from sympy import Abs, And, Eq, Heaviside, Max, Min, Piecewise, Rational, Sum, exp, floor, log, sign, symbols, tanh
from sympy.stats import Normal

from symcavity import (
    Complementary,
    ConvexProblem,
    Coupling,
    Datum,
    DeclarationError,
    Feature,
    Global,
    N,
    NotConvex,
    P,
    Quenched,
    SeveralSolutions,
    Sites,
    System,
    UnsupportedLaw,
    ValuesError,
    Variable,
    alpha,
    average,
    i,
    mu,
)
from symcavity.model.equations import Equation

half = Rational(1, 2)
j = symbols("j", integer=True)
g, B, K_, sigma = symbols("g B K sigma", positive=True)
x, w = Coupling("x"), Feature("w")
h = Sum(x[mu, i] * w[i], (i, 1, N))
S2 = Sum(w[i] ** 2, (i, 1, N))


def agree(one, other, values, *observables):
    """Both declarations have the same numbers, the second one's observables where they differ."""
    first, second = one.cavity().solve(values), other.cavity().solve(values)
    for observable in observables:
        a, b = observable if isinstance(observable, tuple) else (observable, observable)
        assert float(first[a]) == pytest.approx(float(second[b]), rel=1e-9, abs=1e-12)
    return first


def test_what_is_sent_may_be_any_function():
    """A network in its currents is the network in its rates, in theory, record and instances."""
    r, u, b = Feature("r"), Feature("u"), Quenched("b", i)
    J = Coupling("J", between=(i, i), variance=g**2 / N)
    currents = System([Eq(u[i], Sum(J[i, j] * tanh(u[j]), (j, 1, N)) + b[i])])
    rates = System([Eq(r[i], tanh(Sum(J[i, j] * r[j], (j, 1, N)) + b[i]))])
    values = {g: half, b: {1: half, -1: half}}
    agree(currents, rates, values, (average(tanh(u[i]) ** 2), average(r[i] ** 2)))
    total = Sum(J[i, j] * tanh(u[j]), (j, 1, N))
    theory = currents.cavity()
    derivation = theory.derivation
    assert derivation.verify(dps=15)
    step = derivation["emissions"]  # the record says what is brought in, and shows what was typed
    assert step.claims[0].rhs == tanh(u[i])
    assert step.claims[1].lhs == total
    assert list(derivation["problem"].data["equations"][0].rhs.atoms(Sum)) == [total]
    assert str(step.claims[0].lhs) not in str(derivation["problem"].data)
    lie = Equation(step.claims[0].lhs, 2 * step.claims[0].rhs)
    for claims in ((lie, step.claims[1]), (step.claims[0], Equation(total, 2 * step.claims[1].rhs))):
        assert not replace(derivation, steps=(replace(step, claims=claims),)).verify(dps=15)
    simulation = currents.simulate(values, N=60, seeds=4)
    heard = average(total**2)
    assert simulation[heard].mean == pytest.approx(simulation[average((u[i] - b[i]) ** 2)].mean, rel=1e-9)
    assert float(theory.solve(values)[heard]) == pytest.approx(0.549131 / 4, rel=1e-5)


def test_a_sum_inside_of_a_coupling_sum():
    """Products of matrices, in a system and in a problem, as with a variable between them."""
    a, K = Sites("a", "K")
    D, z, r = Quenched("D", a), Variable("z", a), Feature("r")
    L, R = Coupling("L", between=(i, a)), Coupling("R", between=(i, a))
    inner = Sum(R[j, a] * r[j], (j, 1, N))
    nested = System([Eq(r[i], Max(0, 1 + Sum(L[i, a] * D[a] * inner, (a, 1, K))))])
    named = System(
        [
            Eq(z[a], D[a] * Sum(R[i, a] * r[i], (i, 1, N))),
            Eq(r[i], Max(0, 1 + Sum(L[i, a] * z[a], (a, 1, K)))),
        ]
    )
    agree(nested, named, {K / N: half, D: {1: half, half: half}}, average(r[i]), average(r[i] ** 2))

    F, v, s = Coupling("F", between=(a, i)), Variable("v", a), Variable("s", i)
    hidden = Sum(F[a, i] * v[a], (a, 1, K))

    def cost(layer):
        fit = Sum((1 - Sum(x[mu, i] * layer, (i, 1, N))) ** 2, (mu, 1, P))
        return fit / 2 + g * Sum(v[a] ** 2, (a, 1, K)) / 2

    agree(
        ConvexProblem(cost(hidden)),
        ConvexProblem(cost(s[i]), subject_to=[Eq(s[i], hidden)]),
        {alpha: 2, K / N: half, g: 1},
        average(v[a] ** 2),
    )


def test_a_convex_problem_sends_what_is_linear():
    with pytest.raises(DeclarationError, match="not linear"):
        ConvexProblem(Sum(Sum(x[mu, i] * w[i] ** 3, (i, 1, N)) ** 2, (mu, 1, P)) + S2)


@pytest.mark.parametrize("bound", [[], [h <= 1], [2 - 2 * h >= 0]])
def test_a_logarithm_bounds_its_argument(bound):
    """The analytic centre: its domain need not be said; stronger bounds make it superfluous."""
    problem = ConvexProblem(-Sum(log(1 - h), (mu, 1, P)), bound)
    assert len(problem.subject_to) == 1
    assert float(problem.cavity().solve({alpha: 4})[average(1 / (1 - h))]) == pytest.approx(1, rel=1e-9)


def test_bounds_that_imply_a_domain():
    shifted = ConvexProblem(Sum((h - 1) ** 2, (mu, 1, P)) - Sum(log(1 + w[i]), (i, 1, N)), [w[i] >= 0])
    assert shifted.subject_to == (w[i] >= 0,)


def test_norms_and_globals_are_bounded_like_sums():
    target = Sum((h - 1) ** 2, (mu, 1, P))
    bounded = ConvexProblem(target / 2, [S2 <= N * B])
    values = {alpha: 2, B: "1/10"}
    for other in (
        ConvexProblem(target / 2, [(S2 / N) ** half <= B**half]),
        ConvexProblem(target / 2, [S2**half <= (N * B) ** half]),
        ConvexProblem(target / P, [S2 / N <= B]),
    ):
        found = agree(bounded, other, values, average(w[i] ** 2), average((h - 1) ** 2))
    assert float(found[average(w[i] ** 2)]) == pytest.approx(0.1, rel=1e-12)
    slack = ConvexProblem(target / 2, [(S2 / N) ** half <= B**half]).cavity().solve({alpha: 2, B: 5})
    assert float(slack[average(w[i] ** 2)]) == pytest.approx(1, rel=1e-9)  # least squares: 1/(alpha - 1)
    with pytest.raises(NotConvex, match="falls with"):
        ConvexProblem(target, [(S2 / N) ** half >= B])


def test_a_bound_on_a_global():
    """Least squares with an intercept that may not pass a bound: at the bound it is given, inside it is free."""
    b, t = Global("b"), Quenched("t", mu)
    loss = Sum((h + b - t[mu]) ** 2, (mu, 1, P)) / 2 + S2 / 2
    law = {alpha: 2, t: {1: half, 3: half}}
    free = ConvexProblem(loss).cavity().solve(law)
    assert float(free[b]) == pytest.approx(2, rel=1e-9)
    for bound, value in ((1, 1), (3, 2)):
        held = ConvexProblem(loss, [b <= bound]).cavity().solve(law)
        given = ConvexProblem(loss.subs(b, value)).cavity().solve(law)
        assert float(held[b]) == pytest.approx(value, rel=1e-9)
        assert float(held[average(w[i] ** 2)]) == pytest.approx(float(given[average(w[i] ** 2)]), rel=1e-9)


def test_an_objective_of_order_one_is_the_same_minimum():
    V = Global("V")
    budget = Eq(Sum(w[i], (i, 1, N)), N)
    conditions = [h <= V, w[i] >= 0, budget]
    agree(ConvexProblem(V, conditions), ConvexProblem(N * V, conditions), {alpha: 1}, V, average(w[i] > 0))


def test_averages_and_globals_stand_where_a_paper_puts_them():
    """An average in a declaration is a sum over all sites; a variable of all sites may stand before a sum."""
    V, loss = Global("V", positive=True), (h - 1) ** 2
    ridge = ConvexProblem(Sum(loss, (mu, 1, P)) / 2 + S2 / 4)
    found = agree(ridge, ConvexProblem(P * average(loss) / 2 + N * average(w[i] ** 2) / 4), {alpha: 2}, S2 / N)
    agree(ridge, ConvexProblem(average(loss) + average(w[i] ** 2) / (2 * alpha)), {alpha: 2}, S2 / N)
    norm = float(found[average(w[i] ** 2)])
    bounded = ConvexProblem(average(loss), [average(w[i] ** 2) <= B]).cavity().solve({alpha: 2, B: norm})
    assert float(bounded[average((h - 1) ** 2)]) == pytest.approx(float(found[average((h - 1) ** 2)]), rel=1e-9)
    with pytest.raises(DeclarationError, match=r"by a multiplier.*fixed="):
        ConvexProblem(average(loss), [Eq(average(w[i] ** 2), 1)])
    before, inside = S2 / (2 * V) + N * V / 2, Sum(w[i] ** 2 / (2 * V) + V / 2, (i, 1, N))
    target = Sum(loss, (mu, 1, P)) / 2
    found = agree(ConvexProblem(target + inside), ConvexProblem(target + before), {alpha: 2}, V, average(w[i] ** 2))
    assert float(found[V]) == pytest.approx(float(found[average(w[i] ** 2)]) ** 0.5, rel=1e-9)
    r, J = Feature("r"), Coupling("J", between=(i, i), variance=sigma**2 / N)
    own = Max(0, 1 + Sum(J[i, j] * r[j], (j, 1, N)) - 2 * average(r[i]))
    summed = Max(0, 1 + Sum(J[i, j] * r[j], (j, 1, N)) - 2 * Sum(r[j], (j, 1, N)) / N)
    agree(System([Eq(r[i], summed)]), System([Eq(r[i], own)]), {sigma: half}, average(r[i]))


def test_losses_by_cases_and_steps():
    """A kink may be written by cases, or as a step times what vanishes there; slopes of sigmoids in tangents."""
    e, y = Quenched("e", mu, law={1: half, -2: half}), Quenched("y", mu, law={1: half, -1: half})
    r, margin = e[mu] - h, 1 - y[mu] * h
    gap = half / 2
    insensitive = [(-r - gap, r < -gap), (0, r < gap), (r - gap, True)]
    alike = (
        (Max(half * r, -half * r / 2), Piecewise((half * r, r >= 0), (-half * r / 2, True))),
        (Abs(r), r * sign(r)),
        (Max(0, Abs(r) - gap), Piecewise(*insensitive)),
        (Max(0, margin), margin * Heaviside(margin)),
        (Max(0, -r) ** 2 + 3 * Max(0, r) ** 2, Abs(3 - 2 * Heaviside(-r)) * r**2),
        (log(1 + exp(-y[mu] * h)), -log((1 + tanh(y[mu] * h / 2)) / 2)),
    )
    for known, written in alike:
        one, other = (ConvexProblem(Sum(loss, (mu, 1, P)) + S2 / 2) for loss in (known, written))
        agree(one, other, {alpha: 2}, average(w[i] ** 2))
    with pytest.raises(NotConvex):
        ConvexProblem(Sum(Heaviside(-y[mu] * h), (mu, 1, P)) + S2 / 2)
    with pytest.raises(DeclarationError, match="by cases"):
        ConvexProblem(Sum((floor(e[mu]) - h) ** 2, (mu, 1, P)) + S2 / 2)
    n, J = Feature("n"), Coupling("J", between=(i, i), variance=sigma**2 / N)
    with pytest.raises(UnsupportedLaw, match=r"say which root is meant: Complementary"):
        System([Eq(0, n[i] * (1 - n[i] - Sum(J[i, j] * n[j], (j, 1, N))))]).cavity()


def test_quantiles_that_share_their_weights():
    """Three levels and their thresholds: six kinks on one field, in an order that no declaration fixes."""
    e = Quenched("e", mu, law={-1: half, 1: half})
    b = [Global(f"b{k}") for k in range(3)]
    errors = [(e[mu] - h - bound, level) for bound, level in zip(b, (half / 2, half, 3 * half / 2), strict=True)]
    loss = sum(Max(level * u, (level - 1) * u) for u, level in errors)
    problem = ConvexProblem(Sum(loss, (mu, 1, P)) + S2 / 2)
    solution = problem.cavity().solve({alpha: 2})
    assert float(solution[b[1]]) == pytest.approx(0, abs=1e-9)
    assert float(solution[b[0]]) == pytest.approx(-float(solution[b[2]]), rel=1e-6)
    simulation = problem.simulate({alpha: 2}, N=60, seeds=6)
    for observable in (average(w[i] ** 2), b[2]):
        assert abs(simulation[observable].z(solution[observable])) < 4.5


def test_conjunctions_are_several_constraints():
    loss = Sum((h - 1) ** 2, (mu, 1, P))
    both = ConvexProblem(loss, [And(w[i] >= 0, w[i] <= 1)])
    assert set(both.subject_to) == {w[i] >= 0, w[i] <= 1}


def test_a_mean_with_both_ends_of_one_kind():
    """A network of rank one and noise, its mean written into the couplings or beside them."""
    r = Feature("r")
    m, n = Quenched(("m", "n"), i, law={(1, half): half, (half, 1): half})
    J = Coupling("J", between=(i, i), mean=m[i] * n[j] / N, variance=g**2 / N)
    Z = Coupling("J", between=(i, i), variance=g**2 / N)
    inside = System([Eq(r[i], tanh(half + Sum(J[i, j] * r[j], (j, 1, N))))])
    sums = Sum(Z[i, j] * r[j], (j, 1, N)) + m[i] * Sum(n[j] * r[j], (j, 1, N)) / N
    beside = System([Eq(r[i], tanh(half + sums))])
    agree(inside, beside, {g: half}, average(n[i] * r[i]), average(m[i] * r[i]))
    assert inside.cavity().derivation.verify(dps=15)
    with pytest.raises(DeclarationError, match="mean of J"):
        Coupling("J", between=(i, i), mean=m[i] * n[j] * n[symbols("k", integer=True)] / N)


def test_means_between_kinds_of_any_size():
    """Herbivores and carnivores that eat each other on average: instances need no number beside the ratio."""
    a, K = Sites("a", "K")
    X, n = Variable("X", a), Feature("n")
    d = Coupling("d", between=(a, i), mean=1 / N, variance=sigma**2 / N)
    eaten, food = Sum(d[a, i] * X[a], (a, 1, K)), Sum(d[a, i] * n[i], (i, 1, N))
    chain = System([], [Complementary(n[i], n[i] - 1 + eaten), Complementary(X[a], X[a] + half - food)])
    values = {K / N: half, sigma: half}
    table = chain.cavity().compare(chain.simulate(values, N=100, seeds=6), [average(n[i]), average(X[a] > 0)])
    assert table.agrees(4)


def test_the_record_of_reciprocity_is_witnessed():
    """The coupling of a site to itself is one of many: it does not add to the spread of changes."""
    n = Feature("n")
    J = Coupling("J", between=(i, i), reciprocity=-half)
    theory = System([], [Complementary(n[i], n[i] - 1 + Sum(J[i, j] * n[j], (j, 1, N)))]).cavity()
    assert {str(c.step.key): bool(c) for c in theory.derivation.verify(dps=15) if c.step.rule == "spread"} == {
        "stability.spread": True
    }


def judged(theory, *keys):
    return {s.key: all(v.ok for v in s.verdicts()) for s in theory.derivation if s.key in keys}


def test_claims_are_judged_where_their_denominators_are_positive():
    """Feedback that excites: at a strong one the law has no solution, and nothing is claimed there."""
    r = Feature("r")
    J = Coupling("J", between=(i, i), mean=-2 / N, reciprocity=half)
    theory = System([Eq(r[i], Min(1, Max(0, 1 + Sum(J[i, j] * r[j], (j, 1, N)))))]).cavity()
    keys = ("feature.solution", "feature.response", "closure.q_r", "global.1", "stability.average")
    assert judged(theory, *keys) == dict.fromkeys(keys, True)


def test_a_curve_is_not_written_as_a_clip():
    """``n/(1 + n)`` is positive again beyond its pole, where ``n`` is zero."""
    n = Feature("n")
    J = Coupling("J", between=(i, i), variance=sigma**2 / N)
    saturating = Sum(J[i, j] * n[j] / (1 + n[j]), (j, 1, N))
    theory = System([], [Complementary(n[i], n[i] - K_ + saturating)]).cavity()
    keys = ("feature.solution", "messages.evolution")
    assert judged(theory, *keys) == dict.fromkeys(keys, True)


def test_all_roots_of_a_network_with_a_mode():
    """A mode that is stronger than the rest has its own two fixed points, far from zero, besides that between them."""
    r = Feature("r")
    m, n = Quenched(("m", "n"), i, law={(1, 2): half, (-1, -2): half})
    J = Coupling("J", between=(i, i), mean=m[i] * n[j] / N, variance=g**2 / N)
    theory = System([Eq(r[i], tanh(Rational(1, 5) + Sum(J[i, j] * r[j], (j, 1, N))))]).cavity()
    with pytest.raises(SeveralSolutions) as several:
        theory.solve({g: half})
    z, weights = np.polynomial.hermite_e.hermegauss(60)
    overlap, q = 2.0, 1.0
    for _ in range(60):
        up, down = (np.tanh(0.2 + s * overlap + 0.5 * np.sqrt(q) * z) for s in (1, -1))
        overlap, q = weights @ (up - down) / weights.sum(), weights @ (up**2 + down**2) / 2 / weights.sum()
    found = [theory.solve({g: half}, guess=point) for point in several.value.solutions]
    overlaps = sorted(float(s[average(n[i] * r[i])]) for s in found)
    assert overlaps == pytest.approx([-overlap, 0, overlap], abs=1e-9)
    said = str(several.value)  # in what was declared, not in what is solved for
    assert "M_mn_r = 0;" in said
    assert "_hat" not in said


def test_means_between_three_kinds_converge():
    """Consumers that leave by-products which feed them: nine unknowns, found by iterating the closed equations."""
    a, K = Sites("a", "K")
    R, n, T = Feature("R"), Datum("n"), Variable("T", a)
    c = Coupling("c", mean=1 / N, variance=sigma**2 / N)
    d = Coupling("d", between=(a, mu), mean=1 / N, variance=sigma**2 / N)
    f = Coupling("f", between=(a, mu), mean=1 / (5 * N), variance=sigma**2 / (25 * N))
    food = Sum(c[mu, i] * R[i], (i, 1, N)) + Sum(d[a, mu] * T[a], (a, 1, K))
    chain = System(
        [Eq(T[a], Sum(f[a, mu] * n[mu], (mu, 1, P)))],
        [Complementary(R[i], R[i] - 2 + Sum(c[mu, i] * n[mu], (mu, 1, P))), Complementary(n[mu], n[mu] + half - food)],
    )
    values = {alpha: 1, K / N: half, sigma: half}
    simulation = chain.simulate(values, N=60, seeds=6)
    table = chain.cavity().compare(simulation, [average(R[i]), average(n[mu]), average(T[a])])
    assert table.agrees(4)


def test_a_comparison_that_leads_to_no_number_of_features_says_so():
    (a, E), (b, M) = Sites("a", "E"), Sites("b", "M")
    e, s, W = Variable("e", a), Variable("s", b), Coupling("W", between=(a, b))
    theory = System(
        [Eq(e[a], tanh(1 - Sum(W[a, b] * s[b], (b, 1, M)))), Eq(s[b], tanh(1 + Sum(W[a, b] * e[a], (a, 1, E))))]
    ).cavity()
    with pytest.raises(ValuesError, match="neither M nor E in units of N") as found:
        theory.solve({M / E: half})
    assert "{E/N: 1, M/E: 1/2}" in str(found.value)
    assert float(theory.solve({E / N: 1, M / E: half})[average(s[b])]) > 0


def test_categories_in_order():
    """An ordinal logit as its likelihood reads, a difference of two sigmoids, and with the difference taken apart."""
    y = Quenched("y", mu, law={0: half, 1: half / 2, 2: half / 2})
    low, high = (1 / (1 + exp(c - h)) for c in (1, -1))
    apart = log(1 + exp(h - 1)) + log(1 + exp(-h - 1)) - log(1 - exp(-2))
    one, other = (
        Piecewise((log(1 + exp(h + 1)), Eq(y[mu], 0)), (log(1 + exp(1 - h)), Eq(y[mu], 2)), (middle, True))
        for middle in (-log(high - low), apart)
    )
    problems = (ConvexProblem(Sum(loss, (mu, 1, P)) + g * S2 / 2) for loss in (one, other))
    agree(*problems, {alpha: 2, g: 1}, average(w[i] ** 2), average(h**2))


class TestTwoPopulations:
    """Couplings in units of the number of their senders, as papers on excitation and inhibition write them."""

    a, K_E = Sites("a", "N_E", "excitatory neuron")
    b, K_I = Sites("b", "N_I", "inhibitory neuron")

    def network(self, K_E, K_I):
        c = symbols("c", integer=True)
        u, v = Variable("u", self.a), Variable("v", self.b)
        excited = Coupling("A", between=(self.a, self.a), mean=half / K_E, variance=g**2 / K_E)
        inhibited = Coupling("B", between=(self.a, self.b), mean=-1 / K_I, variance=g**2 / K_I)
        driven = Coupling("C", between=(self.b, self.a), mean=1 / K_E, variance=g**2 / K_E)
        heard = Sum(excited[self.a, c] * u[c], (c, 1, self.K_E))
        heard += Sum(inhibited[self.a, self.b] * v[self.b], (self.b, 1, self.K_I))
        answer = Sum(driven[self.b, self.a] * u[self.a], (self.a, 1, self.K_E))
        return System([Eq(u[self.a], tanh(heard + half)), Eq(v[self.b], Max(0, answer))])

    def test_means_over_the_number_of_senders_are_of_order_one_over_n(self):
        values = {g: "1/2", "N_E/N": 2, "N_I/N": 3}
        found = self.network(self.K_E, self.K_I).cavity().solve(values)
        known = self.network(2 * N, 3 * N).cavity().solve(values)
        assert found["average(u[a])"] == pytest.approx(float(known["average(u[a])"]), rel=1e-12)
        assert found["average(v[b]**2)"] == pytest.approx(float(known["average(v[b]**2)"]), rel=1e-12)


def test_equations_and_pairs_may_stand_in_either_list():
    y = Variable("y", i)
    J = Coupling("J", between=(i, i), reciprocity=-1)
    level = Global("level")
    law = Complementary(y[i], g * y[i] - Sum(J[i, j] * y[j], (j, 1, N)) - level)
    whole = Eq(Sum(y[i], (i, 1, N)), N)
    values = {g: "1/2"}
    known = System([whole], [law]).cavity().solve(values)
    assert System([whole, law]).cavity().solve(values)["level"] == known["level"]
    assert System([], [whole, law]).cavity().solve(values)["level"] == known["level"]


def test_a_theory_names_what_takes_a_value():
    label = Quenched("label", mu)
    theory = ConvexProblem(Sum(w[i] ** 2, (i, 1, N)) + B * Sum((label[mu] - h) ** 2, (mu, 1, P))).cavity()
    assert theory.parameters == (B, alpha, label)
    assert set(theory.solve(dict.fromkeys(theory.parameters, 1)).keys()) >= {"q_w"}


@pytest.mark.parametrize(
    "bounds", [lambda M: [Abs(w[i]) <= M], lambda M: [w[i] <= M, w[i] >= -M], lambda M: [Abs(2 * w[i]) <= 2 * M]]
)
def test_a_global_variable_that_bounds_a_size_is_never_negative(bounds):
    label = Quenched("label", mu)
    values = {alpha: "3/2", label: {-1: "1/2", 1: "1/2"}}

    def problem(M):
        return ConvexProblem(N * M**2 / 2 + Sum((label[mu] - h) ** 2 / 2, (mu, 1, P)), bounds(M))

    M = Global("M")
    theory, known = problem(M).cavity(), problem(Global("M", positive=True)).cavity().solve(values)
    found = theory.solve(values)
    assert found[M] == found["M"] == known["M"]
    assert found[average(Abs(w[i]))] == known[average(Abs(w[i]))]
    assert theory.function(M, alpha, values={label: values[label]})(1.5) == pytest.approx(float(known["M"]))
    step = 1e-4
    ends = (theory.solve(values | {alpha: 1.5 + k * step})[M] for k in (1, -1))
    slope = theory.sensitivity(M, alpha, values)
    assert float(slope) == pytest.approx(float(next(ends) - next(ends)) / (2 * step), rel=1e-5)


def test_mutualists_whose_gain_saturates_help_each_other():
    """The feedback is positive: a law that folds at the end of a branch only where it is strong has either sign."""
    a, K = Sites("a", "K", "pollinator")
    plant, visitor = Variable("plant", i), Variable("visitor", a)
    C = Coupling("C", between=(a, i), mean=1 / (2 * N), variance=g**2 / N)
    helped, fed = Sum(C[a, i] * visitor[a], (a, 1, K)), Sum(C[a, i] * plant[i], (i, 1, N))
    system = System([
        Eq(plant[i], Max(0, 1 + helped) * Rational(2, 3)), Eq(visitor[a], Max(0, fed) / (1 + Max(0, fed)))
    ])  # fmt: skip
    values = {g: "3/10", "K/N": 1}
    theory = system.cavity()
    assert theory.solve(values)["average(response(plant[i]))"] > 0
    found = theory.compare(system.simulate(values, N=200, seeds=10))
    assert all(abs(row.z) < 4.5 for row in found.rows)


def test_a_mean_that_all_sites_hear_is_divided_or_not():
    r, m, b = Feature("r"), Global("m"), Quenched("b", i, law={0: half, 1: half})
    J = Coupling("J", between=(i, i), variance=g**2 / N)
    law = Eq(r[i], tanh(b[i] + Sum(J[i, j] * r[j], (j, 1, N)) - m))
    squares = Sum(r[i] ** 2, (i, 1, N))
    values = {g: half}
    agree(System([law, Eq(m, squares / N)]), System([law, Eq(N * m, squares)]), values, m, average(r[i]))
    with pytest.raises(DeclarationError, match="not in proportion"):
        System([law, Eq(m, squares)])
    with pytest.raises(DeclarationError, match="not in proportion"):
        System([law, Eq(m, squares / N + Sum(r[i], (i, 1, N)))])


def test_two_gaussians_in_one_combination_are_one_to_all_digits():
    """Targets that are sums of two Gaussians: their joint law is not integrated in two dimensions."""
    a, b, c = (Quenched(name, i, law=Normal(name, 0, width)) for name, width in (("a", 1), ("b", 1), ("c", 5)))
    problems = [
        ConvexProblem(Sum(h**2, (mu, 1, P)) / 2 + Sum((w[i] - target) ** 2 / 2 + Abs(w[i]) / 5, (i, 1, N)))
        for target in (3 * a[i] + 4 * b[i], c[i])
    ]
    one, other = (p.cavity().solve({alpha: half}, dps=40) for p in problems)
    for observable in (average(w[i] ** 2), average(Abs(w[i])), average(Eq(w[i], 0))):
        assert abs(one[observable] - other[observable]) < 1e-38
    with mp.workdps(40):
        assert abs(one[average(a[i] * w[i])] - one[average((3 * a[i] + 4 * b[i]) * w[i])] * 3 / 25) < 1e-38
