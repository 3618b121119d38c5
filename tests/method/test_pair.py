"""Two sites at given couplings: against closed forms, random matrices, and instances that are drawn again."""

import json

import jsonschema
import mpmath
import numpy as np
import pytest
from sympy import Abs, Eq, Piecewise, Rational, Sum, Symbol, sqrt, symbols, tanh
from sympy.stats import Normal

from symcavity import (
    ConvexProblem,
    Coupling,
    DeclarationError,
    Derivation,
    Feature,
    N,
    NotConverged,
    P,
    Quenched,
    System,
    UnstableSolution,
    UnsupportedLaw,
    ValuesError,
    Variable,
    alpha,
    average,
    i,
    mu,
    response,
)
from symcavity.derivations import manifold, rectified_network, soft_margin, structured_network
from symcavity.finite.redrawn import participation
from symcavity.writing.exchange import schema

g, gamma, d = Symbol("g", positive=True), Symbol("gamma", positive=True), Symbol("d", positive=True)
j = symbols("j", integer=True)
s, b = Variable("s", i), Quenched("b", i)
x, w, xi = Coupling("x"), Feature("w"), Quenched("xi", mu)
HALF = Rational(1, 2)
KNEE = {alpha: Rational(3, 2), gamma: Rational(1, 10), d: Rational(3, 10), xi: Normal("xi", 0, 1)}


def network(unit, reciprocity=0):
    J = Coupling("J", between=(i, i), reciprocity=reciprocity)
    return System([Eq(s[i], g * Sum(J[i, j] * unit(s[j]), (j, 1, N)) + b[i])])


def huber(penalty=gamma):
    gap = xi[mu] - Sum(x[mu, i] * w[i], (i, 1, N))
    loss = Piecewise((gap**2 / 2, Abs(gap) <= d), (d * Abs(gap) - d**2 / 2, True))
    return ConvexProblem(Sum(loss, (mu, 1, P)) + Sum(penalty * w[i] ** 2, (i, 1, N)) / 2)


@pytest.fixture(scope="module")
def saturating():
    return network(tanh)


@pytest.fixture(scope="module")
def robust():
    problem = huber()
    return problem, problem.cavity().solve(KNEE)


def marchenko_pastur(power, shift, penalty, load):
    """The average of ``s**shift/(s + penalty)**power`` over the eigenvalues of X'X with independent entries."""
    low, high = (1 - mpmath.sqrt(load)) ** 2, (1 + mpmath.sqrt(load)) ** 2

    def density(angle):
        value = (low + high) / 2 - (high - low) / 2 * mpmath.cos(angle)
        weight = ((high - low) / 2 * mpmath.sin(angle)) ** 2 / (2 * mpmath.pi * value)
        return weight * value**shift / (value + penalty) ** power

    return mpmath.quad(density, [0, mpmath.pi / 2, mpmath.pi])


def dimension_at(penalty, load):
    first, second = (marchenko_pastur(2 * k, k, penalty, load) for k in (1, 2))
    return first**2 / second


def test_a_linear_network_has_its_closed_form():
    """C = R R' with R = (1 - g J)^-1: (1 - g^2)^2, and no slope comes in."""
    solution = network(lambda u: u).cavity().solve({g: Rational(7, 10), b: {2: HALF, -2: HALF}}, dps=30)
    found = solution.covariance(s, over=[b])
    assert abs(found.dimension - (1 - mpmath.mpf("0.49")) ** 2) < mpmath.mpf(10) ** -28
    first, second = found.moments
    assert abs(first - 4 / mpmath.mpf("0.51")) < mpmath.mpf(10) ** -25
    assert abs(found.off_diagonal - (second - first**2)) < mpmath.mpf(10) ** -25


def test_a_network_of_saturating_units(saturating):
    """(1 - g^2 chi^2)^2 with the mean slope chi; the gain of its stability has the mean of the square instead."""
    solution = saturating.cavity().solve({g: Rational(7, 10), b: Normal("b", 0, sqrt(Rational(2, 5)))})
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    width = np.sqrt(0.49 * float(solution["q_u_s"]) + 0.4)
    chi = np.sum(weights / weights.sum() * (1 - np.tanh(width * nodes) ** 2))
    found = float(solution.dimension(tanh(s[i]), over=b))
    assert found == pytest.approx((1 - 0.49 * chi**2) ** 2, rel=1e-10)
    assert abs(found - (1 - float(solution.stability)) ** 2) > 0.01


@pytest.mark.parametrize("reciprocity", [HALF, -Rational(3, 5), 1])
def test_reciprocal_couplings_against_matrices(reciprocity):
    """The eigenvalues of R R' for large matrices: their mean, and the mean of their squares."""
    solution = network(lambda u: u, reciprocity).cavity().solve({g: Rational(2, 5), b: Normal("b", 0, 1)})
    n, r, measured = 300, float(reciprocity), []
    for seed in range(8):
        a = np.random.default_rng(seed).standard_normal((n, n))
        up, down = np.sqrt(1 + r), np.sqrt(1 - r)
        answer = np.linalg.inv(np.eye(n) - 0.4 * ((up + down) / 2 * a + (up - down) / 2 * a.T) / np.sqrt(n))
        covariance = answer @ answer.T
        measured.append((np.trace(covariance) / n, np.sum(covariance**2) / n))
    found = np.array(solution.covariance(s, over=[b]).moments, dtype=float)
    assert np.all(abs(np.mean(measured, 0) - found) < 4 * np.std(measured, 0) / np.sqrt(8) + 5 / n * found)


def test_robust_regression_by_random_matrices(robust):
    """At the penalty gamma/k, where k = -S_lambda/(1 + S_lambda S_w) is the slope at the full field."""
    _, solution = robust
    answer, back = (mpmath.mpf(solution[key]) for key in ("S_lambda", "S_w"))
    slope = -answer / (1 + answer * back)
    found = solution.dimension(w, over=[xi])
    assert abs(found - dimension_at(mpmath.mpf("0.1") / slope, 1.5)) < 1e-12
    naive = dimension_at(mpmath.mpf("0.1") / (-answer * (1 + back)), 1.5)  # the share of small residuals
    assert abs(found - naive) > 0.1


def test_robust_regression_by_instances_refutes_the_naive_slope(robust):
    problem, solution = robust
    measured = problem.simulate(KNEE, N=60, seeds=4).dimension(w, over=[xi], draws=60)
    assert abs(measured.mean - float(solution.dimension(w, over=[xi]))) < 4 * measured.stderr
    assert abs(measured.mean - 0.7487) > 4 * measured.stderr


def test_a_network_by_instances(saturating):
    values = {g: Rational(7, 10), b: Normal("b", 0, sqrt(Rational(2, 5)))}
    measured = saturating.simulate(values, N=150, seeds=4).dimension(s, over=[b], draws=60)
    expected = float(saturating.cavity().solve(values).dimension(s, over=[b]))
    assert abs(measured.mean - expected) < 4 * measured.stderr
    assert measured.stderr < 0.05


def test_the_dimension_of_instances_asks_no_fixed_point_whether_it_attracts(saturating, monkeypatch):
    """Each draw would cost the eigenvalues of an instance once more."""
    values = {g: Rational(7, 10), b: Normal("b", 0, 1)}
    sim = saturating.simulate(values, N=30, seeds=1)
    assert sim.samples[0].solved.leading is not None
    monkeypatch.setattr("symcavity.finite.minimum.leading_eigenvalue", lambda *_: pytest.fail("an eigenvalue"))
    assert sim.dimension(s, over=[b], draws=8).mean > 0


def test_each_covariance_is_that_of_the_linear_network(saturating):
    """The slope of C_ij of pairs of units against the linear network of the same couplings is one; by its own noise."""
    solution = saturating.cavity().solve({g: Rational(7, 10), b: Normal("b", 0, sqrt(Rational(2, 5)))})
    q = float(solution[average(tanh(s[i]) ** 2)])
    chi = float(solution[average(response(s[i]) * (1 - tanh(s[i]) ** 2))])
    n, draws, slopes, shallow = 200, 4000, [], []
    for seed in range(8):
        rng = np.random.default_rng([31, seed])
        coupling = 0.7 * rng.standard_normal((n, n)) / np.sqrt(n)
        drives = np.sqrt(0.4) * rng.standard_normal((n, draws))
        sent = np.zeros((n, draws))
        for _ in range(40):
            sent = np.tanh(coupling @ sent + drives)
        measured = sent @ sent.T / draws
        apart = ~np.eye(n, dtype=bool)
        for slope, found in ((chi, slopes), (0.8 * chi, shallow)):
            answer = np.linalg.inv(np.eye(n) - slope * coupling)
            linear = q * (1 - 0.49 * slope**2) * answer @ answer.T
            found.append(np.sum((measured * linear)[apart]) / np.sum(linear[apart] ** 2))
    error = np.std(slopes, ddof=1) / np.sqrt(len(slopes))
    assert abs(np.mean(slopes) - 1) < 4 * error + 2 / n
    assert error < 0.01
    assert abs(np.mean(shallow) - 1) > 0.1  # a slope that is too small


def test_three_kinds_and_what_is_given_at_some_of_them():
    """Modes of given strengths, each with its own response: one large linear network with the same modes."""
    net, n = structured_network, 400
    solution = net.problem.cavity().solve(net.values)
    q, z = (float(solution[average(v.at_site() ** 2)]) for v in (net.s, net.z))
    slope = float(solution[average(response(net.s))])
    strength, measured = np.repeat([1.0, 2.0], n // 4), []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        into, out = rng.standard_normal((n, n // 2)) / np.sqrt(n), rng.standard_normal((n // 2, n)) / np.sqrt(n)
        sent = strength[:, None] * out
        answer = np.linalg.inv(np.eye(n) - slope * into @ sent)
        units = (q - slope**2 * z / 2) * answer @ answer.T
        measured.append([np.trace(m) ** 2 / len(m) / np.sum(m**2) for m in (units, sent @ units @ sent.T)])
    found = np.array([solution.dimension(v, over=[net.xi]) for v in (net.s, net.z)], dtype=float)
    assert np.all(abs(np.mean(measured, 0) - found) < 4 * np.std(measured, 0) / np.sqrt(6) + 5 / n * found)


def test_a_penalty_that_differs_from_site_to_site_is_another_unit():
    """Two equal penalties are one, and the dimension is that of the plain problem."""
    c = Quenched("c", i, positive=True)
    values = {k: v for k, v in KNEE.items() if k != gamma}
    equal = huber(c[i]).cavity().solve({**values, c: {Rational(1, 10): 1}})
    plain = huber().cavity().solve(KNEE)
    assert float(equal.dimension(w, over=[xi])) == pytest.approx(float(plain.dimension(w, over=[xi])), rel=1e-10)


def test_the_linear_equivalent_has_the_same_overlaps_and_responses(robust, saturating):
    problem, solution = robust
    same = problem.cavity().linear_equivalent()
    again = same.cavity().solve(same.at(solution))
    for key in ("q_w", "q_lambda", "S_w", "S_lambda"):
        assert float(again[key]) == pytest.approx(float(solution[key]), rel=1e-12)
    noise = [q for q in same.quenched if q.name == "n_lambda"]
    assert float(again.dimension(w, over=noise)) == pytest.approx(float(solution.dimension(w, over=[xi])), rel=1e-12)
    other = saturating.cavity().solve({g: Rational(7, 10), b: Normal("b", 0, 1)})
    same = saturating.cavity().linear_equivalent()
    assert float(same.cavity().solve(same.at(other))["q_u_s"]) == pytest.approx(float(other["q_u_s"]), rel=1e-12)


def test_the_record_says_how_and_every_claim_is_judged(robust):
    problem, _ = robust
    pair = problem.cavity().pair(over=[xi])
    text = str(pair.derivation)
    assert "Insert two sites at once" in text
    assert "CC_w" in text
    verdicts = [pair.derivation[key].verdicts() for key in ("pair.close", "pair.dimension", "pair.resolvent")]
    assert [v.ok for found in verdicts for v in found] == [True, True, True]


def test_the_record_is_read_back_with_what_was_asked_for(robust, saturating):
    """What was asked for beside the theory is in the file; the claims are derived again for their witnesses."""
    pairs = [robust[0].cavity().pair(over=[xi]), saturating.cavity().pair(over=[b], of=s)]
    for asked in (*pairs, soft_margin.problem.cavity().fluctuations()):
        text = asked.derivation.to_json(verify=False)
        jsonschema.validate(json.loads(text), schema())
        again = Derivation.from_json(text)
        assert again == asked.derivation
        assert again.steps[-1].evidence.keys() == asked.derivation.steps[-1].evidence.keys()
    broken = json.loads(text) | {"asked": {"over": [0], "observed": 0}}
    with pytest.raises(ValuesError):
        Derivation.from_json(broken)


def test_products_of_two_halves_are_unbiased():
    """Independent sites of equal variance have dimension one, however few draws."""
    rng = np.random.default_rng(3)
    found = [participation(rng.standard_normal((40, 30))) for _ in range(200)]
    assert abs(np.mean(found) - 1) < 4 * np.std(found) / np.sqrt(200) + 0.02
    with pytest.raises(ValuesError, match="does not vary"):
        participation(np.ones((8, 5)))


def test_what_is_not_derived_is_refused():
    margin = soft_margin.problem.cavity().solve(soft_margin.values)
    with pytest.raises(DeclarationError, match="list of quenched"):
        margin.dimension(w, over=[])
    with pytest.raises(UnsupportedLaw, match="vector field"):
        manifold.problem.cavity().pair(over=[xi])
    rectified = rectified_network.problem.cavity().solve(rectified_network.values)
    with pytest.raises(DeclarationError, match="does not vary"):
        rectified.dimension(rectified_network.s, over=[xi])
    with pytest.raises(UnsupportedLaw, match="naive"):
        huber().naive().pair(over=[xi])


def test_covariances_that_grow_without_bound_are_no_number(saturating):
    with pytest.warns(UnstableSolution):
        solution = saturating.cavity().solve({g: 3, b: Normal("b", 0, Rational(1, 10))})
    with pytest.raises(NotConverged, match="without bound"):
        solution.dimension(s, over=[b])


def test_a_record_without_given_parts_says_that_what_is_sent_has_no_mean():
    theory = network(tanh).cavity()
    plain, beside = (
        " ".join(theory.pair(over=[b], means=means).derivation.to_text().split()) for means in (False, True)
    )
    assert "the average of u_(s, i) over b_i vanishes at each site" in plain
    assert "vanishes at each site" not in beside
