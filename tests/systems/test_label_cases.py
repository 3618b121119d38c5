"""Losses by cases of labels whose values are not declared: every case is seen when branches are laid out."""

import warnings

import numpy as np
import pytest
from sympy import Eq, Heaviside, KroneckerDelta, Max, Min, Piecewise, Rational, Sum, Symbol

from symcavity import (
    ConvexProblem,
    Coupling,
    Feature,
    Global,
    N,
    P,
    Problem,
    Quenched,
    UnstableSolution,
    UnsupportedLaw,
    ValuesError,
    alpha,
    average,
    i,
    mu,
)
from symcavity.algebra.phi import phi

x, w, b = Coupling("x"), Feature("w"), Global("b")
y = Quenched("y", mu)
h = Sum(x[mu, i] * w[i], (i, 1, N))
shrinkage = Symbol("lambda", positive=True)
HALVES = {alpha: 1, shrinkage: 1, y: {1: Rational(1, 2), -1: Rational(1, 2)}}


def fitted(loss, values=HALVES):
    problem = ConvexProblem(Sum(loss, (mu, 1, P)) + shrinkage * Sum(w[i] ** 2, (i, 1, N)) / 2)
    return float(problem.cavity().solve(values)[average(w[i] ** 2)])


@pytest.fixture(scope="module")
def by_product():
    return fitted(Max(0, 1 - y[mu] * h))


SPELLINGS = {
    "cases of kinks": Piecewise((Max(0, 1 - h), Eq(y[mu], 1)), (Max(0, 1 + h), True)),
    "a kink of cases": Max(0, Piecewise((1 - h, Eq(y[mu], 1)), (1 + h, True))),
    "indicators": KroneckerDelta(y[mu], 1) * Max(0, 1 - h) + KroneckerDelta(y[mu], -1) * Max(0, 1 + h),
    "signs": Piecewise((Max(0, 1 - h), y[mu] > 0), (Max(0, 1 + h), True)),
}


@pytest.mark.parametrize("loss", SPELLINGS.values(), ids=list(SPELLINGS))
def test_a_hinge_by_cases_of_its_label(loss, by_product):
    """A label drawn from the reals is never one: the branch at the kink of that case was lost."""
    assert fitted(loss) == pytest.approx(by_product, rel=1e-12)


def test_a_hinge_with_a_bias_by_cases_of_its_label():
    cases = Piecewise((Max(0, 1 - h + b), Eq(y[mu], 1)), (Max(0, 1 + h - b), True))
    uneven = HALVES | {y: {1: Rational(3, 4), -1: Rational(1, 4)}}
    assert fitted(cases, uneven) == pytest.approx(fitted(Max(0, 1 - y[mu] * (h - b)), uneven), rel=1e-12)


def test_a_label_beyond_a_far_bound(by_product):
    cases = Piecewise((Max(0, 1 - h), y[mu] > 40), (Max(0, 1 + h), True))
    values = HALVES | {y: {50: Rational(1, 2), 0: Rational(1, 2)}}
    assert fitted(cases, values) == pytest.approx(by_product, rel=1e-12)


def test_kinks_whose_order_is_that_of_labels_and_a_number():
    """A label drawn near zero is never above five: both orders are seen, and the law holds for each."""
    ridge = shrinkage * Sum(w[i] ** 2, (i, 1, N)) / 2
    problem = ConvexProblem(Sum(Max(0, y[mu] - h) + Max(0, h - 5), (mu, 1, P)) + ridge)
    theory, weak = problem.cavity(), {alpha: 2, shrinkage: Rational(1, 20)}
    for labels in ({1: 1}, {7: 1}, {7: Rational(1, 2), 1: Rational(1, 2)}):
        size = float(theory.solve({**weak, y: labels})[average(w[i] ** 2)])
        seen = problem.simulate({**weak, y: labels}, N=100, seeds=8)[average(w[i] ** 2)]
        assert abs(seen.mean - size) < 4 * seen.stderr


def test_a_loss_between_bounds_at_a_temperature():
    """Its bends are conditions by cases of the label, which have numerical code and are printed."""
    beta, ridge = Symbol("beta", positive=True), shrinkage * Sum(w[i] ** 2, (i, 1, N)) / 2
    cases = Piecewise((Min(1, Max(0, 1 - h)), Eq(y[mu], 1)), (Min(1, Max(0, 1 + h)), True))
    theories = [
        Problem(Sum(loss, (mu, 1, P)) + ridge).gibbs(beta).cavity() for loss in (Min(1, Max(0, 1 - y[mu] * h)), cases)
    ]
    one, other = (float(theory.solve({**HALVES, beta: 2})[average(w[i] ** 2)]) for theory in theories)
    assert one == pytest.approx(other, rel=1e-9)
    assert "ITE(" not in theories[1].derivation.to_text()


def counted(label):
    return (
        Heaviside(1 - label[mu] * h),
        Piecewise((Heaviside(1 - h), Eq(label[mu], 1)), (Heaviside(1 + h), True)),
        Piecewise((Heaviside(1 - h), label[mu] > 0), (Heaviside(1 + h), True)),
    )


def lowest(loss, values=None):
    ridge = shrinkage * Sum(w[i] ** 2, (i, 1, N)) / 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnstableSolution)
        theory = Problem(Sum(loss, (mu, 1, P)) + ridge).cavity()
        return theory.solve({alpha: 3, shrinkage: 1, **(values or {})})[average(w[i] ** 2)]


def test_counted_errors_however_their_labels_are_spelt():
    """Labels of both signs, which couplings without a mean take up: as without labels; a margin of its own is not."""
    label, plain = Quenched("y", mu, HALVES[y]), float(lowest(Heaviside(1 - h)))
    for loss in counted(label):
        assert float(lowest(loss)) == pytest.approx(plain, rel=1e-12)
    other = Piecewise((Heaviside(1 - h), Eq(label[mu], 1)), (Heaviside(2 + h), True))
    assert abs(float(lowest(other)) - plain) > 0.01


def test_labels_whose_law_is_given_as_a_value():
    """The same answer as where the declaration has the law; cases of a label whose values are open have no order."""
    values = {Quenched("y", mu): HALVES[y]}
    product, *cases = counted(Quenched("y", mu))
    assert float(lowest(product, values)) == pytest.approx(float(lowest(Heaviside(1 - h))), rel=1e-12)
    for loss in cases:
        with pytest.raises((UnsupportedLaw, ValuesError), match=r"order|positive values|not laid out"):
            lowest(loss, values)


def test_ten_classes_are_all_seen():
    """So many tests on one label come out one by one; the last class and the first have kinks of their own."""
    label = Quenched("k", mu)
    cases = Piecewise(*((Max(0, 1 - h), Eq(label[mu], k)) for k in range(9)), (Max(0, 1 + h), True))
    values = {alpha: 1, shrinkage: 1, label: {0: Rational(1, 4), 8: Rational(1, 4), 9: Rational(1, 2)}}
    assert fitted(cases, values) == pytest.approx(fitted(Max(0, 1 - y[mu] * h)), rel=1e-12)


def test_a_case_at_a_value_of_zero(by_product):
    declared = Quenched("y", mu, {0: Rational(1, 2), 1: Rational(1, 2)})
    cases = Piecewise((Max(0, 1 - h), Eq(declared[mu], 0)), (Max(0, 1 + h), True))
    assert fitted(cases, {alpha: 1, shrinkage: 1}) == pytest.approx(by_product, rel=1e-12)


def test_instances_do_not_depend_on_how_cases_are_spelt():
    """A kink of the case of another label has a bound that nothing holds; it is put on the kink."""
    ridge = shrinkage * Sum(w[i] ** 2, (i, 1, N)) / 2
    cases = Piecewise((Max(0, 1 - h + b), Eq(y[mu], 1)), (Max(0, 1 + h - b), True))
    runs = [
        ConvexProblem(Sum(loss, (mu, 1, P)) + ridge).simulate(HALVES, N=60, seeds=5)
        for loss in (Max(0, 1 - y[mu] * (h - b)), cases)
    ]
    one, other = ([np.append(sample["w"], sample["b"]) for sample in run.feasible] for run in runs)
    assert len(one) == len(other) == 5
    assert np.allclose(one, other, rtol=1e-9, atol=1e-9)


def test_instances_of_three_ordered_classes():
    """Two thresholds, of which the class between hears both: three kinks, and no datum hears all."""
    low, high, label = Global("low"), Global("high"), Quenched("label", mu)
    loss = Piecewise(
        (Max(0, 1 + h - low), Eq(label[mu], 0)),
        (Max(0, 1 - h + low) + Max(0, 1 + h - high), Eq(label[mu], 1)),
        (Max(0, 1 - h + high), True),
    )
    problem = ConvexProblem(Sum(loss, (mu, 1, P)) + shrinkage * Sum(w[i] ** 2, (i, 1, N)) / 2)
    thirds = {alpha: 1, shrinkage: 1, label: {k: Rational(1, 3) for k in range(3)}}
    run = problem.simulate(thirds, N=60, seeds=4)
    assert len(run.feasible) == 4
    assert run.residuals.worst < 1e-9


# regression on a teacher's field where it is positive; elsewhere a fit that is positive is charged
t, e = Quenched("t", i), Quenched("e", mu)
u = Sum(x[mu, i] * t[i], (i, 1, N))
SHOWN, HIDDEN = (u + e[mu] - h) ** 2 / 2, Max(0, h) ** 2 / 2
NOISE = {Rational(1, 2): Rational(2, 3), -1: Rational(1, 3)}
CENSORED = {alpha: 2, shrinkage: Rational(1, 2), t: {1: 1}, e: NOISE}


def regression(loss):
    return ConvexProblem(Sum(loss, (mu, 1, P)) + shrinkage * Sum(w[i] ** 2, (i, 1, N)) / 2).cavity()


@pytest.fixture(scope="module")
def censored():
    return regression(Piecewise((SHOWN, u + e[mu] > 0), (HIDDEN, True)))


def test_censored_labels_by_brute_force(censored):
    """The mean square of the forces over the joint Gaussian of the teacher's field and the cavity field."""
    solution = censored.solve(CENSORED)
    q, r, s = (float(solution[name]) for name in ("q_w", "q_t_w", "S_w"))
    z = np.arange(-1800, 1800) / 200 + 1 / 400  # the midpoints of cells, at whose ends the jumps lie
    first, second = z[:, None], z[None, :]
    weight = np.exp(-(first**2 + second**2) / 2)
    weight /= weight.sum()
    field, total = r * first + np.sqrt(q - r**2) * second, 0.0
    for noise, share in ((0.5, 2 / 3), (-1.0, 1 / 3)):
        force = np.where(first + noise > 0, first + noise - field, -np.maximum(0, field)) / (1 + s)
        total += share * float((weight * force**2).sum())
    assert float(solution["q_g"]) == pytest.approx(total, rel=1e-5)


def test_the_weight_of_a_case_stands_in_no_law(censored):
    """It multiplies an average over the law of one case."""
    assert any(equation.has(Piecewise) for equation in censored.equations)
    moments = {node for equation in censored.equations for node in equation.atoms(phi)}
    assert moments
    assert not any(node.has(Piecewise) for node in moments)


def test_censored_labels_as_a_label(censored):
    label = Quenched("y", mu, law={1: Heaviside(u + e[mu]), 0: Heaviside(-u - e[mu])}, given=u)
    labelled = regression(Piecewise((SHOWN, Eq(label[mu], 1)), (HIDDEN, True))).solve(CENSORED)
    solution = censored.solve(CENSORED)
    for name in ("q_w", "q_t_w", "q_g"):
        assert float(labelled[name]) == pytest.approx(float(solution[name]), rel=1e-11)
