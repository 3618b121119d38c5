"""Copies of a problem that share their couplings in part: hand formulas, instances, the variance of the minimum."""

from itertools import pairwise

import numpy as np
import pytest
from sympy import Abs, Eq, Rational, Sum, Symbol, exp, log, sign, sqrt
from sympy.stats import Normal

from symcavity import (
    ConvexProblem,
    Coupling,
    DeclarationError,
    Feature,
    Global,
    N,
    P,
    Quenched,
    ValuesError,
    alpha,
    average,
    i,
    mu,
)
from symcavity.derivations import gardner, soft_margin
from symcavity.model import copies as copies_module

x, w, y = Coupling("x"), Feature("w"), Quenched("y", mu)
u, gamma = Symbol("u", nonnegative=True), Symbol("gamma", positive=True)
heard = Sum(x[mu, i] * w[i], (i, 1, N))
weights = Sum(w[i] ** 2, (i, 1, N)) / 2
ridge = ConvexProblem(Sum((y[mu] - heard) ** 2, (mu, 1, P)) / 2 + gamma * weights)
AT = {gamma: Rational(1, 3), alpha: 2}
ONE = Normal("y", 0, 1)


def overlap(problem, values):
    first, second = problem["w_1"], problem["w_2"]
    solution = problem.cavity().solve(values)
    return [float(solution[average(a[i] * b[i])]) for a, b in ((first, first), (first, second), (second, second))]


@pytest.mark.parametrize("shared", ["0", "2/5", "9/10", "1"])
def test_ridge_by_hand(shared):
    """``w = S zeta`` and ``lambda = (y - eta)/(1 + S)`` close in one line."""
    share = float(Rational(shared))
    (response,) = (s for s in np.roots([1 / 3, 1 / 3 + 2 - 1, -1]) if s > 0)
    first, both, second = overlap(ridge.copies(2, share={x: u}), {**AT, u: shared, y: ONE})
    scale = 2 * response**2
    assert first == pytest.approx(scale / ((1 + response) ** 2 - scale), rel=1e-12)
    assert second == pytest.approx(first, rel=1e-12)
    assert both == pytest.approx(scale * share / ((1 + response) ** 2 - scale * share**2), rel=1e-12, abs=1e-15)


def test_other_labels_on_the_same_data():
    """Independent labels: the overlap is that of two independent drives of one linear map, zero on average."""
    copies = ridge.copies(2, share={y: 0})
    first, both, _ = overlap(copies, {**AT, Quenched("y_1", mu): ONE, Quenched("y_2", mu): ONE})
    assert first > 0.4
    assert abs(both) < 1e-12


def test_a_value_for_both_copies_is_asked_for_by_its_names():
    with pytest.raises(ValuesError, match=r"was given the value Normal\(0, 1\)") as caught:
        ridge.copies(2, share={y: 0}).cavity().solve({**AT, y: ONE})
    assert caught.value.hint == "y_1 and y_2, one for each copy"


def test_another_penalty_on_the_same_data():
    """Two ridges on one data set against 60 instances."""
    copies = ridge.copies(2, share={gamma: 0})
    one, other = Symbol("gamma_1", positive=True), Symbol("gamma_2", positive=True)
    _, both, _ = overlap(copies, {one: Rational(1, 3), other: 2, alpha: 2, y: ONE})
    rng, found = np.random.default_rng(3), []
    for _ in range(60):
        data, labels = rng.standard_normal((160, 80)) / np.sqrt(80), rng.standard_normal(160)
        fits = [np.linalg.solve(data.T @ data + g * np.eye(80), data.T @ labels) for g in (1 / 3, 2)]
        found.append(fits[0] @ fits[1] / 80)
    assert abs(np.mean(found) - both) < 4 * np.std(found) / np.sqrt(60)


def test_the_steps_of_the_martingale_add_up_to_the_variance():
    """``dCov(E, E')/du = N alpha <lambda lambda'> <w w'>``, as Gaussian couplings are interpolated."""
    copies = soft_margin.problem.copies(2, share={soft_margin.x: u})
    theory, at = copies.cavity(), {soft_margin.C: Rational(3, 4), alpha: Rational(5, 2)}
    overlaps = average(copies["w_1"][i] * copies["w_2"][i]), average(copies["lambda"][mu] * copies["lambda_2"][mu])
    nodes, rule = np.polynomial.legendre.leggauss(6)
    total = 0.0
    for v, weight in zip((nodes + 1) / 2, rule / 2, strict=True):  # u = 1 - v^2: overlaps leave u = 1 like a root
        solution = theory.solve({**at, u: float(1 - v * v)})
        total += weight * 2 * v * 2.5 * float(solution[overlaps[0]]) * float(solution[overlaps[1]])
    assert total == pytest.approx(float(soft_margin.problem.cavity().solve(at).variance()), rel=2e-5)


def test_names_of_a_copy():
    b, t = Global("b"), Quenched("t", i)
    field = Sum(x[mu, i] * t[i], (i, 1, N))
    label = Quenched("s", mu, law={1: 1 / (1 + exp(-field)), -1: 1 / (1 + exp(field))}, given=field)
    margins = ConvexProblem(weights + Sum(Abs(heard + b - label[mu]), (mu, 1, P)))
    text = str(margins.copies(3, share={x: 0}))
    assert all(name in text for name in ("w_3[i]", "b_2", "x_1[mu, i]", "s_3[mu]"))
    assert "x_1[mu, i]" not in str(margins.copies(2))
    assert "s_1" not in str(margins.copies(2, share={t: 1}))


taken = ConvexProblem(Symbol("w_1", positive=True) * weights, [Eq(heard, 1)])


@pytest.mark.parametrize(
    ("problem", "count", "share", "words"),
    [
        (ridge, 1, {}, "two copies or more"),
        (ridge, 2, {Coupling("z"): 0}, "not in the problem"),
        (ridge, 2, {y: u}, "law is left open"),
        (ridge, 2, {x: 2}, "between 0 and 1"),
        (ridge, 2, {gamma: u}, "each copy has its own"),
        (ridge, 2, {x: "half"}, "share of x"),
        (ridge, 2, [x], "shares"),
        (gardner.problem, 2, {}, "fixes"),
        (taken, 2, {}, "a name of the problem"),
    ],
)
def test_refusals(problem, count, share, words):
    with pytest.raises(DeclarationError, match=words):
        problem.copies(count, share)


def test_what_is_shared_grows_from_independence_to_one_copy():
    """Absolute penalties: the overlap of two fits rises with what they share, and at the end they are one."""
    lasso = ConvexProblem(
        Sum((y[mu] - Sum(x[mu, i] * w[i], (i, 1, N))) ** 2, (mu, 1, P)) / 2 + gamma * Sum(Abs(w[i]), (i, 1, N))
    )
    theory = lasso.copies(2, share={x: u})
    size = float(lasso.cavity().solve({**AT, y: ONE})[average(w[i] ** 2)])
    rows = [overlap(theory, {**AT, u: shared, y: ONE}) for shared in ("0", "1/2", "999999/1000000")]
    assert all(first == pytest.approx(size, rel=1e-7) == second for first, _, second in rows)
    both = [row[1] for row in rows]
    assert abs(both[0]) < 1e-9
    assert all(a < b for a, b in pairwise(both))
    assert both[-1] == pytest.approx(size, rel=5e-3)


def test_a_root_of_the_share_in_its_place_is_seen(monkeypatch):
    right = copies_module.exact
    monkeypatch.setattr(copies_module, "exact", lambda value, what: sqrt(right(value, what)))
    _, both, _ = overlap(ridge.copies(2, share={x: Rational(1, 4)}), {**AT, y: ONE})
    (response,) = (s for s in np.roots([1 / 3, 1 / 3 + 2 - 1, -1]) if s > 0)
    scale = 2 * response**2
    assert both != pytest.approx(scale / 4 / ((1 + response) ** 2 - scale / 16), rel=0.1)


def test_several_fits_of_one_data_set_average_over_their_masks():
    """Two bagged ridges, each with half of the data, against instances."""
    half = {1: Rational(1, 2), 0: Rational(1, 2)}
    mask = Quenched("m", mu, law=half)
    bagged = ConvexProblem(
        Sum(mask[mu] * (y[mu] - Sum(x[mu, i] * w[i], (i, 1, N))) ** 2, (mu, 1, P)) / 2
        + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2
    )
    first, both, _ = overlap(bagged.copies(2, share={mask: 0}), {**AT, y: ONE})
    rng, found = np.random.default_rng(3), []
    for _ in range(60):
        data, labels = rng.standard_normal((120, 60)) / np.sqrt(60), rng.standard_normal(120)
        keep = rng.random((2, 120)) < 0.5
        fits = [np.linalg.solve(data[k].T @ data[k] + np.eye(60) / 3, data[k].T @ labels[k]) for k in keep]
        found.append((fits[0] @ fits[0] / 60, fits[0] @ fits[1] / 60))
    for known, seen in zip((first, both), np.array(found).T, strict=True):
        assert abs(seen.mean() - known) < 4 * seen.std() / np.sqrt(60) + 0.02 * known


def teacher_of(slope):
    """A logistic regression on labels that a teacher gives: the problem, and its values."""
    t = Quenched("t", i)
    field = Sum(x[mu, i] * t[i], (i, 1, N))
    law = {1: 1 / (1 + exp(-slope * field)), -1: 1 / (1 + exp(slope * field))}
    label = Quenched("s", mu, law=law, given=field)
    problem = ConvexProblem(Sum(log(1 + exp(-label[mu] * heard)), (mu, 1, P)) + gamma * weights)
    return problem, label, {alpha: 2, t: {1: Rational(1, 2), -1: Rational(1, 2)}}


def logistic(data, labels, penalty):
    """The weights of a logistic regression, by Newton's method."""
    told, found = data * labels[:, None], np.zeros(data.shape[1])
    for _ in range(60):
        wrong = 1 / (1 + np.exp(told @ found))
        force = penalty * found - told.T @ wrong
        if abs(force).max() < 1e-9:
            break
        found -= np.linalg.solve((told.T * (wrong * (1 - wrong))) @ told + penalty * np.eye(len(found)), force)
    return found


def test_two_logistic_regressions_on_labels_that_a_teacher_gave_twice():
    """One is the single fit; both together are as instances are, and labels that are given once are another thing."""
    problem, label, values = teacher_of(3)
    values |= {gamma: Rational(1, 5)}
    first, both, second = overlap(problem.copies(2, share={label: 0}), values)
    alone = float(problem.cavity().solve(values)[average(w[i] ** 2)])
    assert first == pytest.approx(alone, rel=1e-9)
    assert second == pytest.approx(alone, rel=1e-9)
    rng, size, found = np.random.default_rng(1), 150, []
    for _ in range(40):
        data, teacher = rng.standard_normal((2 * size, size)) / np.sqrt(size), rng.choice([-1.0, 1.0], size)
        truth = 1 / (1 + np.exp(-3 * data @ teacher))
        fits = [logistic(data, np.where(rng.random(2 * size) < truth, 1.0, -1.0), 0.2) for _ in range(2)]
        found.append(fits[0] @ fits[1] / size)
    error = np.std(found) / np.sqrt(40)
    assert abs(np.mean(found) - both) < 4 * error + both / size
    assert abs(np.mean(found) - alone) > 10 * error


def test_logistic_regressions_on_data_that_they_share_by_half():
    """Each hears the teacher by its own data: alone it is the single fit, and both are as instances are."""
    problem, _, values = teacher_of(3)
    values |= {gamma: Rational(1, 5)}
    first, both, second = overlap(problem.copies(2, share={x: u}), {**values, u: Rational(1, 2)})
    alone = float(problem.cavity().solve(values)[average(w[i] ** 2)])
    assert (first, second) == pytest.approx((alone, alone), rel=1e-9)
    rng, size, found = np.random.default_rng(2), 150, []
    for _ in range(40):
        teacher = rng.choice([-1.0, 1.0], size)
        data, more = rng.standard_normal((2, 2 * size, size)) / np.sqrt(size)
        fits = []
        for own in (data, data / 2 + np.sqrt(0.75) * more):
            truth = 1 / (1 + np.exp(-3 * own @ teacher))
            fits.append(logistic(own, np.where(rng.random(2 * size) < truth, 1.0, -1.0), 0.2))
        found.append(fits[0] @ fits[1] / size)
    error = np.std(found) / np.sqrt(40)
    assert abs(np.mean(found) - both) < 4 * error + both / size
    assert both < alone - 10 * error


def test_a_label_of_a_copy_is_drawn_on_the_data_of_the_copy():
    """Labels stand on couplings: where a copy has its own, its teacher is heard by these."""
    problem, _, _ = teacher_of(1)
    copies = problem.copies(2, share={x: u})
    drawn = {str(q): str(q.given) for q in copies.labels}
    assert drawn == {"s_1": "Sum(t[i]*x_1[mu, i], (i, 1, N))", "s_2": "Sum(t[i]*x_2[mu, i], (i, 1, N))"}


def test_states_of_a_copy_are_averaged_over_its_own_field():
    """No state of the other copy, and none of the labels that it alone is fitted to, stands in the equations."""
    text = str(teacher_of(1)[0].copies(2, share={gamma: 0}).cavity().equations)
    assert "<lambda**2" in text
    assert all("eta^0_3" not in part.split("(eta", 1)[1].split(")")[0] for part in text.split("<lambda**2")[1:])


def test_copies_of_a_loss_that_jumps_with_its_teacher():
    """A response to the teacher's field is found by the fields of the own copy: one is the single fit."""
    t, slack = Quenched("t", i), Rational(1, 5)
    teacher = Sum(x[mu, i] * t[i], (i, 1, N))
    problem = ConvexProblem(Sum(log(1 + exp(-sign(teacher) * heard)), (mu, 1, P)) + gamma * weights)
    values = {alpha: 2, t: {1: Rational(1, 2), -1: Rational(1, 2)}}
    one, other = Symbol("gamma_1", positive=True), Symbol("gamma_2", positive=True)
    copies = problem.copies(2, share={gamma: 0})
    solution = copies.cavity().solve({**values, one: slack, other: 1})
    w1, w2 = copies["w_1"], copies["w_2"]
    first, both, second = (float(solution[average(a[i] * b[i])]) for a, b in ((w1, w1), (w1, w2), (w2, w2)))
    theory = problem.cavity()
    alone = [float(theory.solve({**values, gamma: g})[average(w[i] ** 2)]) for g in (slack, 1)]
    assert [first, second] == pytest.approx(alone, rel=1e-9)
    assert 0 < both < np.sqrt(first * second)
    assert "averages are sampled" in str(solution)  # that of both messages, over three fields and a jump
