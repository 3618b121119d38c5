"""Copies that share a part of a quenched family: linear fits by hand, instances, both ends, broken rules."""

from itertools import pairwise

import pytest
from sympy import Abs, Max, Rational, Sum, Symbol, exp, sqrt
from sympy.stats import Bernoulli, Exponential, Normal, Uniform

from symcavity import ConvexProblem, Coupling, DeclarationError, Feature, N, P, Quenched, alpha, average, i, mu
from symcavity.model import copies as copies_module

x, w = Coupling("x"), Feature("w")
u, gamma, half = Symbol("u", nonnegative=True), Symbol("gamma", positive=True), Rational(1, 2)
heard = Sum(x[mu, i] * w[i], (i, 1, N))
weights = Sum(w[i] ** 2, (i, 1, N)) / 2
AT = {gamma: Rational(1, 3), alpha: 2}
e = Quenched("e", mu, law=Normal("e", 0, half))
sparse = Quenched("t", i, law={0: Rational(4, 5), 2: Rational(1, 5)})


def ridge(target, scale=1):
    return ConvexProblem(Sum((target - heard) ** 2, (mu, 1, P)) / 2 + gamma * scale * weights)


def taught(t):
    return Sum(x[mu, i] * t[i], (i, 1, N))


def lasso(mask=1):
    return ConvexProblem(
        Sum(mask * (taught(sparse) + e[mu] - heard) ** 2, (mu, 1, P)) / 2 + gamma * Sum(Abs(w[i]), (i, 1, N))
    )


def overlap(problem, values):
    solution, (one, other) = problem.cavity().solve(values), (problem["w_1"], problem["w_2"])
    return [float(solution[average(a[i] * b[i])]) for a, b in ((one, one), (one, other), (other, other))]


LAWS = [
    Normal("y", 1, 2),
    {1: Rational(3, 4), -1: Rational(1, 4)},
    Bernoulli("y", Rational(1, 3)),
    Exponential("y", 1),
    Uniform("y", -1, 3),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_linear_fit_follows_the_covariance_of_its_targets(law):
    """``w`` is linear in the targets: ``<w w'>`` is between that of independent targets and that of the same ones."""
    y = Quenched("y", mu, law=law)
    copies = ridge(y[mu]).copies(2, share={y: u})
    alone = float(ridge(y[mu]).cavity().solve(AT)[average(w[i] ** 2)])
    rows = [overlap(copies, {**AT, u: share}) for share in (0, Rational(1, 4), 1)]
    assert all(row[0] == pytest.approx(alone, rel=1e-12) == row[2] for row in rows)
    both = [row[1] for row in rows]
    assert both[1] == pytest.approx(both[0] + (both[2] - both[0]) / 4, rel=1e-12)
    assert both[2] == pytest.approx(alone, rel=1e-12)
    apart = ridge(y[mu]).copies(2, share={y: 0})
    assert both[0] == pytest.approx(overlap(apart, AT)[1], rel=1e-12, abs=1e-14)


def test_three_copies_and_the_mean_of_their_fits():
    """The mean of three fits has a third of the square of one, and two thirds of the overlap of two."""
    y = Quenched("y", mu, law=Normal("y", 0, 1))
    copies = ridge(y[mu]).copies(3, share={y: Rational(2, 5)})
    solution = copies.cavity().solve(AT)
    ws = [copies[f"w_{k}"][i] for k in (1, 2, 3)]
    alone = float(ridge(y[mu]).cavity().solve(AT)[average(w[i] ** 2)])
    products = [float(solution[average(a * b)]) for a, b in pairwise([*ws, ws[0]])]
    assert products == pytest.approx([0.4 * alone] * 3, rel=1e-12)


def test_transfer_between_two_sparse_tasks():
    """Lassos of two teachers, half of whose weights are the same: as instances, and both ends those of one task."""
    copies = lasso().copies(2, share={sparse: u})
    none, some, all_ = (overlap(copies, {**AT, u: share}) for share in (0, half, 1))
    assert none[1] < some[1] < all_[1] == pytest.approx(all_[0], rel=1e-9)
    assert none[1] == pytest.approx(overlap(lasso().copies(2, share={sparse: 0}), AT)[1], rel=1e-9)
    product = average(copies["w_1"][i] * copies["w_2"][i])
    simulation = copies.simulate({**AT, u: half}, N=80, seeds=24)
    assert abs(simulation[product].mean - some[1]) < 4 * simulation[product].stderr
    assert some[1] - none[1] > 8 * simulation[product].stderr


def test_margins_with_masks_that_are_the_same_in_part():
    """A mask is the same with probability u: formulas of single fits, as without a share, and instances."""
    m = Quenched("m", mu, law={1: half, 0: half})
    margins = ConvexProblem(Sum(m[mu] * Max(0, 1 - heard), (mu, 1, P)) + gamma * weights)
    copies = margins.copies(2, share={m: Rational(3, 5)})
    first, both, second = overlap(copies, AT)
    alone = float(margins.cavity().solve(AT)[average(w[i] ** 2)])
    assert first == pytest.approx(alone, rel=1e-9) == second
    assert len(next(s for k, s in copies.cavity().inserted.items() if k.size == P).solution.parts) == 2
    product = average(copies["w_1"][i] * copies["w_2"][i])
    simulation = copies.simulate(AT, N=80, seeds=24)
    assert abs(simulation[product].mean - both) < 4 * simulation[product].stderr + 0.01 * both


def test_scales_of_penalties_that_differ_from_copy_to_copy():
    """Penalties of single weights, of few values and continuous: their copies have an inverse, and are as instances."""
    for law in ({1: half, 4: half}, Uniform("c", 1, 4)):
        c = Quenched("c", i, law=law)
        problem = ConvexProblem(
            Sum((taught(sparse) - heard) ** 2, (mu, 1, P)) / 2 + Sum(c[i] * w[i] ** 2, (i, 1, N)) / 2
        )
        rows = [overlap(problem.copies(2, share={c: share}), {alpha: 2}) for share in (0, half)]
        alone = float(problem.cavity().solve({alpha: 2})[average(w[i] ** 2)])
        assert rows[0][1] < rows[1][1] < alone == pytest.approx(rows[1][0], rel=1e-9)
    copies = problem.copies(2, share={c: half})
    product = average(copies["w_1"][i] * copies["w_2"][i])
    simulation = copies.simulate({alpha: 2}, N=80, seeds=24)
    assert abs(simulation[product].mean - rows[1][1]) < 4 * simulation[product].stderr


def test_labels_that_are_drawn_on_one_field():
    """The same inputs labeled twice, where a label is kept with probability u."""
    law = {1: 1 / (1 + exp(-3 * taught(sparse))), -1: 1 / (1 + exp(3 * taught(sparse)))}
    s = Quenched("s", mu, law=law, given=taught(sparse))
    squares = ridge(s[mu])
    rows = [overlap(squares.copies(2, share={s: share}), AT) for share in (0, half)]
    alone = float(squares.cavity().solve(AT)[average(w[i] ** 2)])
    assert rows[1] == pytest.approx([alone, (rows[0][1] + alone) / 2, alone], rel=1e-9)


def test_parameters_of_a_joint_law_are_shared_together():
    a, b = Quenched(("a", "b"), mu, law={(1, 1): half, (3, 2): half})
    problem = ConvexProblem(Sum(b[mu] * (heard - a[mu]) ** 2, (mu, 1, P)) / 2 + gamma * weights)
    alone = float(problem.cavity().solve(AT)[average(w[i] ** 2)])
    none, some, all_ = (overlap(problem.copies(2, share={a: u, b: u}), {**AT, u: v}) for v in (0, half, 1))
    assert none[1] < some[1] < all_[1] == pytest.approx(alone, rel=1e-9)
    assert overlap(problem.copies(2, share={a: 0, b: 0}), AT) == pytest.approx(none, rel=1e-9)
    with pytest.raises(DeclarationError, match="one share for all parameters of a joint law"):
        problem.copies(2, share={a: half})


def test_what_each_copy_has_is_found_by_name():
    copies = ridge(e[mu]).copies(2, share={e: half})
    solution = copies.cavity().solve(AT)
    first, second = copies["e_1"], copies["e_2"]
    assert float(solution[average(first[mu] * second[mu])]) == pytest.approx(1 / 8)
    with_names = ridge(e[mu]).copies(2, share={gamma: 0})
    assert with_names["gamma_1"] == Symbol("gamma_1", positive=True)
    theory, both = copies.cavity(), [first, second]
    alone = ridge(e[mu]).cavity().solve(AT)
    dimension = float(theory.solve(AT).dimension(copies["w_1"], over=both))
    assert dimension == pytest.approx(float(alone.dimension(w, over=[e])), rel=1e-9)


y = Quenched("y", mu)
drawn = Quenched(
    "s", mu, law={1: 1 / (1 + exp(-taught(sparse))), -1: 1 / (1 + exp(taught(sparse)))}, given=taught(sparse)
)


@pytest.mark.parametrize(
    ("problem", "share", "words"),
    [
        (ridge(y[mu]), {y: u}, "whose law is left open"),
        (ridge(e[mu]), {e: 2}, "between 0 and 1"),
        (ridge(drawn[mu]), {drawn: half, x: half}, "drawn on"),
        (ridge(e[mu] + Symbol("e_1")), {e: half}, "a name of the problem"),
        (ridge(e[mu] + Symbol("e_1e_2")), {e: half}, "a name of the problem"),
        (ridge(e[mu]), {gamma: half}, "one number"),
    ],
)
def test_refusals(problem, share, words):
    with pytest.raises(DeclarationError, match=words):
        problem.copies(2, share=share)


def test_a_root_of_the_share_in_its_place_is_seen(monkeypatch):
    right = copies_module.exact
    monkeypatch.setattr(copies_module, "exact", lambda value, what: sqrt(right(value, what)))
    masked = Quenched("y", mu, law={1: half, -1: half})
    copies = ridge(masked[mu]).copies(2, share={masked: Rational(1, 4)})
    first, both, _ = overlap(copies, AT)
    assert both != pytest.approx(first / 4, rel=0.1)


def test_the_theory_of_copies_is_judged():
    shared = Quenched("y", mu, law={1: half, 3: half})
    theory = ridge(shared[mu]).copies(2, share={shared: half}).cavity()
    assert all(v.ok for v in theory.derivation.verify())
