"""Averages over sites that took no part in training: errors of generalisation, against what is known of them."""

from statistics import NormalDist

import pytest
from sympy import Abs, Eq, Max, Rational, Sum, Symbol, acos, exp, log, pi, sign, simplify, sqrt

from symcavity import (
    ConvexProblem,
    Coupling,
    Datum,
    DeclarationError,
    Feature,
    FlatMinimum,
    Global,
    N,
    P,
    Quenched,
    ValuesError,
    alpha,
    average,
    fresh,
    i,
    mu,
    phi,
    response,
)
from symcavity.derivations import (
    clusters_hinge,
    flipped_labels,
    gardner,
    gaussian_clusters,
    kernel_ridge,
    logistic_teacher,
    sign_teacher,
    softmax,
)

HALF = Rational(1, 2)
x, w, t = Coupling("x"), Feature("w"), Quenched("t", i)
noise, sigma, gamma = Quenched("noise", mu), Symbol("sigma", positive=True), Symbol("gamma", positive=True)
h, u = Sum(x[mu, i] * w[i], (i, 1, N)), Sum(x[mu, i] * t[i], (i, 1, N))
residual = u + noise[mu] - h
squares = ConvexProblem(Sum(residual**2, (mu, 1, P)) / 2)
ridge = ConvexProblem(Sum(residual**2, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)
DATA = {t: {1: 1}, noise: {HALF: HALF, -HALF: HALF}}


def test_the_error_of_a_perceptron_is_the_angle_to_its_teacher():
    """The share of errors is acos(overlap)/pi: Opper, Kinzel, Kleinz, Nehl, J. Phys. A 23, L581 (1990)."""
    theory = sign_teacher.problem.cavity()
    error = average(fresh(sign(sign_teacher.u) * sign_teacher.h < 0))
    overlap = average(w[i] * t[i]) / sqrt(average(w[i] ** 2) * average(t[i] ** 2))
    assert theory.observable(error).has(acos)
    solution = theory.solve(sign_teacher.values, dps=30)
    assert abs(solution[error] - solution[acos(overlap) / pi]) < 1e-28


def test_flips_add_to_the_error_of_a_perceptron():
    """With labels flipped with the probability p the error is p + (1 - 2p) acos(overlap)/pi."""
    theory, p = flipped_labels.problem.cavity(), flipped_labels.p
    error = average(fresh(flipped_labels.y[mu] * flipped_labels.h < 0))
    angle = acos(average(w[i] * t[i]) / sqrt(average(w[i] ** 2) * average(t[i] ** 2))) / pi
    assert simplify(theory.observable(error) - theory.observable(p + (1 - 2 * p) * angle)) == 0


def test_least_squares_predict_with_the_error_of_the_literature():
    """Without penalty, the test error is sigma**2 alpha/(alpha - 1): Hastie et al., Ann. Stat. 50, 949 (2022)."""
    found = squares.cavity().closed_form(average(fresh(residual**2)))
    assert simplify(found - average(noise[mu] ** 2) * alpha / (alpha - 1)) == 0


def test_ridge_regression_has_the_error_that_cross_validation_says():
    """Training and test errors differ by (1 + S_w)**2: Golub, Heath, Wahba, Technometrics 21, 215 (1979)."""
    solution = ridge.cavity().solve({alpha: 2, gamma: HALF, **DATA}, dps=30)
    trained, tested = solution[average(residual**2)], solution[average(fresh(residual**2))]
    assert abs(tested / trained - (1 + solution[response(w)]) ** 2) < 1e-27
    risk = solution[average((w[i] - t[i]) ** 2) + Rational(1, 4)]
    assert abs(tested - risk) < 1e-28


def test_clusters_are_confused_where_the_means_overlap():
    """The share of errors is phi_0(-m/sqrt(q)): Mignacco et al., ICML (2020); with a bias one term for each class."""
    y, v = gaussian_clusters.y, gaussian_clusters.v
    error = average(fresh(y[mu] * Sum(gaussian_clusters.x[mu, i] * w[i], (i, 1, N)) < 0))
    found = gaussian_clusters.problem.cavity().solve(gaussian_clusters.values)
    q = average(gaussian_clusters.Delta[i] * w[i] ** 2)
    assert float(found[error]) == pytest.approx(float(found[phi(0, -average(v[i] * w[i]) / sqrt(q))]), rel=1e-12)
    biased = clusters_hinge.problem.cavity().observable(average(fresh(clusters_hinge.y[mu] * clusters_hinge.h < 0)))
    assert len(biased.atoms(phi)) == 2


def test_several_outputs_guess_at_random_labels():
    """Labels without a rule: two thirds of three classes are wrong, whatever was learned."""
    one, two, three = softmax.h
    right = average(fresh((one > two) & (one > three)))
    found = softmax.problem.cavity().solve(softmax.values)
    assert float(found[right]) == pytest.approx(1 / 3, abs=1e-9)


def test_modes_of_a_kernel_have_the_test_error_of_the_paper():
    """The field of a fresh datum has the variance of the errors of the modes: the test error (paper, equation 125)."""
    theory = kernel_ridge.problem.cavity()
    field = Sum(kernel_ridge.phi[mu, i] * kernel_ridge.Delta[i], (i, 1, N))
    assert theory.observable(average(fresh(field**2))) == theory.observable(kernel_ridge.E_test)


def test_a_fresh_feature_hears_the_messages():
    """Its field has the variance alpha <lambda**2>; it moves by its own response, which fresh(...) leaves out."""
    theory = gardner.problem.cavity()
    field = Sum(x[mu, i] * Datum("lambda")[mu], (mu, 1, P))
    assert theory.observable(average(fresh(field**2))) == alpha * theory.observable(average(Datum("lambda")[mu] ** 2))
    assert theory.observable(average(fresh(field))) == 0


def test_a_fresh_site_is_named_in_text_and_inside_of_other_expressions():
    """Texts, numbers in front, averages inside, logarithms of averages."""
    solution = ridge.cavity().solve({alpha: 2, gamma: HALF, **DATA})
    error = average(fresh(residual**2))
    text = "average(fresh((Sum(x[mu,i]*t[i], (i,1,N)) + noise[mu] - Sum(x[mu,i]*w[i], (i,1,N)))**2))"
    assert solution[text] == solution[error]
    assert float(solution[log(1 + 2 * error)]) == pytest.approx(float(log(1 + 2 * solution[error])))
    inner = solution[average(fresh((h - average(fresh(h**2))) ** 2))]
    assert float(inner) == pytest.approx(float(solution[average(w[i] ** 2) + average(w[i] ** 2) ** 2]))


def test_the_loss_is_larger_where_nothing_was_learned_from_the_datum():
    """Of every convex loss the average over fresh data is at least that over the data of training."""
    for file in (logistic_teacher, flipped_labels):
        loss = log(1 + exp(-file.y[mu] * file.h)) if file is logistic_teacher else Max(0, 1 - file.y[mu] * file.h)
        solution = file.problem.cavity().solve(file.values)
        assert solution[average(fresh(loss))] > solution[average(loss)]


@pytest.mark.parametrize(
    ("observable", "words"),
    [
        (lambda: average(fresh(Datum("lambda")[mu])), "took part"),
        (lambda: average(fresh(h) / 2), "mixes fresh"),
        (lambda: fresh(h), "differs from site to site"),
        (lambda: Sum(fresh(h), (mu, 1, P)), "differs from site to site"),
        (lambda: average(fresh(fresh(h))), "no effect on others"),
        (lambda: average(fresh(response(w[i]))), "no effect on others"),
        (lambda: average(fresh(Sum(Coupling("other")[mu, i] * w[i], (i, 1, N)))), "no sum of the declaration"),
    ],
)
def test_what_a_fresh_site_has_not_is_refused(observable, words):
    """States, responses, couplings of nobody, and sites without an average."""
    with pytest.raises(DeclarationError, match=words):
        gardner.problem.cavity().observable(observable())


def test_training_knows_nothing_of_fresh_sites():
    """They are refused in objectives and constraints; a condition on an average may be one."""
    for declare in (
        lambda: ConvexProblem(Sum(w[i] ** 2, (i, 1, N)), [fresh(h) >= 1]),
        lambda: ConvexProblem(Sum((average(fresh(h**2)) - 1) ** 2, (mu, 1, P))),
    ):
        with pytest.raises(DeclarationError, match="fresh"):
            declare()
    held = ConvexProblem(Sum(w[i] ** 2, (i, 1, N)), [h >= 1], fixed=[Eq(average(fresh(h**2)), 1)])
    other = gardner.problem.cavity().solve({gardner.kappa: 1})
    assert float(held.cavity().solve()[alpha]) == pytest.approx(float(other[alpha]))


# -- finite instances ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "values", "expr", "size"),
    [
        (sign_teacher.problem, sign_teacher.values, sign(sign_teacher.u) * sign_teacher.h < 0, 80),
        (logistic_teacher.problem, logistic_teacher.values, logistic_teacher.y[mu] * logistic_teacher.h < 0, 100),
        (clusters_hinge.problem, clusters_hinge.values, clusters_hinge.y[mu] * clusters_hinge.h < 0, 80),
        (ridge, {alpha: 2, gamma: HALF, **DATA}, residual**2, 100),
    ],
    ids=["teacher", "drawn labels", "clusters", "ridge"],
)
def test_fresh_sites_are_drawn_in_instances(problem, values, expr, size):
    """New data of finite instances have the error of the theory, within standard errors."""
    sim = problem.simulate(values, N=size, seeds=12)
    (row,) = problem.cavity().compare(sim, [average(fresh(expr))])
    assert abs(row.z) < 4


def test_fresh_sites_leave_the_other_draws_as_they_are():
    """However many are drawn; and an instance has the same fresh sites whenever it is asked."""
    values, error = {alpha: 2, gamma: HALF, **DATA}, average(fresh(residual**2))
    one, other, again = (ridge.simulate(values, N=20, seeds=2, fresh=n) for n in (50, 400, 50))
    assert list(one[average(w[i] ** 2)].samples) == list(other[average(w[i] ** 2)].samples)
    assert list(one[error].samples) == list(again[error].samples)
    assert list(one[error].samples) != list(other[error].samples)
    with pytest.raises(ValuesError, match="fresh"):
        ridge.simulate(values, N=20, seeds=2, fresh=0)


def test_a_sweep_measures_test_errors(tmp_path):
    """Its rows have a column for them, and a file of other fresh sites is not taken for this one."""
    error, file = average(fresh(residual**2)), tmp_path / "rows.csv"
    options = {"N": 10, "seeds": 2, "values": {gamma: HALF, **DATA}, "observables": [error], "file": file}
    rows = ridge.sweep({alpha: [1, 2]}, fresh=20, **options).rows
    column = next(name for name in rows[0] if "fresh" in name)
    assert all(row[column] > 0 for row in rows)
    with pytest.raises(ValuesError, match="rows"):
        ridge.sweep({alpha: [1, 2]}, fresh=30, **options)


def test_a_test_error_that_differs_among_minimisers_is_none():
    """Of least squares with fewer data than features, and of observables that all minimisers share."""
    sim = squares.simulate({alpha: HALF, **DATA}, N=20, seeds=1)
    with pytest.raises(FlatMinimum):
        sim[average(fresh(residual**2))]
    assert float(sim[average(fresh(noise[mu] ** 2))].mean) == pytest.approx(0.25)


def test_data_of_unequal_variance_are_confused_by_their_own():
    """The covariance of a fresh field holds the parameters of its site: here its class sets its noise."""
    y, d = Quenched(("y", "d"), mu, law={(1, 1): HALF, (-1, 4): HALF})
    m, b = Quenched("m", i), Global("b")
    field = Sum(Coupling("x", mean=y[mu] * m[i] / N, variance=d[mu] / N)[mu, i] * w[i], (i, 1, N)) + b
    problem = ConvexProblem(Sum((1 - y[mu] * field) ** 2, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)
    theory = problem.cavity()
    solution = theory.solve({alpha: 2, gamma: HALF, m: {1: 1}})
    signal, size = (float(solution[average(e)]) for e in (m[i] * w[i], w[i] ** 2))
    bias = float(solution[b])
    wrong = sum(NormalDist().cdf(-(signal + s * bias) / (c * size) ** 0.5) / 2 for s, c in ((1, 1), (-1, 4)))
    assert float(solution[average(fresh(y[mu] * field < 0))]) == pytest.approx(wrong, rel=1e-12)
    squares = sum(((1 - signal - s * bias) ** 2 + c * size) / 2 for s, c in ((1, 1), (-1, 4)))
    assert float(solution[average(fresh((1 - y[mu] * field) ** 2))]) == pytest.approx(squares, rel=1e-12)


def test_the_variance_of_a_fresh_field_is_that_of_its_site():
    """A parameter whose law is a value, and which stands in the variance alone."""
    e = Quenched("e", mu)
    field = Sum(Coupling("x", variance=e[mu] / N)[mu, i] * (w[i] - t[i]), (i, 1, N))
    problem = ConvexProblem(Sum((1 - field) ** 2, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)
    solution = problem.cavity().solve({alpha: 2, gamma: HALF, t: {1: 1}, e: {1: HALF, 4: HALF}})
    size = float(solution[average((w[i] - t[i]) ** 2)]) ** 0.5
    assert float(solution[average(fresh(field**2))]) == pytest.approx(2.5 * size**2, rel=1e-12)
    assert float(solution[average(fresh(Abs(field)))]) == pytest.approx(1.5 * size * (2 / float(pi)) ** 0.5, rel=1e-12)
