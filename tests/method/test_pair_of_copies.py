"""Two sites of copies that share their data in part: the record is written, and has the numbers of one fit."""

import numpy as np
import pytest
from sympy import Matrix, Rational, Sum, Symbol, preorder_traversal, symbols
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, i, mu
from symcavity.method.pair_resolvent import _over
from symcavity.witness.judge import judge

x, w, e, gamma, half = Coupling("x"), Feature("w"), Quenched("e", mu), Symbol("gamma", positive=True), Rational(1, 2)
loss, weights = (e[mu] - Sum(x[mu, i] * w[i], (i, 1, N))) ** 2 / 2, gamma * Sum(w[i] ** 2, (i, 1, N)) / 2


def test_a_quotient_of_matrices_of_sums_by_numbers():
    letters = symbols("a:16")
    matrix = Matrix(4, 4, [(k + 2) * (s + letters[k - 1]) / (1 + s) for k, s in enumerate(letters)])
    above = Matrix(4, 4, [1 / (k + s) for k, s in enumerate(letters[::-1])])
    values = dict(zip(letters, map(Rational, range(3, 19)), strict=True))
    found, first, second = (
        np.array(m.xreplace(values).tolist(), dtype=float) for m in (_over(above, matrix), above, matrix)
    )
    assert found == pytest.approx(first @ np.linalg.inv(second), rel=1e-9)


def bagged():
    mask = Quenched("m", mu, law={1: half, 0: half})
    return ConvexProblem(Sum(mask[mu] * loss, (mu, 1, P)) + weights).copies(2, share={mask: 0})


def test_a_sum_of_two_fits_has_a_record_that_is_judged():
    """Each entry of the resolvent is one fraction: its determinant stands in it once, not once for each product."""
    two = bagged()
    pair = two.cavity().pair(over=[e], of=two["w_1"][i] + two["w_2"][i])
    for equation in (q for q in pair.resolvent.equations if q.lhs != pair.resolvent.value):
        parts = preorder_traversal(equation.rhs)
        assert sum(p.is_Pow and p.exp == -1 and p.base.is_Add for p in parts) == 1
    assert all(v.ok for v in judge(pair.derivation["pair.resolvent"]))


def test_fits_with_masks_of_their_own_have_a_record():
    two = bagged()
    theory = two.cavity()
    record = theory.pair(over=[e], of=two["w_1"]).derivation
    assert len(record["pair.resolvent"].claims) > 5
    values = {gamma: half, e: Normal("e", 0, 1)}
    of_one = ConvexProblem(Sum(loss, (mu, 1, P)) + weights).cavity().solve({alpha: Rational(3, 2), **values})
    found = theory.solve({alpha: 3, **values}).dimension(two["w_1"], over=[e])  # half of the data are in a fit
    assert float(found) == pytest.approx(float(of_one.dimension(w, over=[e])), rel=1e-9)


def test_resolvents_of_fits_with_penalties_of_their_own_are_judged():
    """Some of them vanish: no instance has an error there."""
    two = ConvexProblem(Sum(loss, (mu, 1, P)) + weights).copies(2, share={gamma: 0})
    assert all(v.ok for v in judge(two.cavity().pair(over=[e], of=two["w_1"]).derivation["pair.resolvent"]))
