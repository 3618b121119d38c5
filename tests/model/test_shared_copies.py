"""Copies that share a teacher, masks and selected features: single fits to all digits, instances, broken rules."""

import pytest
from sympy import Abs, And, Matrix, Max, Ne, Piecewise, Rational, Sum, Symbol, exp, log, sign, zeros

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, i, mu
from symcavity.sites.branching import part_averages

x, w, t, e = Coupling("x"), Feature("w"), Quenched("t", i), Quenched("e", mu)
gamma, u, half = Symbol("gamma", positive=True), Symbol("u", nonnegative=True), Rational(1, 2)
heard, taught = (Sum(x[mu, i] * q[i], (i, 1, N)) for q in (w, t))
weights = gamma * Sum(w[i] ** 2, (i, 1, N)) / 2
mask = Quenched("m", mu, law={1: half, 0: half})
signs = {1: half, -1: half}
lasso = ConvexProblem(
    Sum((Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) - e[mu]) ** 2, (mu, 1, P)) / 2 + gamma * Sum(Abs(w[i]), (i, 1, N))
)
SPARSE = {alpha: 2, gamma: half, t: {0: Rational(4, 5), 2: Rational(1, 5)}, e: {half: half, -half: half}}


def margins(masked=1):
    return ConvexProblem(Sum(masked * Max(0, 1 - sign(taught) * heard), (mu, 1, P)) + weights)


def overlaps(problem, values):
    first, second = problem["w_1"], problem["w_2"]
    solution = problem.cavity().solve(values)
    return [float(solution[average(a[i] * b[i])]) for a, b in ((first, first), (first, second), (second, second))]


def test_soft_margins_of_one_teacher_with_masks_of_their_own():
    """One of two bagged margins is the margin at half of the data; both are as instances are."""
    values = {alpha: 2, gamma: half, t: signs}
    copies = margins(mask[mu]).copies(2, share={mask: 0})
    first, both, second = overlaps(copies, values)
    alone = float(margins().cavity().solve({**values, alpha: 1})[average(w[i] ** 2)])
    assert [first, second] == pytest.approx([alone, alone], rel=1e-9)
    simulation = copies.simulate(values, N=50, seeds=12)
    product = average(copies["w_1"][i] * copies["w_2"][i])
    seen = simulation[product]
    assert abs(seen.mean - both) < 4 * seen.stderr + 0.02 * both
    assert alone - both > 8 * seen.stderr


@pytest.mark.parametrize("first", [0, 1, 2])
def test_fields_in_turn_have_the_covariance_that_they_were_made_of(first):
    rows = Matrix([[4, 1, 2], [1, 3, 1], [2, 1, 5]])
    size, slopes = part_averages._in_turn(rows.tolist(), first)
    lower = Matrix(3, 3, lambda r, c: slopes[r][c] if r >= first and c < r else int(r == c))
    beside = zeros(3, 3)
    beside[:first, :first] = rows[:first, :first]
    for k in range(first, 3):
        beside[k, k] = size[k]
    assert lower * beside * lower.T == rows


def test_the_order_of_conditioning_is_felt(monkeypatch):
    """What the second field follows of the first one is dropped: the overlap is another."""
    values = {alpha: 2, gamma: half, t: signs}
    copies = margins(mask[mu]).copies(2, share={mask: 0})
    right = overlaps(copies, values)[1]
    in_turn = part_averages._in_turn

    def broken(rows, first):
        size, slopes = in_turn(rows, first)
        return size, [[s if c < first else 0 * s for c, s in enumerate(row)] for row in slopes]

    monkeypatch.setattr(part_averages, "_in_turn", broken)
    assert overlaps(margins(mask[mu]).copies(2, share={mask: 0}), values)[1] != pytest.approx(right, rel=0.02)


def test_features_that_two_sparse_fits_select():
    """How many weights both keep: between the product of the shares and one share, and as in instances."""
    copies, values = lasso.copies(2, share={x: u}), {**SPARSE, u: half}
    one, other = copies["w_1"][i], copies["w_2"][i]
    theory = copies.cavity()
    solution = theory.solve(values)
    kept, both = average(Ne(one, 0)), average(Piecewise((1, And(Ne(one, 0), Ne(other, 0))), (0, True)))
    share = float(solution[kept])
    assert share**2 < float(solution[both]) < share
    assert theory.compare(copies.simulate(values, N=60, seeds=12), [kept, both, average(one * other)]).agrees(4)


def test_masks_and_labels_of_logistic_fits():
    """Two bagged logistic regressions: a datum that is left out sends nothing, whatever its label."""
    law = {1: 1 / (1 + exp(-3 * taught)), -1: 1 / (1 + exp(3 * taught))}
    label = Quenched("s", mu, law=law, given=taught)
    values = {alpha: 2, gamma: half, t: signs}

    def problem(masked):
        return ConvexProblem(Sum(masked * log(1 + exp(-label[mu] * heard)), (mu, 1, P)) + weights)

    first, both, second = overlaps(problem(mask[mu]).copies(2, share={mask: 0}), values)
    alone = float(problem(1).cavity().solve({**values, alpha: 1})[average(w[i] ** 2)])
    assert [first, second] == pytest.approx([alone, alone], rel=1e-8)
    assert 0 < both < alone
